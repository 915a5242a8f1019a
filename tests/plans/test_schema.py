"""The JSON Schema of plans is published, and agrees with `parse_plan`."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from streaming.errors import InvalidPlan
from streaming.kinds.parts import MAX_FILTERS, MAX_TRANSFORMS
from streaming.plans import parse_plan
from streaming.plans.schema import plan_schema
from tests.draws import examples
from tests.plans.strategies import documents

ROOT = Path(__file__).parents[2]
VALIDATOR = Draft202012Validator(plan_schema())
BOX = {"lo": [24, 59], "hi": [26, 61]}
RANGE = {"stream": "ships", "area": BOX}
JOIN = {"stream": "buses", "kind": "join", "join": {"layer": "roads", "predicate": "dwithin", "distance": 5}}
MOVING = {"stream": "ships", "around": {"key": "a", "radius": 5}}
NEAREST = {"stream": "ships", "kind": "knn", "k": 3, "around": {"at": [24, 60]}}
AVERAGE = RANGE | {"aggregate": {"function": "avg", "property": "speed_mps"}}
# Nulls are another matter: they stand for what is missing.
OTHER_TYPES = (True, 7, "text", ["text"], {"a": 1})


def test_the_schema_is_one():
    Draft202012Validator.check_schema(plan_schema())


def test_the_published_schema_is_up_to_date():
    command = [sys.executable, "-m", "streaming.plans.schema"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert (ROOT / "docs" / "plan.schema.json").read_text() == printed


def test_every_key_has_a_description():
    for definition in plan_schema()["$defs"].values():
        assert definition["description"]
        for name, schema in definition.get("properties", {}).items():
            described = schema.get("description") or "$ref" in schema
            assert described or name in ("lo", "hi", "kind") or name.startswith("enlarge_"), name


@given(documents)
def test_every_plan_is_valid(document):
    parse_plan(document)
    assert not list(VALIDATOR.iter_errors(document))


@examples(50)
@given(documents)
def test_an_unknown_key_anywhere_is_refused_by_both(document):
    for changed in at_every_object(document, lambda found: found | {"colour": "red"}):
        assert not accepted(changed)
        assert not VALIDATOR.is_valid(changed), changed


@pytest.mark.long
@examples(50)
@given(documents)
def test_a_value_of_another_type_anywhere_is_refused_by_both(document):
    for changed in at_every_value(document, other_types):
        assert not accepted(changed), changed
        assert not VALIDATOR.is_valid(changed), changed


@examples(50)
@given(documents)
def test_a_missing_key_anywhere_is_missed_by_both_or_neither(document):
    for changed in at_every_object(document, lambda found: [without(found, name) for name in found]):
        assert accepted(changed) == VALIDATOR.is_valid(changed), changed


@pytest.mark.parametrize(
    "document",
    [
        {"stream": "ships"},
        {"stream": "ships", "area": None, "compare": None},
        RANGE | {"stream": ""},
        RANGE | {"kind": "knn"},
        RANGE | {"kind": "nearest"},
        RANGE | {"report": "near"},
        RANGE | {"emit": "some"},
        RANGE | {"join": {"layer": "roads"}},
        RANGE | {"area": {"lo": [], "hi": []}},
        RANGE | {"transform": [{"enlarge_m": -1}]},
        RANGE | {"transform": [{"enlarge_m": 1, "enlarge_value": 1}]},
        RANGE | {"transform": [{}]},
        RANGE | {"transform": [{"enlarge_m": 1}] * (MAX_TRANSFORMS + 1)},
        RANGE | {"filters": [{"key": "a"}] * (MAX_FILTERS + 1)},
        RANGE | {"filters": [{"key": "a", "argument": "b"}]},
        RANGE | {"filters": [{"keys": []}]},
        RANGE | {"filters": [{"keys": ["a", ""]}]},
        RANGE | {"filters": [{"keys": "a"}]},
        RANGE | {"filters": [{"key": "a", "udf": "b"}]},
        RANGE | {"filters": [{"box": None}]},
        RANGE | {"filters": [{}]},
        RANGE | {"where": "a = 1 OR " * 400 + "a = 1"},
        RANGE | {"filters": [{"udf": "a", "argument": "b" * 100_001}]},
        JOIN | {"report": "inside"},
        JOIN | {"compare": BOX},
        JOIN | {"kind": "range"},
        JOIN | {"join": {"layer": "roads", "stream": "buses"}},
        JOIN | {"join": {"layer": None}},
        JOIN | {"join": {"layer": ""}},
        JOIN | {"join": {"layer": "roads", "predicate": "beside"}},
        JOIN | {"join": {"layer": "roads", "predicate": "dwithin"}},
        JOIN | {"join": {"layer": "roads", "predicate": "dwithin", "distance": -1}},
        JOIN | {"join": {"layer": "roads", "distance": 1}},
        JOIN | {"join": {"stream": "buses", "predicate": "disjoint"}},
        JOIN | {"join": {"layer": "roads", "pair_filters": [{"key": "a"}]}},
        MOVING | {"emit": "all"},
        MOVING | {"area": BOX, "compare": BOX},
        MOVING | {"report": "inside"},
        MOVING | {"kind": "join"},
        MOVING | {"kind": "knn", "k": 3},
        MOVING | {"around": {"radius": 5}},
        MOVING | {"around": {"key": "a"}},
        MOVING | {"around": {"key": "", "radius": 5}},
        MOVING | {"around": {"key": "a", "at": [1, 2], "radius": 5}},
        MOVING | {"around": {"at": [1, 2], "stream": "tugs", "radius": 5}},
        MOVING | {"around": {"at": [1, 2, 3], "radius": 5}},
        MOVING | {"around": {"at": [1, None], "radius": 5}},
        MOVING | {"around": {"key": "a", "radius": 0}},
        MOVING | {"around": {"key": "a", "radius": 5, "half_widths": [1]}},
        MOVING | {"around": {"key": "a", "half_widths": []}},
        MOVING | {"around": {"key": "a", "half_widths": [None]}},
        MOVING | {"around": {"key": "a", "half_widths": [0]}},
        MOVING | {"around": {"key": "a", "half_widths": [1] * 9}},
        MOVING | {"around": {"key": "a", "polygon": [[0, 0], [1, 1]]}},
        MOVING | {"around": {"key": "a", "polygon": [[0, 0, 0], [1, 1, 1], [2, 0, 0]]}},
        MOVING | {"around": {"key": "a", "polygon": [[0, 0], [1, 1]] * 501}},
        NEAREST | {"k": 0},
        NEAREST | {"k": 1_001},
        NEAREST | {"k": 2.5},
        NEAREST | {"k": None},
        NEAREST | {"alpha": 10.5},
        NEAREST | {"alpha": -1},
        NEAREST | {"max_distance": 0},
        NEAREST | {"emit": "all"},
        NEAREST | {"transform": []},
        NEAREST | {"compare": BOX},
        NEAREST | {"aggregate": {"function": "count"}},
        NEAREST | {"around": None},
        JOIN | {"aggregate": {"function": "count"}},
        AVERAGE | {"emit": "all"},
        AVERAGE | {"aggregate": {}},
        AVERAGE | {"aggregate": {"function": "median"}},
        AVERAGE | {"aggregate": {"function": "sum"}},
        AVERAGE | {"aggregate": {"function": "sum", "property": "a", "dimension": "latitude"}},
        AVERAGE | {"aggregate": {"function": "count", "property": "a"}},
        AVERAGE | {"aggregate": {"function": "count", "group_by": ""}},
        AVERAGE | {"aggregate": {"function": "count", "thresholds": [{}]}},
        AVERAGE | {"aggregate": {"function": "count", "thresholds": [{"for_s": 5}]}},
        AVERAGE | {"aggregate": {"function": "count", "thresholds": [{"above": 1, "below": 2}]}},
        AVERAGE | {"aggregate": {"function": "count", "thresholds": [{"above": 1, "for_s": -1}]}},
        AVERAGE | {"aggregate": {"function": "count", "thresholds": [{"above": 1, "for_s": 1e9}]}},
        AVERAGE | {"aggregate": {"function": "count", "thresholds": [{"above": i} for i in range(9)]}},
        None,
        [],
        "range",
    ],
)
def test_what_breaks_a_rule_is_refused_by_both(document):
    assert not accepted(document)
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize(
    "document", [RANGE, JOIN, MOVING, NEAREST, AVERAGE, MOVING | {"aggregate": {"function": "count"}}]
)
def test_what_the_wrong_ones_were_made_of_is_right(document):
    assert accepted(document) and VALIDATOR.is_valid(document)


def test_numbers_beyond_those_of_machines_are_refused_with_the_rule():
    with pytest.raises(InvalidPlan, match="finite number"):
        parse_plan(RANGE | {"transform": [{"enlarge_m": 10**400}]})


def test_the_keys_of_a_filter_may_come_in_any_order():
    plan = parse_plan(RANGE | {"filters": [json.loads('{"argument": "b", "udf": "a"}')]})
    assert (plan.filters[0].udf, plan.filters[0].argument) == ("a", "b")


def accepted(document):
    """Tell whether a document describes a plan."""
    try:
        parse_plan(document)
    except InvalidPlan:
        return False
    return True


def other_types(value):
    """Return values of other types than a value's; none for null, which stands for what is missing."""
    if value is None:
        return []
    kind = (int, float) if type(value) in (int, float) else type(value)
    return [
        other for other in OTHER_TYPES if not isinstance(other, kind) or (isinstance(other, bool) and kind is not bool)
    ]


def without(found, name):
    """Return an object without one of its keys."""
    return {key: value for key, value in found.items() if key != name}


def at_every_object(document, change):
    """Yield the document with one of its objects changed, for each object and each of its changes."""
    yield from at_every_value(document, lambda value: _list(change(value)) if isinstance(value, dict) else [])


def at_every_value(document, changes):
    """Yield the document with one value changed, for each value within and each of its changes."""
    yield from changes(document)
    inner = enumerate(document) if isinstance(document, list) else getattr(document, "items", dict)()
    for place, value in list(inner):
        for changed in at_every_value(value, changes):
            whole = copy.copy(document)
            whole[place] = changed
            yield whole


def _list(changed):
    return changed if isinstance(changed, list) else [changed]
