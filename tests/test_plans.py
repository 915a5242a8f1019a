"""Plans that break a rule are refused with the rule and the value."""

import math

import pytest

from streaming.errors import InvalidPlan
from streaming.kinds.around import Circle, Focus, Rectangle
from streaming.plans import parse_plan, plan_document
from streaming.spaces import Dimension, Space

BOX = {"lo": [24, 59], "hi": [26, 61]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"colour": "red"}, "unknown colour"),
        ({"stream": ""}, "stream must be the name"),
        ({"stream": None}, "stream must be the name"),
        ({"area": {"lo": [26, 59], "hi": [24, 61]}}, "lo must not exceed hi"),
        ({"area": {"lo": [math.nan, 59], "hi": [24, 61]}}, "finite number"),
        ({"area": {"lo": [24, 59], "hi": [math.inf, 61]}}, "finite number"),
        ({"area": {"lo": [24, 59], "hi": [26]}}, "equally many"),
        ({"area": {"lo": [], "hi": []}}, "1 to 3 numbers"),
        ({"area": {"lo": [1, 2, 3, 4], "hi": [1, 2, 3, 4]}}, "1 to 3 numbers"),
        ({"area": {"lo": ["24", 59], "hi": [26, 61]}}, "finite number"),
        ({"area": {"lo": [True, 59], "hi": [26, 61]}}, "finite number"),
        ({"area": {"lo": [-190, 59], "hi": [-170, 61]}}, r"start within \[-180, 180\]"),
        ({"area": {"lo": [10, 59], "hi": [371, 61]}}, "end at 370 or before"),
        ({"area": {"lo": [24, 59], "hi": [26, 91]}}, "end at 90 or before"),
        ({"area": [24, 59, 26, 61]}, "object of the form"),
        ({"area": None}, "got none of them"),
        ({"report": "near"}, "report must be one of"),
        ({"kind": "nearest"}, "kind must be one of"),
        ({"emit": []}, "emit must be one of"),
        ({"transform": {"enlarge_m": 5}}, "list of at most"),
        ({"transform": [{"enlarge_m": -5}]}, "not negative"),
        ({"transform": [{"enlarge_m": math.inf}]}, "finite"),
        ({"transform": [{"shrink": 1}]}, "object with one of"),
        ({"where": "speed >"}, "^where: a value is missing"),
        ({"where": 5}, "CQL2"),
        ({"where": "S_INTERSECTS(geometry, 'POINT(1 2)')"}, "where knows the operators"),
        ({"where": "NOT " * 100 + "a"}, "nest more than 40 levels"),
        ({"where": "a = 1 OR " * 400 + "a = 1"}, "2000 characters"),
    ],
)
def test_a_plan_that_breaks_a_rule_is_refused_with_the_rule(change, words):
    with pytest.raises(InvalidPlan, match=words):
        parse_plan({"stream": "ships", "area": BOX} | change)


FOCAL = {"key": "a"}
CROSSED = [[0, 0], [1, 1], [1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("around", "words"),
    [
        ({"radius": 0}, "radius must be a finite number, above 0 and at most 20,100,000; got 0"),
        ({"radius": math.nan}, "above 0 and at most 20,100,000; got nan"),
        ({"radius": 20_100_001}, "at most 20,100,000; got 20100001"),
        ({"radius": 10**400}, "finite number"),
        ({"radius": "5"}, "finite number.*got '5'"),
        (
            {"radius": 5, "polygon": [[0, 0], [1, 1], [2, 0]]},
            "one of radius, half_widths, polygon; got radius, polygon",
        ),
        ({}, "one of radius, half_widths, polygon; got none"),
        ({"radius": 5, "shape": 1}, "unknown shape"),
        ({"half_widths": [1, None, 2, 3]}, "1 to 3 numbers or null; got"),
        ({"half_widths": [None]}, "must have a number"),
        ({"half_widths": [1, -2]}, "half_widths: latitude must be a finite number, above 0.*got -2"),
        ({"half_widths": [3e7]}, "longitude must be.*at most 20,100,000"),
        ({"polygon": CROSSED}, r"simple ring with an area; got Self-intersection\[0.5 0.5\]"),
        ({"polygon": [[0, 0], [1, 1], [2, 2]]}, "simple ring"),
        ({"polygon": [[0, 0], [1, 1], [0, 0]]}, "3 vertices besides the closing one"),
        ({"polygon": [[0, 0], [1, 1]]}, "3 to 1,000 vertices; got 2 vertices"),
        ({"polygon": [[0, 0], [1]] * 3}, r"a vertex must be a list of 2 numbers; got \[1\]"),
        ({"polygon": [[0, 0], [1, math.inf], [2, 2]]}, "an offset must be a finite number"),
        ({"key": "", "radius": 5}, "around: key must be a text"),
        ({"stream": 7, "radius": 5}, "around: stream must be a text"),
        ({"at": [1, 2], "radius": 5}, "one of key, at; got key, at"),
        ({"key": None, "radius": 5}, "one of key, at; got none"),
        ({"key": None, "at": [1, 2], "stream": "tugs", "radius": 5}, "stream belongs to key"),
        ({"key": None, "at": [1], "radius": 5}, "list of numbers, 2 in this space"),
        ({"key": None, "at": [1, 91], "radius": 5}, "at: latitude must start within"),
        ({"key": None, "at": [1, True], "radius": 5}, "at: latitude must be a finite number"),
        ({"key": None, "at": [1, 2], "half_widths": [1, 1, 1]}, "about a place must be null after the second"),
    ],
)
def test_a_range_that_moves_and_breaks_a_rule_is_refused_with_the_rule(around, words):
    with pytest.raises(InvalidPlan, match=words):
        parse_plan({"stream": "ships", "around": FOCAL | around})


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"around": 5}, "around must be an object"),
        ({"around": FOCAL | {"radius": 5}, "compare": BOX}, "around, or compare, report and transform; got around and"),
        ({"around": FOCAL | {"radius": 5}, "transform": []}, "got around and transform"),
        ({"around": FOCAL | {"radius": 5}, "emit": "all"}, "emit must be changes or membership"),
        ({"around": FOCAL | {"radius": 5}, "kind": "knn", "k": 3}, "neighbours, has the keys stream, key, at; got"),
        ({"around": FOCAL, "kind": "knn"}, "k must be a whole number of 1 to 1,000; got None"),
        ({"around": FOCAL, "kind": "knn", "k": 0}, "got 0"),
        ({"around": FOCAL, "kind": "knn", "k": 1_001}, "got 1001"),
        ({"around": FOCAL, "kind": "knn", "k": 3.5}, "got 3.5"),
        ({"around": FOCAL, "kind": "knn", "k": True}, "got True"),
        ({"around": FOCAL, "kind": "knn", "k": 3, "alpha": 10.1}, "alpha must be.*at least 0 and at most 10; got 10.1"),
        ({"around": FOCAL, "kind": "knn", "k": 3, "max_distance": 0}, "max_distance must be.*above 0"),
        ({"around": FOCAL, "kind": "knn", "k": 3, "emit": "all"}, "emit must be changes or membership"),
        ({"around": FOCAL, "kind": "knn", "k": 3, "report": "inside"}, "unknown report"),
        ({"kind": "knn", "k": 3}, "around must be an object"),
        ({"kind": "knn", "k": 3, "aggregate": {}}, "aggregate belongs to the kind range; got knn"),
        ({"kind": "join", "join": {"layer": "a"}, "aggregate": {}}, "aggregate belongs to the kind range; got join"),
    ],
)
def test_a_plan_with_a_focus_that_breaks_a_rule_is_refused_with_the_rule(document, words):
    with pytest.raises(InvalidPlan, match=words):
        parse_plan({"stream": "ships"} | document)


@pytest.mark.parametrize(
    ("aggregate", "words"),
    [
        (5, "aggregate must be an object"),
        ({}, "needs a function, one of count, min, max, sum, avg"),
        ({"function": "median"}, "function must be one of"),
        ({"function": "avg"}, "avg must have one of property, dimension; got none"),
        ({"function": "min", "property": "a", "dimension": "latitude"}, "got property, dimension"),
        ({"function": "count", "property": "a"}, "count has neither property nor dimension; got property"),
        ({"function": "max", "dimension": "depth"}, "one of longitude, latitude, altitude; got 'depth'"),
        ({"function": "count", "group_by": ""}, "group_by must be a text"),
        (
            {"function": "count", "group_by": 'a"b'},
            "group_by: .* no double quotes",
        ),
        ({"function": "max", "property": "a" * 201}, "property: a property's name must have at most 200 characters"),
        ({"function": "max", "dimension": 'a"b'}, "dimension must be one of longitude, latitude, altitude; got"),
        ({"function": "count", "over": "a"}, "unknown over"),
        ({"function": "count", "thresholds": {}}, "list of at most 8"),
        ({"function": "count", "thresholds": [{"above": n} for n in range(9)]}, "list of at most 8"),
        ({"function": "count", "thresholds": [{}]}, "one of above, below; got none"),
        ({"function": "count", "thresholds": [{"above": 1, "below": 2}]}, "one of above, below; got above, below"),
        ({"function": "count", "thresholds": [{"above": math.inf}]}, "above must be a finite number; got inf"),
        ({"function": "count", "thresholds": [{"above": 1, "for_s": -1}]}, "for_s must be.*at least 0.*got -1"),
        ({"function": "count", "thresholds": [{"below": 1}, {"below": 1.0}]}, "differ.*got below 1, below 1"),
    ],
)
def test_an_aggregate_that_breaks_a_rule_is_refused_with_the_rule(aggregate, words):
    with pytest.raises(InvalidPlan, match=words):
        parse_plan({"stream": "ships", "area": BOX, "aggregate": aggregate})


def test_an_aggregate_keeps_its_answer():
    with pytest.raises(InvalidPlan, match="emit must be changes or membership"):
        parse_plan({"stream": "ships", "area": BOX, "aggregate": {"function": "count"}, "emit": "all"})


def test_the_focal_object_is_of_the_querys_stream_unless_another_is_named():
    plan = parse_plan({"stream": "ships", "around": {"key": "a", "radius": 5}})
    assert plan.focus == Focus("ships", "a")
    assert parse_plan(plan_document(plan)) == plan
    other = parse_plan({"stream": "ships", "kind": "knn", "k": 3, "around": {"key": "a", "stream": "tugs"}})
    assert other.focus == Focus("tugs", "a") and other.stream == "ships"


def test_lengths_beyond_the_earth_are_for_other_spaces():
    plane = Space("plane", (Dimension("x", "m", 0, 1e9), Dimension("y", "m", 0, 1e9)))
    around = {"at": [5, 7], "half_widths": [3e7]}
    assert parse_plan({"stream": "ships", "around": around}, plane).shape == Rectangle((3e7, math.inf))
    line = Space("line", (Dimension("x", "m", 0, 1e9),))
    assert parse_plan({"stream": "ships", "around": {"at": [5], "radius": 3e7}}, line).shape == Circle(3e7)
    with pytest.raises(InvalidPlan, match="polygon needs a space of two dimensions"):
        parse_plan({"stream": "ships", "around": {"at": [5], "polygon": CROSSED}}, line)


def test_a_ring_may_be_closed():
    ring = [[0, 0], [1, 0], [0, 1]]
    plans = [parse_plan({"stream": "s", "around": FOCAL | {"polygon": polygon}}) for polygon in (ring, [*ring, [0, 0]])]
    assert plans[0] == plans[1]


@pytest.mark.parametrize("document", [None, [], "range", 7])
def test_a_plan_is_an_object(document):
    with pytest.raises(InvalidPlan, match="JSON object"):
        parse_plan(document)


def test_outside_of_a_rectangle_means_outside_of_it_in_the_whole_space():
    plan = parse_plan({"stream": "ships", "compare": BOX, "report": "outside"})
    assert plan.area == (-math.inf,) * 3 + (math.inf,) * 3


def test_the_bins_of_the_longest_interval_are_as_long_as_they_may_be():
    most_s = 31 * 24 * 3600
    join = {"stream": "buses", "predicate": "dwithin", "distance": 50}
    document = {"stream": "ships", "kind": "interval_join", "join": join, "lower_s": -most_s, "upper_s": most_s}
    plan = parse_plan(document)
    assert plan.bin_s == most_s and parse_plan(plan_document(plan)) == plan
