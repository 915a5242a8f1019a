"""What joins over event time share: fields of their plans, from JSON and back.

References
----------
Li et al., "Distributed join query method for large-scale spatial data streams", Geomatics and Information Science of
Wuhan University 2023, definitions 5 to 7.
"""

from collections.abc import Collection
from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.base import Plan
from streaming.kinds.fields import area_of, check_kept, emitted, located, opening, whole
from streaming.kinds.join.partners import parse_partners, partners_document
from streaming.kinds.parts import check_keys, parse_number, parse_transform, transform_document
from streaming.kinds.schema import Schema, allow_null, given_as, object_schema, ref
from streaming.kinds.words import number
from streaming.language import gettext
from streaming.spaces import Space

# Reports wait in memory for as long, and a month of any feed is more than a machine has.
MOST_S = 31 * 24 * 3600.0
LATENESS_S = 10.0
# The keys of plans that belong to one of the kinds.
TIMES = ("window_s", "slide_s", "start_s", "lower_s", "upper_s", "bin_s", "for_s", "gap_s", "away_from")
IDLE_S = 30.0


def parsed(
    document: dict[str, Any], space: Space, keys: Collection[str], what: str, kept: bool = False
) -> dict[str, Any]:
    """Return the fields that plans of all these kinds have; raise `InvalidPlan` if one breaks a rule.

    Parameters
    ----------
    document : dict
    space : Space
    keys : collection of str
        The keys that such a document may have.
    what : str
        What messages call the document.
    kept : bool
        Whether queries keep an answer; otherwise `emit` can only be ``all``.
    """
    check_keys(document, tuple(keys), what)
    mirrored = document.get("mirrored", False)
    if not isinstance(mirrored, bool):
        raise InvalidPlan("mirrored must be true or false; got %(mirrored)s", mirrored=f"{mirrored!r:.200}")
    if kept:
        check_kept(document.get("emit", "changes"))
    elif document.get("emit", "all") != "all":
        raise InvalidPlan(
            "emit must be all: each pair is told once, and no answer is kept; got %(emit)s",
            emit=f"{document['emit']!r:.80}",
        )
    return located(document if kept else {"emit": "all"} | document, space) | {
        "partners": parse_partners(document.get("join"), space, ("stream",)),
        "transform": parse_transform(document.get("transform", []), space),
        "lateness_s": seconds(document, "lateness_s", LATENESS_S, lo=0.0),
        "idle_s": seconds(document, "idle_s", IDLE_S, above=0.0),
        "mirrored": mirrored,
    }


def seconds(document: dict[str, Any], name: str, missing: float | None = None, **limits: float) -> float:
    """Return a number of seconds, at most `MOST_S`, to the microsecond; `missing` if the key is not there."""
    value = document.get(name, missing)
    return round(parse_number(value, name, **({"hi": MOST_S} | limits)), 6)


def written(plan: Any, space: Space, own: dict[str, Any]) -> dict[str, Any]:
    """Return the document of a plan, given its `own` keys; the inverse of `parsed`."""
    more = {"lateness_s": plan.lateness_s, "idle_s": plan.idle_s, "mirrored": plan.mirrored}
    join = {"join": partners_document(plan.partners, space), "transform": transform_document(plan.transform)}
    return opening(plan) | join | own | more | emitted(plan, space) | area_of(plan, space, whole(space))


def schema_of(
    cls: type[Plan], special: dict[str, Schema], required: Collection[str], emits: Collection[str] = ("all",)
) -> Schema:
    """Return the JSON Schema of a kind.

    Parameters
    ----------
    cls : type
        The class of its plans.
    special : mapping of str to dict
        The schemas of its own fields.
    required : collection of str
        Those of them that must be given.
    emits : collection of str
        The values that `emit` can have.
    """
    limits = {"lateness_s": {"type": "number", "minimum": 0, "maximum": MOST_S}, "idle_s": amount(above=0)}
    partners = {"allOf": [ref("partners"), given_as("stream", "string")]}
    schema = object_schema(cls, limits | special | {"partners": partners, "mirrored": {"type": "boolean"}})
    schema["properties"]["emit"]["enum"] = list(emits)
    allow_null(schema, ["area"])
    properties = schema["properties"]
    join = properties.pop("partners")
    schema["properties"] = {"stream": properties.pop("stream"), "join": join} | properties
    schema["required"] = ["stream", "kind", "join", *required]
    return schema


def amount(**limits: float) -> Schema:
    """Return the schema of a number of seconds: `above` is its exclusive minimum."""
    return {"type": "number", "exclusiveMinimum": limits["above"], "maximum": MOST_S}


def near_words(join: dict[str, Any], unit: str) -> str:
    """Say in words what a pair must satisfy, given the key `join`: for instance "within 500 m of buses"."""
    if join["predicate"] == "dwithin":
        return gettext("within %(distance)s%(unit)s of %(stream)s") % {
            "distance": number(join["distance"]),
            "unit": unit,
            "stream": join["stream"],
        }
    return f"{join['predicate']} {join['stream']}"
