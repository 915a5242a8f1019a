"""JSON Schema of aggregates, which are objects within the documents of range queries."""

from streaming.kinds.aggregate.plan import FUNCTIONS, MAX_FOR_S, MAX_THRESHOLDS, Aggregate, Threshold
from streaming.kinds.schema import AMOUNT, PROPERTY_NAME, Schema, given_as, list_of, null, object_schema, ref, summary


def aggregated() -> Schema:
    """Return the schema of the key `aggregate` of a range query."""
    return {"anyOf": [ref("aggregate"), {"type": "null"}], "description": summary(Aggregate)}


def definition() -> Schema:
    """Return the schema of an aggregate.

    All functions but ``count`` need a property or a dimension, not both; ``count`` allows neither.
    """
    special = {"function": {"enum": list(FUNCTIONS)}, "thresholds": list_of(MAX_THRESHOLDS, "threshold")}
    schema = object_schema(Aggregate, special)
    for name in ("property", "dimension", "group_by"):
        rule = {"minLength": 1} if name == "dimension" else PROPERTY_NAME
        schema["properties"][name] |= {"type": ["string", "null"]} | rule
        del schema["properties"][name]["default"]
    count = {"properties": {"function": {"const": "count"}}, "required": ["function"]}
    over = {"oneOf": [given_as("property", "string"), given_as("dimension", "string")]}
    return schema | {"if": count, "then": {"allOf": [null("property"), null("dimension")]}, "else": over}


def definitions() -> dict[str, Schema]:
    """Return the schema of a threshold, which has exactly one of two limits."""
    schema = object_schema(Threshold, {"for_s": AMOUNT | {"maximum": MAX_FOR_S}})
    schema["oneOf"] = [given_as("above", "number"), given_as("below", "number")]
    return {"threshold": schema}
