"""Count how many boxes others meet, at most, without finding them: to cut work into pieces of a bounded size.

References
----------
J. Jin, N. An, A. Sivasubramaniam, "Analyzing Range Queries on Spatial Data", ICDE 2000: cumulated histograms of the
four corners of boxes, by which what lies beyond the sides of a box is included and excluded.
"""

import numpy as np

from streaming.operators.boxes import in_plane, turns
from streaming.operators.query_index import FAR
from streaming.spaces import Space

# Borders of cells in each axis, at most; between two there are about equally many sides of boxes.
BORDERS = 256


class CandidateCounts:
    """Counts of some boxes, by the cells of a grid in the first two dimensions.

    Parameters
    ----------
    bounds : ndarray of float64, shape (M, 2n)
    space : Space
    borders : int
        How many borders each axis of the grid has, at most: with more, the counts are closer.

    Examples
    --------
    >>> from streaming.spaces import EARTH
    >>> counts = CandidateCounts(np.stack([EARTH.box([0, 0], [1, 1]), EARTH.box([5, 5], [5, 5])]), EARTH)
    >>> counts.most(np.stack([EARTH.box([0.5, 0.5], [9, 9]), EARTH.box([7, 7], [8, 8])])).tolist()
    [2, 0]
    """

    def __init__(self, bounds: np.ndarray, space: Space, borders: int = BORDERS) -> None:
        plane = np.clip(in_plane(bounds, space), -FAR, FAR)
        self._count, self._space = len(plane), space
        self._x, self._y = _Axis(plane[:, 0], plane[:, 2], borders), _Axis(plane[:, 1], plane[:, 3], borders)
        # For each pair of a side in x and one in y: how many boxes are beyond both.
        self._beyond = [
            [_cumulated(x, y, self._x.size, self._y.size) for y in self._y.ranks(plane[:, 1], plane[:, 3])]
            for x in self._x.ranks(plane[:, 0], plane[:, 2])
        ]

    def most(self, boxes: np.ndarray) -> np.ndarray:
        """Return for each of some other boxes (K, 2n) how many it meets at most, counted anew for each turn, int64."""
        plane = np.clip(in_plane(boxes, self._space), -FAR, FAR)
        most = np.zeros(len(plane), dtype=np.int64)
        for turn in turns(self._space):
            moved = plane + np.tile(turn, 2)
            # Growing to the borders would bring boxes that lie beyond all to the outermost ones.
            near = np.flatnonzero(~(self._x.apart(moved[:, 0], moved[:, 2]) | self._y.apart(moved[:, 1], moved[:, 3])))
            most[near] += self._meeting(moved[near])
        return most

    def _meeting(self, plane: np.ndarray) -> np.ndarray:
        xs, ys = self._x.limits(plane[:, 0], plane[:, 2]), self._y.limits(plane[:, 1], plane[:, 3])
        found = np.full(len(plane), self._count)
        for x, beyond in zip(xs, self._beyond, strict=True):
            found -= beyond[0][x, -1]
            for y, both in zip(ys, beyond, strict=True):
                found += both[x, y]
        for y, both in zip(ys, self._beyond[0], strict=True):
            found -= both[-1, y]
        return found


class _Axis:
    """The borders of cells in an axis, at sides of boxes."""

    def __init__(self, low: np.ndarray, high: np.ndarray, borders: int) -> None:
        sides = np.sort(np.r_[low, high])
        self._borders = np.unique(sides[np.linspace(0, len(sides) - 1, min(borders, len(sides))).astype(int)])
        self.size = len(self._borders) + 1

    def ranks(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ranks of boxes: those below the limits of an interval lie before it, and behind it."""
        last = len(self._borders)
        return np.searchsorted(self._borders, high, "right"), last - np.searchsorted(self._borders, low, "left")

    def limits(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the limits of intervals, which grow to the borders around them, as ranks."""
        last = len(self._borders)
        return np.searchsorted(self._borders, low, "right"), last - np.searchsorted(self._borders, high, "left")

    def apart(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Tell which intervals lie beyond all boxes, bool."""
        return (high < self._borders[0]) | (low > self._borders[-1])


def _cumulated(x: np.ndarray, y: np.ndarray, columns: int, rows: int) -> np.ndarray:
    """Return how many ranks are less than each pair of limits, int64 of shape (columns + 1, rows + 1)."""
    counted = np.bincount(x * rows + y, minlength=columns * rows).reshape(columns, rows)
    return np.pad(counted.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
