"""Which of many boxes may meet one of a few, found without an index over the many.

References
----------
J. Patel, D. DeWitt, "Partition Based Spatial-Merge Join", SIGMOD 1996, section 3: a grid over the plane sorts out what
cannot meet before anything is compared.
"""

import numpy as np

# Lines of the grid in one axis at the most; so many for a box and axis that few cells have one.
MAX_LINES = 256
LINES = 5


def may_meet(many: np.ndarray, few: np.ndarray) -> np.ndarray:
    """Tell which boxes may meet one of some others.

    The grid's lines are at even ranks of the others' corners, so it is fine where they are dense.

    Parameters
    ----------
    many, few : ndarray of float64, shapes (N, 4) and (M, 4)
        ``[x_lo, y_lo, x_hi, y_hi]``.

    Returns
    -------
    ndarray of bool, shape (N,)
        True for all that meet one, and for some that come near.
    """
    if not len(few):
        return np.zeros(len(many), dtype=bool)
    count = int(min(MAX_LINES, LINES * np.sqrt(len(few)))) + 1
    lines = [np.sort(few[:, axis])[np.linspace(0, len(few) - 1, count).astype(np.int64)] for axis in (0, 1)]
    x_lo, y_lo, x_hi, y_hi = _cells(few, lines)
    size = len(lines[0]) + 2, len(lines[1]) + 2
    # A box adds one to its cells: at a corner of the array of sums what is added from there on.
    steps = np.zeros(size[0] * size[1], dtype=np.int64)
    for x, y, sign in ((x_lo, y_lo, 1), (x_hi + 1, y_lo, -1), (x_lo, y_hi + 1, -1), (x_hi + 1, y_hi + 1, 1)):
        steps += sign * np.bincount(x * size[1] + y, minlength=len(steps))
    taken = steps.reshape(size).cumsum(0).cumsum(1) > 0
    sums = np.zeros((size[0] + 1, size[1] + 1), dtype=np.int64)
    sums[1:, 1:] = taken.cumsum(0).cumsum(1)
    x_lo, y_lo, x_hi, y_hi = _cells(many, lines)
    return sums[x_hi + 1, y_hi + 1] - sums[x_lo, y_hi + 1] - sums[x_hi + 1, y_lo] + sums[x_lo, y_lo] > 0


def _cells(boxes, lines):
    """Return the first and the last cell of boxes in both axes: x_lo, y_lo, x_hi, y_hi."""
    low = [np.searchsorted(lines[axis], boxes[:, axis], "right") for axis in (0, 1)]
    if (boxes[:, :2] == boxes[:, 2:]).all():
        return *low, *low
    return *low, *(np.searchsorted(lines[axis], boxes[:, 2 + axis], "right") for axis in (0, 1))
