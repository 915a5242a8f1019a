"""JSON Schema of range queries over fixed boxes."""

from streaming.kinds.aggregate.schema import aggregated
from streaming.kinds.range.plan import REPORTS, RangePlan
from streaming.kinds.schema import Schema, allow_null, emit_kept, given_as, object_schema

# Null counts as missing; one of the two must be given.
_BOXES = ("area", "compare")


def definition() -> Schema:
    """Return the schema of the documents of the kind.

    One of the two boxes may be missing, and there may be an aggregate, for which the answer must be kept.
    """
    schema = object_schema(RangePlan, {"report": {"enum": list(REPORTS)}})
    allow_null(schema, _BOXES)
    schema["required"] = ["stream"]
    schema["anyOf"] = [given_as(name, "object") for name in _BOXES]
    schema["properties"] |= {
        "aggregate": aggregated(),
        "around": {"type": "null", "description": "An aggregate over a fixed area has no focus."},
    }
    return schema | {"if": given_as("aggregate", "object"), "then": emit_kept()}
