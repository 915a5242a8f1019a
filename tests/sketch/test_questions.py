"""The answers of a plan equal what pandas says of all elements, within their bounds, from any number of regions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from streaming.plans import parse_plan
from streaming.sketch.asking.answering import answered, checked
from streaming.sketch.asking.needs import asked_parts, needs, parts
from streaming.sketch.asking.resolution import coarse_cells
from streaming.sketch.cells import cell_bounds, cells_of
from streaming.sketch.observations import Observations
from streaming.sketch.sets.hashing import hashes_of_values
from streaming.sketch.sets.sets import Sets
from streaming.sketch.sets.sets import add as add_to_sets
from streaming.sketch.sets.settings import SetSettings
from streaming.sketch.settings import InvalidSketch, Plane, SketchSettings, parse_settings
from streaming.sketch.sketch import Sketch, add
from streaming.sketch.stream import StreamSketch

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
SETTINGS = parse_settings(
    {
        "features": ["temp", "wind"],
        "planes": [{"feature": "temp", "bins": 16}],
        "comoments": ["temp", "wind"],
        "cell_bits": 6,
        "time_bin_us": 24 * 3_600_000_000,
        "first": 500,
    }
)
AREA = {"lo": [-20.0, -20.0], "hi": [70.0, 40.0]}
SUMMER = {"ranges": [{"from": "1970-01-15", "to": "1970-02-20"}]}


@pytest.fixture(scope="module")
def weather():
    """Elements of 60 days as a table, with some missing winds."""
    rng, n = np.random.default_rng(7), 20_000
    temp = rng.normal(10, 5, n).round(2)
    wind = np.where(rng.random(n) < 0.1, np.nan, 3 + 0.2 * temp + rng.normal(0, 1, n))
    columns = {"time_us": np.sort(rng.integers(0, 60 * DAY_US, n)), "temp": temp, "wind": wind}
    return pd.DataFrame(columns | {"x": rng.uniform(-180, 180, n), "y": rng.uniform(-90, 90, n)})


@pytest.fixture(scope="module")
def regions(weather):
    """The sketches of three regions, which grew batch by batch."""
    found = []
    for _, rows in weather.groupby(np.digitize(weather["x"], [-60, 60])):
        sketch = Sketch.empty(SETTINGS)
        for batch in np.array_split(np.arange(len(rows)), 7):
            some = rows.iloc[batch]
            place, values = some[["x", "y"]].to_numpy().T, some[["temp", "wind"]].to_numpy().T
            sketch = add(sketch, Observations(some["time_us"].to_numpy(), place, values))
        found.append(sketch)
    return found


def asked(regions, ask, now_us=60 * DAY_US, sets=None, **more):
    plan = parse_plan({"stream": "weather", "kind": "sketch", "ask": [ask], **more})
    found = [parts(plan, sketch, sets and sets[place], now_us) for place, sketch in enumerate(regions)]
    (answer,) = answered(plan, SETTINGS, {need: [one[need] for one in found] for need in needs(plan)}, now_us)
    assert answer["question"] == ask["question"] and answer["features"] == ask.get("features", [])
    return answer


def test_an_answer_says_if_bins_do_not_suffice_for_the_error_budget(regions):
    few = replace(SETTINGS, planes=(Plane("temp", 4, 0.005),))
    limited = []
    for sketch in regions:
        some = sketch.leaves()
        elements = Observations(some.first_us, some.place_low, some.mean)
        limited.append(add(Sketch.empty(few), elements))
    kept = min(sketch.over_budget["temp"] for sketch in limited)
    answer = asked(limited, {"question": "density", "features": ["temp"], "lo": 0, "hi": 10})
    assert answer["over_budget"] == {"temp": round(kept, 3)} and kept < 0.8
    assert "over_budget" not in asked(limited, {"question": "mean", "features": ["wind"]})
    assert "over_budget" not in asked(regions, {"question": "density", "features": ["temp"], "lo": 0, "hi": 10})


@pytest.fixture(scope="module")
def sets(weather):
    """The sets of temperatures in the same three regions."""
    found, settings = [], SetSettings(("temp",), cell_bits=4)
    for _, rows in weather.groupby(np.digitize(weather["x"], [-60, 60])):
        cell = cells_of(rows[["x", "y"]].to_numpy().T, *cell_bounds(SETTINGS), 4)
        hashes = hashes_of_values(rows["temp"].map(repr).tolist())[None]
        found.append(add_to_sets(Sets(settings), rows["time_us"].to_numpy(), cell, hashes, np.ones_like(hashes, bool)))
    return found


def inside(weather):
    """The rows in `AREA` and `SUMMER`."""
    span = [pd.Timestamp(day).value // 1000 for day in ("1970-01-15", "1970-02-20")]
    chosen = weather[weather["x"].between(-20, 70) & weather["y"].between(-20, 40)]
    return chosen[(chosen["time_us"] >= span[0]) & (chosen["time_us"] < span[1])]


def within(answer, truth, slack=1e-6):
    assert answer["low"] - slack <= truth <= answer["high"] + slack, (answer, truth)


@pytest.mark.parametrize("question", ["count", "sum", "mean", "std", "min", "max"])
@pytest.mark.parametrize("feature", ["temp", "wind"])
def test_statistics_of_all_elements_are_exact(weather, regions, question, feature):
    (answer,) = asked(regions, {"question": question, "features": [feature]})["answers"]
    truth = getattr(weather[feature], question)()
    assert answer["of"] == feature and answer["value"] == pytest.approx(truth)
    within(answer, truth, 1e-6 * abs(truth))


@pytest.mark.parametrize("question", ["count", "sum", "mean", "std", "min", "max"])
def test_statistics_of_an_area_and_a_time_lie_within_their_bounds(weather, regions, question):
    ask = {"question": question, "features": ["wind"]}
    found = asked(regions, ask, area=AREA, time=SUMMER, confidence=0.999)
    within(found["answers"][0], getattr(inside(weather)["wind"], question)())
    assert 0 < found["basis"]["cut"] < found["basis"]["leaves"]


def test_regions_together_answer_as_one_would(regions, weather):
    whole = Sketch.empty(SETTINGS)
    place, values = weather[["x", "y"]].to_numpy().T, weather[["temp", "wind"]].to_numpy().T
    whole = add(whole, Observations(weather["time_us"].to_numpy(), place, values))
    for ask in ({"question": "mean", "features": ["temp"]}, {"question": "count"}):
        several, one = (asked(some, ask, area=AREA)["answers"][0]["value"] for some in (regions, [whole]))
        assert several == pytest.approx(one, rel=0.02)


def test_elements_are_counted_without_a_feature(weather, regions):
    (answer,) = asked(regions, {"question": "count"})["answers"]
    assert (answer["of"], answer["value"]) == (None, len(weather))


def test_a_correlation_is_that_of_elements_with_both_features(weather, regions):
    (answer,) = asked(regions, {"question": "correlation", "features": ["temp", "wind"]})["answers"]
    assert answer["of"] == ["temp", "wind"]
    assert answer["value"] == pytest.approx(weather["temp"].corr(weather["wind"]))


def test_a_contrast_is_the_difference_of_two_selections(weather, regions):
    ask = {"question": "contrast", "features": ["temp"], "statistic": "mean"}
    found = asked(regions, ask, area=AREA, other={"area": {"lo": [-180, -90], "hi": [-90, 0]}}, confidence=0.999)
    one = weather[weather["x"].between(-20, 70) & weather["y"].between(-20, 40)]["temp"].mean()
    other = weather[weather["x"].between(-180, -90) & weather["y"].between(-90, 0)]["temp"].mean()
    (answer,) = found["answers"]
    within(answer, one - other)
    assert answer["value"] == pytest.approx(answer["one"]["value"] - answer["other"]["value"])
    assert found["basis_of_other"]["elements"] > 0


def test_densities_lie_within_their_bounds(weather, regions):
    ask = {"question": "density", "features": ["temp"], "lo": 5.0, "hi": 12.5}
    within(asked(regions, ask, confidence=0.999)["answers"][0], weather["temp"].between(5, 12.5).mean())
    ask = {"question": "outliers", "features": ["temp"], "deviations": 2.0}
    apart = (weather["temp"] - weather["temp"].mean()).abs() > 2 * weather["temp"].std()
    within(asked(regions, ask, confidence=0.999)["answers"][0], apart.mean())


def test_deciles_lie_within_their_bounds(weather, regions):
    answers = asked(regions, {"question": "deciles", "features": ["temp"]}, confidence=0.999)["answers"]
    assert [answer["part"] for answer in answers] == pytest.approx(np.arange(1, 10) / 10)
    for answer in answers:
        within(answer, np.quantile(weather["temp"], answer["part"], method="inverted_cdf"))


def test_the_bins_of_a_histogram_have_all_values(weather, regions):
    answers = asked(regions, {"question": "histogram", "features": ["temp"], "bins": 12}, confidence=0.999)["answers"]
    counts, edges = np.histogram(weather["temp"], 12)
    assert [answer["lo"] for answer in answers] == pytest.approx(edges[:-1])
    for answer, count in zip(answers, counts, strict=True):
        within(answer, count / len(weather))


def test_cells_of_a_map_have_the_elements_that_lie_there(weather, regions):
    found = asked(regions, {"question": "cells", "level": 6, "features": ["temp"], "statistic": "mean"})
    cells = found["cells"]
    assert found["level"] == 6 and len(cells["cell"]) == 64
    for lo, hi, value, n in zip(cells["lo"], cells["hi"], cells["value"], cells["n"], strict=True):
        there = weather[weather["x"].between(lo[0], hi[0]) & weather["y"].between(lo[1], hi[1])]
        assert n == len(there) and value == pytest.approx(there["temp"].mean())


def test_what_a_question_costs_does_not_depend_on_what_was_computed_before(regions):
    for ask in ({"question": "cells", "level": 6}, {"question": "mean", "features": ["temp"]}):
        plan = parse_plan({"stream": "weather", "kind": "sketch", "ask": [ask]})
        costs = [asked_parts(plan, regions[0], None, 0)[1] for _ in range(2)]
        fresh = asked_parts(plan, replace(regions[0], runs=tuple(map(replace, regions[0].runs))), None, 0)[1]
        assert costs == [fresh, fresh]


def test_cells_finer_than_the_sketch_come_as_fine_as_it_is(regions):
    assert asked(regions, {"question": "cells", "level": 20})["level"] == 6


def test_a_series_has_the_statistics_of_each_day(weather, regions):
    found = asked(regions, {"question": "series", "features": ["wind"], "every": "day"})
    truth = weather["wind"].groupby(weather["time_us"] // DAY_US).agg(["count", "sum", "mean", "std", "min", "max"])
    columns = found["series"]["wind"]
    assert found["from_us"] == [day * DAY_US for day in range(60)]
    assert columns["n"] == pytest.approx(truth["count"].tolist())
    for statistic in ("sum", "mean", "std", "min", "max"):
        assert columns[statistic]["value"] == pytest.approx(truth[statistic].tolist())


def test_a_sub_sketch_tells_of_all_features(regions):
    answers = asked(regions, {"question": "select"}, area=AREA)["answers"]
    assert {answer["of"] for answer in answers} == {"temp", "wind"}


def test_nothing_is_the_answer_where_nothing_is(regions):
    found = asked(regions, {"question": "mean", "features": ["temp"]}, time={"last_s": 60}, now_us=90 * DAY_US)
    assert found["answers"] == [{"of": "temp", "value": None, "low": None, "high": None}]
    assert found["basis"]["elements"] == 0 and found["basis"]["first_us"] is None


@pytest.mark.parametrize(
    "ask", [{"question": "mean", "features": ["rain"]}, {"question": "deciles", "features": ["x"]}]
)
def test_a_feature_that_is_not_sketched_is_refused(regions, ask):
    with pytest.raises(InvalidSketch, match="one of temp, wind; got"):
        asked(regions, ask)


def test_a_step_has_its_values_beside_leaves_that_are_cut_and_have_none():
    time_us = np.array([HOUR_US, 20 * HOUR_US, DAY_US + HOUR_US])
    place, values = np.zeros((2, 3)), np.array([[1.0, 2.0, 3.0], [np.nan, np.nan, 5.0]])
    settings = SketchSettings(("temp", "wind"), cell_bits=6, time_bin_us=DAY_US, first=1)
    sketch = add(Sketch.empty(settings), Observations(time_us, place, values))
    ask, noon = {"question": "series", "features": ["wind"], "every": "day"}, "1970-01-01T12:00"
    plan = parse_plan({"stream": "weather", "kind": "sketch", "ask": [ask], "time": {"ranges": [{"from": noon}]}})
    found = {need: [leaves] for need, leaves in parts(plan, sketch, None, 0).items()}
    (answer,) = answered(plan, settings, found, 0)
    assert answer["basis"]["cut"] == 1
    assert answer["series"]["wind"]["n"] == [0.0, 1.0] and answer["series"]["wind"]["mean"]["value"] == [None, 5.0]


@pytest.mark.parametrize("question", ["select", "mean", "correlation", "histogram", "deciles", "series"])
def test_a_question_about_no_leaves_has_an_answer_without_values(question):
    settings = StreamSketch(SketchSettings(("temp", "wind"), comoments=("temp", "wind")))
    features = ["temp", "wind"] if question == "correlation" else ["temp"]
    every = {"every": "day"} if question == "series" else {}
    plan = {"stream": "weather", "kind": "sketch", "ask": [{"question": question, "features": features} | every]}
    checked(parse_plan(plan), settings)


def test_a_plan_is_checked_without_a_sketch():
    checked(
        parse_plan({"stream": "weather", "kind": "sketch", "ask": [{"question": "series", "features": ["temp"]}]}),
        StreamSketch(SETTINGS),
    )
    plan = parse_plan(
        {"stream": "weather", "kind": "sketch", "ask": [{"question": "cells", "level": 4, "features": ["x"]}]}
    )
    with pytest.raises(InvalidSketch, match="one of temp, wind; got 'x'"):
        checked(plan, StreamSketch(SETTINGS))


def test_sets_of_several_regions_know_their_values(weather, regions, sets):
    value = float(weather["temp"].iloc[7])
    (found,) = asked(regions, {"question": "contains", "features": ["temp"], "value": value}, sets=sets)["answers"]
    assert found == {"of": "temp", "present": True, "false_positive": pytest.approx(0, abs=0.1)}
    (found,) = asked(regions, {"question": "frequency", "features": ["temp"], "value": value}, sets=sets)["answers"]
    within(found, (weather["temp"] == value).sum())
    found = asked(regions, {"question": "distinct", "features": ["temp"]}, sets=sets, confidence=0.999)
    within(found["answers"][0], weather["temp"].nunique())
    assert found["basis"]["elements"] == len(weather)


def test_what_is_not_in_the_sets_is_refused(regions, sets):
    with pytest.raises(InvalidSketch, match="keeps no sets"):
        asked(regions, {"question": "distinct", "features": ["temp"]})
    with pytest.raises(InvalidSketch, match="one of temp; got 'wind'"):
        asked(regions, {"question": "distinct", "features": ["wind"]}, sets=sets)


def test_a_regression_is_the_least_squares_fit_of_all_elements(weather, regions):
    found = asked(regions, {"question": "regression", "features": ["wind"], "by": ["temp"], "at": [12.0]})
    known = weather.dropna()
    slope, intercept = np.polyfit(known["temp"], known["wind"], 1)
    assert found["intercept"]["value"] == pytest.approx(intercept)
    assert found["coefficients"][0]["of"] == "temp" and found["coefficients"][0]["value"] == pytest.approx(slope)
    assert found["n"] == len(known) and found["prediction"]["value"] == pytest.approx(intercept + 12 * slope)
    low, high = found["coefficients"][0]["interval"]
    assert low < 0.2 < high


def test_a_forecast_goes_on_from_the_means_so_far(weather, regions):
    ask = {"question": "forecast", "features": ["temp"], "horizon_s": 5 * 86_400}
    found = asked(regions, ask)
    assert found["every_s"] == 86_400 and found["from_us"] == [(60 + day) * DAY_US for day in range(5)]
    truth = weather["temp"].groupby(weather["time_us"] // DAY_US).mean()
    assert found["past"]["value"] == pytest.approx(truth.tolist())
    assert all(low <= 10 <= high for low, high in zip(found["low"], found["high"], strict=True))


def test_an_area_has_no_bounds_in_dimensions_that_make_no_cells(regions):
    with pytest.raises(InvalidSketch, match="longitude and latitude alone; got altitude"):
        asked(regions, {"question": "count"}, area={"lo": [0, 0, 100], "hi": [10, 10, 200]})


@pytest.mark.parametrize("statistic", ["min", "max"])
def test_extremes_lie_within_their_bounds_for_certain_whatever_the_confidence(weather, regions, statistic):
    rng = np.random.default_rng(5)
    for _ in range(60):
        corner, sides = rng.uniform([-180, -90], [160, 75]), rng.uniform(3, 15, 2)
        area = {"lo": corner.tolist(), "hi": (corner + sides).tolist()}
        inside = weather[weather["x"].between(corner[0], corner[0] + sides[0])]
        inside = inside[inside["y"].between(corner[1], corner[1] + sides[1])]
        ask = {"question": statistic, "features": ["temp"]}
        (told,) = asked(regions, ask, area=area, time=SUMMER, confidence=0.5)["answers"]
        times_us = inside["time_us"].between(14 * DAY_US, 50 * DAY_US - 1)
        truth = getattr(inside["temp"][times_us], statistic)()
        assert np.isnan(truth) or told["low"] <= truth <= told["high"]


def test_where_nothing_matches_as_far_as_is_estimated_there_is_no_value_but_bounds(regions):
    area = {"lo": [20.0, 10.0], "hi": [20.5, 10.5]}
    hour = {"ranges": [{"from": "1970-01-09T11:00", "to": "1970-01-09T12:00"}]}
    for question in ("mean", "min", "max", "std", "deciles"):
        found = asked(regions, {"question": question, "features": ["temp"]}, area=area, time=hour)
        assert 0 < found["basis"]["elements"] < 0.5
        assert all(one["value"] is None and one["low"] < one["high"] for one in found["answers"])
    ask = {"question": "cells", "level": 4, "features": ["temp"], "statistic": "mean"}
    cells = asked(regions, ask, area=area, time=hour)["cells"]
    assert cells["value"] == [None] and cells["low"][0] < cells["high"][0]


def test_of_a_single_value_there_is_no_standard_deviation():
    settings = SketchSettings(("temp",), cell_bits=6, time_bin_us=DAY_US, first=1)
    one = Observations(np.array([HOUR_US]), np.zeros((2, 1)), np.array([[3.0]]))
    sketch = add(Sketch.empty(settings), one)
    asks = [{"question": "std", "features": ["temp"]}, {"question": "series", "features": ["temp"], "every": "day"}]
    plan = parse_plan({"stream": "weather", "kind": "sketch", "ask": asks})
    found = {need: [leaves] for need, leaves in parts(plan, sketch, None, 0).items()}
    std, series = answered(plan, settings, found, 0)
    assert std["answers"][0]["value"] is None
    assert series["series"]["temp"]["std"]["value"] == [None] and series["series"]["temp"]["mean"]["value"] == [3.0]


@pytest.mark.parametrize(
    ("side", "cell_bits", "proposed"), [(0.1, 16, 30), (2.0, 16, 21), (2.0, 20, None), (30.0, 16, None), (1e-9, 16, 48)]
)
def test_cells_that_are_too_coarse_for_an_area_are_told_with_those_that_would_do(side, cell_bits, proposed):
    area = {"lo": [10.0, 10.0], "hi": [10.0 + side, 10.0 + side]}
    plan = parse_plan({"stream": "weather", "kind": "sketch", "ask": [{"question": "count"}], "area": area})
    coarse = coarse_cells(plan, replace(SETTINGS, cell_bits=cell_bits))
    assert (coarse and coarse.cell_bits) == proposed
    everywhere = parse_plan({"stream": "weather", "kind": "sketch", "ask": [{"question": "count"}]})
    assert coarse_cells(everywhere, SETTINGS) is None
