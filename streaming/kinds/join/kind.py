"""Spatial joins with layers, streams and stored elements: how a plan is read, written, described and evaluated."""

import math
from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.base import Evaluation, Kind, Source, udfs
from streaming.kinds.fields import area_of, compared, emitted, opening, parse_area, whole
from streaming.kinds.join.plan import JOIN_KEYS, PARTNERS_KEYS, PREDICATES, SOURCES, JoinPlan, Partners
from streaming.kinds.join.schema import definition, definitions
from streaming.kinds.parts import (
    Enlargement,
    UserFilter,
    check_keys,
    filters_document,
    parse_amount,
    parse_choice,
    parse_filters,
    parse_text,
    parse_where,
    transform_document,
)
from streaming.kinds.schema import of_kind
from streaming.kinds.words import number
from streaming.spaces import Space


class JoinKind(Kind[JoinPlan]):
    """Pairs of an element and a partner."""

    name, written, plan_class = "join", "join", JoinPlan
    boxes = ("area",)
    refinement = "streaming.operators.spatial_join:SpatialJoins"

    def parse(self, document: dict[str, Any], space: Space) -> JoinPlan:
        check_keys(document, JOIN_KEYS, "a join")
        area = parse_area(document, space)
        return JoinPlan(partners=_partners(document.get("join"), space), area=area, **compared(document, space))

    def document(self, plan: JoinPlan, space: Space) -> dict[str, Any]:
        join = {"join": _partners_document(plan.partners, space), "transform": transform_document(plan.transform)}
        return opening(plan) | join | emitted(plan, space) | area_of(plan, space, whole(space))

    def words(self, document: dict[str, Any], unit: str) -> str:
        join = document["join"]
        source = next(name for name in SOURCES if name in join)
        distance = f" {number(join['distance'])}{unit}" if "distance" in join else ""
        return f"{join['predicate']}{distance} {source} {join[source]}"

    def definition(self) -> dict[str, Any]:
        return definition()

    def definitions(self) -> dict[str, dict[str, Any]]:
        return definitions()

    def condition(self) -> dict[str, Any]:
        return of_kind(self.written)

    def evaluation(self, plan: JoinPlan) -> Evaluation:
        return Evaluation.STREAM_JOIN if plan.partners.source == "stream" else Evaluation.REGIONAL

    def sources(self, plan: JoinPlan) -> tuple[Source, ...]:
        return (Source("join", plan.partners.source, plan.partners.name),)

    def layer(self, plan: JoinPlan) -> str | None:
        return None if plan.partners.source == "stream" else plan.partners.layer

    def layer_reach(self, plan: JoinPlan) -> tuple[tuple[Enlargement, ...], float]:
        far = math.inf if plan.partners.predicate == "disjoint" else plan.partners.distance
        return plan.transform, far

    def user_filters(self, plan: JoinPlan) -> tuple[tuple[UserFilter, bool], ...]:
        return udfs(plan.filters + plan.partners.filters) + udfs(plan.partners.pair_filters, pairs=True)

    def measures(self, plan: JoinPlan) -> bool:
        return plan.partners.predicate == "dwithin"


def _partners(document, space):
    if not isinstance(document, dict):
        raise InvalidPlan(f"join must be an object with one of {', '.join(SOURCES)}; got {document!r:.200}")
    check_keys(document, PARTNERS_KEYS, "join")
    named = [source for source in SOURCES if document.get(source) is not None]
    if len(named) != 1:
        raise InvalidPlan(f"join must have one of {', '.join(SOURCES)}; got {', '.join(named) or 'none'}")
    predicate = parse_choice(document, "predicate", PREDICATES)
    if predicate == "disjoint" and named == ["stream"]:
        raise InvalidPlan("the partners of disjoint must be a layer, or stored; got a stream")
    if (predicate == "dwithin") != ("distance" in document):
        raise InvalidPlan(f"distance belongs to the predicate dwithin, which needs it; got {document!r:.200}")
    return Partners(
        source=named[0],
        name=parse_text(document[named[0]], f"join: {named[0]}"),
        predicate=predicate,
        distance=parse_amount(document.get("distance", 0.0), "join: distance"),
        where=parse_where(document.get("where", ""), "join: where"),
        filters=parse_filters(document.get("filters", []), "join: filters", space),
        pair_filters=parse_filters(document.get("pair_filters", []), "join: pair_filters", space, ("udf",)),
    )


def _partners_document(partners, space):
    document = {partners.source: partners.name, "predicate": partners.predicate}
    if partners.predicate == "dwithin":
        document["distance"] = partners.distance
    if partners.where:
        document["where"] = partners.where
    for name in ("filters", "pair_filters"):
        if getattr(partners, name):
            document[name] = filters_document(getattr(partners, name), space)
    return document
