"""Compiled functions that summarise elements, and leaves, by groups.

Groups are given by an `order` of the members, group by group, and by `at`: where in it each begins, and the last ends.
Sums are in this order. Both have no sign, since each access would otherwise test whether it counts from the end.
"""

import numba
import numpy as np

from streaming.compiled import compiled, readonly

_PLACES, _COUNTS, _ROWS = readonly(numba.uint64), numba.int64[:, ::1], numba.float64[:, ::1]
_ANY_COUNTS, _ANY_ROWS = (numba.types.Array(kind, 2, "A", readonly=True) for kind in (numba.int64, numba.float64))


@compiled((readonly(numba.float64), _PLACES, _PLACES, numba.int64[::1], *[numba.float64[::1]] * 5))
def summarise(
    values: np.ndarray,
    order: np.ndarray,
    at: np.ndarray,
    n: np.ndarray,
    mean: np.ndarray,
    m2: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    apart: np.ndarray,
) -> None:
    """Summarise N values of a feature in G groups.

    Parameters
    ----------
    values : ndarray of float64, shape (N,)
        NaN where there is none.
    order, at : ndarray of uint64, shape (N,) and (G + 1,)
    n, mean, m2 : ndarray, shape (G,)
        Get how many values there are, their means, and the sums of the squared differences from these; 0 for none.
    low, high : ndarray of float64, shape (G,)
        Get the extremes; inf and -inf for none.
    apart : ndarray of float64, shape (N,) or (0,)
        Gets how far each value is from the mean of its group, 0 where there is none; unless it is empty.
    """
    for group in range(len(at) - 1):
        count, total, least, most, squares = 0, 0.0, np.inf, -np.inf, 0.0
        for place in range(at[group], at[group + 1]):
            value = values[order[place]]
            if value == value:
                count += 1
                total += value
                least, most = min(least, value), max(most, value)
        centre = total / max(count, 1)
        for place in range(at[group], at[group + 1]):
            value = values[order[place]]
            far = value - centre if value == value else 0.0
            squares += far * far
            if len(apart):
                apart[order[place]] = far
        n[group], mean[group], m2[group], low[group], high[group] = count, centre, squares, least, most


@compiled((_ANY_COUNTS, _ANY_ROWS, _ANY_ROWS, _PLACES, _PLACES, _COUNTS, _ROWS, _ROWS, _ROWS))
def merge(
    many: np.ndarray,
    means: np.ndarray,
    squares: np.ndarray,
    order: np.ndarray,
    at: np.ndarray,
    n: np.ndarray,
    mean: np.ndarray,
    m2: np.ndarray,
    apart: np.ndarray,
) -> None:
    """Merge what K leaves know of F features in G groups.

    Parameters
    ----------
    many : ndarray of int64, shape (F, K)
        How many values each leaf has.
    means, squares : ndarray of float64, shape (F, K)
        Their means, and the sums of the squared differences from them.
    order, at : ndarray of uint64, shape (K,) and (G + 1,)
    n, mean, m2 : ndarray, shape (F, G)
        Get the same of the groups.
    apart : ndarray of float64, shape (F, K) or (0, K)
        Gets how far the mean of each leaf is from that of its group, unless it has no rows.
    """
    for feature in range(len(means)):
        for group in range(len(at) - 1):
            count, total, square = 0, 0.0, 0.0
            for place in range(at[group], at[group + 1]):
                leaf = order[place]
                count += many[feature, leaf]
                total += many[feature, leaf] * means[feature, leaf]
            centre = total / max(count, 1)
            for place in range(at[group], at[group + 1]):
                leaf = order[place]
                far = means[feature, leaf] - centre
                square += squares[feature, leaf] + many[feature, leaf] * far * far
                if len(apart):
                    apart[feature, leaf] = far
            n[feature, group], mean[feature, group], m2[feature, group] = count, centre, square


@compiled(
    (_ANY_ROWS, _ANY_ROWS, _PLACES, _PLACES, _ROWS, _ROWS),
    (_ANY_COUNTS, _ANY_COUNTS, _PLACES, _PLACES, _COUNTS, _COUNTS),
)
def extremes(
    lows: np.ndarray, highs: np.ndarray, order: np.ndarray, at: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    """Find the least and the largest numbers of G groups, none of them empty, in each of A rows.

    Parameters
    ----------
    lows, highs : ndarray of float64 or int64, shape (A, N)
        The extremes of the members.
    order, at : ndarray of uint64, shape (N,) and (G + 1,)
    low, high : ndarray of the same type, shape (A, G)
        Get the extremes of the groups.
    """
    for row in range(len(lows)):
        for group in range(len(at) - 1):
            first = order[at[group]]
            least, most = lows[row, first], highs[row, first]
            for place in range(at[group], at[group + 1]):
                least, most = min(least, lows[row, order[place]]), max(most, highs[row, order[place]])
            low[row, group], high[row, group] = least, most
