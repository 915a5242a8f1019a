"""Queries for nearest neighbours (kNN): how a plan is read, written, described and evaluated."""

import math
from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds import words
from streaming.kinds.around import FOCUS_KEYS, Focus, focus_document, parse_focus, parse_length
from streaming.kinds.base import Evaluation, Kind, Source, focal_source
from streaming.kinds.fields import area_of, check_kept, emitted, located, opening, whole
from streaming.kinds.knn.plan import MAX_ALPHA, MAX_K, NEAREST_KEYS, NearestPlan
from streaming.kinds.knn.schema import definition
from streaming.kinds.parts import check_keys, parse_number
from streaming.kinds.schema import of_kind
from streaming.language import gettext, thousands
from streaming.spaces import Space


class NearestKind(Kind[NearestPlan]):
    """The elements that are nearest to a focus."""

    name, written, plan_class = "knn", "knn", NearestPlan
    boxes = ("area",)

    def parse(self, document: dict[str, Any], space: Space) -> NearestPlan:
        check_keys(document, NEAREST_KEYS, gettext("a query for nearest neighbours"))
        around, shared = document.get("around"), located(document, space)
        check_kept(shared["emit"])
        focus = parse_focus(around, shared["stream"], space)
        check_keys(around or {}, FOCUS_KEYS, gettext("around, of a query for nearest neighbours,"))
        limit = document.get("max_distance")
        return NearestPlan(
            focus=focus,
            k=_whole_number(document.get("k"), "k", MAX_K),
            max_distance=math.inf if limit is None else parse_length(limit, "max_distance", space),
            alpha=parse_number(document.get("alpha", NearestPlan.alpha), "alpha", lo=0.0, hi=MAX_ALPHA),
            **shared,
        )

    def document(self, plan: NearestPlan, space: Space) -> dict[str, Any]:
        limit = {"max_distance": plan.max_distance} if math.isfinite(plan.max_distance) else {}
        own = {"k": plan.k, "around": focus_document(plan.focus), "alpha": plan.alpha} | limit
        return opening(plan) | own | emitted(plan, space) | area_of(plan, space, whole(space))

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

    def definition(self) -> dict[str, Any]:
        return definition()

    def condition(self) -> dict[str, Any]:
        return of_kind(self.written)

    def evaluation(self, plan: NearestPlan) -> Evaluation:
        return Evaluation.NEAREST

    def sources(self, plan: NearestPlan) -> tuple[Source, ...]:
        return focal_source(plan.focus)

    def focus(self, plan: NearestPlan) -> Focus:
        return plan.focus

    def reach(self, plan: NearestPlan) -> float:
        return 0.0


def _whole_number(value: Any, name: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in range(1, most + 1):
        raise InvalidPlan(
            "%(name)s must be a whole number of 1 to %(most)s; got %(value)s",
            name=name,
            most=thousands(most),
            value=f"{value!r:.200}",
        )
    return int(value)
