"""JSON Schema of plans, made from their dataclasses. ``python -m streaming.plans.schema`` prints it.

The descriptions in it come from the docstrings of these dataclasses.

References
----------
JSON Schema, draft 2020-12: https://json-schema.org/draft/2020-12/json-schema-core
"""

import inspect
import json
import math
import re
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

from streaming.plans.around import (
    FUNCTIONS,
    MAX_FOR_S,
    MAX_THRESHOLDS,
    MAX_VERTICES,
    SHAPES,
)
from streaming.plans.documents import MAX_ALPHA, MAX_K
from streaming.plans.moving import (
    Aggregate,
    Carried,
    Circle,
    Focus,
    MovingRangePlan,
    NearestPlan,
    Rectangle,
    Shape,
    Threshold,
)
from streaming.plans.parts import (
    ENLARGEMENTS,
    MAX_ARGUMENT_CHARACTERS,
    MAX_FILTERS,
    MAX_TRANSFORMS,
    MAX_WHERE_CHARACTERS,
    Box,
    BoxFilter,
    Enlargement,
    Filter,
    KeyFilter,
    UserFilter,
)
from streaming.plans.queries import EMITS, PREDICATES, REPORTS, SOURCES, JoinPlan, Partners, RangePlan
from streaming.spaces import MAX_DIMENSIONS

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_DEFINITIONS = {
    "range": RangePlan,
    "moving_range": MovingRangePlan,
    "knn": NearestPlan,
    "join": JoinPlan,
    "aggregate": Aggregate,
    "threshold": Threshold,
    "partners": Partners,
    "key_filter": KeyFilter,
    "box_filter": BoxFilter,
    "user_filter": UserFilter,
}
_CHOICES = {"report": REPORTS, "emit": EMITS, "predicate": PREDICATES, "function": FUNCTIONS}
_KEPT = EMITS[:2]
_MAX_CHARACTERS = {"where": MAX_WHERE_CHARACTERS, "argument": MAX_ARGUMENT_CHARACTERS}
# The boxes of a range query. Null counts as missing; one of the two must be given.
_BOXES = ("area", "compare")


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of the plans of any space.

    Returns
    -------
    dict
        Every document that `parse_plan` accepts is valid under it. Rules that it cannot express are left to
        `parse_plan`: CQL2 text must parse, a box must lie in the space, and no lower bound may exceed its upper bound.

    Examples
    --------
    >>> plan_schema()["$defs"]["range"]["properties"]["report"]["enum"]
    ['inside', 'outside']
    """
    definitions = {name: _object(cls) for name, cls in _DEFINITIONS.items()}
    definitions |= {"enlargement": _enlargement(), "box": _box()}
    definitions |= {"focus": _focus(), "around": _around()}
    _complete_range(definitions["range"])
    _complete_moving(definitions["moving_range"])
    _complete_nearest(definitions["knn"])
    _complete_aggregate(definitions["aggregate"])
    _complete_threshold(definitions["threshold"])
    _complete_join(definitions["join"])
    _complete_partners(definitions["partners"])
    return {
        "$schema": DRAFT,
        "title": "Query plan of Lookout",
        "description": "A continuous query. See docs/plans.md.",
        "type": "object",
        "if": _of_kind("join"),
        "then": _ref("join"),
        "else": {
            "if": _of_kind("knn"),
            "then": _ref("knn"),
            "else": {"if": _given("around", "object"), "then": _ref("moving_range"), "else": _ref("range")},
        },
        "$defs": definitions,
    }


def _of_kind(kind):
    return {"properties": {"kind": {"const": kind}}, "required": ["kind"]}


def _ref(name):
    return {"$ref": f"#/$defs/{name}"}


def _object(cls) -> dict[str, Any]:
    """Return the schema of a dataclass whose fields are the keys of its JSON form."""
    types, words = get_type_hints(cls), _descriptions(cls)
    properties = {field.name: _property(field, types[field.name]) for field in fields(cls)}
    for name in words.keys() & properties.keys():
        properties[name]["description"] = words[name]
    return {
        "description": _summary(cls),
        "type": "object",
        "properties": properties,
        "required": [field.name for field in fields(cls) if field.default is MISSING],
        "additionalProperties": False,
    }


def _property(field, kind):
    """Return the schema of one field, without its description."""
    if field.name == "kind":
        return {"const": field.default}
    schema = dict(_TYPES[kind])
    if field.name in _CHOICES:
        schema = {"enum": list(_CHOICES[field.name])}
    schema |= _NUMBERS.get(field.name, {})
    if field.name in _MAX_CHARACTERS:
        schema["maxLength"] = _MAX_CHARACTERS[field.name]
    if field.default is MISSING:
        return schema | ({"minLength": 1} if kind is str else {})
    if field.default in (None, math.inf):
        return schema
    return schema | {"default": list(field.default) if isinstance(field.default, tuple) else field.default}


def _list(limit, *definitions):
    items = [{"$ref": f"#/$defs/{name}"} for name in definitions]
    return {"type": "array", "maxItems": limit, "items": items[0] if len(items) == 1 else {"oneOf": items}}


_NUMBERS: dict[str, dict[str, Any]] = {
    "k": {"minimum": 1, "maximum": MAX_K},
    "alpha": {"maximum": MAX_ALPHA},
    "for_s": {"maximum": MAX_FOR_S},
}
_ABOVE_0 = {"exclusiveMinimum": 0}

_TYPES: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number", "minimum": 0},
    float | None: {"type": ["number", "null"]},
    Focus: {"$ref": "#/$defs/focus"},
    Shape: {},
    tuple[Threshold, ...]: _list(MAX_THRESHOLDS, "threshold"),
    Box: {"$ref": "#/$defs/box"},
    Partners: {"$ref": "#/$defs/partners"},
    tuple[Enlargement, ...]: _list(MAX_TRANSFORMS, "enlargement"),
    tuple[Filter, ...]: _list(MAX_FILTERS, "key_filter", "box_filter", "user_filter"),
    tuple[UserFilter, ...]: _list(MAX_FILTERS, "user_filter"),
}


def _summary(cls) -> str:
    return inspect.cleandoc(cls.__doc__).splitlines()[0]


def _descriptions(cls) -> dict[str, str]:
    """Return the descriptions of the parameters in a class's numpydoc, by name."""
    _, _, text = inspect.cleandoc(cls.__doc__).partition("Parameters\n----------\n")
    entries = re.findall(r"^(\w+) : .*\n((?:    .*\n?)*)", text, re.MULTILINE)
    return {name: " ".join(words.split()).replace("``", "`") for name, words in entries if words}


def _enlargement() -> dict[str, Any]:
    """Return the schema of an enlargement: an object with one key, one of `ENLARGEMENTS`, and the amount as value."""
    words = _descriptions(Enlargement)
    return {
        "description": f"{words['by']} {words['amount']}",
        "type": "object",
        "properties": dict.fromkeys(ENLARGEMENTS, _TYPES[float]),
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
    }


def _box() -> dict[str, Any]:
    """Return the schema of a box's two corners."""
    corner = {"type": "array", "minItems": 1, "items": {"type": ["number", "null"]}}
    return {
        "description": "A box by two corners, in the order of the space's dimensions. Null, or nothing, is no bound.",
        "type": "object",
        "properties": {"lo": corner, "hi": corner},
        "required": ["lo", "hi"],
        "additionalProperties": False,
    }


def _focus() -> dict[str, Any]:
    """Return the schema of a focus: the key of an object, or a place."""
    words = _descriptions(Focus)
    text = {"type": ["string", "null"], "minLength": 1}
    place = {"type": ["array", "null"], "minItems": 1, "maxItems": 2, "items": {"type": "number"}}
    schemas = {"stream": text, "key": text, "at": place}
    return {
        "description": _summary(Focus),
        "type": "object",
        "properties": {name: schema | {"description": words[name]} for name, schema in schemas.items()},
        "oneOf": [_given("key", "string"), {"allOf": [_given("at", "array"), _null("stream")]}],
        "additionalProperties": False,
    }


def _around() -> dict[str, Any]:
    """Return the schema of a moving range's focus and shape."""
    schema, width = _focus(), {"type": ["number", "null"], **_ABOVE_0}
    vertex = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}}
    polygon = {"type": ["array", "null"], "minItems": 3, "maxItems": MAX_VERTICES, "items": vertex}
    widths = {"type": ["array", "null"], "maxItems": MAX_DIMENSIONS, "items": width, "contains": {"type": "number"}}
    shapes = {
        "radius": width | _described(Circle, "radius"),
        "half_widths": widths | _described(Rectangle, "half_widths"),
        "polygon": polygon | _described(Carried, "polygon"),
    }
    schema["description"] = "The focus of a moving range, and the shape of the range about it."
    schema["properties"] |= shapes
    focus, kinds = schema.pop("oneOf"), ("number", "array", "array")
    shape = [_given(name, kind) for name, kind in zip(SHAPES, kinds, strict=True)]
    return schema | {"allOf": [{"oneOf": focus}, {"oneOf": shape}]}


def _described(cls, name):
    return {"description": _descriptions(cls)[name]}


def _null(name):
    return {"properties": {name: {"type": "null"}}}


def _complete_range(schema):
    """Allow one of a range query's two boxes to be missing, and an aggregate, for which the answer must be kept."""
    _may_be_null(schema, _BOXES)
    schema["required"] = ["stream"]
    schema["anyOf"] = [_given(name, "object") for name in _BOXES]
    schema["properties"] |= {
        "aggregate": _aggregated(),
        "around": {"type": "null", "description": "An aggregate over a fixed area has no focus."},
    }
    schema |= {"if": _given("aggregate", "object"), "then": {"properties": {"emit": {"enum": list(_KEPT)}}}}


def _aggregated():
    return {"anyOf": [_ref("aggregate"), {"type": "null"}], "description": _summary(Aggregate)}


def _complete_moving(schema):
    """Replace the fields of the focus and the shape by the key `around`, and allow an aggregate."""
    properties = schema["properties"]
    focus = properties.pop("focus")
    del properties["shape"]
    _complete_kept(schema)
    around = {"$ref": "#/$defs/around", "description": focus["description"]}
    schema["properties"] = {"stream": properties.pop("stream"), "around": around} | properties
    schema["properties"]["aggregate"] = _aggregated()
    schema["required"] = ["stream", "around"]


def _complete_nearest(schema):
    """Replace the field of the focus by the key `around`, and allow the limit of the distance to be null."""
    properties = schema["properties"]
    around = {"around": properties.pop("focus")}
    _complete_kept(schema)
    limit = properties.pop("max_distance")
    del limit["minimum"]
    schema["properties"] = around | properties | {"max_distance": limit | {"type": ["number", "null"], **_ABOVE_0}}
    schema["required"] = ["stream", "kind", "k", "around"]


def _complete_kept(schema):
    """Allow only those values of `emit` that keep the answer, and allow the area to be null."""
    _may_be_null(schema, ["area"])
    schema["properties"]["emit"]["enum"] = list(_KEPT)


def _complete_aggregate(schema):
    """Require a property or a dimension, not both, for all functions but ``count``, which allows neither."""
    for name in ("property", "dimension", "group_by"):
        schema["properties"][name] |= {"type": ["string", "null"], "minLength": 1}
        del schema["properties"][name]["default"]
    count = {"properties": {"function": {"const": "count"}}, "required": ["function"]}
    over = {"oneOf": [_given("property", "string"), _given("dimension", "string")]}
    schema |= {"if": count, "then": {"allOf": [_null("property"), _null("dimension")]}, "else": over}


def _complete_threshold(schema):
    """Require exactly one of a threshold's two limits."""
    schema["oneOf"] = [_given("above", "number"), _given("below", "number")]


def _complete_join(schema):
    """Allow a join's area to be null, and call its partners `join`."""
    _may_be_null(schema, ["area"])
    properties = schema["properties"]
    partners = properties.pop("partners")
    schema["properties"] = {"stream": properties.pop("stream"), "join": partners} | properties
    schema["required"] = ["stream", "kind", "join"]


def _complete_partners(schema):
    """Name the partners by one key of `SOURCES`; tie `distance` and `stream` to the predicates that allow them."""
    properties = schema["properties"]
    source, name = properties.pop("source"), properties.pop("name")
    named = {
        "type": ["string", "null"],
        "minLength": 1,
        "description": f"{name['description']} {source['description']}",
    }
    schema["properties"] = dict.fromkeys(SOURCES, named) | properties
    del properties["distance"]["default"], schema["required"]
    schema["oneOf"] = [_given(name, "string") for name in SOURCES]
    schema["allOf"] = [
        {"if": _is("dwithin"), "then": {"required": ["distance"]}, "else": {"properties": {"distance": False}}},
        {"if": _is("disjoint"), "then": {"properties": {"stream": {"type": "null"}}}},
    ]


def _may_be_null(schema, names):
    for name in names:
        box = schema["properties"][name]
        schema["properties"][name] = {"anyOf": [{"$ref": box.pop("$ref")}, {"type": "null"}], **box}


def _given(name, kind):
    """Return the schema of an object that has the key `name` with a value of the JSON type `kind`."""
    return {"properties": {name: {"type": kind}}, "required": [name]}


def _is(predicate):
    return {"properties": {"predicate": {"const": predicate}}, "required": ["predicate"]}


if __name__ == "__main__":
    print(json.dumps(plan_schema(), indent=2, ensure_ascii=False))
