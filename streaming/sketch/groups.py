"""Statistics of many groups at once: for each cell of a map, or for each step of a time series.

A leaf that a selection cuts, or that lies in several groups, counts with the estimated part of its elements.

References
----------
Synopsis (2017), sections 3.6.2 and 4.4: statistics of areas and times, as maps and charts show them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streaming.sketch.answers import ROUNDING, deviations
from streaming.sketch.chosen import ChosenLeaves
from streaming.sketch.levels import bits_of
from streaming.sketch.views import ALIKE, view


@dataclass(frozen=True)
class GroupStatistics:
    """Statistics of G groups: arrays of float64, shape (G,), NaN where a group has no values.

    Parameters
    ----------
    n, mean, std, low, high : ndarray
        How many values, estimated; their mean, NaN if that is less than one; their standard deviation with n - 1 in the
        denominator, NaN for fewer than two; and the extremes that they may have.
    n_low, n_high : ndarray
        The bounds of `n`, for certain.
    mean_low, mean_high : ndarray
        The bounds of `mean`, with the confidence that was asked for; equal to it but for rounding if no leaf is cut.
    cut : ndarray
        Which part of `n` is of leaves that are cut, or that lie in several groups.
    """

    n: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n_low: np.ndarray
    n_high: np.ndarray
    mean_low: np.ndarray
    mean_high: np.ndarray
    cut: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """Which groups may have values, bool of shape (G,)."""
        return self.n_high > 0

    @property
    def sure(self) -> np.ndarray:
        """Of which groups it is certain which values they have, bool of shape (G,)."""
        return self.n_low == self.n_high


@dataclass(frozen=True)
class GroupMembers:
    """Which leaves are in which groups: M rows.

    Parameters
    ----------
    leaf : ndarray of int64, shape (M,)
        The position of the leaf, in the order of `ChosenLeaves.column`.
    group : ndarray of int64, shape (M,)
    part : ndarray of float64, shape (M,)
        The estimated part of the leaf's elements that are in the group; 1 if all are, for certain.
    groups : int
        The number of groups, G.
    """

    leaf: np.ndarray
    group: np.ndarray
    part: np.ndarray
    groups: int


def counted(chosen: ChosenLeaves, of: GroupMembers) -> GroupStatistics:
    """Return how many elements each group has; `mean`, `std` and extremes are NaN."""
    count, whole = chosen.column("count").astype(np.float64), len(chosen.column("count")) - len(chosen.cut.share)
    least, most = (np.concatenate([np.ones(whole), part]) * count for part in (chosen.cut.least, chosen.cut.most))
    n, n_low, n_high, cut = _amounts(of, chosen.share * count, least, most)
    none = np.full(of.groups, np.nan)
    return GroupStatistics(n, none, none, none, none, n_low, n_high, none, none, cut)


def described(chosen: ChosenLeaves, of: GroupMembers, feature: str, confidence: float) -> GroupStatistics:
    """Return the statistics of a feature for each group."""
    seen, z = view(chosen, feature), deviations(confidence)
    known = [
        _of_all(chosen, feature, getattr(seen.whole, name), getattr(seen.cut, name))
        for name in ("mean", "variance", "low", "high")
    ]
    mean, variance, low, high = (column[of.leaf] for column in known)
    amounts = [
        _of_all(chosen, feature, _present(chosen, feature), part) for part in (seen.expected, seen.least, seen.most)
    ]
    n, n_low, n_high, cut = _amounts(of, *amounts)
    expected = amounts[0][of.leaf] * of.part
    safe = np.maximum(n, 1e-300)
    centre = _summed(of, expected * mean) / safe
    squares = _summed(of, expected * (variance + (mean - centre[of.group]) ** 2))
    possible = amounts[2][of.leaf] > 0
    lowest, highest = np.full(of.groups, np.inf), np.full(of.groups, -np.inf)
    np.minimum.at(lowest, of.group[possible], low[possible])
    np.maximum.at(highest, of.group[possible], high[possible])
    some = n_high > 0
    lowest, highest = np.where(some, lowest, 0.0), np.where(some, highest, 0.0)
    error = _error(of, expected, amounts, mean - centre[of.group], variance)
    spread = np.where(n > 0, z * error / safe, np.inf)
    room = ROUNDING * np.maximum(np.abs(lowest), np.abs(highest))
    columns = (
        *_estimates(n, centre, squares),
        lowest,
        highest,
        np.maximum(lowest, centre - spread) - room,
        np.minimum(highest, centre + spread) + room,
    )
    centre, std, lowest, highest, mean_low, mean_high = (np.where(some, column, np.nan) for column in columns)
    return GroupStatistics(n, centre, std, lowest, highest, n_low, n_high, mean_low, mean_high, cut)


def _estimates(n: np.ndarray, centre: np.ndarray, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the means and the standard deviations of groups, NaN where too few values are estimated."""
    std = np.sqrt(squares / np.maximum(n - 1, 0.5))
    return np.where(n >= 1 - ROUNDING, centre, np.nan), np.where(n >= 2 - ROUNDING, std, np.nan)


def _of_all(chosen: ChosenLeaves, feature: str, whole: np.ndarray, cut: np.ndarray) -> np.ndarray:
    """Return a column of all chosen leaves, given that of those that are cut and have values; 0 for all others."""
    column = np.zeros(len(chosen.cut.share))
    if len(column):
        column[chosen.partial("n", chosen.settings.position(feature)) > 0] = cut
    return np.concatenate([whole, column]).astype(np.float64)


def _present(chosen: ChosenLeaves, feature: str) -> np.ndarray:
    """Return how many values of a feature the leaves have that match as a whole."""
    return chosen.whole("n", chosen.settings.position(feature))


def _summed(of: GroupMembers, values: np.ndarray) -> np.ndarray:
    return np.bincount(of.group, values, of.groups)


def _amounts(
    of: GroupMembers, expected: np.ndarray, least: np.ndarray, most: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return how many values each group has, the bounds for certain, and which part is of leaves that are cut."""
    divided = of.part < 1
    own = expected[of.leaf] * of.part
    unsure = divided | (least[of.leaf] < most[of.leaf])
    n = _summed(of, own)
    cut = _summed(of, np.where(unsure, own, 0.0)) / np.maximum(n, 1e-300)
    return n, _summed(of, np.where(divided, 0.0, least[of.leaf])), _summed(of, most[of.leaf]), cut


def _error(
    of: GroupMembers, expected: np.ndarray, amounts: Sequence[np.ndarray], apart: np.ndarray, variance: np.ndarray
) -> np.ndarray:
    """Return the standard deviation of each group's sum of differences from its mean (`FeatureView.total_error`)."""
    n, least, most = (amount[of.leaf] for amount in (amounts[2], amounts[1], amounts[2]))
    part = np.clip(expected / np.maximum(n, 1e-300), 0.0, 1.0)
    unsure = (of.part < 1) | (least < most)
    freedom = np.sqrt(np.minimum(1.0, (1 - part) / np.maximum(part, 1e-12))) * unsure
    shift = expected * np.sqrt(variance) * freedom
    counts = apart * np.minimum(n * np.sqrt(part * (1 - part) / 3), n / 2) * unsure
    alike = _summed(of, shift) ** 2 + _summed(of, counts) ** 2
    return np.sqrt(ALIKE * alike + (1 - ALIKE) * _summed(of, shift**2 + counts**2))


def by_cell(chosen: ChosenLeaves, level: int) -> tuple[np.ndarray, int, GroupMembers]:
    """Return cells with chosen leaves, and which leaves are in which.

    Parameters
    ----------
    chosen : ChosenLeaves
    level : int
        The number of bits of the cells that are wanted.

    Returns
    -------
    cells : ndarray of int64, shape (G,)
        Ascending.
    level : int
        The number of their bits: fewer than wanted if a leaf is coarser.
    membership : GroupMembers
    """
    bits = bits_of(chosen.settings, chosen.column("level").astype(np.int64))
    level = min(level, int(bits.min(initial=level)))
    cells, group = np.unique(chosen.column("cell").astype(np.int64) >> (bits - level), return_inverse=True)
    return cells, level, GroupMembers(np.arange(len(group)), group, np.ones(len(group)), len(cells))


def by_step(chosen: ChosenLeaves, edges_us: np.ndarray) -> GroupMembers:
    """Return which chosen leaves are in which steps of time.

    Parameters
    ----------
    chosen : ChosenLeaves
    edges_us : ndarray of int64, shape (G + 1,)
        Where the steps begin and end, ascending. Leaves outside of all steps are in none.
    """
    first_us, last_us = chosen.column("first_us"), chosen.column("last_us")
    steps = len(edges_us) - 1
    start = np.searchsorted(edges_us, first_us, "right") - 1
    stop = np.searchsorted(edges_us, last_us, "right") - 1
    low, high = np.clip(start, 0, None), np.clip(stop, None, steps - 1)
    many = np.maximum(high - low + 1, 0)
    leaf = np.repeat(np.arange(len(many)), many)
    group = np.arange(len(leaf)) - np.repeat(np.cumsum(many) - many, many) + low[leaf]
    begin, end = np.maximum(first_us[leaf], edges_us[group]), np.minimum(last_us[leaf] + 1, edges_us[group + 1])
    part = (end - begin) / np.maximum(last_us[leaf] + 1 - first_us[leaf], 1)
    return GroupMembers(leaf, group, np.where((start == stop)[leaf], 1.0, part), steps)
