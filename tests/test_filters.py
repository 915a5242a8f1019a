"""CQL2 filters over JSON properties, with unknown where a property is absent."""

import json
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from streaming.errors import InvalidPlan
from streaming.filters import parse_filter, passes

# What the page, which evaluates filters of its own, must find, too: tests/js/display-filter.test.mjs.
SHARED = json.loads((Path(__file__).parent / "filter_cases.json").read_text())

SHIPS = [
    {"speed": 5, "type": "cargo", "name": "Anna", "moored": True},
    {"speed": "7", "type": "Tanker", "my name": 1},
    {},
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("speed > 4", [1, 1, 0]),
        ("speed + 1 > 7", [0, 1, 0]),
        ("speed <> 5", [0, 1, 0]),
        ("speed IN (5, 6)", [1, 0, 0]),
        ("speed BETWEEN 5 AND 6", [1, 0, 0]),
        ("type = 'cargo'", [1, 0, 0]),
        ("NOT type = 'cargo'", [0, 1, 0]),
        ("type NOT IN ('cargo')", [0, 1, 0]),
        ("CASEI(type) = CASEI('TANKER')", [0, 1, 0]),
        ("type LIKE 'Tan%'", [0, 1, 0]),
        ("CASEI(type) LIKE CASEI('tAN%')", [0, 1, 0]),
        ("type LIKE 'c_rgo'", [1, 0, 0]),
        ("type LIKE 'c.rgo'", [0, 0, 0]),
        ("name IS NULL", [0, 1, 1]),
        ("name IS NOT NULL", [1, 0, 0]),
        ("moored = TRUE", [1, 0, 0]),
        ("moored", [1, 0, 0]),
        ('"my name" = 1', [0, 1, 0]),
        ("speed > 4 AND NOT (moored = TRUE OR type = 'x')", [0, 0, 0]),
        ("speed > 4 OR name IS NULL", [1, 1, 1]),
        ("type <> 'private property'", [1, 1, 0]),
    ],
)
def test_a_filter_holds_for_the_elements_it_says(text, expected):
    properties = pa.array([orjson.dumps(ship).decode() for ship in SHIPS])
    assert passes(parse_filter(text), properties).tolist() == [bool(value) for value in expected]


def test_a_condition_on_no_property_holds_for_all_or_none():
    properties = pa.array(["{}", "{}"])
    assert passes(parse_filter("TRUE"), properties).tolist() == [True, True]
    assert passes(parse_filter("1 > 2"), properties).tolist() == [False, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("speed IN (5, 'x', 7)", [1, 1, 0]),
        ("speed NOT IN (6, 'x')", [1, 1, 0]),
        ("moored IN (TRUE, 1)", [1, 0, 0]),
        ("5 IN (speed, 6)", [1, 0, 0]),
        ("CASEI(type) IN (CASEI('CARGO'), 'tanker')", [1, 1, 0]),
        ("speed + 0 IN (5, speed)", [1, 1, 0]),
        ("NOT name IN ('x')", [1, 0, 0]),
        ("zero IN (0)", [0, 0, 1]),
    ],
)
def test_members_are_looked_up_as_numbers_and_as_texts(text, expected):
    properties = pa.array([orjson.dumps(ship).decode() for ship in [*SHIPS[:2], {"zero": -0.0}]])
    assert passes(parse_filter(text), properties).tolist() == [bool(value) for value in expected]


@pytest.mark.parametrize("case", SHARED["cases"], ids=lambda case: case["where"][:40])
def test_a_filter_finds_what_the_page_finds(case):
    if "error" in case:
        with pytest.raises(InvalidPlan) as error:
            parse_filter(case["where"])
        assert str(error.value) == case["error"]
    else:
        properties = pa.array(SHARED["objects"])
        assert passes(parse_filter(case["where"]), properties).tolist() == [bool(value) for value in case["passes"]]
