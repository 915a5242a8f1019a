"""JSON Schema of encounters."""

from streaming.kinds.encounter.plan import AwayFrom, EncounterPlan
from streaming.kinds.join.times import MOST_S, amount, schema_of
from streaming.kinds.schema import Schema, allow_null, object_schema, ref


def definition() -> Schema:
    """Return the schema of the documents of the kind: the key `join` has the partners."""
    special = {
        "for_s": {"type": "number", "minimum": 0, "maximum": MOST_S},
        "gap_s": amount(above=0),
        "away_from": ref("away_from"),
    }
    schema = schema_of(EncounterPlan, special, ["for_s"], emits=["changes", "membership"])
    allow_null(schema, ["away_from"])
    return schema


def definitions() -> dict[str, Schema]:
    """Return the schema of the key `away_from`."""
    return {"away_from": object_schema(AwayFrom)}
