"""Statistics of a feature over what a selection chooses: count, mean, standard deviation, extremes, correlation.

Bounds with the confidence 1 hold for certain: of all elements that the leaves could be made of, they are the most
extreme. Others are those of a normal error, as `streaming.sketch.views` estimates it, within the certain limits of the
values. docs/sketches.md has the formulas.

References
----------
Synopsis (2017), section 3.6.2.
W. Dinkelbach, "On Nonlinear Fractional Programming", Management Science 13(7), 1967: the extremes of a ratio.
"""

import math
from dataclasses import replace

import numpy as np

from streaming.sketch.answers import CERTAIN, ROUNDING, Answer, Basis, basis_of, deviations, estimated, nothing, root
from streaming.sketch.bins import COMPLETE
from streaming.sketch.bounds import LeafSummary, excess
from streaming.sketch.chosen import ChosenLeaves
from streaming.sketch.settings import InvalidSketch
from streaming.sketch.views import ALIKE, FeatureView, view, view_of_counts

DEFAULT_CONFIDENCE = 0.95
# The bounds of a ratio are found to this part of the range of the values.
_PRECISION = 1e-7


def count(chosen: ChosenLeaves, feature: str | None = None, confidence: float = DEFAULT_CONFIDENCE) -> Answer:
    """Return how many elements match; with a feature, how many of them have it.

    Parameters
    ----------
    chosen : ChosenLeaves
    feature : str or None
    confidence : float
        Above 0; at 1 the bounds are certain.
    """
    basis, z = basis_of(chosen), deviations(confidence)
    if feature is None:
        cut, elements = chosen.cut, chosen.partial("count")
        sure, expected = float(chosen.whole("count").sum()), cut.share * elements
        least, most = cut.least * elements, cut.most * elements
        seen = view_of_counts(elements, expected, least, most, cut.doubt * elements)
    else:
        seen = view(chosen, feature)
        sure = float(seen.whole.n.sum())
    value = sure + float(seen.expected.sum())
    low, high = sure + float(seen.least.sum()), sure + float(seen.most.sum())
    if confidence < CERTAIN and len(seen.expected):
        spread = z * seen.total_error(np.zeros(len(seen.expected)), np.ones(len(seen.expected)))
        low, high = max(low, value - float(spread)), min(high, value + float(spread))
    low, high = math.ceil(low - ROUNDING * value), math.floor(high + ROUNDING * value)
    return Answer(min(max(value, low), high), low, high, confidence, basis)


def mean(chosen: ChosenLeaves, feature: str, confidence: float = DEFAULT_CONFIDENCE) -> Answer:
    """Return the mean of a feature; see `count` for the parameters."""
    basis, z, seen = basis_of(chosen), deviations(confidence), view(chosen, feature)
    if not _possible(seen):
        return nothing(confidence, basis)
    value, total = _mean(seen), max(seen.n, 1e-300)
    if confidence == CERTAIN:
        low, high = -_largest_mean(_mirrored(seen)), _largest_mean(seen)
    else:
        low, high = _limits(seen)
        if len(seen.expected):
            shift = seen.expected * np.sqrt(seen.cut.variance) * seen.freedom
            spread = z * float(seen.total_error(shift, seen.cut.mean - value)) / total
            low, high = max(low, value - spread), min(high, value + spread)
        else:
            low = high = value
    return estimated(_rounded(value, low, high, confidence, basis, _size(seen)), seen.n)


def std(chosen: ChosenLeaves, feature: str, confidence: float = DEFAULT_CONFIDENCE) -> Answer:
    """Return the standard deviation of a feature, with n - 1 in the denominator; see `count` for the parameters.

    Fewer than two values have none.
    """
    basis, z, seen = basis_of(chosen), deviations(confidence), view(chosen, feature)
    if not _possible(seen):
        return nothing(confidence, basis)
    centre, n = _mean(seen), seen.n
    whole = _squares(seen.whole, centre)
    cut = seen.cut.variance + (seen.cut.mean - centre) ** 2
    total = float((seen.whole.n * whole).sum() + (seen.expected * cut).sum())
    variance = total / (n - 1) if n > 1 else 0.0
    if not len(seen.expected):
        low = high = variance
    elif confidence == CERTAIN:
        low, high = _certain_variance(seen, centre)
    else:
        apart = seen.cut.mean - centre
        shift = seen.expected * np.sqrt(_spread_of_squares(seen.cut, apart)) * seen.freedom
        spread = z * float(seen.total_error(shift, cut - variance)) / max(n, 1e-300)
        bottom, top = _limits(seen)
        low, high = max(0.0, variance - spread), min(variance + spread, _widest(top - bottom, n))
    low, high = math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))
    return estimated(_rounded(math.sqrt(variance), low, high, confidence, basis, _size(seen)), n, least=2)


def minimum(chosen: ChosenLeaves, feature: str, confidence: float = DEFAULT_CONFIDENCE) -> Answer:
    """Return the least value of a feature; see `count` for the parameters."""
    upper = _maximum(_mirrored(view(chosen, feature)), confidence, basis_of(chosen))
    return Answer(-upper.value, -upper.high, -upper.low, confidence, upper.basis)


def maximum(chosen: ChosenLeaves, feature: str, confidence: float = DEFAULT_CONFIDENCE) -> Answer:
    """Return the largest value of a feature; see `count` for the parameters."""
    return _maximum(view(chosen, feature), confidence, basis_of(chosen))


def _maximum(seen: FeatureView, confidence: float, basis: Basis) -> Answer:
    deviations(confidence)
    if not _possible(seen):
        return nothing(confidence, basis)
    possible = seen.most > 0
    order = np.argsort(-seen.cut.high[possible], kind="stable")
    highest, part, doubt = (column[possible][order] for column in (seen.cut.high, seen.part, seen.doubt))
    sure = float(seen.whole.high[seen.whole.n > 0].max(initial=-np.inf))
    sure = max(sure, float(seen.cut.low[seen.least > 0].max(initial=-np.inf)))
    if sure == -np.inf:
        # Some leaf has a value that matches, at least as high as the lowest value there.
        sure = float(seen.cut.low[possible].min(initial=np.inf))
    risk = (1 - confidence) / 2

    def first(chance: np.ndarray) -> float:
        return max(sure, float(highest[np.argmax(chance)])) if chance.any() else sure

    # The chance that no leaf with a higher highest value has kept it, if leaves are independent.
    missed = np.cumprod(1 - part)
    high = first(missed < 1 - risk) if risk else first(missed <= 1)
    # Leaves that are alike lose theirs together; and those that a range of values cuts may all lose just these.
    surely_missed = np.cumprod(np.where(doubt > 0, 1.0, 1 - part)) ** ALIKE
    low = first(surely_missed <= risk) if risk else sure
    return estimated(Answer(max(first(missed <= 0.5), low), low, high, confidence, basis), seen.n)


def correlation(chosen: ChosenLeaves, one: str, other: str, confidence: float = DEFAULT_CONFIDENCE) -> Answer:
    """Return Pearson's correlation of two features, over elements that have all features of co-moments.

    Raises
    ------
    InvalidSketch
        If the sketch keeps no co-moments of the pair.
    """
    first, second = sorted((chosen.settings.position(one), chosen.settings.position(other)))
    if (first, second) not in chosen.settings.pairs:
        raise InvalidSketch(
            "the sketch must keep co-moments of %(one)s and %(other)s; it has none", one=one, other=other
        )
    basis, z = basis_of(chosen), deviations(confidence)
    planes = chosen.column("planes").astype(np.int64)  # of no leaves, a column has no type
    weight = chosen.share * chosen.column("count") * ((planes & COMPLETE) != 0)
    n = float(weight.sum())
    if n < 2:
        return nothing(confidence, basis)
    elements = np.maximum(chosen.column("count"), 1)
    means = np.stack([chosen.column("mean", feature) for feature in (first, second)])
    pair = chosen.settings.pairs.index((first, second))
    within = (
        np.stack([chosen.column("m2", first), chosen.column("m2", second), chosen.column("comoment", pair)]) / elements
    )
    centre = (means * weight).sum(axis=1) / n
    apart = means - centre[:, None]
    products = within + np.stack([apart[0] ** 2, apart[1] ** 2, apart[0] * apart[1]])
    squares = (products * weight).sum(axis=1) / n
    scale = math.sqrt(squares[0] * squares[1])
    if not scale > 0:
        return nothing(confidence, basis)
    value = min(max(float(squares[2]) / scale, -1.0), 1.0)
    cut = len(chosen.cut.share)
    if not cut:
        return _rounded(value, value, value, confidence, basis, 1.0)
    if confidence == CERTAIN:
        return Answer(value, -1.0, 1.0, confidence, basis)
    tail = slice(len(weight) - cut, None)
    spread = z * _correlation_error(chosen, weight[tail], within[:, tail], apart[:, tail], squares, value) / n
    # Fisher's transformation keeps the bounds within -1 and 1, and the error nearly normal.
    middle, width = math.atanh(min(max(value, -1 + 1e-12), 1 - 1e-12)), spread / max(1 - value**2, 1e-6)
    return _rounded(value, math.tanh(middle - width), math.tanh(middle + width), confidence, basis, 1.0)


def _correlation_error(
    chosen: ChosenLeaves, weight: np.ndarray, within: np.ndarray, apart: np.ndarray, squares: np.ndarray, value: float
) -> np.ndarray:
    """Return the standard deviation of a correlation, times n, from its influence function over leaves that are cut.

    The influence of a pair of standardised values is u v - r (u^2 + v^2) / 2; its mean and its variance in a leaf are
    those of a quadratic form of normal values.
    """
    deviation = np.sqrt(squares[:2])
    uu, vv = within[0] / squares[0], within[1] / squares[1]
    uv = within[2] / (deviation[0] * deviation[1])
    u, v = apart[0] / deviation[0], apart[1] / deviation[1]
    influence = uv + u * v - value * (uu + vv + u**2 + v**2) / 2
    # Q S, where Q is the form's matrix and S the covariances of the leaf.
    a, b = uv / 2 - value * uu / 2, vv / 2 - value * uv / 2
    c, d = uu / 2 - value * uv / 2, uv / 2 - value * vv / 2
    p, q = v / 2 - value * u / 2, u / 2 - value * v / 2
    variance = 2 * (a * a + 2 * b * c + d * d) + 4 * (p * p * uu + 2 * p * q * uv + q * q * vv)
    elements = chosen.partial("count")
    cut = chosen.cut
    seen = view_of_counts(elements, weight, cut.least * elements, cut.most * elements, cut.doubt * elements)
    return seen.total_error(weight * np.sqrt(np.maximum(variance, 0.0)) * seen.freedom, influence)


def _possible(seen: FeatureView) -> bool:
    return bool(seen.whole.n.any() or (seen.most > 0).any())


def _mean(seen: FeatureView) -> float:
    total = float((seen.whole.n * seen.whole.mean).sum() + (seen.expected * seen.cut.mean).sum())
    if seen.n > 0:
        return total / seen.n
    return float(seen.cut.mean[seen.most > 0].mean())


def _limits(seen: FeatureView) -> tuple[float, float]:
    """Return the least and the largest value that may match."""
    whole, cut = seen.whole.n > 0, seen.most > 0
    low = min(seen.whole.low[whole].min(initial=np.inf), seen.cut.low[cut].min(initial=np.inf))
    return float(low), float(max(seen.whole.high[whole].max(initial=-np.inf), seen.cut.high[cut].max(initial=-np.inf)))


def _size(seen: FeatureView) -> float:
    return max(map(abs, _limits(seen)))


def _squares(known: LeafSummary, centre: float) -> np.ndarray:
    return known.variance + (known.mean - centre) ** 2


def _mirrored(seen: FeatureView) -> FeatureView:
    """Return the view of the feature with the other sign."""

    def turned(known: LeafSummary) -> LeafSummary:
        return LeafSummary(known.n, -known.mean, known.variance, -known.high, -known.low)

    return replace(seen, whole=turned(seen.whole), cut=turned(seen.cut), original=turned(seen.original))


def _largest_mean(seen: FeatureView) -> float:
    """Return the largest mean that values can have of which the leaves could be made."""
    known, original, highest = seen.whole, seen.original, seen.cut.high
    n, total = float(known.n.sum()), float((known.n * known.mean).sum())

    def gain(limit: float) -> float:
        over = highest - limit
        kept = np.minimum(original.n * excess(limit, original), seen.most * over)
        return total - n * limit + float(np.where(over > 0, kept, seen.least * over).sum())

    low, high = _limits(seen)
    start = total / n if n else low
    return root(gain, min(start, high), high, _PRECISION * (high - low))


def _certain_variance(seen: FeatureView, centre: float) -> tuple[float, float]:
    """Return the least and the largest variance that values can have of which the leaves could be made."""
    n = float(seen.whole.n.sum())
    bottom, top = _limits(seen)
    total = float((seen.whole.n * _squares(seen.whole, centre)).sum())
    square = seen.original.variance + (seen.original.mean - centre) ** 2
    furthest = np.maximum((seen.cut.low - centre) ** 2, (seen.cut.high - centre) ** 2)
    bound = np.maximum((seen.original.low - centre) ** 2, (seen.original.high - centre) ** 2)

    def gain(limit: float) -> float:
        over = furthest - limit
        chord = seen.original.n * np.maximum(bound - limit, 0) * square / np.maximum(bound, 1e-300)
        kept = np.minimum(chord, seen.most * over)
        return total - n * limit + float(np.where(over > 0, kept, seen.least * over).sum())

    widest = max(float(furthest.max(initial=0.0)), total / n if n else 0.0)
    high = root(gain, 0.0, widest, _PRECISION * (top - bottom) ** 2)
    own = float((seen.whole.n * seen.whole.mean).sum()) / n if n else centre
    least = float((seen.whole.n * _squares(seen.whole, own)).sum())
    most = n + float(seen.most.sum())
    # Elements that match: at least n. The n - 1 in the denominator widens the largest variance.
    return least / max(most - 1, 1), high * (max(n, 2) / (max(n, 2) - 1))


def _spread_of_squares(known: LeafSummary, apart: np.ndarray) -> np.ndarray:
    """Return the variance of squared differences from a centre, for normal values, within what the extremes allow."""
    normal = 2 * known.variance**2 + 4 * known.variance * apart**2
    centre = known.mean - apart
    furthest = np.maximum((known.low - centre) ** 2, (known.high - centre) ** 2)
    square = known.variance + apart**2
    # Bhatia and Davis, "A Better Bound on the Variance", 2000.
    return np.minimum(normal, np.maximum(square * (furthest - square), 0.0))


def _widest(extent: float, n: float) -> float:
    """Return the largest variance of values within an extent (Popoviciu), with n - 1 in the denominator."""
    return extent**2 / 4 * (max(n, 2) / (max(n, 2) - 1))


def _rounded(value: float, low: float, high: float, confidence: float, basis: Basis, size: float) -> Answer:
    """Return an answer whose bounds have room for rounding errors."""
    room = ROUNDING * size
    return Answer(value, min(low, value) - room, max(high, value) + room, confidence, basis)
