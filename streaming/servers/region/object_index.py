"""The index over a region's objects: a grid for each sorted run of their table.

A run never changes, so its grid is made once, and all versions of the table that have the run share it. What differs
between versions is which rows of a run newer runs supersede. The index is no state: a process that lacks it makes it
from the objects.

References
----------
P. O'Neil et al., "The log-structured merge-tree", Acta Informatica 33(4), 1996: each component has an index of its own.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streaming.operators.element_grid import ElementGrid
from streaming.operators.runs import find
from streaming.operators.stream_boxes import Near
from streaming.servers.region.objects import ObjectTable, elements_of
from streaming.servers.sorted_runs import Run
from streaming.spaces import Space


class _RunGrid:
    """The grid over the rows of a run, which is made when it is first needed."""

    def __init__(self, run: Run, space: Space) -> None:
        self._run, self._space = run, space

    @functools.cached_property
    def whole(self) -> ElementGrid:
        return ElementGrid(self._run.columns["bounds"], self._space)


@dataclass(frozen=True)
class _IndexedRun:
    """A run, its grid, and which of its rows are current.

    Parameters
    ----------
    run : Run
    grid : _RunGrid
    current : ndarray of bool, shape (N,)
        Which rows no newer run supersedes.
    newer : tuple of Run
        The newer runs.
    """

    run: Run
    grid: _RunGrid
    current: np.ndarray
    newer: tuple[Run, ...]

    @classmethod
    def of(cls, run: Run, space: Space) -> "_IndexedRun":
        """Return a run without newer ones."""
        return cls(run, _RunGrid(run, space), _current(run), ())

    def lies_under(self, newer: Sequence[Run]) -> bool:
        """Tell whether the oldest of the newer runs is still there.

        If a sweep has ended, this chunk has taken over what the runs of the sweep said, and they are gone.
        """
        return not self.newer or (len(newer) > 0 and newer[0] is self.newer[0])

    def alone(self) -> "_IndexedRun":
        """Return the same run without newer ones."""
        return _IndexedRun(self.run, self.grid, _current(self.run), ())

    def followed(self, newer: tuple[Run, ...]) -> "_IndexedRun":
        """Return the same run with other newer ones, which supersede what these did."""
        known = {id(run) for run in self.newer}
        rows = [_rows(self.run.key, keys) for run in newer if id(run) not in known for keys in (run.key, run.removed)]
        current = self.current
        if any(map(len, rows)):
            current = current.copy()
            current[np.concatenate(rows)] = False
        return _IndexedRun(self.run, self.grid, current, newer)


@dataclass(frozen=True)
class ObjectIndex:
    """An index over the places of objects.

    Parameters
    ----------
    objects : ObjectTable
    parts : tuple of _IndexedRun
        The parts of the table, in its order.
    """

    objects: ObjectTable
    parts: tuple[_IndexedRun, ...]

    @classmethod
    def of(cls, objects: ObjectTable, space: Space, former: "ObjectIndex | None" = None) -> "ObjectIndex":
        """Return the index over objects; it shares with a former one what is the same."""
        known = {id(part.run): part for part in former.parts} if former else {}
        table, parts = objects.table, []
        for place, run in enumerate(table.parts):
            newer = table.parts[max(place + 1, len(table.base)) :]
            part = known.get(id(run)) or _IndexedRun.of(run, space)
            if place < len(table.base) and not part.lies_under(newer):
                part = part.alone()
            parts.append(part.followed(newer))
        return cls(objects, tuple(parts))

    def look(self, plane: np.ndarray) -> Near:
        """Return all pairs of a box of the plane (M, 4) and an object that meet; see `stream_boxes.Look`."""
        size = np.array([len(part.current) for part in self.parts], dtype=np.int64)
        start = np.cumsum(size) - size
        boxes, places = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for part, first in zip(self.parts, start.tolist(), strict=True) if len(plane) else ():
            box, row = part.grid.whole.meeting(plane)
            current = part.current[row]
            boxes.append(box[current])
            places.append(row[current] + first)
        place = np.concatenate(places)
        found = np.zeros(size.sum(), dtype=bool)
        found[place] = True
        once = np.flatnonzero(found)
        position = np.empty(len(found), dtype=np.int64)
        position[once] = np.arange(len(once))
        of = np.searchsorted(start, once, "right") - 1
        objects = self.objects.at(of, once - start[of])
        return Near(np.concatenate(boxes), position[place], elements_of(objects, self.objects.cold), objects.key_hash)


def _current(run: Run) -> np.ndarray:
    """Return which rows of a run it does not remove itself, bool of shape (N,)."""
    current = np.ones(len(run.key), dtype=bool)
    current[_rows(run.key, run.removed)] = False
    return current


def _rows(ordered: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return the rows of keys in a run, given its keys; those that it lacks are left out."""
    position, present = find(ordered, keys)
    return position[present]


def indexed(indices: dict[int, ObjectIndex], space: Space, number: int, objects: ObjectTable) -> ObjectIndex:
    """Return the index over the objects of a region, which shares with the one before what is the same.

    Parameters
    ----------
    indices : dict of int to ObjectIndex
        By region, the newest index that there was.
    space : Space
    number : int
        The region.
    objects : ObjectTable
    """
    known = indices.get(number)
    if known is None or known.objects is not objects:
        indices[number] = ObjectIndex.of(objects, space, known)
    return indices[number]
