"""The index over a region's objects, which follows their changes.

It is no state: a process that lacks it makes it from the objects.

References
----------
P. O'Neil et al., "The log-structured merge-tree", Acta Informatica 33(4), 1996: changes are kept apart, and merged when
they have grown to a part of the whole.
"""

import functools
from dataclasses import dataclass, replace

import numpy as np

from streaming.operators.element_grid import ElementGrid
from streaming.operators.runs import distinct, find
from streaming.servers.region.objects import Objects
from streaming.spaces import Space

# The grid is made anew when this part of its objects has changed.
CHANGED_PART = 1 / 8


class _Base:
    """Objects as they were at some time, and the grid over them, which is made when it is first needed."""

    def __init__(self, objects, space):
        self.keys, self._bounds, self.space = objects.key_hash, objects.bounds, space

    @functools.cached_property
    def grid(self):
        return ElementGrid(self._bounds, self.space)


@dataclass(frozen=True)
class ObjectIndex:
    """An index over the places of objects.

    Parameters
    ----------
    objects : Objects
        The objects as they are.
    base : _Base
        The objects as they were when the index was made, and the grid over them.
    stale : ndarray of bool
        Which of these have changed since.
    changed : ndarray of int64
        The keys of the objects that have changed since, or appeared, ascending.
    """

    objects: Objects
    base: _Base
    stale: np.ndarray
    changed: np.ndarray

    @classmethod
    def of(cls, objects: Objects, space: Space) -> "ObjectIndex":
        """Return the index over objects."""
        none = np.empty(0, dtype=np.int64)
        stale = np.zeros(len(objects), dtype=bool)
        return cls(objects, _Base(objects, space), stale, none)

    def advanced(self, objects: Objects, touched: np.ndarray) -> "ObjectIndex":
        """Return the index over the objects after a micro-batch that changed some, given their keys, ascending."""
        changed = distinct(np.r_[self.changed, touched])
        if len(changed) > CHANGED_PART * len(self.stale):
            return ObjectIndex.of(objects, self.base.space)
        position, present = find(self.base.keys, touched)
        stale = self.stale.copy()
        stale[position[present]] = True
        return replace(self, objects=objects, stale=stale, changed=changed)

    def covers(self, objects: Objects) -> bool:
        """Tell whether this is the index over some objects. It compares the places of all, which costs little."""
        return all(
            np.array_equal(getattr(self.objects, name), getattr(objects, name)) for name in ("key_hash", "bounds")
        )

    @functools.cached_property
    def _changed_rows(self):
        position, present = find(self.objects.key_hash, self.changed)
        return position[present]

    @functools.cached_property
    def _changed_grid(self):
        return ElementGrid(self.objects.bounds[self._changed_rows], self.base.space)

    def look(self, plane: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all pairs of a box of the plane and an object that meet; see `ElementGrid.meeting`.

        Returns
        -------
        box, row : ndarray of int64, shape (P,)
            The positions of boxes and of `objects`.
        """
        box, place = self.base.grid.meeting(plane)
        same = ~self.stale[place]
        box, place = box[same], place[same]
        row = find(self.objects.key_hash, self.base.keys[place])[0]
        if not len(self.changed):
            return box, row
        more, changed = self._changed_grid.meeting(plane)
        return np.r_[box, more], np.r_[row, self._changed_rows[changed]]
