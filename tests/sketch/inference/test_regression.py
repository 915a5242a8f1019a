"""Regression from moments: the least squares over the elements, with intervals that are as wide as they should be."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.sketch.chosen import choose
from streaming.sketch.inference.cut_regression import bounds, fit_errors
from streaming.sketch.inference.regression import correlation_interval, correlations, regression
from streaming.sketch.inference.student import t_quantile
from streaming.sketch.moments import Moments, moments_of
from streaming.sketch.selection import Selection, TimeIntervals, ValueRange
from streaming.sketch.settings import DAY_US, InvalidSketch
from tests.sketch.inference import beijing


def moments_by_hand(values, names):
    """Return the moments of elements, float64 of shape (F, N)."""
    mean = values.mean(axis=1)
    apart = values - mean[:, None]
    return Moments(names, values.shape[1], mean, apart @ apart.T, values.min(axis=1), values.max(axis=1), 0.0)


def least_squares(values):
    """Return the coefficients of the first feature by the others, and their standard errors."""
    x = np.column_stack([np.ones(values.shape[1]), values[1:].T])
    found, *_ = np.linalg.lstsq(x, values[0], rcond=None)
    residual = values[0] - x @ found
    variance = residual @ residual / (len(x) - x.shape[1])
    return found, np.sqrt(np.diag(np.linalg.inv(x.T @ x)) * variance), math.sqrt(variance)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(8, 200))
def test_a_fit_from_moments_is_the_least_squares_over_the_elements(seed, count, elements):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(count + 1, elements)) * rng.uniform(0.1, 50, (count + 1, 1)) + rng.uniform(-99, 99)
    values[0] += rng.normal(size=count) @ values[1:]
    names = tuple("yabcd"[: count + 1])
    fit = regression(moments_by_hand(values, names), "y", names[1:])
    found, errors, spread = least_squares(values)
    np.testing.assert_allclose(np.append(fit.intercept, fit.coefficients), found, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance)), errors, rtol=1e-6)
    assert fit.residual_std == pytest.approx(spread, rel=1e-6)
    explained = 1 - spread**2 * fit.freedom / (values[0].var() * elements)
    assert fit.r2 == pytest.approx(explained, abs=1e-9)
    np.testing.assert_allclose(correlations(moments_by_hand(values, names)), np.corrcoef(values), atol=1e-9)


def test_intervals_have_the_truth_as_often_as_they_say():
    rng, truth, at = np.random.default_rng(5), np.array([4.0, -2.0, 0.5]), np.array([[1.0, 2.0]])
    coefficients, means, values = [], [], []
    for _ in range(2_000):
        x = rng.normal(size=(2, 12))
        y = truth[0] + truth[1:] @ x + rng.normal(size=12)
        fit = regression(moments_by_hand(np.vstack([y, x]), ("y", "a", "b")), "y", ("a", "b"))
        low, high = fit.intervals(0.9).T
        coefficients.append((low <= truth) & (truth <= high))
        exact = truth[0] + truth[1:] @ at[0]
        for told, wanted, of_mean in ((means, exact, True), (values, exact + rng.normal(), False)):
            _, low, high = fit.predicted(at, 0.9, of_mean=of_mean)[0]
            told.append(low <= wanted <= high)
    for told in (*np.array(coefficients).T, means, values):
        assert np.mean(told) == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize("elements", [[[1.0, 2.0, 3.0]] * 2, np.vstack([np.arange(9.0)] * 2 + [np.ones(9)])])
def test_what_is_not_determined_is_not_a_number(elements):
    values = np.array(elements) if len(elements) == 3 else np.array([*elements, [5.0, 1.0, 2.0]])
    fit = regression(moments_by_hand(values, ("y", "a", "b")), "y", ("a", "b"))
    assert math.isnan(fit.intercept) and np.isnan(fit.coefficients).all() and np.isnan(fit.intervals()).all()
    assert np.isnan(fit.predicted(np.zeros((1, 2)))).all()


def test_a_feature_without_comoments_is_refused():
    with pytest.raises(InvalidSketch, match="features with co-moments, a, b; got c"):
        regression(moments_by_hand(np.zeros((2, 5)), ("a", "b")), "a", ("c",))


def test_the_interval_of_a_correlation_has_the_truth_as_often_as_it_says():
    rng, inside = np.random.default_rng(2), []
    for _ in range(2_000):
        pair = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 30).T
        low, high = correlation_interval(float(np.corrcoef(pair)[0, 1]), 30, 0.9)
        inside.append(low <= 0.6 <= high)
    assert np.mean(inside) == pytest.approx(0.9, abs=0.02)
    assert correlation_interval(0.3, 3) == (-1.0, 1.0) and correlation_interval(-1.0, 9) == (-1.0, -1.0)


def test_quantiles_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    for freedom in (0.5, 1, 2.5, 10, 1_000, 1e6, 1e9):
        for probability in (0.01, 0.5, 0.6, 0.95, 0.9999):
            exact = stats.t.ppf(probability, freedom)
            assert t_quantile(probability, freedom) == pytest.approx(exact, rel=1e-6, abs=1e-9)


@pytest.mark.long
@pytest.mark.recordings
def test_a_fit_of_a_selection_that_cuts_leaves_has_the_exact_one_within_its_bounds(shared_data):
    sketch, elements = beijing.sketch(shared_data), beijing.observations(shared_data)
    rng, inside, widths = np.random.default_rng(0), [], []
    known = np.isfinite(elements.values).all(axis=0)
    first, last = elements.time_us.min(), elements.time_us.max()
    for query in range(120):
        corner = rng.uniform([116.15, 39.85], [116.5, 40.1])
        box = (*corner, *(corner + rng.uniform(0.05, 0.5, 2)))
        start = int(rng.integers(first, last - 100 * DAY_US))
        times = TimeIntervals.between(start, start + int(rng.integers(10 * DAY_US, 400 * DAY_US)))
        low = rng.uniform(-10, 15)
        ranges = (ValueRange("TEMP", low, low + rng.uniform(5, 30)),) if query % 2 else ()
        matching = known & (elements.place >= np.array(box[:2])[:, None]).all(axis=0)
        matching &= (elements.place <= np.array(box[2:])[:, None]).all(axis=0)
        matching &= (elements.time_us >= start) & (elements.time_us < times.limits[0, 1])
        for entry in ranges:
            matching &= (elements.values[0] >= entry.low) & (elements.values[0] <= entry.high)
        if matching.sum() < 50:
            continue
        chosen = choose(sketch, Selection((box,), times, ranges))
        moments = moments_of(chosen)
        fit = regression(moments, "TEMP", ("PRES", "DEWP", "WSPM"))
        exact, *_ = least_squares(elements.values[:, matching])
        low, high = bounds(fit, fit_errors(chosen, moments, fit)).T
        rounding = 1e-9 * np.abs(exact)
        inside.append((low - rounding <= exact) & (exact <= high + rounding))
        if not ranges:
            widths.append((high - low) / np.abs(exact))
    assert len(inside) > 70 and np.mean(inside, axis=0).min() >= 0.95
    assert np.median(widths) < 0.5
