"""The partners of a join: the dataclass, from JSON and back, and the JSON Schema.

References
----------
BBoxDB Streams (2022), section 4.4.2: continuous spatial join queries.
"""

from dataclasses import dataclass
from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.parts import (
    Filter,
    UserFilter,
    check_keys,
    filters_document,
    parse_amount,
    parse_choice,
    parse_filters,
    parse_text,
    parse_where,
)
from streaming.kinds.schema import Schema, given_as, object_schema, ref
from streaming.kinds.values import Definitions, Reading, Value
from streaming.language import gettext
from streaming.spaces import Space

SOURCES = ("layer", "stream", "stored")
# No layer's name begins with this.
STORED_PREFIX = "stored:"
# OGC 06-103r4 (simple features), section 6.1.15; besides, a distance (dwithin), and the boxes alone (boxes).
PREDICATES = (
    "intersects",
    "within",
    "contains",
    "covers",
    "covered_by",
    "touches",
    "crosses",
    "overlaps",
    "equals",
    "disjoint",
    "dwithin",
    "boxes",
)
PARTNERS_KEYS = (*SOURCES, "predicate", "distance", "where", "filters", "pair_filters")


@dataclass(frozen=True)
class Partners:
    """What the elements of a stream are joined with, and how.

    Parameters
    ----------
    source : {"layer", "stream", "stored"}
        Features of a layer, the last known elements of a stream, or the stored elements of one (which may be the
        query's own), as of the last snapshot.
    name : str
        The name of the layer or stream.
    predicate : str
        The relation that must hold between the element and its partner. The element is compared by its transformed box
        if the plan has transformations, otherwise by its geometry, or by its box if it has no geometry.
    distance : float
        The largest distance of ``dwithin``: metres in a space with longitude and latitude, the unit of the first
        dimension elsewhere.
    where : str
        CQL2 text over the partner's properties (lambda); empty for none.
    filters : tuple of Filter
        A partner must pass all of them.
    pair_filters : tuple of UserFilter
        A pair must pass all of them.
    """

    source: str
    name: str
    predicate: str = "intersects"
    distance: float = 0.0
    where: str = ""
    filters: tuple[Filter, ...] = ()
    pair_filters: tuple[UserFilter, ...] = ()

    @property
    def layer(self) -> str:
        """The name under which the engine knows the features of a layer, or a snapshot of stored elements."""
        return f"{STORED_PREFIX}{self.name}" if self.source == "stored" else self.name


def parse_partners(document: Any, space: Space, sources: tuple[str, ...] = SOURCES) -> Partners:
    """Return the partners that the key `join` of a document describes.

    Parameters
    ----------
    document : object
        The JSON value of the key.
    space : Space
    sources : tuple of str
        Which sources the kind of query allows.

    Raises
    ------
    InvalidPlan
        If the value breaks a rule. The message says the rule and the value.
    """
    if not isinstance(document, dict):
        raise InvalidPlan(
            "join must be an object with one of %(sources)s; got %(document)s",
            sources=", ".join(sources),
            document=f"{document!r:.200}",
        )
    check_keys(document, (*sources, *PARTNERS_KEYS[len(SOURCES) :]), "join")
    named = [source for source in sources if document.get(source) is not None]
    if len(named) != 1:
        raise InvalidPlan(
            "join must have one of %(sources)s; got %(named)s",
            sources=", ".join(sources),
            named=", ".join(named) or gettext("none"),
        )
    predicate = parse_choice(document, "predicate", PREDICATES)
    if predicate == "disjoint" and named == ["stream"]:
        raise InvalidPlan("the partners of disjoint must be a layer, or stored; got a stream")
    if (predicate == "dwithin") != ("distance" in document):
        raise InvalidPlan(
            "distance belongs to the predicate dwithin, which needs it; got %(document)s",
            document=f"{document!r:.200}",
        )
    return Partners(
        source=named[0],
        name=parse_text(document[named[0]], f"join: {named[0]}"),
        predicate=predicate,
        distance=parse_amount(document.get("distance", 0.0), "join: distance"),
        where=parse_where(document.get("where", ""), "join: where"),
        filters=parse_filters(document.get("filters", []), "join: filters", space),
        pair_filters=parse_filters(document.get("pair_filters", []), "join: pair_filters", space, ("udf",)),
    )


def partners_document(partners: Partners, space: Space) -> dict[str, Any]:
    """Return the JSON form of partners; `parse_partners` is the inverse."""
    document: dict[str, Any] = {partners.source: partners.name, "predicate": partners.predicate}
    if partners.predicate == "dwithin":
        document["distance"] = partners.distance
    if partners.where:
        document["where"] = partners.where
    for name in ("filters", "pair_filters"):
        if getattr(partners, name):
            document[name] = filters_document(getattr(partners, name), space)
    return document


@dataclass(frozen=True, kw_only=True)
class PartnersIn(Value):
    """Partners, in the key `join`.

    Parameters
    ----------
    sources : tuple of str
        Which sources the kind of query allows.
    """

    key: str = "join"
    sources: tuple[str, ...] = SOURCES

    def read(self, value: Any, reading: Reading) -> Partners:
        return parse_partners(value, reading.space, self.sources)

    def write(self, plan: Any, name: str, space: Space) -> dict[str, Any]:
        return partners_document(getattr(plan, name), space)

    def schema(self) -> Schema:
        some = ref("partners")
        return (
            some if self.sources == SOURCES else {"allOf": [some, *(given_as(name, "string") for name in self.sources)]}
        )

    def definitions(self) -> Definitions:
        """Return the definition of partners.

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
