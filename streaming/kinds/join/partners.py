"""The partners of a join: from JSON and back."""

from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.join.plan import PARTNERS_KEYS, PREDICATES, SOURCES, Partners
from streaming.kinds.parts import (
    check_keys,
    filters_document,
    parse_amount,
    parse_choice,
    parse_filters,
    parse_text,
    parse_where,
)
from streaming.language import gettext
from streaming.spaces import Space


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
