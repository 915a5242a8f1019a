"""JSON Schema of plans, made of their dataclasses. ``python -m streaming.plans.schema`` prints it.

References
----------
JSON Schema, draft 2020-12: https://json-schema.org/draft/2020-12/json-schema-core
"""

import inspect
import json
import re
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

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

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_DEFINITIONS = {
    "range": RangePlan,
    "join": JoinPlan,
    "partners": Partners,
    "key_filter": KeyFilter,
    "box_filter": BoxFilter,
    "user_filter": UserFilter,
}
_CHOICES = {"report": REPORTS, "emit": EMITS, "predicate": PREDICATES}
_MAX_CHARACTERS = {"where": MAX_WHERE_CHARACTERS, "argument": MAX_ARGUMENT_CHARACTERS}
# Of a plan's boxes; null is as good as a missing one, but one of a range query's must be there.
_BOXES = ("area", "compare")


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of the plans of any space.

    Returns
    -------
    dict
        Every document that `parse_plan` accepts is valid by it. What it cannot say is left to `parse_plan`: that CQL2
        text parses, that a box lies in the space, and has no lower bound above its upper one.

    Examples
    --------
    >>> plan_schema()["$defs"]["range"]["properties"]["report"]["enum"]
    ['inside', 'outside']
    """
    definitions = {name: _object(cls) for name, cls in _DEFINITIONS.items()}
    definitions |= {"enlargement": _enlargement(), "box": _box()}
    _complete_range(definitions["range"])
    _complete_join(definitions["join"])
    _complete_partners(definitions["partners"])
    return {
        "$schema": DRAFT,
        "title": "Query plan of Lookout",
        "description": "A continuous query. See docs/plans.md.",
        "type": "object",
        "if": {"properties": {"kind": {"const": "join"}}, "required": ["kind"]},
        "then": {"$ref": "#/$defs/join"},
        "else": {"$ref": "#/$defs/range"},
        "$defs": definitions,
    }


def _object(cls) -> dict[str, Any]:
    """Return the schema of a dataclass whose fields are the keys of its JSON form."""
    types, words = get_type_hints(cls), _descriptions(cls)
    properties = {field.name: _property(field, types[field.name]) for field in fields(cls)}
    for name in words.keys() & properties.keys():
        properties[name]["description"] = words[name]
    return {
        "description": inspect.cleandoc(cls.__doc__).splitlines()[0],
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
    if field.name in _MAX_CHARACTERS:
        schema["maxLength"] = _MAX_CHARACTERS[field.name]
    if field.default is MISSING:
        return schema | ({"minLength": 1} if kind is str else {})
    return schema | {"default": list(field.default) if isinstance(field.default, tuple) else field.default}


def _list(limit, *definitions):
    items = [{"$ref": f"#/$defs/{name}"} for name in definitions]
    return {"type": "array", "maxItems": limit, "items": items[0] if len(items) == 1 else {"oneOf": items}}


_TYPES: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    float: {"type": "number", "minimum": 0},
    Box: {"$ref": "#/$defs/box"},
    Partners: {"$ref": "#/$defs/partners"},
    tuple[Enlargement, ...]: _list(MAX_TRANSFORMS, "enlargement"),
    tuple[Filter, ...]: _list(MAX_FILTERS, "key_filter", "box_filter", "user_filter"),
    tuple[UserFilter, ...]: _list(MAX_FILTERS, "user_filter"),
}


def _descriptions(cls) -> dict[str, str]:
    """Return what a class's numpydoc says of its parameters, by name."""
    _, _, text = inspect.cleandoc(cls.__doc__).partition("Parameters\n----------\n")
    entries = re.findall(r"^(\w+) : .*\n((?:    .*\n?)*)", text, re.MULTILINE)
    return {name: " ".join(words.split()).replace("``", "`") for name, words in entries if words}


def _enlargement() -> dict[str, Any]:
    """Return the schema of an enlargement: an object of one key, `by`, whose value is the amount."""
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
        "description": "Two corners, in the order of the space's dimensions; what is left out, or null, is unbounded.",
        "type": "object",
        "properties": {"lo": corner, "hi": corner},
        "required": ["lo", "hi"],
        "additionalProperties": False,
    }


def _complete_range(schema):
    """Let one of a range query's two boxes be missing."""
    _may_be_null(schema, _BOXES)
    schema["required"] = ["stream"]
    schema["anyOf"] = [_given(name, "object") for name in _BOXES]


def _complete_join(schema):
    """Let a join's area be missing, and its partners be called join."""
    _may_be_null(schema, ["area"])
    properties = schema["properties"]
    partners = properties.pop("partners")
    schema["properties"] = {"stream": properties.pop("stream"), "join": partners} | properties
    schema["required"] = ["stream", "kind", "join"]


def _complete_partners(schema):
    """Name the partners by one of three keys, and let a distance belong to its predicate."""
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
    """Return the schema of an object that has a key with a value of a type."""
    return {"properties": {name: {"type": kind}}, "required": [name]}


def _is(predicate):
    return {"properties": {"predicate": {"const": predicate}}, "required": ["predicate"]}


if __name__ == "__main__":
    print(json.dumps(plan_schema(), indent=2, ensure_ascii=False))
