"""JSON Schema of predicted entries into an area."""

from streaming.kinds.approach.plan import MOST_AHEAD_S, ApproachPlan
from streaming.kinds.schema import ABOVE_0, Schema, described, object_schema, ref


def definition() -> Schema:
    """Return the schema of the documents of the kind."""
    seconds = {"type": "number", **ABOVE_0, "maximum": MOST_AHEAD_S}
    schema = object_schema(ApproachPlan, {"target": dict(ref("area")), "within_s": seconds, "shape": {}, "area": {}})
    for name in ("shape", "area"):
        del schema["properties"][name]
    schema["properties"]["target"] |= described(ApproachPlan, "target")
    schema["required"] = ["stream", "kind", "target", "within_s"]
    return schema
