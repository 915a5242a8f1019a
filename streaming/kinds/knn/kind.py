"""Queries for nearest neighbours (kNN): its rules, its words, and how it is evaluated."""

from typing import Any

from streaming.kinds import words
from streaming.kinds.around import Focus
from streaming.kinds.base import Evaluation, Fact, Kind, Source, focal_source
from streaming.kinds.knn.plan import NearestPlan
from streaming.language import gettext, gettext_noop, thousands


class NearestKind(Kind[NearestPlan]):
    """The elements that are nearest to a focus."""

    name, written, plan_class = "knn", "knn", NearestPlan
    called = gettext_noop("a query for nearest neighbours")
    explained = "streaming.explaining.moving:nearest_term"
    boxes = ("area",)

    def words(self, document: dict[str, Any], unit: str) -> str:
        limit = document.get("max_distance")
        farthest = (
            gettext(", at most %(words)s%(unit)s away") % {"words": words.number(limit), "unit": unit} if limit else ""
        )
        nearest = gettext("the %(k)s nearest to %(words)s%(farthest)s") % {
            "k": thousands(document["k"]),
            "words": words.focus(document["around"]),
            "farthest": farthest,
        }
        return nearest + words.within(document, unit)

    def evaluation(self, plan: NearestPlan) -> Evaluation:
        return Evaluation.NEAREST

    def facts(self, plan: NearestPlan) -> tuple[Fact, ...]:
        return ("neighbours",)

    def sources(self, plan: NearestPlan) -> tuple[Source, ...]:
        return focal_source(plan.focus)

    def focus(self, plan: NearestPlan) -> Focus:
        return plan.focus

    def reach(self, plan: NearestPlan) -> float:
        return 0.0
