"""Plans that break a rule are refused with the rule and the value."""

import math

import pytest

from streaming.errors import InvalidPlan
from streaming.plans import parse_plan

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
        ({"area": None}, "got neither"),
        ({"report": "near"}, "report must be one of"),
        ({"kind": "knn"}, "kind must be one of"),
        ({"emit": []}, "emit must be one of"),
        ({"transform": {"enlarge_m": 5}}, "list of at most"),
        ({"transform": [{"enlarge_m": -5}]}, "not negative"),
        ({"transform": [{"enlarge_m": math.inf}]}, "finite"),
        ({"transform": [{"shrink": 1}]}, "object with one of"),
        ({"where": "speed >"}, "CQL2"),
        ({"where": 5}, "CQL2"),
        ({"where": "S_INTERSECTS(geometry, POINT(1 2))"}, "where knows the operators"),
        ({"where": "NOT " * 100 + "a"}, "nest more than 40 levels"),
        ({"where": "a = 1 OR " * 400 + "a = 1"}, "2000 characters"),
    ],
)
def test_a_plan_that_breaks_a_rule_is_refused_with_the_rule(change, words):
    with pytest.raises(InvalidPlan, match=words):
        parse_plan({"stream": "ships", "area": BOX} | change)


@pytest.mark.parametrize("document", [None, [], "range", 7])
def test_a_plan_is_an_object(document):
    with pytest.raises(InvalidPlan, match="JSON object"):
        parse_plan(document)


def test_outside_of_a_rectangle_means_outside_of_it_in_the_whole_space():
    plan = parse_plan({"stream": "ships", "compare": BOX, "report": "outside"})
    assert plan.area == (-math.inf,) * 3 + (math.inf,) * 3
