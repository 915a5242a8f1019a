"""Models that forecast a series: states that are data, bands that have the truth, and the trend."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.sketch.inference.registry import model_names, model_of
from streaming.sketch.inference.seasons import YEAR_US, trend
from streaming.sketch.inference.series import MeanSeries
from streaming.sketch.settings import DAY_US, InvalidSketch
from tests.draws import examples
from tests.sketch.inference import beijing

HOUR_US = 3_600_000_000
BUILT_IN = ["harmonic", "holt_winters"]


def part(series, steps):
    """Return some steps of a series."""
    return MeanSeries(series.start_us[steps], series.mean[steps], series.every_us)


def noisy(rng, count, *, every_us=HOUR_US, missing=0.0):
    """Return a series with a trend, a day, and errors that follow each other; some steps are missing."""
    start_us = np.arange(count) * every_us
    errors = np.zeros(count)
    for step in range(1, count):
        errors[step] = 0.7 * errors[step - 1] + rng.normal()
    mean = 20 + 5 * np.sin(2 * np.pi * start_us / DAY_US) + 2 * start_us / (100 * DAY_US) + errors
    return part(MeanSeries(start_us, mean, every_us), np.flatnonzero(rng.random(count) >= missing))


def learnt(model, series, cuts=()):
    """Return the state of a model that has learnt a series, cut into several calls."""
    state = model.begin(series.every_us)
    for steps in np.split(np.arange(len(series)), sorted(cuts)):
        state = model.learn_many(state, part(series, steps))
    return state


@pytest.mark.parametrize("name", BUILT_IN)
@examples(8)
@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(0, 120), max_size=4))
def test_where_the_steps_were_cut_does_not_matter_and_a_state_is_data(name, seed, cuts):
    model, series = model_of(name), noisy(np.random.default_rng(seed), 120, missing=0.1)
    whole, pieces = learnt(model, series), learnt(model, series, [min(cut, len(series)) for cut in cuts])
    stored = {key: pa.array(array.reshape(-1)).to_numpy().reshape(array.shape) for key, array in pieces.items()}
    for key, array in whole.items():
        assert array.dtype == stored[key].dtype
        np.testing.assert_array_equal(array, stored[key])
    np.testing.assert_array_equal(model.predict(whole, 50, 0.9), model.predict(stored, 50, 0.9))


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_model_leaves_the_state_that_it_was_given_as_it_is(name):
    model, series = model_of(name), noisy(np.random.default_rng(0), 200)
    state = learnt(model, part(series, slice(150)))
    before = {key: array.copy() for key, array in state.items()}
    model.learn_many(state, part(series, slice(150, None)))
    assert all(np.array_equal(before[key], array, equal_nan=True) for key, array in state.items())


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_series_of_too_few_steps_has_no_forecast(name):
    model, series = model_of(name), noisy(np.random.default_rng(0), 9)
    for steps in range(len(series) + 1):
        found = model.predict(learnt(model, part(series, slice(steps))), 3, 0.95)
        assert np.isnan(found[:, 0]).all() and np.isinf(found[:, 1:]).all()


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_band_of_a_series_has_the_truth_about_as_often_as_it_says_and_is_useful(name):
    rng, inside, widths = np.random.default_rng(1), [], []
    model = model_of(name)
    for _ in range(12):
        series = noisy(rng, 1_000, missing=0.05)
        known, coming = part(series, slice(850)), part(series, slice(850, None))
        ahead = (coming.start_us - known.start_us[-1]) // HOUR_US - 1
        _, low, high = model.predict(learnt(model, known), 200, 0.9)[ahead].T
        inside += ((low <= coming.mean) & (coming.mean <= high)).tolist()
        widths += (high - low).tolist()
    # Errors have a standard deviation of 1.4: nobody could have a narrower band than 4.6.
    assert np.mean(inside) >= 0.87 and np.median(widths) < 8


def test_a_near_forecast_of_errors_that_follow_each_other_is_better_than_a_far_one():
    """The next error has a standard deviation of 1 for who knows the last one, and of 1.4 for who does not."""
    rng, errors, widths = np.random.default_rng(6), [], []
    model = model_of("harmonic")
    for _ in range(80):
        series = noisy(rng, 600)
        value, low, high = model.predict(learnt(model, part(series, slice(500))), 100, 0.9).T
        errors.append(value - series.mean[500:])
        widths.append(high - low)
    near, far = np.std(np.array(errors)[:, :2]), np.std(np.array(errors)[:, 20:])
    assert near < 1.2 < 1.3 < far
    assert np.median(np.array(widths)[:, 0]) < 4 < np.median(np.array(widths)[:, 99])


@pytest.mark.long
@pytest.mark.parametrize(("every_us", "horizon", "times"), [(HOUR_US, 240, 12), (DAY_US, 60, 25)])
@pytest.mark.recordings
def test_forecasts_of_the_weather_are_within_their_band(shared_data, every_us, horizon, times):
    rng, model, inside = np.random.default_rng(3), model_of("harmonic"), {}
    rows = beijing.frame(shared_data).with_columns((pl.col("time_us") // every_us * every_us).alias("start_us"))
    for feature in ("TEMP", "PRES", "DEWP", "PM2.5"):
        mean = pl.col(feature).cast(pl.Float64).mean()
        steps = rows.group_by("start_us").agg(mean).sort("start_us").drop_nulls()
        series = MeanSeries(steps["start_us"].to_numpy(), steps[feature].to_numpy(), every_us)
        told, widths = inside.setdefault(feature, []), []
        for end in rng.integers(len(series) // 2, len(series) - horizon, times):
            known, coming = part(series, slice(end)), part(series, slice(end, end + horizon))
            ahead = (coming.start_us - known.start_us[-1]) // every_us - 1
            near = ahead < horizon
            _, low, high = model.predict(learnt(model, known), horizon, 0.95)[ahead[near]].T
            told += ((low <= coming.mean[near]) & (coming.mean[near] <= high)).tolist()
            widths += (high - low).tolist()
        # Without a model, the band would be that of all values, about four standard deviations wide.
        assert np.median(widths) < (6 if feature == "PM2.5" else 3) * series.mean.std()
    shares = {feature: np.mean(told) for feature, told in inside.items()}
    # Errors of a forecast are alike, so the shares of so few forecasts are some hundredths from what they are in all.
    assert min(shares.values()) >= 0.9 and np.mean(list(shares.values())) >= 0.93, shares


def test_a_trend_has_the_truth_as_often_as_it_says_although_errors_follow_each_other():
    rng, inside = np.random.default_rng(4), []
    for _ in range(200):
        found = trend(noisy(rng, 600, missing=0.1), 0.9)
        inside.append(found.low <= 2 * YEAR_US / (100 * DAY_US) <= found.high)
    assert 0.84 <= np.mean(inside) <= 0.96
    assert trend(noisy(rng, 9)) is None


def test_another_length_of_steps_and_a_gap_begin_with_what_there_is():
    model = model_of("holt_winters")
    series = noisy(np.random.default_rng(5), 300)
    later = MeanSeries(series.start_us + 20_000 * HOUR_US, series.mean, HOUR_US)
    anew = model.learn_many(learnt(model, series), later)
    np.testing.assert_array_equal(model.predict(anew, 5, 0.9), model.predict(learnt(model, later), 5, 0.9))


def test_a_model_that_is_not_installed_is_refused_with_those_that_are():
    assert set(BUILT_IN) <= set(model_names())
    with pytest.raises(InvalidSketch, match="model must be one of harmonic, holt_winters; got 'oracle'"):
        model_of("oracle")
