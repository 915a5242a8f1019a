"""JSON Schema of queries for nearest neighbours."""

from streaming.kinds.knn.plan import MAX_ALPHA, MAX_K, NearestPlan
from streaming.kinds.schema import ABOVE_0, AMOUNT, Schema, keep_answer, object_schema


def definition() -> Schema:
    """Return the schema of the documents of the kind: the key `around` has the focus; no limit is null."""
    k = {"type": "integer", "minimum": 1, "maximum": MAX_K}
    schema = object_schema(NearestPlan, {"k": k, "alpha": AMOUNT | {"maximum": MAX_ALPHA}})
    properties = schema["properties"]
    around = {"around": properties.pop("focus")}
    keep_answer(schema)
    limit = properties.pop("max_distance")
    del limit["minimum"]
    schema["properties"] = around | properties | {"max_distance": limit | {"type": ["number", "null"], **ABOVE_0}}
    schema["required"] = ["stream", "kind", "k", "around"]
    return schema
