"""A grid over elements, which finds those that boxes may meet without looking at the others.

`query_index` is the counterpart: it finds the queries that an element may meet.

References
----------
D. V. Kalashnikov, S. Prabhakar, S. E. Hambrusch, "Main Memory Evaluation of Monitoring Queries Over Moving Objects",
Distributed and Parallel Databases 15, 2004: in memory, a grid beats trees.
"""

import functools

import numpy as np

from streaming.operators.boxes import in_plane, with_turns
from streaming.operators.query_index import FAR, QueryIndex
from streaming.operators.runs import expand
from streaming.spaces import Space

# A cell has this many elements on average, until there are `MAX_CELLS` in an axis: their numbers then have 16 bits,
# which numpy sorts fastest.
ELEMENTS_PER_CELL = 4
MAX_CELLS = 256
# The lines of the grid are quantiles of about so many elements.
SAMPLE = 4096
# At most this part of the elements is *wide*: larger than the others, or infinite. They are indexed apart.
WIDE_PART = 0.02
# More than the rounding error of two subtractions.
ROUNDED = 1e-12


class ElementGrid:
    """An immutable grid over the low corners of boxes.

    Parameters
    ----------
    bounds : ndarray of float64, shape (N, 2n)
        The boxes of the elements.
    space : Space
    """

    def __init__(self, bounds: np.ndarray, space: Space) -> None:
        self.space = space
        self._plane = np.clip(in_plane(bounds, space), -FAR, FAR)
        self._wide, self._extent = _wide(self._plane, space)
        count = int(np.clip(np.sqrt(len(bounds) / ELEMENTS_PER_CELL), 1, MAX_CELLS))
        step = max(1, len(bounds) // SAMPLE)
        self._lines = [_quantiles(self._plane[::step, axis], count) for axis in (0, 1)]
        x, y = (np.searchsorted(self._lines[axis], self._plane[:, axis], "right") for axis in (0, 1))
        self._rows = len(self._lines[1]) + 1
        cell = x * self._rows + y
        self._order = np.argsort(cell.astype(np.uint16), kind="stable")
        cells = np.bincount(cell, minlength=(len(self._lines[0]) + 1) * self._rows)
        self._start = np.r_[0, np.cumsum(cells)]

    def __len__(self) -> int:
        return len(self._plane)

    def meeting(self, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all pairs of a box and an element that meet in the plane.

        Parameters
        ----------
        boxes : ndarray of float64, shape (M, 4)
            ``[x_lo, y_lo, x_hi, y_hi]``, possibly infinite. Where a dimension wraps, they come with the copies that
            `boxes.with_turns` makes.

        Returns
        -------
        box, row : ndarray of int64, shape (P,)
            The positions of boxes and of elements. A pair may repeat where a dimension wraps.
        """
        boxes = np.clip(boxes, -FAR, FAR)
        low = boxes[:, :2] - self._extent
        low -= np.where(self._extent > 0, ROUNDED * (np.abs(boxes[:, :2]) + self._extent), 0.0)
        x_lo, y_lo = (np.searchsorted(self._lines[axis], low[:, axis], "right") for axis in (0, 1))
        x_hi, y_hi = (np.searchsorted(self._lines[axis], boxes[:, 2 + axis], "right") for axis in (0, 1))
        # The cells of one column follow each other, and so do their elements.
        box, column = expand(x_lo, x_hi - x_lo + 1)
        start = self._start[column * self._rows + y_lo[box]]
        run, place = expand(start, self._start[column * self._rows + y_hi[box] + 1] - start)
        box, row = box[run], self._order[place]
        meet = np.ones(len(row), dtype=bool)
        for axis in (0, 1):
            meet &= self._plane[row, axis] <= boxes[box, 2 + axis]
            meet &= boxes[box, axis] <= self._plane[row, 2 + axis]
        if not len(self._wide):
            return box[meet], row[meet]
        meet &= ~self._is_wide[row]
        wide_box, wide = self._wide_index.at_boxes(boxes)
        return np.r_[box[meet], wide_box], np.r_[row[meet], wide]

    @functools.cached_property
    def _is_wide(self) -> np.ndarray:
        mask = np.zeros(len(self), dtype=bool)
        mask[self._wide] = True
        return mask

    @functools.cached_property
    def _wide_index(self) -> QueryIndex:
        numbers, plane = with_turns(self._wide, self._plane[self._wide], self.space)
        return QueryIndex(plane, numbers)


def _wide(plane: np.ndarray, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of wide boxes of the plane (N, 4), ascending, and the largest extent of the others, (2,)."""
    extents = plane[:, 2:] - plane[:, :2]
    if not len(plane) or not extents.any():
        limit, wide = np.zeros(2), np.zeros(len(plane), dtype=bool)
    else:
        place = int((1 - WIDE_PART) * (len(plane) - 1))
        limit = np.partition(extents, place, axis=0)[place]
        wide = (extents > limit).any(1)
    for axis, dimension in enumerate(space.dimensions[:2]):
        if dimension.wraps:  # an element across the end of a circle also lies a turn further
            wide |= plane[:, 2 + axis] >= dimension.hi
    return np.flatnonzero(wide), limit


def _quantiles(values: np.ndarray, count: int) -> np.ndarray:
    """Return lines that cut values into at most `count` parts of about equal size."""
    ordered = np.sort(values)
    return (
        np.unique(ordered[np.linspace(0, len(ordered) - 1, count + 1).astype(np.int64)[1:-1]])
        if count > 1
        else (ordered[:0])
    )
