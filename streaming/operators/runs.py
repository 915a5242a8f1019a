"""Runs of equal or consecutive numbers, and look-ups in sorted arrays."""

import numpy as np

# Of the bits of an int64, the one that makes it negative.
_SIGN = np.uint64(1 << 63)


def expand(start: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the members of runs of consecutive numbers.

    Parameters
    ----------
    start, count : ndarray of int64, shape (N,)
        The first member of each run, and how many members it has.

    Returns
    -------
    run, position : ndarray of int64, shape (sum of count,)
        For each member the number of its run, and the member: ``start, start + 1, ...``.

    Examples
    --------
    >>> [part.tolist() for part in expand(np.array([5, 0]), np.array([2, 1]))]
    [[0, 0, 1], [5, 6, 0]]
    """
    run = np.repeat(np.arange(len(count)), count)
    first = np.cumsum(count) - count
    return run, np.arange(len(run)) + np.repeat(start - first, count)


def find(ordered: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Look values up in an ordered array.

    Parameters
    ----------
    ordered : ndarray, shape (M,)
        Ascending.
    values : ndarray, shape (N,)

    Returns
    -------
    position : ndarray of int64, shape (N,)
        Where the value stands, or would be inserted.
    present : ndarray of bool, shape (N,)
        Whether the value is in `ordered`.

    Examples
    --------
    >>> [part.tolist() for part in find(np.array([2, 4]), np.array([4, 3]))]
    [[1, 1], [True, False]]
    """
    position = np.searchsorted(ordered, values)
    present = np.zeros(len(values), dtype=bool)
    within = position < len(ordered)
    present[within] = ordered[position[within]] == values[within]
    return position, present


def last_of_runs(ordered: np.ndarray) -> np.ndarray:
    """Return the position of the last member of each run of equal values.

    Examples
    --------
    >>> last_of_runs(np.array([3, 3, 5])).tolist()
    [1, 2]
    """
    last = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=last[:-1])
    return np.flatnonzero(last)


def first_of_runs(ordered: np.ndarray) -> np.ndarray:
    """Tell which members are the first of a run of equal values, bool of shape (N,).

    Examples
    --------
    >>> first_of_runs(np.array([3, 3, 5])).tolist()
    [True, False, True]
    """
    first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def place_in_runs(ordered: np.ndarray) -> np.ndarray:
    """Return how often each member came before, int64 of shape (N,); the members are ascending.

    Examples
    --------
    >>> place_in_runs(np.array([3, 3, 5])).tolist()
    [0, 1, 0]
    """
    return np.arange(len(ordered)) - np.searchsorted(ordered, ordered)


def distinct(values: np.ndarray) -> np.ndarray:
    """Return the distinct values, ascending; faster than `numpy.unique` where the values come in a few ordered runs.

    Examples
    --------
    >>> distinct(np.array([3, 5, 3])).tolist()
    [3, 5]
    """
    ordered = np.sort(values, kind="stable")
    return ordered[last_of_runs(ordered)]


def order_of_hashes(values: np.ndarray) -> np.ndarray:
    """Return the stable order of hashes, several times as fast as `numpy.argsort` where there are many.

    NumPy sorts 16-bit numbers by counting. So the upper half of the hashes is ordered in two turns, the lower digits
    first, and what is left to do is to order the few that are equal in that half.

    Parameters
    ----------
    values : ndarray of int64, shape (N,)
        Their upper 32 bits should be as good as random.

    Returns
    -------
    ndarray of int64, shape (N,)

    Examples
    --------
    >>> order_of_hashes(np.array([7 << 40, -1, 3, 7 << 40])).tolist()
    [1, 2, 0, 3]
    """
    digits = values.view(np.uint64) ^ _SIGN
    order = np.argsort((digits >> np.uint64(32)).astype(np.uint16), kind="stable")
    order = order[np.argsort((digits[order] >> np.uint64(48)).astype(np.uint16), kind="stable")]
    ordered = values[order]
    if (ordered[1:] < ordered[:-1]).any():
        order = order[np.argsort(ordered, kind="stable")]
    return order


def running_maximum(ordered: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return, for each position, the largest value so far within its run of equal numbers.

    Parameters
    ----------
    ordered : ndarray of int64, shape (N,)
        Of which the runs are.
    values : ndarray, shape (N,)

    Examples
    --------
    >>> running_maximum(np.array([7, 7, 7, 9]), np.array([2, 5, 4, 1])).tolist()
    [2, 5, 5, 1]
    """
    known, rank = np.unique(values, return_inverse=True)
    offset = (np.cumsum(first_of_runs(ordered)) - 1) * len(known)
    largest: np.ndarray = known[np.maximum.accumulate(offset + rank) - offset]
    return largest
