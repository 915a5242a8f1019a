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
    count = int(min(MAX_LINES, LINES * np.sqrt(len(few)))) + 1
    lines = [np.sort(few[:, axis])[np.linspace(0, len(few) - 1, count).astype(np.int64)] for axis in (0, 1)]
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


def _cells(boxes: np.ndarray, lines: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the first and the last cell of boxes in both axes: x_lo, y_lo, x_hi, y_hi."""
    x_lo, y_lo = (np.searchsorted(lines[axis], boxes[:, axis], "right") for axis in (0, 1))
    if (boxes[:, :2] == boxes[:, 2:]).all():
        return x_lo, y_lo, x_lo, y_lo
    x_hi, y_hi = (np.searchsorted(lines[axis], boxes[:, 2 + axis], "right") for axis in (0, 1))
    return x_lo, y_lo, x_hi, y_hi
