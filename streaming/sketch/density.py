"""The distribution of a feature over what a selection chooses: parts of a range, probabilities, quantiles, outliers.

References
----------
Synopsis (2017), section 3.6.3 (density queries), 3.6.2 (outliers by Chebyshev's inequality).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streaming.operators.runs import first_of_runs
from streaming.sketch.answers import CERTAIN, ROUNDING, Answer, Basis, basis_of, deviations, estimated, nothing
from streaming.sketch.bounds import ALIKE_SHAPES, LeafSummary, parts_up_to, range_parts
from streaming.sketch.chosen import ChosenLeaves
from streaming.sketch.runs import VALUE_GROUPS
from streaming.sketch.settings import InvalidSketch
from streaming.sketch.statistics import DEFAULT_CONFIDENCE, mean, std
from streaming.sketch.views import FeatureView, partly_alike, view

# A curve has about so many points.
POINTS = 96
# A curve is computed from at most so many leaves; more are merged with their neighbours in value.
MOST_LEAVES = 256
DECILES = tuple(number / 10 for number in range(1, 10))


def integral(
    chosen: ChosenLeaves, feature: str, low: float, high: float, confidence: float = DEFAULT_CONFIDENCE
) -> Answer:
    """Return which part of the values of a feature lies from `low` to `high`; both belong to the range.

    Parameters
    ----------
    chosen : ChosenLeaves
    feature : str
    low, high : float
        -inf and inf where there is no limit.
    confidence : float
        Above 0; at 1 the bounds are certain.
    """
    if not low <= high:
        raise InvalidSketch("low must not exceed high; got %(low)s and %(high)s", low=repr(low), high=repr(high))
    return _part(_seen(chosen, feature), low, high, confidence, basis_of(chosen))


def _seen(chosen: ChosenLeaves, feature: str) -> FeatureView:
    """Return what chosen leaves know of a feature; those that come merged by value anyway, as few."""
    if not chosen.runs:
        return view(chosen, feature)
    return chosen.once(("few", feature), lambda: _few(view(chosen.by_value(feature), feature), VALUE_GROUPS))


def probability(
    chosen: ChosenLeaves, feature: str, value: float, width: float = 0.0, confidence: float = DEFAULT_CONFIDENCE
) -> Answer:
    """Return the probability that an element has a value of a feature, or is at most ``width / 2`` away from it."""
    if not width >= 0:
        raise InvalidSketch("width must be at least 0; got %(width)s", width=repr(width))
    return integral(chosen, feature, value - width / 2, value + width / 2, confidence)


def outliers(
    chosen: ChosenLeaves, feature: str, deviations_: float = 3.0, confidence: float = DEFAULT_CONFIDENCE
) -> Answer:
    """Return which part of the values is more than so many standard deviations away from the mean.

    By Chebyshev's inequality it is at most ``1 / deviations_**2``. The bounds take into account that mean and standard
    deviation are only known within their own bounds.
    """
    if not deviations_ > 0:
        raise InvalidSketch(
            "outliers must be more than 0 standard deviations away; got %(deviations)s",
            deviations=repr(deviations_),
        )
    seen, basis = view(chosen.by_value(feature), feature), basis_of(chosen)
    centre, spread = mean(chosen, feature, confidence), std(chosen, feature, confidence)
    known = not math.isnan(centre.value + spread.value)
    if not known and (math.isnan(centre.low + spread.low) or not len(seen.expected)):
        return nothing(confidence, basis)
    near, usual, far = deviations_ * spread.low, deviations_ * spread.value, deviations_ * spread.high
    value = math.nan  # as long as mean and standard deviation have none, since fewer values may match than these need
    if known:
        value = 1 - _part(seen, centre.value - usual, centre.value + usual, confidence, basis).value
    most_inside = _part(seen, centre.low - far, centre.high + far, confidence, basis).high
    ends = centre.high - near, centre.low + near
    least_inside = _part(seen, *ends, confidence, basis).low if ends[0] <= ends[1] else 0.0
    most = min(1.0, 1 / deviations_**2 + ROUNDING)
    return Answer(min(value, most), min(1 - most_inside, most), min(1 - least_inside, most), confidence, basis)


def quantiles(
    chosen: ChosenLeaves, feature: str, parts: Sequence[float] = DECILES, confidence: float = DEFAULT_CONFIDENCE
) -> list[Answer]:
    """Return the least values of a feature at or below which at least some parts of the values lie.

    Parameters
    ----------
    chosen : ChosenLeaves
    feature : str
    parts : sequence of float
        Above 0 and below 1; deciles by default.
    confidence : float
        Of each single quantile.
    """
    for part in parts:
        if not 0 < part < 1:
            raise InvalidSketch("the part of a quantile must be between 0 and 1; got %(part)s", part=repr(part))
    basis = basis_of(chosen)
    curve = chosen.once(("curve", feature, confidence), lambda: _curve_of(chosen, feature, confidence))
    if curve is None:
        return [nothing(confidence, basis) for _ in parts]
    n = view(chosen, feature).n
    return [estimated(curve.quantile(part, confidence, basis), n) for part in parts]


@dataclass(frozen=True)
class _Curve:
    """A distribution function at some points, with its bounds: arrays of shape (G,), ascending."""

    at: np.ndarray
    part: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def quantile(self, part: float, confidence: float, basis: Basis) -> Answer:
        last = len(self.at) - 1
        # The quantile is above every point at which even the upper bound is too low.
        low = self.at[max(int(np.searchsorted(self.high, part - ROUNDING)) - 1, 0)]
        high = self.at[min(int(np.searchsorted(self.low, part + ROUNDING)), last)]
        rising = np.append(True, np.diff(self.part) > 0)
        value = float(np.interp(part, self.part[rising], self.at[rising]))
        return Answer(min(max(value, low), high), float(low), float(high), confidence, basis)


def _part(seen: FeatureView, low: float, high: float, confidence: float, basis: Basis) -> Answer:
    """Return which part of values lies in a range."""
    if not (seen.whole.n.any() or (seen.most > 0).any()):
        return nothing(confidence, basis)
    cut = _ranges(low, high, seen) if len(seen.expected) else ()
    value, bottom, top = map(float, _combined(seen, _whole_parts(seen.whole, low, high), cut, confidence))
    return estimated(Answer(value, bottom, top, confidence, basis), seen.n)


def _ranges(low: float, high: float, seen: FeatureView) -> tuple[np.ndarray, ...]:
    """Return which parts of the values of leaves that are cut lie in a range: of those that can match, and of all."""
    return (*range_parts(low, high, seen.cut), *range_parts(low, high, seen.original)[1:3])


def _combined(
    seen: FeatureView, whole: tuple[np.ndarray, ...], cut: tuple[np.ndarray, ...], confidence: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which part of values lies in ranges, and its bounds, each of shape (...).

    Parameters
    ----------
    seen : FeatureView
    whole : four ndarray of float64, shape (..., W)
        How many values of whole leaves lie in each range: as `range_parts`, times n.
    cut : six ndarray of float64, shape (..., C)
        See `_ranges`.
    confidence : float
    """
    n = float(seen.whole.n.sum())
    if not len(seen.expected):
        return _in_whole_leaves(whole, n, confidence)
    inside, least, most, doubt = whole
    part, _, _, part_doubt, own_least, own_most = cut
    # Of all values of a leaf, as many as its own bounds say lie in the range, or do not.
    kept = np.minimum(seen.most, seen.original.n * own_most)
    left = np.minimum(seen.most, seen.original.n * (1 - own_least))
    top = _ratio(most.sum(-1) + kept.sum(-1), n + np.maximum(kept, seen.least).sum(-1), 1.0)
    bottom = 1 - _ratio(n - least.sum(-1) + left.sum(-1), n + np.maximum(left, seen.least).sum(-1), 1.0)
    total = n + float(seen.expected.sum())
    value = _ratio(inside.sum(-1) + (seen.expected * part).sum(-1), total, (bottom + top) / 2)
    if confidence < CERTAIN and total > 0:
        shift = seen.expected * np.sqrt(np.maximum(part * (1 - part), 0.0)) * seen.freedom
        error = seen.total_error(shift, part - value[..., None])
        shape = partly_alike(np.concatenate([doubt, seen.expected * part_doubt], axis=-1), ALIKE_SHAPES)
        spread = deviations(confidence) * np.hypot(error, shape) / total
        bottom, top = np.maximum(bottom, value - spread), np.minimum(top, value + spread)
    bottom, top = np.minimum(bottom, value) - ROUNDING, np.maximum(top, value) + ROUNDING
    return value, np.clip(bottom, 0.0, 1.0), np.clip(top, 0.0, 1.0)


def _in_whole_leaves(
    whole: tuple[np.ndarray, ...], n: float, confidence: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which part of values lies in ranges, as `_combined` does, if no leaf is cut."""
    value, bottom, top = (part.sum(axis=-1) / n for part in whole[:3])
    if confidence < CERTAIN:
        spread = deviations(confidence) * partly_alike(whole[3], ALIKE_SHAPES) / n
        bottom, top = np.maximum(bottom, value - spread), np.minimum(top, value + spread)
    return value, np.clip(bottom - ROUNDING, 0.0, 1.0), np.clip(top + ROUNDING, 0.0, 1.0)


def _ratio(number: np.ndarray, total: np.ndarray | float, otherwise: np.ndarray | float) -> np.ndarray:
    total = np.asarray(total, dtype=np.float64)
    return np.where(total > 0, number / np.where(total > 0, total, 1.0), otherwise)


def _whole_parts(known: LeafSummary, low: float, high: float) -> tuple[np.ndarray, ...]:
    """Return how many values of whole leaves lie in a range, as `_combined` takes it."""
    if len(known.n) <= MOST_LEAVES:
        return tuple(known.n * part for part in range_parts(low, high, known))
    touching = (known.low <= high) & (known.high >= low)
    inside = touching & (known.low >= low) & (known.high <= high)
    sure = known.n[inside].sum(keepdims=True) * 1.0
    some = known.take(np.flatnonzero(touching & ~inside))
    parts = range_parts(low, high, some)
    return tuple(
        np.concatenate([first, some.n * part]) for first, part in zip((*[sure] * 3, [0.0]), parts, strict=True)
    )


def _few(seen: FeatureView, most: int = MOST_LEAVES) -> FeatureView:
    """Return a view with fewer leaves: neighbours by value are merged, which makes bounds a little wider."""
    whole, (whole_order, whole_at) = seen.whole, _neighbours(seen.whole, most)
    cut, (order, at) = seen.cut, _neighbours(seen.cut, most)
    counts: dict[str, Any] = {}
    for name in ("expected", "least", "most", "doubt"):
        column = getattr(seen, name)
        counts[name] = np.add.reduceat(column[order], at) if len(at) else column
    known: dict[str, Any] = {"whole": _merged(whole, whole_order, whole_at), "cut": _merged(cut, order, at)}
    return replace(seen, **known, original=_merged(seen.original, order, at), **counts)


def _neighbours(known: LeafSummary, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return an order of leaves by value, and where in it each group of leaves to be merged begins."""
    order = np.argsort(known.mean, kind="stable")
    reached = np.cumsum(known.n[order])
    if len(order) <= most:
        return order, np.arange(len(order))
    return order, np.flatnonzero(first_of_runs(reached * most // (reached[-1] + 1)))


def _merged(known: LeafSummary, order: np.ndarray, at: np.ndarray) -> LeafSummary:
    if not len(at):
        return known
    n, mean = known.n[order], known.mean[order]
    total = np.add.reduceat(n, at)
    centre = np.add.reduceat(n * mean, at) / np.maximum(total, 1)
    apart = mean - np.repeat(centre, np.diff(at, append=len(n)))
    variance = np.add.reduceat(n * (known.variance[order] + apart**2), at) / np.maximum(total, 1)
    low, high = np.minimum.reduceat(known.low[order], at), np.maximum.reduceat(known.high[order], at)
    return LeafSummary(total, centre, variance, low, high)


def _curve_of(chosen: ChosenLeaves, feature: str, confidence: float) -> _Curve | None:
    """Return the distribution function of what is chosen, None of nothing."""
    seen = _few(view(chosen.by_value(feature), feature))
    return _curve(seen, confidence) if seen.whole.n.any() or (seen.most > 0).any() else None


def _curve(seen: FeatureView, confidence: float) -> _Curve:
    """Return the distribution function of values."""
    lows, highs = np.concatenate([seen.whole.low, seen.cut.low]), np.concatenate([seen.whole.high, seen.cut.high])
    used = np.concatenate([seen.whole.n > 0, seen.most > 0])
    ends = np.sort(np.concatenate([lows[used], highs[used]]))
    at = np.unique(ends[np.linspace(0, len(ends) - 1, POINTS).astype(np.int64)])
    limit = at[:, None]
    whole = tuple(seen.whole.n * part for part in parts_up_to(limit, seen.whole))
    cut = (*parts_up_to(limit, seen.cut), *parts_up_to(limit, seen.original)[1:3]) if len(seen.expected) else ()
    return _Curve(at, *(np.maximum.accumulate(part) for part in _combined(seen, whole, cut, confidence)))
