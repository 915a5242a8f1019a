"""JSON Schema of the conditions and the schedules of rules."""

from streaming.kinds.rule.conditions import MOST_EXPECTED, MOST_OBJECTS, MOST_QUERIES, RuleCondition
from streaming.kinds.rule.schedule import DAYS, KEYS, Schedule
from streaming.kinds.schema import Schema, descriptions, given_as, ref, summary


def condition_schema() -> Schema:
    """Return the JSON Schema of a condition."""
    parts = {"type": "array", "minItems": 1, "maxItems": MOST_QUERIES, "items": ref("condition")}
    query = {"type": "integer", "minimum": 1, "description": descriptions(RuleCondition)["query"]}
    words = {"all": "All of these hold.", "any": "At least one of these holds."}
    properties = {"query": query} | {name: parts | {"description": text} for name, text in words.items()}
    properties |= {"not": ref("condition"), "silent": _silent(query)}
    limit = {"type": ["number", "null"], "minimum": 0, "maximum": MOST_OBJECTS}
    limits = {name: limit | {"description": descriptions(RuleCondition)[name]} for name in ("below", "above")}
    properties["count"] = {
        "description": "How many objects are in the answer of a query: fewer than a number, or more.",
        "type": "object",
        "properties": {"query": query} | limits,
        "required": ["query"],
        "additionalProperties": False,
        "oneOf": [given_as("below", "number"), given_as("above", "number")],
    }
    value = {name: {"type": ["number", "null"], "description": limits[name]["description"]} for name in limits}
    group = {"type": ["string", "null"], "minLength": 1, "description": descriptions(RuleCondition)["group"]}
    properties["value"] = properties["count"] | {
        "description": "The value of an aggregate, or of one of its groups: below a number, or above.",
        "properties": {"query": query, "group": group} | value,
    }
    return {
        "description": f"{summary(RuleCondition)} {descriptions(RuleCondition)['operator']}",
        "type": "object",
        "properties": properties,
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
    }


def _silent(query: Schema) -> Schema:
    key = {"type": "string", "minLength": 1}
    expected = {"type": ["array", "null"], "maxItems": MOST_EXPECTED, "items": key}
    return {
        "description": "An object that was in the answer of a query does not report any more; for `when` as a whole.",
        "type": "object",
        "properties": {"query": query, "expected": expected | {"description": descriptions(RuleCondition)["expected"]}},
        "required": ["query"],
        "additionalProperties": False,
    }


def schedule_schema() -> Schema:
    """Return the JSON Schema of a schedule."""
    words, time_of_day = descriptions(Schedule), {"type": "string", "pattern": "^([01][0-9]|2[0-4]):[0-5][0-9]$"}
    days = {"type": "array", "minItems": 1, "items": {"enum": list(DAYS)}, "description": words["days"]}
    begin, end = (time_of_day | {"description": words[name].replace("minute", "time")} for name in ("begin", "end"))
    zone = {"type": "string", "default": "UTC", "description": words["time_zone"]}
    return {
        "description": summary(Schedule),
        "type": "object",
        "properties": dict(zip(KEYS, (days, begin, end, zone), strict=True)),
        "required": ["from", "to"],
        "additionalProperties": False,
    }
