"""Plans of queries of sketches: documents, JSON Schema, text and words agree with each other."""

import json

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from streaming.errors import InvalidPlan
from streaming.kinds.schema import shared_definitions
from streaming.kinds.sketch.asks import FORMS
from streaming.kinds.sketch.kind import SketchKind
from streaming.kinds.sketch.reading import document_of
from streaming.kinds.sketch.writing import text_of
from streaming.spaces import EARTH, Dimension, Space
from tests.draws import examples
from tests.plans.sketches import sketch_documents
from tests.plans.test_schema import at_every_object, at_every_value, other_types, without

KIND = SketchKind()
SCHEMA = {**KIND.definition(), "$defs": {**KIND.definitions(), **shared_definitions()}}
VALIDATOR = Draft202012Validator(SCHEMA)
PRICES = Space("prices", (Dimension("price", "EUR", 0.0, 1e6),))
MEAN = {"stream": "weather", "kind": "sketch", "ask": [{"question": "mean", "features": ["TEMP"]}]}
TRIANGLE = [[0, 0], [1, 0], [0, 1]]


def asking(question, **keys):
    """Return a document with one question."""
    return MEAN | {"ask": [{"question": question, **keys}]}


def accepted(document):
    """Tell whether a document describes a plan, as `parse_plan` does for kinds that are registered."""
    if not isinstance(document, dict) or document.get("kind") != KIND.written:
        return False
    try:
        KIND.parse(document, EARTH)
    except InvalidPlan:
        return False
    return True


def test_the_schema_is_one():
    Draft202012Validator.check_schema(SCHEMA)


def test_every_key_has_a_description():
    for definition in (KIND.definition(), *KIND.definitions().values()):
        assert definition["description"]
        for name, schema in definition["properties"].items():
            assert schema.get("description") or "$ref" in schema or name == "kind", name


@given(sketch_documents())
def test_a_plan_survives_its_document_and_its_text(document):
    plan = KIND.parse(document, EARTH)
    written = json.loads(json.dumps(KIND.document(plan, EARTH)))
    assert KIND.parse(written, EARTH) == plan
    assert KIND.document(KIND.parse(written, EARTH), EARTH) == written
    text = text_of(written)
    assert KIND.parse(document_of(text), EARTH) == plan
    assert text_of(KIND.document(KIND.parse(document_of(text), EARTH), EARTH)) == text


@given(sketch_documents())
def test_every_plan_is_valid_and_has_words(document):
    written = KIND.document(KIND.parse(document, EARTH), EARTH)
    for one in (document, written):
        assert not list(VALIDATOR.iter_errors(one))
    assert KIND.words(written, " m")


@examples(25)
@given(sketch_documents())
def test_an_unknown_key_anywhere_is_refused_by_both(document):
    for changed in at_every_object(document, lambda found: found | {"colour": "red"}):
        assert not accepted(changed)
        assert not VALIDATOR.is_valid(changed), changed


@pytest.mark.long
@examples(25)
@given(sketch_documents())
def test_a_value_of_another_type_anywhere_is_refused_by_both(document):
    for changed in at_every_value(document, other_types):
        assert not accepted(changed), changed
        assert not VALIDATOR.is_valid(changed), changed


@examples(25)
@given(sketch_documents())
def test_a_missing_key_anywhere_is_missed_by_both_or_neither(document):
    for changed in at_every_object(document, lambda found: [without(found, name) for name in found]):
        assert accepted(changed) == VALIDATOR.is_valid(changed), changed


@pytest.mark.parametrize(
    "document",
    [
        MEAN | {"stream": ""},
        MEAN | {"ask": []},
        MEAN | {"ask": MEAN["ask"] * 17},
        MEAN | {"where": "TEMP > 3"},
        MEAN | {"emit": "changes"},
        MEAN | {"area": {"lo": [0, 0], "hi": [1, 1]}, "polygon": TRIANGLE},
        MEAN | {"polygon": TRIANGLE[:2]},
        MEAN | {"time": {"last_s": 0}},
        MEAN | {"time": {"last_s": 5, "ranges": []}},
        MEAN | {"time": {"ranges": [{}]}},
        MEAN | {"time": {"daily": {"from": "14:00"}}},
        MEAN | {"ranges": [{"feature": "wind"}]},
        MEAN | {"ranges": [{"feature": "wind", "lo": 1, "above": 1}]},
        MEAN | {"ranges": [{"lo": 1}]},
        MEAN | {"confidence": 1},
        MEAN | {"confidence": 0.49},
        MEAN | {"once": 1},
        MEAN | {"other": {"time": {}}},
        asking("median", features=["TEMP"]),
        asking("mean"),
        asking("mean", features=[""]),
        asking("mean", features=["TEMP", "TEMP"]),
        asking("mean", features=["TEMP"], bins=3),
        asking("correlation", features=["TEMP"]),
        asking("contrast", features=["TEMP"]),
        asking("contrast", features=["TEMP"], statistic="correlation") | {"other": {"time": {}}},
        asking("contrast", features=["TEMP"]) | {"other": {}},
        asking("outliers", features=["TEMP"], deviations=1),
        asking("density", features=["TEMP"]),
        asking("density", features=["TEMP", "PRES"], lo=1),
        asking("probability", features=["TEMP"]),
        asking("histogram", features=["TEMP"], bins=0),
        asking("contains", features=["key"]),
        asking("contains", features=["key"], value=1, text="a"),
        asking("regression", features=["TEMP"], by=[]),
        asking("forecast", features=["TEMP"]),
        asking("cells"),
        asking("cells", level=51),
        asking("cells", level=2.5),
        asking("cells", level=9, statistic="mean"),
        asking("series", features=["TEMP"], every="fortnight"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_both(document):
    assert not accepted(document)
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (MEAN | {"time": {"zone": "Mars/Olympus"}}, "time: zone must be a name of the IANA time zone database"),
        (MEAN | {"time": {"zone": "localtime"}}, "time: zone must be"),
        (MEAN | {"time": {"zone": "../etc"}}, "time: zone must be"),
        (MEAN | {"time": {"ranges": [{"from": "yesterday"}]}}, "time: a range: from must be a time in ISO 8601"),
        (MEAN | {"time": {"ranges": [{"from": "2014", "to": "2013"}]}}, "must be a time in ISO 8601"),
        (MEAN | {"time": {"ranges": [{"from": "2014-01-01", "to": "2013-01-01"}]}}, "from must be before to"),
        (MEAN | {"time": {"daily": {"from": "14:00", "to": "25:00"}}}, "to must be a time of day, such as 14:00"),
        (MEAN | {"time": {"daily": {"from": "14:00", "to": "14:00"}}}, "from and to must differ"),
        (MEAN | {"ranges": [{"feature": "a", "above": 3, "below": 3}]}, "a range must have values"),
        (MEAN | {"ranges": [{"feature": "a", "lo": 3}] * 2}, "features of ranges must differ"),
        (MEAN | {"polygon": [[0, 0], [1, 1], [0, 1], [1, 0]]}, "polygon must be a simple ring"),
        (MEAN | {"polygon": [[0, 0], [1, 0], [0, 91]]}, "polygon: latitude must end at 90 or before"),
        (asking("density", features=["a"], lo=2, hi=1), "density: lo must not exceed hi"),
        (asking("regression", features=["a"], by=["a"]), "must not be predicted by itself"),
        (asking("regression", features=["a"], by=["b"], at=[1, 2]), "a number for each feature of by, 1; got 2"),
        (asking("contrast", features=["a"]), "other belongs to the question contrast; got contrast without other"),
    ],
)
def test_a_rule_that_is_broken_is_told_with_the_value(document, message):
    with pytest.raises(InvalidPlan, match=message):
        KIND.parse(document, EARTH)


def test_a_space_of_one_dimension_has_boxes_but_no_polygons():
    assert KIND.parse(MEAN | {"area": {"lo": [1], "hi": [2]}}, PRICES).area == (1.0, 2.0)
    with pytest.raises(InvalidPlan, match="two dimensions or more"):
        KIND.parse(MEAN | {"polygon": TRIANGLE}, PRICES)


def test_the_other_selection_has_what_it_does_not_name_from_the_first():
    contrast = asking("contrast", features=["TEMP"]) | {"polygon": TRIANGLE, "time": {"last_s": 60}}
    place = KIND.parse(contrast | {"other": {"area": {"lo": [5, 5], "hi": [6, 6]}}}, EARTH)
    assert (place.other.area[:2], place.other.polygon, place.other.time) == ((5.0, 5.0), (), place.time)
    time = KIND.parse(contrast | {"other": {"time": {"last_s": 90}}}, EARTH)
    assert (time.other.area, time.other.polygon, time.other.time.last_s) == (time.area, time.polygon, 90.0)


def test_every_question_is_drawn_and_in_the_schema():
    defined = {question for schema in KIND.definitions().values() for question in questions(schema)}
    assert defined == set(FORMS)


def questions(schema):
    """Return the questions that the schema of a form allows."""
    return schema["properties"].get("question", {}).get("enum", [])


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (MEAN, "mean of TEMP"),
        (
            MEAN | {"polygon": TRIANGLE, "time": {"daily": {"from": "14:00", "to": "16:00"}, "zone": "Asia/Shanghai"}},
            "mean of TEMP in the drawn area, from 14:00 to 16:00 daily (Asia/Shanghai)",
        ),
        (
            asking("contrast", features=["TEMP"])
            | {"time": {"ranges": [{"from": "2013-06-01", "to": "2013-09-01T12:30Z"}]}, "other": {"time": {}}},
            "contrast of the mean of TEMP, from 2013-06-01 until 2013-09-01 12:30; "
            "against the same place, at all times",
        ),
        (
            asking("density", features=["TEMP"], lo=10) | {"ranges": [{"feature": "wind", "above": 3}], "once": True},
            "share of TEMP from 10, with wind above 3; once",
        ),
        (
            asking("contains", features=["key"], text="ALICE") | {"confidence": 0.99},
            'whether key has "ALICE"; 99 % sure',
        ),
        (asking("cells", level=20, features=["TEMP"], statistic="max"), "max of TEMP in cells of 20 bits"),
        (asking("count"), "count of elements"),
    ],
)
def test_a_plan_is_described_in_words(document, words):
    assert KIND.words(KIND.document(KIND.parse(document, EARTH), EARTH), " m") == words
