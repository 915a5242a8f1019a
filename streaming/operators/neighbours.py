"""Find which of many boxes may meet one of a few, without an index over the many.

References
----------
J. Patel, D. DeWitt, "Partition Based Spatial-Merge Join", SIGMOD 1996, section 3: a grid over the plane excludes boxes
that cannot meet before any two are compared.
"""

import numpy as np

# The grid has at most `MAX_LINES` lines in an axis, and `LINES` times the root of the number of boxes, so that few of
# its cells meet a box.
MAX_LINES = 256
LINES = 5


def may_meet(many: np.ndarray, few: np.ndarray) -> np.ndarray:
    """Tell which of many boxes may meet one of a few others.

    The grid's lines lie at even ranks of the low corners of `few`, so the grid is fine where these boxes are dense.

    Parameters
    ----------
    many, few : ndarray of float64, shapes (N, 4) and (M, 4)
        ``[x_lo, y_lo, x_hi, y_hi]``.

    Returns
    -------
    ndarray of bool, shape (N,)
        True for all boxes of `many` that meet one of `few`, and for some that are only near one.
    """
    if not len(few):
        return np.zeros(len(many), dtype=bool)
    lines = _lines(few, int(min(MAX_LINES, LINES * np.sqrt(len(few)))))
    x_lo, y_lo, x_hi, y_hi = _cells(few, lines)
    size = len(lines[0]) + 2, len(lines[1]) + 2
    # Each box sets a step at four corners of its cells; two running sums turn the steps into the boxes of each cell.
    steps = np.zeros(size[0] * size[1], dtype=np.int64)
    for x, y, sign in ((x_lo, y_lo, 1), (x_hi + 1, y_lo, -1), (x_lo, y_hi + 1, -1), (x_hi + 1, y_hi + 1, 1)):
        steps += sign * np.bincount(x * size[1] + y, minlength=len(steps))
    taken = steps.reshape(size).cumsum(0).cumsum(1) > 0
    sums = np.zeros((size[0] + 1, size[1] + 1), dtype=np.int64)
    sums[1:, 1:] = taken.cumsum(0).cumsum(1)
    x_lo, y_lo, x_hi, y_hi = _cells(many, lines)
    return sums[x_hi + 1, y_hi + 1] - sums[x_lo, y_hi + 1] - sums[x_hi + 1, y_lo] + sums[x_lo, y_lo] > 0


def counts(boxes: np.ndarray, others: np.ndarray, few: int = 1) -> np.ndarray:
    """Return how many of some other boxes each box meets at most, int64 of shape (N,).

    The boxes that meet are all but those that lie on one side of it; those that lie on two sides are counted once.

    Parameters
    ----------
    boxes, others : ndarray of float64, shapes (N, 4) and (M, 4)
        ``[x_lo, y_lo, x_hi, y_hi]``.
    few : int
        The grid is so fine that if all boxes are small, the counts together are about so many or less, unless it would
        have more than `MAX_LINES` lines.

    Examples
    --------
    >>> others = np.array([[0.0, 0.0, 1.0, 1.0], [5.0, 5.0, 6.0, 6.0], [9.0, 0.0, 9.0, 9.0]])
    >>> boxes = np.array([[0.5, 0.5, 5.5, 5.5], [7.0, 7.0, 8.0, 8.0], [0.0, 0.0, 9.0, 9.0]])
    >>> counts(boxes, others).tolist()  # the second one meets none, but lies in the cell of one
    [2, 1, 3]
    """
    if not len(others):
        return np.zeros(len(boxes), dtype=np.int64)
    lines = _lines(others, int(min(MAX_LINES, 2 + 2 * np.sqrt(len(boxes) * len(others) / few))))
    size = len(lines[0]) + 2, len(lines[1]) + 2
    x_lo, y_lo, x_hi, y_hi = _cells(others, lines)
    # How many others lie before each line of cells in both axes. From the other side, cells are counted backwards.
    sides = [(x_hi, lambda x: x), (size[0] - 1 - x_lo, lambda x: size[0] - 1 - x)]
    across = [(y_hi, lambda y: y), (size[1] - 1 - y_lo, lambda y: size[1] - 1 - y)]
    at = _cells(boxes, lines)
    met = np.full(len(boxes), len(others), dtype=np.int64)
    for axis, of in enumerate((sides, across)):
        for side, (cells, turned) in enumerate(of):
            before = np.r_[0, np.cumsum(np.bincount(cells, minlength=size[axis]))]
            met -= before[turned(at[axis + 2 * side])]
    for x_side, (x, x_turned) in enumerate(sides):
        for y_side, (y, y_turned) in enumerate(across):
            beyond = np.zeros((size[0] + 1, size[1] + 1), dtype=np.int64)
            cells = np.bincount(x * size[1] + y, minlength=size[0] * size[1]).reshape(size)
            beyond[1:, 1:] = cells.cumsum(0).cumsum(1)
            met += beyond[x_turned(at[2 * x_side]), y_turned(at[1 + 2 * y_side])]
    return met


def _lines(boxes: np.ndarray, count: int) -> list[np.ndarray]:
    """Return the lines of a grid in both axes, `count` and one, at even ranks of the low corners of boxes."""
    ranks = np.linspace(0, len(boxes) - 1, count + 1).astype(np.int64)
    return [np.sort(boxes[:, axis])[ranks] for axis in (0, 1)]


def _cells(boxes: np.ndarray, lines: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the first and the last cell of boxes in both axes: x_lo, y_lo, x_hi, y_hi."""
    x_lo, y_lo = (np.searchsorted(lines[axis], boxes[:, axis], "right") for axis in (0, 1))
    if (boxes[:, :2] == boxes[:, 2:]).all():
        return x_lo, y_lo, x_lo, y_lo
    x_hi, y_hi = (np.searchsorted(lines[axis], boxes[:, 2 + axis], "right") for axis in (0, 1))
    return x_lo, y_lo, x_hi, y_hi
