"""JSON Schema of spatial joins."""

from streaming.kinds.join.plan import PREDICATES, SOURCES, JoinPlan, Partners
from streaming.kinds.schema import Schema, allow_null, given_as, object_schema, ref


def definition() -> Schema:
    """Return the schema of the documents of the kind: the key `join` has the partners."""
    schema = object_schema(JoinPlan, {"partners": ref("partners")})
    allow_null(schema, ["area"])
    properties = schema["properties"]
    partners = properties.pop("partners")
    schema["properties"] = {"stream": properties.pop("stream"), "join": partners} | properties
    schema["required"] = ["stream", "kind", "join"]
    return schema


def definitions() -> dict[str, Schema]:
    """Return the schema of partners.

    One key of `SOURCES` names them; `distance` and `stream` are tied to the predicates that allow them.
    """
    schema = object_schema(Partners, {"predicate": {"enum": list(PREDICATES)}})
    properties = schema["properties"]
    source, name = properties.pop("source"), properties.pop("name")
    named = {
        "type": ["string", "null"],
        "minLength": 1,
        "description": f"{name['description']} {source['description']}",
    }
    schema["properties"] = dict.fromkeys(SOURCES, named) | properties
    del properties["distance"]["default"], schema["required"]
    schema["oneOf"] = [given_as(name, "string") for name in SOURCES]
    schema["allOf"] = [
        {"if": _is("dwithin"), "then": {"required": ["distance"]}, "else": {"properties": {"distance": False}}},
        {"if": _is("disjoint"), "then": {"properties": {"stream": {"type": "null"}}}},
    ]
    return {"partners": schema}


def _is(predicate: str) -> Schema:
    return {"properties": {"predicate": {"const": predicate}}, "required": ["predicate"]}
