"""JSON Schema of range queries about a focus."""

from streaming.kinds.aggregate.schema import aggregated
from streaming.kinds.moving_range.plan import MovingRangePlan
from streaming.kinds.schema import Schema, keep_answer, object_schema, ref


def definition() -> Schema:
    """Return the schema of the documents of the kind: the key `around` has the focus and the shape."""
    schema = object_schema(MovingRangePlan, {"shape": {}})
    properties = schema["properties"]
    focus = properties.pop("focus")
    del properties["shape"]
    keep_answer(schema)
    around = {**ref("around"), "description": focus["description"]}
    schema["properties"] = {"stream": properties.pop("stream"), "around": around} | properties
    schema["properties"]["aggregate"] = aggregated()
    schema["required"] = ["stream", "around"]
    return schema
