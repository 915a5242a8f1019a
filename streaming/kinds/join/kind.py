"""Spatial joins with layers, streams and stored elements: how a plan is read, written, described and evaluated."""

import math
from typing import Any

from streaming.kinds.base import Evaluation, Kind, Source, udfs
from streaming.kinds.fields import area_of, compared, emitted, opening, whole
from streaming.kinds.join.partners import parse_partners, partners_document
from streaming.kinds.join.plan import JOIN_KEYS, SOURCES, JoinPlan
from streaming.kinds.join.schema import definition, definitions
from streaming.kinds.parts import Enlargement, UserFilter, check_keys, transform_document
from streaming.kinds.schema import of_kind
from streaming.kinds.words import number, within
from streaming.language import gettext
from streaming.spaces import Space


class JoinKind(Kind[JoinPlan]):
    """Pairs of an element and a partner."""

    name, written, plan_class = "join", "join", JoinPlan
    boxes = ("area",)
    refinement = "streaming.operators.spatial_join:SpatialJoins"

    def parse(self, document: dict[str, Any], space: Space) -> JoinPlan:
        check_keys(document, JOIN_KEYS, gettext("a join"))
        return JoinPlan(partners=parse_partners(document.get("join"), space), **compared(document, space))

    def document(self, plan: JoinPlan, space: Space) -> dict[str, Any]:
        join = {"join": partners_document(plan.partners, space), "transform": transform_document(plan.transform)}
        return opening(plan) | join | emitted(plan, space) | area_of(plan, space, whole(space))

    def words(self, document: dict[str, Any], unit: str) -> str:
        join = document["join"]
        source = next(name for name in SOURCES if name in join)
        distance = f" {number(join['distance'])}{unit}" if "distance" in join else ""
        return f"{join['predicate']}{distance} {source} {join[source]}{within(document, unit)}"

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
