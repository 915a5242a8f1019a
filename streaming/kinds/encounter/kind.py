"""Encounters: how a plan is read, written, described and evaluated."""

from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.base import Evaluation, Source
from streaming.kinds.encounter.plan import GAP_S, KEYS, AwayFrom, EncounterPlan
from streaming.kinds.encounter.schema import definition, definitions
from streaming.kinds.join import times
from streaming.kinds.join.time_kind import TimeJoinKind
from streaming.kinds.parts import Enlargement, check_keys, parse_amount, parse_text
from streaming.kinds.words import number, within
from streaming.language import gettext
from streaming.spaces import Space


class EncounterKind(TimeJoinKind[EncounterPlan]):
    """Pairs of objects that stay near each other for some time."""

    name, written, plan_class = "encounter", "encounter", EncounterPlan
    operator = "streaming.operators.encounters:Encounter"

    def parse(self, document: dict[str, Any], space: Space) -> EncounterPlan:
        fields = times.parsed(document, space, KEYS, gettext("an encounter"), kept=True)
        return EncounterPlan(
            for_s=times.seconds(document, "for_s", lo=0.0),
            gap_s=times.seconds(document, "gap_s", GAP_S, above=0.0),
            away_from=_away_from(document.get("away_from")),
            **fields,
        )

    def document(self, plan: EncounterPlan, space: Space) -> dict[str, Any]:
        own: dict[str, Any] = {"for_s": plan.for_s, "gap_s": plan.gap_s}
        if plan.away_from:
            own["away_from"] = {"layer": plan.away_from.layer, "distance": plan.away_from.distance}
        return times.written(plan, space, own)

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

    def definition(self) -> dict[str, Any]:
        return definition()

    def definitions(self) -> dict[str, dict[str, Any]]:
        return definitions()

    def evaluation(self, plan: EncounterPlan) -> Evaluation:
        return Evaluation.ENCOUNTER

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


def _away_from(document: Any) -> AwayFrom | None:
    """Return what the key `away_from` describes; None without it."""
    if document is None:
        return None
    if not isinstance(document, dict):
        raise InvalidPlan(
            "away_from must be an object with layer and distance; got %(document)s", document=f"{document!r:.200}"
        )
    check_keys(document, ("layer", "distance"), "away_from")
    layer = parse_text(document.get("layer"), "away_from: layer")
    return AwayFrom(layer, parse_amount(document.get("distance"), "away_from: distance"))
