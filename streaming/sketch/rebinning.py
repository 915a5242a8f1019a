"""When bins are made, and when they are made anew: as the distribution of the elements drifts.

Bins of a plane without an error budget have about equally many of the elements since the last time. With a budget, they
are the fewest that keep it for 90 % of all elements so far. It is checked after `SketchSettings.first` elements, then
after twice as many, four times, and so on. If fewer than 85 % of the elements since the bins were made keep it, and new
bins would do better, these are made. So 80 % of all elements keep it, unless the distribution drifts without end.

References
----------
Synopsis (2017), section 3.1.2: the number of bins, the error of a bin, and 80 % of the values.
"""

from collections.abc import Sequence

import numpy as np

from streaming.sketch.bins import TAG_BIT, BinnedValues, Bins, fan_out_order
from streaming.sketch.leaves import Leaves
from streaming.sketch.observations import Observations
from streaming.sketch.settings import Plane, SketchSettings

# A budget is for such a part of the values, as in the paper.
USUAL = 0.8
# Bins are made to keep an error for such a part of the values, and made anew if they keep it for less than the other.
MADE = 0.9
CHECKED = 0.85
# New bins must keep it for so much more of the recent values.
GAIN = 0.02


def first_bins(settings: SketchSettings, elements: Observations) -> Bins:
    """Return the bins that the first elements make, with the planes in the order of their fan-out."""
    columns = [elements.values[feature] for feature in settings.plane_features]
    points = [BinnedValues.of(column[~np.isnan(column)]) for column in columns]
    edges = tuple(_edges(plane, some) for plane, some in zip(settings.planes, points, strict=True))
    bins = Bins(edges, fan_out_order(Bins(edges).codes(columns)))
    return _with_kept(settings, bins, points)


def next_check(settings: SketchSettings, since: int) -> int:
    """Return after how many elements since the bins were made the error budgets are checked next."""
    if not settings.budgeted:
        return settings.follow
    return settings.first << (since // settings.first).bit_length()


def is_check(settings: SketchSettings, since: int) -> bool:
    """Tell whether error budgets are checked after so many elements since the bins were made."""
    return since > 0 and settings.budgeted and next_check(settings, since - 1) == since


def bins_of(settings: SketchSettings, bins: Bins, leaves: Leaves) -> Bins:
    """Return new bins, given all leaves; a plane of which nothing is known keeps those that it has."""
    recent = _recent(bins, leaves)
    chosen = [leaves if plane.error is not None else recent for plane in settings.planes]
    points = [_points(settings, place, some, leaves) for place, some in enumerate(chosen)]
    edges = tuple(
        _edges(plane, some) if len(some.values) else was
        for plane, some, was in zip(settings.planes, points, bins.edges, strict=True)
    )
    return _with_kept(settings, Bins(edges, bins.order), points)


def better(settings: SketchSettings, bins: Bins, others: Bins, leaves: Leaves) -> bool:
    """Tell whether bins do not keep an error budget for the elements since they were made, and others would."""
    recent = _recent(bins, leaves)
    for place, plane in enumerate(settings.planes):
        if plane.error is None:
            continue
        points, error = _points(settings, place, recent, leaves), plane.error * _extent(settings, place, leaves)
        kept = points.kept(bins.edges[place], error)
        if kept < CHECKED and points.kept(others.edges[place], error) >= kept + GAIN:
            return True
    return False


def _edges(plane: Plane, points: BinnedValues) -> np.ndarray:
    if plane.error is None:
        return points.edges(plane.most_bins)
    return points.edges_within(plane.error * points.extent, plane.most_bins, MADE)


def _with_kept(settings: SketchSettings, bins: Bins, points: Sequence[BinnedValues]) -> Bins:
    """Return bins that know for which part of the values they keep the error budgets."""
    kept = [
        None if plane.error is None else some.kept(edges, plane.error * some.extent)
        for plane, edges, some in zip(settings.planes, bins.edges, points, strict=True)
    ]
    return Bins(bins.edges, bins.order, tuple(kept))


def _recent(bins: Bins, leaves: Leaves) -> Leaves:
    """Return the leaves that have the present bins."""
    return leaves.take(np.flatnonzero((leaves.planes >> TAG_BIT << TAG_BIT) == bins.tag))


def _points(settings: SketchSettings, place: int, leaves: Leaves, all_: Leaves) -> BinnedValues:
    """Return the points of leaves, for a plane, given all leaves of the sketch."""
    feature, plane = settings.plane_features[place], settings.planes[place]
    known = np.flatnonzero(leaves.n[feature] > 0)
    low, high, n = (getattr(leaves, name)[feature][known] for name in ("low", "high", "n"))
    error = None if plane.error is None else plane.error * _extent(settings, place, all_)
    return BinnedValues.of_intervals(low, high, n, plane.most_bins, error)


def _extent(settings: SketchSettings, place: int, leaves: Leaves) -> float:
    feature = settings.plane_features[place]
    known = leaves.n[feature] > 0
    low, high = leaves.low[feature][known], leaves.high[feature][known]
    return float(high.max() - low.min()) if len(low) else 0.0
