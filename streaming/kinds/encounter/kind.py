"""Encounters: its rules, its words, and how it is evaluated."""

from typing import Any

import pyarrow as pa

from streaming.kinds.base import Evaluation, Fact, Source
from streaming.kinds.details import PARTNER_REPORT, SINCE, Detail
from streaming.kinds.encounter.plan import EncounterPlan
from streaming.kinds.join import times
from streaming.kinds.join.time_kind import TimeJoinKind
from streaming.kinds.parts import Enlargement
from streaming.kinds.words import number, within
from streaming.language import gettext, gettext_noop


class EncounterKind(TimeJoinKind[EncounterPlan]):
    """Pairs of objects that stay near each other for some time."""

    name, written, plan_class = "encounter", "encounter", EncounterPlan
    called = gettext_noop("an encounter")
    explained = "streaming.explaining.joins:encounter_term"
    # It has no end while it lasts.
    details = (PARTNER_REPORT, SINCE, Detail({"until_us": pa.int64()}))
    operator = "streaming.operators.encounters:Encounter"

    def words(self, document: dict[str, Any], unit: str) -> str:
        near = gettext("%(times)s for at least %(for_s)s") % {
            "times": times.near_words(document["join"], unit),
            "for_s": duration(document["for_s"]),
        }
        if away := document.get("away_from"):
            near += gettext(", more than %(distance)s%(unit)s from %(layer)s") % {
                "distance": number(away["distance"]),
                "unit": unit,
                "layer": away["layer"],
            }
        return near + within(document, unit)

    def evaluation(self, plan: EncounterPlan) -> Evaluation:
        return Evaluation.ENCOUNTER

    def facts(self, plan: EncounterPlan) -> tuple[Fact, ...]:
        return ("partners",)

    def sources(self, plan: EncounterPlan) -> tuple[Source, ...]:
        away = (Source("away_from", "layer", plan.away_from.layer),) if plan.away_from else ()
        return (*super().sources(plan), *away)

    def layer(self, plan: EncounterPlan) -> str | None:
        return plan.away_from.layer if plan.away_from else None

    def layer_reach(self, plan: EncounterPlan) -> tuple[tuple[Enlargement, ...], float]:
        return (), plan.away_from.distance if plan.away_from else 0.0


def duration(seconds: float) -> str:
    """Return a number of seconds in words, in minutes if they are whole: for instance "30 min"."""
    return (
        gettext("%(seconds)s min") % {"seconds": number(seconds / 60)}
        if seconds and seconds % 60 == 0
        else f"{number(seconds)} s"
    )
