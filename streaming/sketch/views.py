"""What the chosen leaves know of one feature, and how wrong estimates over leaves that are cut can be.

An estimate over leaves that are cut has errors of two kinds. The elements that match are not a fair sample of their
leaf: their mean differs from the leaf's. And there may be more or fewer of them than estimated. Errors in different
leaves are partly alike (a border cuts all leaves along it on the same side), so their sum is between that of
independent errors and that of equal ones. See docs/sketches.md for the formulas.
"""

import functools
from dataclasses import dataclass

import numpy as np

from streaming.sketch.bounds import ALIKE_SHAPES, LeafSummary
from streaming.sketch.chosen import ChosenLeaves, summary_of

# The squared correlation of errors in different leaves.
ALIKE = 0.25
# The estimated part of a leaf that matches is as uncertain as that of a sample of so many elements.
SAMPLE = 2.0


@dataclass(frozen=True)
class FeatureView:
    """The chosen leaves that have values of a feature.

    Parameters
    ----------
    whole : LeafSummary
        Of the W leaves that match as a whole.
    cut : LeafSummary
        Of the C leaves that are cut, as far as their elements can match.
    original : LeafSummary
        Of the same leaves, with all elements.
    expected, least, most : ndarray of float64, shape (C,)
        How many values match: an estimate, and its bounds for certain.
    doubt : ndarray of float64, shape (C,)
        The standard deviation of `expected` as far as it depends on how values are distributed within the leaf.
    own : bool
        Whether a range of the feature itself cuts the leaves.
    """

    whole: LeafSummary
    cut: LeafSummary
    original: LeafSummary
    expected: np.ndarray
    least: np.ndarray
    most: np.ndarray
    doubt: np.ndarray
    own: bool = False

    @functools.cached_property
    def n(self) -> float:
        """How many values match, estimated."""
        return float(self.whole.n.sum()) + float(self.expected.sum())

    @functools.cached_property
    def part(self) -> np.ndarray:
        """The estimated part of each leaf's values that match."""
        return np.clip(self.expected / self.original.n, 0.0, 1.0)

    @functools.cached_property
    def freedom(self) -> np.ndarray:
        """How far the mean of the values that match may differ from that of their leaf, in standard deviations.

        Any part p of some values has its mean within sqrt((1 - p) / p) standard deviations of theirs. A small part of
        a leaf's box or times is like single values, within about 1. A small part by another feature may be the values
        at one end: of normal ones within sqrt(2 log(1 / p)). Of values that the feature's own range cuts, `cut` knows
        what is left, evenly spread.
        """
        part = np.clip(self.part, 1e-12, 1.0)
        most = np.where(self.doubt > 0, np.maximum(np.sqrt(2 * np.log(1 / part)), 1.0), 1.0)
        freedom = np.minimum(np.sqrt((1 - part) / part), most)
        return np.where(self.own & (self.doubt > 0), 1.0, freedom)

    @functools.cached_property
    def count_error(self) -> np.ndarray:
        """The standard deviation of how many values match."""
        spread = self.original.n * np.sqrt(self.part * (1 - self.part) / (1 + SAMPLE))
        return np.minimum(spread, (self.most - self.least) / 2)

    def total_error(self, shift: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the standard deviation of sums over the values that match, of shape (...).

        Parameters
        ----------
        shift : ndarray of float64, shape (..., C)
            The standard deviation of the sum in each leaf, for the estimated number of values.
        weight : ndarray of float64, shape (..., C)
            By how much one value more in a leaf changes the sum.
        """
        counts = np.hypot(partly_alike(weight * self.count_error), partly_alike(weight * self.doubt, ALIKE_SHAPES))
        return np.hypot(partly_alike(shift), counts)


def partly_alike(errors: np.ndarray, alike: float = ALIKE) -> np.ndarray:
    """Return the standard deviation of the sum of errors that are partly alike, of shape (...).

    Parameters
    ----------
    errors : ndarray of float64, shape (..., C)
        The standard deviations; negative ones are of errors that go the other way.
    alike : float
        The squared correlation of two of them.
    """
    return np.sqrt(alike * errors.sum(axis=-1) ** 2 + (1 - alike) * (errors**2).sum(axis=-1))


def view(chosen: ChosenLeaves, feature: str) -> FeatureView:
    """Return what chosen leaves know of a feature."""
    return chosen.once(("view", feature), lambda: _view(chosen, feature))


def _view(chosen: ChosenLeaves, feature: str) -> FeatureView:
    position = chosen.settings.position(feature)
    whole = summary_of(*(chosen.whole(name, position) for name in ("n", "mean", "m2", "low", "high")))
    if not len(chosen.cut.share):
        none = np.empty(0)
        nothing = LeafSummary(none, none, none, none, none)
        return FeatureView(whole, nothing, nothing, none, none, none, none)
    n = chosen.partial("n", position)
    known = np.flatnonzero(n > 0)
    n, count, cut = n[known], chosen.partial("count")[known], chosen.cut.take(known)
    original = summary_of(n, *(chosen.partial(name, position)[known] for name in ("mean", "m2", "low", "high")))
    own = [one for one in chosen.selection.ranges if one.feature == feature]
    if own:
        expected, least = cut.share * count, cut.least * count
    else:
        expected, least = cut.share * n, np.maximum(cut.least * count - (count - n), 0)
    most = np.minimum(cut.most * count, n)
    low, high = max((one.low for one in own), default=-np.inf), min((one.high for one in own), default=np.inf)
    clipped = _clipped(original, low, high) if own else original
    doubt = cut.doubt * (count if own else n)
    return FeatureView(whole, clipped, original, np.minimum(expected, n), np.minimum(least, n), most, doubt, bool(own))


def view_of_counts(
    n: np.ndarray, expected: np.ndarray, least: np.ndarray, most: np.ndarray, doubt: np.ndarray
) -> FeatureView:
    """Return a view of leaves that are cut, of which only numbers of elements matter."""
    none = np.zeros(len(n))
    known = LeafSummary(n, none, none, none, none)
    return FeatureView(known, known, known, expected, least, most, doubt)


def _clipped(known: LeafSummary, low: float, high: float) -> LeafSummary:
    """Return what is estimated of the values between two limits: those of `bounds.part_of`."""
    bottom, top = np.maximum(known.low, low), np.minimum(known.high, high)
    extent = np.where(known.high > known.low, known.high - known.low, 1.0)
    under = (known.high - known.mean) / extent
    pieces = []
    for mass, start, end in ((under, known.low, known.mean), (1 - under, known.mean, known.high)):
        first, last = np.clip(bottom, start, end), np.clip(top, start, end)
        length = np.where(end > start, end - start, 1.0)
        weight = np.where(end > start, mass * (last - first) / length, mass * ((bottom <= start) & (start <= top)))
        pieces.append((weight, (first + last) / 2, (last - first) ** 2 / 12))
    total = np.maximum(pieces[0][0] + pieces[1][0], 1e-300)
    mean = sum(weight * middle for weight, middle, _ in pieces) / total
    variance = sum(weight * (spread + (middle - mean) ** 2) for weight, middle, spread in pieces) / total
    variance = np.maximum(variance, (top - bottom) ** 2 / 12)
    return LeafSummary(known.n, np.clip(mean, bottom, top), variance, bottom, top)
