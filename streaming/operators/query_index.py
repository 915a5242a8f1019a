"""An index over query boxes, which finds the queries whose boxes a point or a box may meet.

The cost of a look-up grows with the number of candidates, not with the number of queries.

References
----------
D. V. Kalashnikov, S. Prabhakar, S. E. Hambrusch, "Main Memory Evaluation of Monitoring Queries Over Moving Objects",
Distributed and Parallel Databases 15, 2004: a grid over the queries beats other indices for in-memory evaluation.
"""

from collections.abc import Callable

import numpy as np
import shapely

from streaming.operators.boxes import with_turns
from streaming.operators.runs import distinct, expand
from streaming.spaces import Space

# The grid has at most `MAX_LINES` lines in an axis, and at most `MAX_ENTRIES` entries in all cells together.
MAX_LINES = 512
MAX_ENTRIES = 1_000_000
# Boxes that meet more cells than this on the average are looked up in a tree.
FEW_CELLS = 32
# GEOS needs finite coordinates.
FAR = 1e18
# Of each box the first column and row of its cells, and how many columns and rows.
_Cells = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class QueryIndex:
    """An immutable index over boxes in the plane.

    The grid's lines are the edges of the boxes, thinned to quantiles if there are many. So the grid is fine where the
    queries are dense. A box is listed in each cell that it meets. A cell contains its low ends, but not its high ends,
    so a box is not listed in the cells that begin behind its upper edges.

    Parameters
    ----------
    boxes : ndarray of float64, shape (M, 4)
        ``[x_lo, y_lo, x_hi, y_hi]``, possibly infinite.
    query : ndarray of int64, shape (M,)
        The query that each box stands for; a query may have several.
    most : int
        At most how many entries all cells have together. An index with fewer entries is made sooner, and finds more
        candidates.
    """

    def __init__(self, boxes: np.ndarray, query: np.ndarray, most: int = MAX_ENTRIES) -> None:
        self.query = query
        self._boxes = np.clip(boxes, -FAR, FAR)
        self._tree: shapely.STRtree | None = None
        lines = MAX_LINES
        while True:
            self._x, self._y = (_lines(self._boxes[:, axis], self._boxes[:, 2 + axis], lines) for axis in (0, 1))
            cells = self._met(self._boxes)
            if _sizes(cells).sum() <= most or lines <= 2:
                break
            lines //= 2
        box, cell = self._numbered(cells)
        self._entry = box[np.argsort(cell, kind="stable")]
        self._count = np.bincount(cell, minlength=(len(self._x) + 1) * (len(self._y) + 1))
        self._start = np.cumsum(self._count) - self._count

    def at(
        self, bounds: np.ndarray, space: Space, grown: Callable[[np.ndarray, Space], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return all pairs (row, query) where the given box meets one of the query's boxes, and some others.

        Parameters
        ----------
        bounds : ndarray of float64, shape (N, 2n)
        space : Space
        grown : callable
            Takes boxes (K, 2n) that are no points, and the space. Returns the boxes of the plane (K, 4) to look up.

        Returns
        -------
        row, query : ndarray of int64, shape (P,)
            A pair may repeat.
        """
        n, y = space.n, min(1, space.n - 1)
        point = (bounds[:, 0] == bounds[:, n]) & (bounds[:, y] == bounds[:, n + y])
        at = np.flatnonzero(point)
        row, query = self.at_points(bounds[at, 0], bounds[at, y] if n > 1 else np.zeros(len(at)))
        row = at[row]
        if len(at) < len(bounds):
            at = np.flatnonzero(~point)
            turned, plane = with_turns(at, grown(bounds[at], space), space)
            box_row, box_query = self.at_boxes(plane)
            row, query = np.r_[row, turned[box_row]], np.r_[query, box_query]
        return row, query

    def at_points(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all pairs (row, query) where one of the query's boxes contains the point, and some others.

        Parameters
        ----------
        x, y : ndarray of float64, shape (N,)

        Returns
        -------
        row, query : ndarray of int64, shape (P,)
            Ordered by row. A pair may repeat if a query has several boxes.
        """
        cell = np.searchsorted(self._x, x, "right") * (len(self._y) + 1) + np.searchsorted(self._y, y, "right")
        row, entry = expand(self._start[cell], self._count[cell])
        return row, self.query[self._entry[entry]]

    def at_boxes(self, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs (row, query) where one of the query's boxes intersects the given box.

        Parameters
        ----------
        boxes : ndarray of float64, shape (N, 4)

        Returns
        -------
        row, query : ndarray of int64, shape (P,)
            Ordered by row. A pair may repeat if a query has several boxes.
        """
        boxes = np.clip(boxes, -FAR, FAR)
        cells = self._met(boxes)
        if _sizes(cells).sum() > FEW_CELLS * len(boxes):
            row, entry = self._by_tree(boxes)
        else:
            box, cell = self._numbered(cells)
            listed, position = expand(self._start[cell], self._count[cell])
            row, entry = box[listed], self._entry[position]
            meet = (boxes[row, :2] <= self._boxes[entry, 2:]).all(1) & (self._boxes[entry, :2] <= boxes[row, 2:]).all(1)
            row, entry = np.divmod(distinct(row[meet] * len(self.query) + entry[meet]), max(1, len(self.query)))
        return row, self.query[entry]

    def _by_tree(self, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs (row, entry) of boxes that meet, ordered by row; found by an STRtree of GEOS."""
        if self._tree is None:
            self._tree = shapely.STRtree(shapely.box(*self._boxes.T))
        row, entry = self._tree.query(shapely.box(*boxes.T))
        order = np.argsort(row, kind="stable")
        return row[order], entry[order]

    def _met(self, boxes: np.ndarray) -> _Cells:
        """Return the cells that each box meets: its first column and row, and how many columns and rows."""
        x_lo, x_hi = (np.searchsorted(self._x, boxes[:, side], "right") for side in (0, 2))
        y_lo, y_hi = (np.searchsorted(self._y, boxes[:, side], "right") for side in (1, 3))
        return x_lo, y_lo, x_hi - x_lo + 1, y_hi - y_lo + 1

    def _numbered(self, cells: _Cells) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of a box and the number of a cell that it meets, given the cells as `_met` returns them."""
        x, y, _, rows = cells
        box, offset = expand(np.zeros(len(x), dtype=np.int64), _sizes(cells))
        return box, (x[box] + offset // rows[box]) * (len(self._y) + 1) + y[box] + offset % rows[box]


def _sizes(cells: _Cells) -> np.ndarray:
    """Return how many cells each box meets."""
    return cells[2] * cells[3]


def _lines(low: np.ndarray, high: np.ndarray, most: int) -> np.ndarray:
    """Return at most `most` lines: the distinct starts of intervals, and the next floats after their ends.

    Intervals are closed, so they are over only after their ends. If there are more lines, those at even ranks are kept.
    """
    ends = np.unique(np.r_[low, np.nextafter(high, np.inf)])
    return ends if len(ends) <= most else ends[np.linspace(0, len(ends) - 1, most).astype(np.int64)]
