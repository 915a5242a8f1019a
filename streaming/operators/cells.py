"""An even grid over points, for many small boxes of which few have a point: quick to build, quick to ask.

References
----------
B. H. Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors", CACM 13(7), 1970: here with one hash.
"""

import numpy as np

from streaming.operators.runs import expand

# A bit for each cell tells most of those without a point: there are so many bits for each point.
BITS = 64
_LEAST_BITS = 10
# A grid has at most so many cells in an axis, so that a cell's number is exact.
MOST_CELLS = float(1 << 30)
# A box over more cells is wide: a tree is better for it.
WIDE = 64
_ODD = np.uint64(0x9E3779B97F4A7C15)


class PointGrid:
    """Points, ordered by the cells of an even grid.

    Parameters
    ----------
    points : ndarray of float64, shape (N, 2)
        At least one; finite.
    size : ndarray of float64, shape (2,)
        The extent of a cell; best about that of the boxes. Cells are larger if there would be too many.

    Examples
    --------
    >>> grid = PointGrid(np.array([[0.5, 0.5], [3.0, 0.5]]), np.ones(2))
    >>> grid.within(np.array([[0.4, 0.2, 0.9, 0.8], [2.0, 0.0, 3.0, 1.0]]))
    (array([0, 1]), array([0, 1]), array([], dtype=int64))
    """

    def __init__(self, points: np.ndarray, size: np.ndarray) -> None:
        self._points, self._low, high = points, points.min(0), points.max(0)
        # Above 0 also where all points lie in one place.
        least = np.maximum((high - self._low) / MOST_CELLS, np.maximum(np.abs(points).max(), 1.0) * 1e-12)
        self._size = np.maximum(size, least)
        self._last = np.floor((high - self._low) / self._size)
        cell = self._numbered(*np.floor((points - self._low) / self._size).astype(np.int64).T)
        self._order = np.argsort(cell, kind="stable")
        self._cell = cell[self._order]
        bits = max(_LEAST_BITS, int(np.ceil(np.log2(BITS * len(points)))))
        self._shift = np.uint64(64 - bits)
        self._taken = np.zeros(1 << (bits - 3), dtype=np.uint8)
        byte, bit = self._bit(self._cell)
        np.bitwise_or.at(self._taken, byte, bit)

    def within(self, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the pairs of a box and a point in it, but not for boxes over very many cells.

        Parameters
        ----------
        boxes : ndarray of float64, shape (K, 4)
            ``[x_lo, y_lo, x_hi, y_hi]``

        Returns
        -------
        box, row : ndarray of int64, shape (P,)
            The positions of boxes and points, each pair once.
        wide : ndarray of int64, shape (W,)
            The positions of the boxes for which a tree is better, ascending; they have no pairs.
        """
        (x, y), (columns, rows) = self._cells(boxes)
        wide = np.flatnonzero(columns * rows > WIDE)
        columns[wide] = 0
        columns, rows = columns.astype(np.int64), rows.astype(np.int64)
        box, place = expand(np.zeros(len(boxes), dtype=np.int64), columns * rows)
        row, column = np.divmod(place, columns[box])
        cell = self._numbered(x.astype(np.int64)[box] + column, y.astype(np.int64)[box] + row)
        byte, bit = self._bit(cell)
        taken = np.flatnonzero(self._taken[byte] & bit)
        box, cell = box[taken], cell[taken]
        start, stop = np.searchsorted(self._cell, cell, "left"), np.searchsorted(self._cell, cell, "right")
        at, place = expand(start, stop - start)
        box, row = box[at], self._order[place]
        x, y = self._points[row].T
        x_lo, y_lo, x_hi, y_hi = boxes[box].T
        inside = (x_lo <= x) & (x <= x_hi) & (y_lo <= y) & (y <= y_hi)
        return box[inside], row[inside], wide

    def _cells(self, boxes: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return the first cell of boxes in both axes, and the number of cells there, float64 of shape (K,) each."""
        first, count = [], []
        for axis in (0, 1):
            low = np.floor((boxes[:, axis] - self._low[axis]) / self._size[axis])
            high = np.floor((boxes[:, axis + 2] - self._low[axis]) / self._size[axis])
            first.append(np.maximum(low, 0.0))
            count.append(np.maximum(np.minimum(high, self._last[axis]) - first[-1] + 1.0, 0.0))
        return first, count

    def _numbered(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x * (int(self._last[1]) + 1) + y

    def _bit(self, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where the bit of a cell is: the byte, and the bit in it."""
        place = (cell.view(np.uint64) * _ODD) >> self._shift
        return place >> np.uint64(3), np.left_shift(np.uint8(1), (place & np.uint64(7)).astype(np.uint8))
