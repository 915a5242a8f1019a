"""Answers to inferential questions from a sketch, beside the exact ones of its elements."""

import math

import numpy as np
import pytest

from streaming.kinds.sketch.asks import Forecast, Regression
from streaming.sketch.chosen import choose
from streaming.sketch.inference.answers import forecast, regressed, series_of
from streaming.sketch.observations import Observations
from streaming.sketch.selection import EVERYTHING, Selection, TimeIntervals
from streaming.sketch.settings import HOUR_US, InvalidSketch, SketchSettings
from streaming.sketch.sketch import Sketch, add

EVERYWHERE = Selection(((-180.0, -90.0, 180.0, 90.0),))
SETTINGS = SketchSettings(("y", "a", "b"), cell_bits=8, comoments=("y", "a", "b"))


@pytest.fixture(scope="module")
def seen():
    """Return elements of 40 days, in which y follows from a, b, and the time of day, and their sketch."""
    rng = np.random.default_rng(3)
    time_us = np.sort(rng.integers(0, 40 * 24 * HOUR_US, 30_000))
    a, b = rng.normal(size=(2, 30_000))
    y = 10 + 2 * a - b + 3 * np.sin(2 * np.pi * time_us / (24 * HOUR_US)) + rng.normal(size=30_000)
    place = np.stack([rng.uniform(-180, 180, 30_000), rng.uniform(-90, 90, 30_000)])
    elements = Observations(time_us, place, np.stack([y, a, b]))
    return elements, add(Sketch.empty(SETTINGS), elements)


def exact(elements, rows=slice(None)):
    """Return the least squares over elements."""
    y, *x = elements.values[:, rows]
    return np.linalg.lstsq(np.column_stack([np.ones(len(y)), *x]), y, rcond=None)[0]


def test_a_regression_of_whole_leaves_is_exact_and_has_the_intervals_of_its_sample(seen):
    elements, sketch = seen
    answer = regressed(choose(sketch, EVERYTHING), Regression(("y",), ("a", "b"), (1.0, 2.0)), 0.95)
    for one, truth in zip(answer.coefficients, exact(elements), strict=True):
        assert one.low == one.value == one.high == pytest.approx(truth, rel=1e-9)
    np.testing.assert_allclose(answer.intervals, answer.fit.intervals(0.95))
    assert answer.prediction.value == pytest.approx(exact(elements) @ [1, 1, 2], rel=1e-9)
    # The values of elements deviate by sqrt(1 + 9 / 2).
    assert answer.prediction.width == pytest.approx(2 * 1.96 * math.sqrt(5.5), rel=0.02)


def test_a_regression_of_leaves_that_are_cut_says_how_far_off_it_may_be(seen):
    elements, sketch = seen
    rng, inside = np.random.default_rng(0), []
    for _ in range(120):
        start = int(rng.integers(0, 30 * 24 * HOUR_US))
        times = TimeIntervals.between(start, start + int(rng.integers(2 * HOUR_US, 200 * HOUR_US)))
        box = tuple(np.sort(rng.uniform([[-180, -90]], [[180, 90]], (2, 2)), axis=0).ravel().tolist())
        low, high = np.array(box).reshape(2, 2)
        rows = ((elements.place >= low[:, None]) & (elements.place <= high[:, None])).all(axis=0)
        rows &= (elements.time_us >= start) & (elements.time_us < times.limits[0, 1])
        if rows.sum() < 30:
            continue
        answer = regressed(choose(sketch, Selection((box,), times)), Regression(("y",), ("a", "b")), 0.95)
        told = zip(answer.coefficients, exact(elements, rows), strict=True)
        inside.append([one.low <= truth <= one.high for one, truth in told])
        assert (np.ptp(answer.intervals, axis=1) >= np.ptp(answer.fit.intervals(0.95), axis=1)).all()
    assert len(inside) > 60 and np.mean(inside) >= 0.95


def test_a_series_has_the_mean_of_each_bin_of_time(seen):
    elements, sketch = seen
    found = series_of(choose(sketch, EVERYWHERE), "y")
    hour = elements.time_us // HOUR_US
    counts = np.bincount(hour)
    np.testing.assert_array_equal(found.start_us // HOUR_US, np.flatnonzero(counts))
    mean = np.bincount(hour, elements.values[0])[counts > 0] / counts[counts > 0]
    np.testing.assert_allclose(found.mean, mean)


@pytest.mark.parametrize("model", ["harmonic", "holt_winters"])
def test_a_forecast_goes_on_where_the_sketch_ends(seen, model):
    _, sketch = seen
    answer = forecast(choose(sketch, EVERYWHERE), Forecast(("y",), 48 * 3_600.0, model), 0.95)
    assert answer.start_us[0] == answer.series.start_us[-1] + HOUR_US and len(answer.start_us) == 48
    # Of the truth without the errors of elements, the mean of an hour.
    truth = 10 + 3 * np.sin(2 * np.pi * (answer.start_us / HOUR_US + 0.5) / 24)
    assert np.abs(answer.band[:, 0] - truth).max() < 1.2
    assert ((answer.band[:, 1] < truth) & (truth < answer.band[:, 2])).all()
    assert answer.trend.low < 0 < answer.trend.high


def test_a_forecast_of_nothing_and_one_that_looks_too_far(seen):
    _, sketch = seen
    nothing = choose(sketch, Selection(times=TimeIntervals.between(-(10**15), -(10**14))))
    assert len(forecast(nothing, Forecast(("y",), 3_600.0), 0.95).band) == 0
    with pytest.raises(InvalidSketch, match="at most 20,000 steps"):
        forecast(choose(sketch, EVERYWHERE), Forecast(("y",), 1e9), 0.95)
