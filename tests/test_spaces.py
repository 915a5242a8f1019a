"""Spaces as documents: what describes a space, what does not and why; boxes in them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import InvalidSpace
from streaming.plans import parse_plan, plan_document
from streaming.spaces import EARTH, Dimension, Space, parse_space, space_document, space_text

PRICE = {"name": "price", "unit": "USD", "lo": 0, "hi": 10_000}
PRICES = {"name": "prices", "dimensions": [PRICE]}
LON, LAT, ALTITUDE = space_document(EARTH)["dimensions"]


def dimensions(count, **changes):
    return [{"name": f"d{number}", "lo": 0, "hi": 1, **changes} for number in range(count)]


def test_a_dimension_is_a_name_and_two_bounds():
    assert parse_space(PRICES) == Space("prices", (Dimension("price", "USD", 0.0, 10_000.0),))
    assert parse_space('{"name": "a", "dimensions": [{"name": "x", "lo": -1, "hi": 1}]}').dimensions[0].unit == ""


@pytest.mark.parametrize("space", [EARTH, *(parse_space({"name": "s", "dimensions": dimensions(n)}) for n in (1, 8))])
def test_a_space_is_what_its_document_and_its_text_describe(space):
    assert parse_space(space_document(space)) == parse_space(space_text(space)) == space


WRONG = {
    "no object": ([], r"a space must be a JSON object; got \[\]"),
    "no JSON": ("{", "a space must be a JSON object; Expecting"),
    "an unknown key": (PRICES | {"colour": 1}, "got the unknown colour"),
    "no name": ({"dimensions": [PRICE]}, "a space's name must be lower case letters.* got None"),
    "a name with a slash": (PRICES | {"name": "../a"}, "a space's name must be"),
    "a name with a colon": (PRICES | {"name": "a:b"}, "a space's name must be"),
    "a long name": (PRICES | {"name": "a" * 41}, "at most 40"),
    "no dimensions": ({"name": "a"}, "dimensions must be a list of 1 to 8"),
    "none at all": (PRICES | {"dimensions": []}, "dimensions must be a list of 1 to 8"),
    "nine": (PRICES | {"dimensions": dimensions(9)}, "dimensions must be a list of 1 to 8"),
    "a dimension that is none": (PRICES | {"dimensions": ["price"]}, "a dimension must be an object; got 'price'"),
    "an unknown key of a dimension": (PRICES | {"dimensions": [PRICE | {"low": 1}]}, "unknown low"),
    "a dimension without name": (PRICES | {"dimensions": [PRICE | {"name": " "}]}, "a dimension's name must be"),
    "the same name twice": (PRICES | {"dimensions": [PRICE, PRICE]}, "must be distinct; got price, price"),
    "a bound that is missing": (PRICES | {"dimensions": [{"name": "x", "lo": 1}]}, "x: hi must be a finite number"),
    "a bound that is a text": (PRICES | {"dimensions": [PRICE | {"lo": "0"}]}, "price: lo must be a finite number"),
    "an infinite bound": (PRICES | {"dimensions": [PRICE | {"hi": math.inf}]}, "price: hi must be a finite number"),
    "a bound beyond floats": (PRICES | {"dimensions": [PRICE | {"hi": 10**400}]}, "price: hi must be a finite number"),
    "lo not below hi": (PRICES | {"dimensions": [PRICE | {"hi": 0}]}, "price: lo must be below hi; got 0 and 0"),
    "an endless extent": (PRICES | {"dimensions": [PRICE | {"lo": -1e308, "hi": 1e308}]}, "hi - lo must be"),
    "wraps that is no flag": (PRICES | {"dimensions": [PRICE | {"wraps": 1}]}, "wraps must be true or false; got 1"),
    "a unit that is no text": (PRICES | {"dimensions": [PRICE | {"unit": 1}]}, "price: unit must be a text"),
    "geographic without places": (PRICES | {"geographic": True}, "dimension 1 of a geographic space must be .*lon"),
    "latitude first": (PRICES | {"geographic": True, "dimensions": [LAT, LON]}, "dimension 1 of a geographic"),
    "longitude alone": (PRICES | {"geographic": True, "dimensions": [LON]}, "dimension 2 .* got none"),
    "another height": (PRICES | {"geographic": True, "dimensions": [LON, LAT, PRICE]}, "must be the altitude in m"),
}


@pytest.mark.parametrize(("document", "words"), WRONG.values(), ids=WRONG)
def test_a_document_that_breaks_a_rule_is_refused_with_the_rule_and_the_value(document, words):
    with pytest.raises(InvalidSpace, match=words):
        parse_space(document)


def test_a_geographic_space_may_have_no_height_or_another_one():
    assert parse_space({"name": "land", "geographic": True, "dimensions": [LON, LAT]}).n == 2
    assert parse_space({"name": "air", "geographic": True, "dimensions": [LON, LAT, ALTITUDE | {"hi": 20_000}]}).n == 3


@pytest.mark.parametrize(
    ("lo", "hi", "words"),
    [
        ([None, 46], [10, 48], "longitude must have both bounds or none"),
        ([0, None], [1, 95], r"latitude must lie within \[-90, 90\]; got 95"),
        ([0, 10**400], [1, None], "latitude must be a finite number"),
    ],
)
def test_a_box_that_is_open_on_one_side_keeps_the_rules_on_the_other(lo, hi, words):
    with pytest.raises(InvalidSpace, match=words):
        EARTH.box(lo, hi)


bounds = st.one_of(st.none(), st.integers(0, 10_000))


@given(st.lists(st.tuples(bounds, bounds), min_size=1, max_size=3))
def test_a_plan_without_some_bounds_is_what_its_document_says(sides):
    space = parse_space({"name": "s", "dimensions": [PRICE | {"name": name} for name in "abc"]})
    ordered = [sorted(side) if None not in side else side for side in sides]
    lo, hi = map(list, zip(*ordered, strict=True))
    plan = parse_plan({"stream": "s", "compare": {"lo": lo, "hi": hi}}, space)
    assert parse_plan(plan_document(plan, space), space) == plan
    assert [math.isfinite(bound) for bound in plan.compare[: len(lo)]] == [low is not None for low in lo]
