"""An error budget finds the number of bins, and bins follow the stream so that the budget is kept."""

from dataclasses import replace

import numpy as np
import pytest

from streaming.sketch import codec
from streaming.sketch.bins import BinnedValues
from streaming.sketch.observations import Observations
from streaming.sketch.settings import HOUR_US, InvalidSketch, Plane, SketchSettings, parse_settings
from streaming.sketch.sketch import Sketch, add
from streaming.spaces import EARTH
from streaming.state.codec import Tables

ERROR = 0.02
SETTINGS = SketchSettings(("heat",), (Plane("heat", error=ERROR),), cell_bits=2, first=500)


def errors(values, edges, extent):
    """The normalised error of each value's bin, by brute force."""
    code = np.searchsorted(edges, values, "right")
    spread = {one: values[code == one].std() for one in np.unique(code)}
    return np.array([spread[one] for one in code]) / extent


def shifted(rng, count, shift):
    """Normal values, whose mean is another one from the 1,000th on; at a few places in some hours."""
    values = rng.normal(0, 1, count) + np.where(np.arange(count) < 1_000, 0.0, shift)
    place = rng.uniform([[-180], [-90]], [[180], [90]], (2, count))
    return Observations(np.arange(count) * HOUR_US // 100, place, values[None])


def replayed(settings, elements, step=250):
    """Return the part of the values that keeps the budget, by the bins into which they came; and the last sketch."""
    sketch, codes, used = Sketch.empty(settings), [], []
    values = elements.values[0]
    for start in range(0, len(elements), step):
        before, sketch = sketch.bins, add(sketch, elements.take(slice(start, start + step)))
        if sketch.bins is None:
            continue
        if before is None:
            used.append(sketch.bins)
            codes.append(used[0].codes([values[: start + step]])[0])
            continue
        if before is not used[-1]:
            used.append(before)
        codes.append(before.codes([values[start : start + step]])[0] + 1000 * len(used))
    code = np.concatenate(codes)
    spread = {one: values[code == one].std() for one in np.unique(code)}
    return np.mean([spread[one] <= ERROR * np.ptp(values) for one in code]), sketch


@pytest.mark.seeds(400)
def test_the_fewest_bins_keep_an_error_for_a_part_of_the_values(seed):
    rng = np.random.default_rng(seed)
    error, part = rng.choice([0.01, 0.05, 0.3]), rng.choice([0.5, 0.8, 0.95])
    values = rng.choice([rng.normal(0, 1, 300), rng.exponential(5, 300), np.round(rng.normal(0, 3, 300))])
    points, extent = BinnedValues.of(values), np.ptp(values)
    edges = points.edges_within(error * extent, 254, part)
    found = errors(values, edges, extent)  # some may be as large as the budget, but for the last digit
    least, most = ((found <= error * (1 + slack)).mean() for slack in (-1e-9, 1e-9))
    assert least - 1e-9 <= points.kept(edges, error * extent) <= most + 1e-9 and most >= part
    for fewer in range(1, len(edges) + 1):
        assert (errors(values, points.edges(fewer), extent) <= error * (1 - 1e-9)).mean() < part


@pytest.mark.parametrize("n", [1, 1_000])
def test_the_error_of_elements_of_which_only_an_interval_is_known_is_that_of_an_even_spread(n):
    points = BinnedValues.of_intervals(np.zeros(1), np.ones(1), np.array([n]), 16, error=0.01)
    half = np.array([0.5])
    # Two bins of width 0.5, whose error is 0.5 / sqrt(12) = 0.1443.
    assert points.kept(half, 0.144) == 0.0 and points.kept(half, 0.145) == pytest.approx(1.0)


@pytest.mark.parametrize("shift", [0.0, 3.0, 10.0])
@pytest.mark.seeds(24)
def test_a_budget_is_kept_for_80_percent_of_a_stream_whose_distribution_changes(shift, seed):
    kept, sketch = replayed(SETTINGS, shifted(np.random.default_rng(seed), 8_000, shift))
    assert kept >= 0.8
    assert not sketch.over_budget


def test_bins_that_do_not_follow_lose_the_budget():
    elements = shifted(np.random.default_rng(0), 8_000, 10.0)
    kept, _ = replayed(replace(SETTINGS, follow=0), elements)
    assert kept < 0.5


@pytest.mark.seeds(60)
def test_bins_stay_below_their_maximum_and_the_sketch_says_if_it_limits(seed):
    settings = replace(SETTINGS, planes=(Plane("heat", 6, ERROR),))
    elements = shifted(np.random.default_rng(seed), 3_000, 0.0)
    kept, sketch = replayed(settings, elements)
    assert len(sketch.bins.edges[0]) < 6 and kept < 0.8
    assert list(sketch.over_budget) == ["heat"] and sketch.over_budget["heat"] < 0.8
    parts = {
        name: part if name.startswith("leaves") else Tables(part.tables())
        for name, part in codec.encode(sketch).items()
    }
    assert codec.decode(parts, EARTH).over_budget == sketch.over_budget


def test_a_sketch_without_a_budget_has_the_bins_that_it_is_told():
    elements = shifted(np.random.default_rng(0), 3_000, 3.0)
    sketch = add(Sketch.empty(replace(SETTINGS, planes=(Plane("heat", 6),))), elements)
    assert len(sketch.bins.edges[0]) == 5 and sketch.since == 2_500 and not sketch.over_budget


@pytest.mark.parametrize("error", [0, -0.1, 1.5, True, "0.5 %", float("nan")])
def test_a_wrong_error_is_told_with_the_rule_and_the_value(error):
    with pytest.raises(InvalidSketch, match="the error of planes must be a number above 0 and at most 1; got ") as told:
        parse_settings({"features": ["heat"], "planes": [{"feature": "heat", "error": error}]})
    assert repr(error) in str(told.value)
