"""JSON Schema of closest points of approach."""

from streaming.kinds.approach.plan import MOST_AHEAD_S
from streaming.kinds.closest_approach.plan import MOST_WITHIN_M, PARTNER_KEYS, ClosestApproachPlan
from streaming.kinds.join.schema import definitions as join_definitions
from streaming.kinds.schema import ABOVE_0, Schema, allow_null, object_schema, ref


def definition() -> Schema:
    """Return the schema of the documents of the kind: the key `join` has the partners."""
    special = {
        "partners": ref("approached"),
        "within_m": {"type": "number", **ABOVE_0, "maximum": MOST_WITHIN_M},
        "within_s": {"type": "number", **ABOVE_0, "maximum": MOST_AHEAD_S},
        "gap_s": {"type": "number", "minimum": 0, "maximum": MOST_AHEAD_S},
        "mirrored": {"type": "boolean"},
    }
    schema = object_schema(ClosestApproachPlan, special)
    schema["properties"]["emit"]["enum"] = ["changes", "membership"]
    properties = schema["properties"]
    join = properties.pop("partners")
    schema["properties"] = {"stream": properties.pop("stream"), "join": join} | properties
    allow_null(schema, ["area", "join"])
    schema["required"] = ["stream", "kind", "within_m", "within_s"]
    return schema


def definitions() -> dict[str, Schema]:
    """Return the schema of the partners: a stream, and filters."""
    partners = join_definitions()["partners"]
    properties = {name: partners["properties"][name] for name in PARTNER_KEYS}
    properties["stream"] = {"type": "string", "minLength": 1, "description": "The stream of the other objects."}
    schema = {"description": "The objects that come close.", "type": "object", "properties": properties}
    return {"approached": schema | {"required": ["stream"], "additionalProperties": False}}
