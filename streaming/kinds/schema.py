"""JSON Schemas of what plans are made of: tools for the schemas of kinds, and the definitions that kinds share.

The descriptions come from the docstrings of dataclasses.

References
----------
JSON Schema, draft 2020-12: https://json-schema.org/draft/2020-12/json-schema-core
"""

import inspect
import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, get_type_hints

from streaming.kinds.areas import MAX_AREA_METRES, MAX_AREA_VERTICES, CircleArea, CorridorArea
from streaming.kinds.around import MAX_VERTICES, SHAPES, Carried, Circle, Focus, Rectangle
from streaming.kinds.parts import (
    ENLARGEMENTS,
    MAX_ARGUMENT_CHARACTERS,
    MAX_FILTERS,
    MAX_KEYS,
    MAX_TRANSFORMS,
    MAX_WHERE_CHARACTERS,
    Box,
    BoxFilter,
    Enlargement,
    Filter,
    KeyFilter,
    KeysFilter,
    UserFilter,
)
from streaming.property_columns import NAME
from streaming.spaces import MAX_DIMENSIONS

Schema = dict[str, Any]

AMOUNT: Schema = {"type": "number", "minimum": 0}
PROPERTY_NAME: Schema = {"pattern": f"^{NAME}$"}
ABOVE_0: Schema = {"exclusiveMinimum": 0}
_MAX_CHARACTERS = {"where": MAX_WHERE_CHARACTERS, "argument": MAX_ARGUMENT_CHARACTERS}


def object_schema(cls: type, special: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of a dataclass whose fields are the keys of its JSON form.

    Parameters
    ----------
    cls : type
        Its numpydoc describes the fields.
    special : mapping of str to dict, optional
        The schemas of fields, by name, that do not follow from their types.
    """
    types, words = get_type_hints(cls), descriptions(cls)
    properties = {field.name: _property(field, types[field.name], special or {}) for field in fields(cls)}
    for name in words.keys() & properties.keys():
        properties[name]["description"] = words[name]
    return {
        "description": summary(cls),
        "type": "object",
        "properties": properties,
        "required": [field.name for field in fields(cls) if field.default is MISSING],
        "additionalProperties": False,
    }


def _property(field: Field, kind: Any, special: Mapping[str, Schema]) -> Schema:
    """Return the schema of one field, without its description."""
    schema = dict(special[field.name]) if field.name in special else dict(_TYPES[kind])
    if field.name in _MAX_CHARACTERS:
        schema["maxLength"] = _MAX_CHARACTERS[field.name]
    if field.default is MISSING:
        return schema | ({"minLength": 1} if kind is str else {})
    if field.default in (None, math.inf):
        return schema
    return schema | {"default": list(field.default) if isinstance(field.default, tuple) else field.default}


def summary(cls: type) -> str:
    """Return the first line of a class's docstring."""
    return inspect.cleandoc(cls.__doc__ or "").splitlines()[0]


def descriptions(cls: type) -> dict[str, str]:
    """Return the descriptions of the parameters in a class's numpydoc, by name."""
    _, _, text = inspect.cleandoc(cls.__doc__ or "").partition("Parameters\n----------\n")
    entries = re.findall(r"^(\w+) : .*\n((?:    .*\n?)*)", text, re.MULTILINE)
    return {name: " ".join(words.split()).replace("``", "`") for name, words in entries if words}


def described(cls: type, name: str) -> Schema:
    """Return the description of one parameter of a class, as a schema."""
    return {"description": descriptions(cls)[name]}


def of_kind(kind: str) -> Schema:
    """Return the schema of a document whose key `kind` has a value."""
    return {"properties": {"kind": {"const": kind}}, "required": ["kind"]}


def ref(name: str) -> Schema:
    """Return a reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def list_of(limit: int, *definitions: str) -> Schema:
    """Return the schema of a list of objects, each of which satisfies one of some definitions."""
    items = [{"$ref": f"#/$defs/{name}"} for name in definitions]
    return {"type": "array", "maxItems": limit, "items": items[0] if len(items) == 1 else {"oneOf": items}}


def given_as(name: str, kind: str) -> Schema:
    """Return the schema of an object that has the key `name` with a value of the JSON type `kind`."""
    return {"properties": {name: {"type": kind}}, "required": [name]}


def null(name: str) -> Schema:
    """Return the schema of an object that lacks a key, or has null as its value."""
    return {"properties": {name: {"type": "null"}}}


def nullable(schema: Schema) -> Schema:
    """Return a schema that allows null, too."""
    return schema | {"type": [schema["type"], "null"]} if "type" in schema else {"anyOf": [schema, {"type": "null"}]}


def shared_definitions() -> dict[str, Schema]:
    """Return the definitions of what plans of several kinds are made of, by name."""
    filters = {"key_filter": KeyFilter, "keys_filter": KeysFilter, "box_filter": BoxFilter, "user_filter": UserFilter}
    shared = {name: object_schema(cls) for name, cls in filters.items()}
    shared |= {"enlargement": _enlargement(), "box": _box()} | area_definitions()
    return shared | {"focus": _focus(), "around": _around()}


def _enlargement() -> Schema:
    """Return the schema of an enlargement: an object with one key, one of `ENLARGEMENTS`, and the amount as value."""
    words = descriptions(Enlargement)
    return {
        "description": f"{words['by']} {words['amount']}",
        "type": "object",
        "properties": dict.fromkeys(ENLARGEMENTS, AMOUNT),
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
    }


def _box() -> Schema:
    """Return the schema of a box's two corners."""
    corner = {"type": "array", "minItems": 1, "items": {"type": ["number", "null"]}}
    return {
        "description": "A box by two corners, in the order of the space's dimensions. Null, or nothing, is no bound.",
        "type": "object",
        "properties": {"lo": corner, "hi": corner},
        "required": ["lo", "hi"],
        "additionalProperties": False,
    }


def area_definitions() -> dict[str, Schema]:
    """Return the definitions of an area: a box, GeoJSON polygons, a circle or a corridor."""
    place = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}}
    ring = {"type": "array", "minItems": 4, "maxItems": MAX_AREA_VERTICES, "items": place}
    rings = {"type": "array", "minItems": 1, "items": ring}
    line = {"type": "array", "minItems": 2, "maxItems": MAX_AREA_VERTICES, "items": place}
    length = {"type": "number", **ABOVE_0, "maximum": MAX_AREA_METRES}
    forms = {
        "circle": object_schema(CircleArea, {"center": place, "radius_m": length}),
        "corridor": object_schema(CorridorArea, {"line": line, "width_m": length}),
    }
    coordinates = {"Polygon": rings, "MultiPolygon": {"type": "array", "minItems": 1, "items": rings}}
    definitions = {
        form.lower(): _alone(
            f"An area that is a GeoJSON {form} (RFC 7946), of at most {MAX_AREA_VERTICES:,} vertices.",
            type={"const": form, "description": "The type of the geometry."},
            coordinates=value | {"description": "Longitudes and latitudes; a ring ends where it begins."},
        )
        for form, value in coordinates.items()
    }
    for form, schema in forms.items():
        definitions[form] = _alone(f"An area that is a {form}.", **{form: schema})
    names = ("box", *definitions)
    return {"area": {"description": "A box or a shape.", "oneOf": [ref(name) for name in names]}} | definitions


def _alone(description: str, **properties: Schema) -> Schema:
    """Return the schema of an object that has some keys, all of them, and no other."""
    schema = {"description": description, "type": "object", "properties": properties}
    return schema | {"required": [*properties], "additionalProperties": False}


def _focus() -> Schema:
    """Return the schema of a focus: the key of an object, or a place."""
    words = descriptions(Focus)
    text = {"type": ["string", "null"], "minLength": 1}
    place = {"type": ["array", "null"], "minItems": 1, "maxItems": 2, "items": {"type": "number"}}
    schemas = {"stream": text, "key": text, "at": place}
    return {
        "description": summary(Focus),
        "type": "object",
        "properties": {name: schema | {"description": words[name]} for name, schema in schemas.items()},
        "oneOf": [given_as("key", "string"), {"allOf": [given_as("at", "array"), null("stream")]}],
        "additionalProperties": False,
    }


def _around() -> Schema:
    """Return the schema of a moving range's focus and shape."""
    schema, width = _focus(), {"type": ["number", "null"], **ABOVE_0}
    vertex = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}}
    polygon = {"type": ["array", "null"], "minItems": 3, "maxItems": MAX_VERTICES, "items": vertex}
    widths = {"type": ["array", "null"], "maxItems": MAX_DIMENSIONS, "items": width, "contains": {"type": "number"}}
    shapes = {
        "radius": width | described(Circle, "radius"),
        "half_widths": widths | described(Rectangle, "half_widths"),
        "polygon": polygon | described(Carried, "polygon"),
    }
    schema["description"] = "The focus of a moving range, and the shape of the range about it."
    schema["properties"] |= shapes
    focus, kinds = schema.pop("oneOf"), ("number", "array", "array")
    shape = [given_as(name, kind) for name, kind in zip(SHAPES, kinds, strict=True)]
    return schema | {"allOf": [{"oneOf": focus}, {"oneOf": shape}]}


_TYPES: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: AMOUNT,
    float | None: {"type": ["number", "null"]},
    Focus: ref("focus"),
    Box: ref("box"),
    tuple[str, ...]: {
        "type": "array",
        "minItems": 1,
        "maxItems": MAX_KEYS,
        "items": {"type": "string", "minLength": 1},
    },
    tuple[Enlargement, ...]: list_of(MAX_TRANSFORMS, "enlargement"),
    tuple[Filter, ...]: list_of(MAX_FILTERS, "key_filter", "keys_filter", "box_filter", "user_filter"),
    tuple[UserFilter, ...]: list_of(MAX_FILTERS, "user_filter"),
}
