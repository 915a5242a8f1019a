"""JSON Schema of window joins."""

from streaming.kinds.join.times import amount, schema_of
from streaming.kinds.schema import Schema
from streaming.kinds.window_join.plan import WindowJoinPlan


def definition() -> Schema:
    """Return the schema of the documents of the kind: the key `join` has the partners."""
    special = {"window_s": amount(above=0), "slide_s": amount(above=0), "start_s": {"type": "number"}}
    return schema_of(WindowJoinPlan, special, ["window_s"])
