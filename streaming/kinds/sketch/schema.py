"""JSON Schema of queries of a sketch."""

from streaming.kinds.schema import Schema, described, given_as, object_schema, summary
from streaming.kinds.sketch.asks import (
    CONTRASTED,
    EVERY,
    FORMS,
    MAX_BINS,
    MAX_DEVIATIONS,
    MAX_FEATURES,
    MAX_HORIZON_S,
    MAX_LEVEL,
    STATISTICS,
    Cells,
    Contrast,
    Density,
    Member,
    Statistic,
)
from streaming.kinds.sketch.times import MAX_LAST_S, SelectedTimes, TimeRange
from streaming.kinds.sketch.times import MAX_RANGES as MAX_TIME_RANGES

BOUNDS = ("lo", "above", "hi", "below")
_NAME: Schema = {"type": "string", "minLength": 1}
_NUMBER: Schema = {"type": "number"}
_OPTIONS: dict[str, Schema] = {
    "deviations": _NUMBER | {"exclusiveMinimum": 1, "maximum": MAX_DEVIATIONS},
    "lo": _NUMBER,
    "hi": _NUMBER,
    "value": _NUMBER,
    "text": _NAME,
    "bins": {"type": "integer", "minimum": 1, "maximum": MAX_BINS},
    "at": {"type": "array", "maxItems": MAX_FEATURES, "items": _NUMBER},
    "horizon_s": _NUMBER | {"exclusiveMinimum": 0, "maximum": MAX_HORIZON_S},
    "model": _NAME,
    "level": {"type": "integer", "minimum": 1, "maximum": MAX_LEVEL},
    "every": {"enum": list(EVERY)},
}


def selection_schema(schema: Schema) -> Schema:
    """Return the JSON Schema of the documents of the kind, given that of their keys: `contrast` needs `other`."""
    asked = {"properties": {"ask": {"contains": _asks_for("contrast")}}}
    other = given_as("other", "object")
    return schema | _ONE_PLACE | {"if": asked, "then": other, "else": {"not": other}}


def feature_range_schema(schema: Schema) -> Schema:
    """Return the JSON Schema of a range, given that of its keys: a bound, and at most one on each side."""
    bounds = [_has(key) for key in BOUNDS]
    return schema | {"anyOf": bounds, "allOf": [_not_both("lo", "above"), _not_both("hi", "below")]}


def other_schema(schema: Schema) -> Schema:
    """Return the JSON Schema of the other selection, given that of its keys, one of which it must have."""
    return schema | _ONE_PLACE | {"anyOf": [_given(key) for key in schema["properties"]]}


def ask_schemas() -> dict[str, Schema]:
    """Return the schema of each form of question, by name."""
    return {f"ask_{cls.__name__.lower()}": _form(cls) for cls in dict.fromkeys(form.plan for form in FORMS.values())}


def _form(cls: type) -> Schema:
    """Return the schema of one form of question."""
    forms = {name: form for name, form in FORMS.items() if form.plan is cls}
    least = min(form.least for form in forms.values())
    most = max(form.most for form in forms.values())
    statistics = {"statistic": {"enum": list(CONTRASTED if cls is Contrast else STATISTICS)}}
    names = {"features": _names(least, most), "by": _names(1, MAX_FEATURES)}
    question = {"question": {"enum": list(forms), "description": "What is asked."}}
    schema = object_schema(cls, _OPTIONS | statistics | names | question)
    schema["properties"] |= question
    schema["required"] = ["question", *(["features"] if least else []), *next(iter(forms.values())).needed]
    return schema | _RULES.get(cls, {})


def _names(least: int, most: int) -> Schema:
    return {"type": "array", "minItems": least, "maxItems": most, "items": _NAME, "uniqueItems": True}


def _asks_for(*questions: str) -> Schema:
    return {"properties": {"question": {"enum": list(questions)}}, "required": ["question"]}


def _has(key: str) -> Schema:
    return {"required": [key]}


def _given(key: str) -> Schema:
    """Return the schema of an object in which a key has a value other than null."""
    return {"required": [key], "properties": {key: {"not": {"type": "null"}}}}


def _not_both(some: str, other: str) -> Schema:
    return {"not": {"allOf": [_given(some), _given(other)]}}


def _at_least(least: int) -> Schema:
    return {"required": ["features"], "properties": {"features": {"minItems": least}}}


def _with_statistic(*statistics: str) -> Schema:
    return {"required": ["statistic"], "properties": {"statistic": {"enum": list(statistics)}}}


def times_schema() -> Schema:
    """Return the JSON Schema of times: an object whose keys are not the fields of the class."""
    range_sides = {"from": _instant("The first time"), "to": _instant("The end, which does not belong to the range")}
    daily_sides = {"from": _clock("The first second"), "to": _clock("The end, on the next day if it is not later")}
    one: Schema = {"type": "object", "description": summary(TimeRange), "properties": range_sides}
    one |= {"anyOf": [_has("from"), _has("to")], "additionalProperties": False}
    daily: Schema = {"type": ["object", "null"], "properties": daily_sides, "required": ["from", "to"]}
    properties: dict[str, Schema] = {
        "ranges": {"type": ["array", "null"], "maxItems": MAX_TIME_RANGES, "items": one},
        "last_s": {"type": ["number", "null"], "minimum": 1e-6, "maximum": MAX_LAST_S},
        "daily": daily | {"additionalProperties": False},
        "zone": {"type": "string", "default": "UTC"},
    }
    return {
        "description": summary(SelectedTimes),
        "type": "object",
        "properties": {key: schema | described(SelectedTimes, key) for key, schema in properties.items()},
        "additionalProperties": False,
        **_not_both("ranges", "last_s"),
    }


def _instant(words: str) -> Schema:
    return {"type": "string", "description": f"{words}, in ISO 8601."}


def _clock(words: str) -> Schema:
    return {"type": "string", "description": f"{words}: HH:MM or HH:MM:SS, at most 24:00."}


_ONE_PLACE = _not_both("area", "polygon")
_RULES: dict[type, Schema] = {
    Statistic: {
        "allOf": [
            {"if": _asks_for("correlation"), "then": _at_least(2)},
            {"if": {"not": _asks_for("select", "count")}, "then": _at_least(1)},
        ]
    },
    Contrast: {"if": _with_statistic("correlation"), "then": _at_least(2)},
    Cells: {"if": _with_statistic(*STATISTICS[1:]), "then": _at_least(1)},
    Density: {"anyOf": [_has("lo"), _has("hi")]},
    Member: {"oneOf": [_has("value"), _has("text")]},
}
