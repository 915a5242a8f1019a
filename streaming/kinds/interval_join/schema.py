"""JSON Schema of interval joins."""

from streaming.kinds.interval_join.plan import IntervalJoinPlan
from streaming.kinds.join.times import MOST_S, amount, schema_of
from streaming.kinds.schema import Schema


def definition() -> Schema:
    """Return the schema of the documents of the kind: the key `join` has the partners."""
    bound = {"type": "number", "minimum": -MOST_S, "maximum": MOST_S}
    special = {"lower_s": bound, "upper_s": bound, "bin_s": amount(above=0)}
    return schema_of(IntervalJoinPlan, special, ["lower_s", "upper_s"])
