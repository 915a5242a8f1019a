"""JSON Schema of queries about tracks."""

from streaming.kinds.schema import ABOVE_0, PROPERTY_NAME, Schema, described, object_schema, ref
from streaming.kinds.track.plan import MOST_ACCURACY_M, MOST_GAP_S, Accuracy, TrackPlan

METRES: Schema = {"type": "number", "minimum": 0, "maximum": MOST_ACCURACY_M}


def definition() -> Schema:
    """Return the schema of the documents of the kind."""
    special = {
        "accuracy": {},
        "fastest_m_s": {"type": ["number", "null"], **ABOVE_0},
        "gap_s": {"type": "number", "minimum": 0, "maximum": MOST_GAP_S},
    }
    schema = object_schema(TrackPlan, special)
    schema["properties"]["accuracy"] = {"oneOf": [METRES, ref("accuracy")]} | described(TrackPlan, "accuracy")
    schema["properties"]["emit"]["enum"] = ["changes", "membership"]
    schema["required"] = ["stream", "kind", "area"]
    return schema


def definitions() -> dict[str, Schema]:
    """Return the schema of the key `accuracy`."""
    schema = object_schema(Accuracy, {"else_m": METRES})
    schema["properties"]["property"] |= PROPERTY_NAME
    schema["required"] = ["property"]
    return {"accuracy": schema}
