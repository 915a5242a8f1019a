"""JSON Schema of aggregates, which are objects within the documents of range queries."""

from streaming.kinds.schema import Schema, given_as, null, ref

# What is said of the key `aggregate` of range queries.
_WORDS = "A value of all elements of an answer, or of each group of them."


def aggregated() -> Schema:
    """Return the schema of the key `aggregate` of a range query."""
    return {"anyOf": [ref("aggregate"), {"type": "null"}], "description": _WORDS}


def aggregate_schema(schema: Schema) -> Schema:
    """Return the schema of an aggregate, given that of its keys.

    All functions but ``count`` need a property or a dimension, not both; ``count`` allows neither.
    """
    count = {"properties": {"function": {"const": "count"}}, "required": ["function"]}
    over = {"oneOf": [given_as("property", "string"), given_as("dimension", "string")]}
    return schema | {"if": count, "then": {"allOf": [null("property"), null("dimension")]}, "else": over}


def threshold_schema(schema: Schema) -> Schema:
    """Return the schema of a threshold, which has exactly one of two limits, given that of its keys."""
    return schema | {"oneOf": [given_as("above", "number"), given_as("below", "number")]}
