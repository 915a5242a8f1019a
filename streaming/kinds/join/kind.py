"""Spatial joins with layers, streams and stored elements: its rules, its words, and how it is evaluated."""

import math
from typing import Any

from streaming.kinds.base import Evaluation, Fact, Kind, Source, udfs
from streaming.kinds.join.partners import SOURCES
from streaming.kinds.join.plan import JoinPlan
from streaming.kinds.parts import Enlargement, UserFilter
from streaming.kinds.words import number, within
from streaming.language import gettext_noop


class JoinKind(Kind[JoinPlan]):
    """Pairs of an element and a partner."""

    name, written, plan_class = "join", "join", JoinPlan
    called = gettext_noop("a join")
    explained = "streaming.explaining.joins:join_term"
    boxes = ("area",)
    refinement = "streaming.operators.spatial_join:SpatialJoins"

    def words(self, document: dict[str, Any], unit: str) -> str:
        join = document["join"]
        source = next(name for name in SOURCES if name in join)
        distance = f" {number(join['distance'])}{unit}" if "distance" in join else ""
        return f"{join['predicate']}{distance} {source} {join[source]}{within(document, unit)}"

    def evaluation(self, plan: JoinPlan) -> Evaluation:
        return Evaluation.STREAM_JOIN if plan.partners.source == "stream" else Evaluation.REGIONAL

    def facts(self, plan: JoinPlan) -> tuple[Fact, ...]:
        return ("partners",) if plan.partners.source == "stream" else ()

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
