"""Closest points of approach: its rules, its words, and how it is evaluated."""

from typing import Any

import pyarrow as pa

from streaming.kinds.base import Evaluation, Fact, Kind, Prediction, Source, udfs
from streaming.kinds.closest_approach.plan import ClosestApproachPlan
from streaming.kinds.details import Detail
from streaming.kinds.encounter.kind import duration
from streaming.kinds.parts import UserFilter
from streaming.kinds.words import number, within
from streaming.language import gettext, gettext_noop


def _closest(row: dict[str, Any], time_us: int, after_s: float, places: list[float]) -> None:
    row["closest"] = {"time_us": time_us, "after_s": after_s, "places": [places[:2], places[2:]]}


# When the two will be closest, how many seconds this is after the later of their reports, and longitude and latitude of
# the object then, and of the partner; none in ``-``.
CLOSEST = Detail(
    {"closest_us": pa.int64(), "closest_s": pa.float64(), "closest_places": pa.list_(pa.float64(), 4)}, _closest
)


class ClosestApproachKind(Kind[ClosestApproachPlan]):
    """Pairs of objects that will be close to each other soon."""

    name, written, plan_class = "closest_approach", "closest_approach", ClosestApproachPlan
    called, geographic = gettext_noop("a closest approach"), True
    explained = "streaming.explaining.closest:closest_term"
    details = (CLOSEST,)

    def words(self, document: dict[str, Any], unit: str) -> str:
        near = gettext("will come within %(within_m)s%(unit)s of %(stream)s") % {
            "within_m": number(document["within_m"]),
            "unit": unit,
            "stream": document["join"]["stream"],
        }
        return gettext("%(near)s in %(within_s)s%(unit)s") % {
            "near": near,
            "within_s": duration(document["within_s"]),
            "unit": within(document, unit),
        }

    def evaluation(self, plan: ClosestApproachPlan) -> Evaluation:
        return Evaluation.STREAM_JOIN

    def facts(self, plan: ClosestApproachPlan) -> tuple[Fact, ...]:
        return ("partners",)

    def sources(self, plan: ClosestApproachPlan) -> tuple[Source, ...]:
        return (Source("join", "stream", plan.partners.name),)

    def user_filters(self, plan: ClosestApproachPlan) -> tuple[tuple[UserFilter, bool], ...]:
        return udfs(plan.filters + plan.partners.filters) + udfs(plan.partners.pair_filters, pairs=True)

    def prediction(self, plan: ClosestApproachPlan) -> Prediction:
        return Prediction(plan.within_m, plan.within_s, plan.gap_s, plan.mirrored)
