"""Objects whose track is in an area: how a plan is read, written, described and evaluated."""

import math
from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds import words
from streaming.kinds.base import Evaluation, Kind
from streaming.kinds.fields import area_of, check_kept, emitted, located, opening, whole
from streaming.kinds.parts import Box, check_keys, parse_number, parse_text
from streaming.kinds.schema import of_kind
from streaming.kinds.track.plan import GAP_S, MOST_ACCURACY_M, MOST_GAP_S, TRACK_KEYS, Accuracy, TrackPlan
from streaming.kinds.track.schema import definition, definitions
from streaming.language import gettext
from streaming.property_columns import checked_name
from streaming.spaces import Space

# A wider area has no border that a track could cross only once on its way around the earth.
WIDEST_DEG = 180.0


class TrackKind(Kind[TrackPlan]):
    """Objects whose track is in an area."""

    name, written, plan_class = "track", "track", TrackPlan

    def parse(self, document: dict[str, Any], space: Space) -> TrackPlan:
        check_keys(document, TRACK_KEYS, gettext("a query about tracks"))
        if not space.geographic:
            raise InvalidPlan(
                "a query about tracks needs a space with longitude and latitude; got %(name)s", name=repr(space.name)
            )
        if document.get("area") is None:
            raise InvalidPlan("a query about tracks needs an area; got none")
        fields = located(document, space)
        check_kept(fields["emit"])
        _check_area(fields["area"], space)
        fastest = document.get("fastest_m_s")
        return TrackPlan(
            accuracy=_accuracy(document.get("accuracy", 0)),
            fastest_m_s=math.inf if fastest is None else parse_number(fastest, "fastest_m_s", above=0.0),
            gap_s=round(parse_number(document.get("gap_s", GAP_S), "gap_s", lo=0.0, hi=MOST_GAP_S), 6),
            **fields,
        )

    def document(self, plan: TrackPlan, space: Space) -> dict[str, Any]:
        told: Any = plan.accuracy.else_m
        if plan.accuracy.property:
            told = {"property": plan.accuracy.property, "else_m": plan.accuracy.else_m}
        fastest = {"fastest_m_s": plan.fastest_m_s} if math.isfinite(plan.fastest_m_s) else {}
        own = {"accuracy": told} | fastest | {"gap_s": plan.gap_s}
        return opening(plan) | own | emitted(plan, space) | area_of(plan, space, whole(space))

    def words(self, document: dict[str, Any], unit: str) -> str:
        area, accuracy = document["area"], document.get("accuracy", 0)
        place = gettext("in %(words)s") % {"words": words.box(area)} if "lo" in area else words.shape(area, unit)
        parts = [gettext("track %(place)s") % {"place": place}]
        if isinstance(accuracy, dict):
            known = gettext("%(words)s%(unit)s without it") % {
                "words": words.number(accuracy.get("else_m", 0)),
                "unit": unit,
            }
            parts.append(
                gettext("accuracy by %(property)s, %(known)s") % {"property": accuracy["property"], "known": known}
            )
        elif accuracy:
            parts.append(gettext("accurate to %(words)s%(unit)s") % {"words": words.number(accuracy), "unit": unit})
        if fastest := document.get("fastest_m_s"):
            parts.append(gettext("at most %(words)s m/s") % {"words": words.number(fastest)})
        if gap_s := document.get("gap_s", GAP_S):
            parts.append(
                gettext("with crossings between reports up to %(words)s s apart") % {"words": words.number(gap_s)}
            )
        return ", ".join(parts)

    def definition(self) -> dict[str, Any]:
        return definition()

    def definitions(self) -> dict[str, dict[str, Any]]:
        return definitions()

    def condition(self) -> dict[str, Any]:
        return of_kind(self.written)

    def evaluation(self, plan: TrackPlan) -> Evaluation:
        return Evaluation.TRACK


def _accuracy(value: Any) -> Accuracy:
    """Return what the key `accuracy` describes."""
    if not isinstance(value, dict):
        return Accuracy("", parse_number(value, "accuracy", lo=0.0, hi=MOST_ACCURACY_M))
    check_keys(value, ("property", "else_m"), "accuracy")
    name = parse_text(value.get("property"), "accuracy: property")
    return Accuracy(
        checked_name(name, "accuracy: property"),
        parse_number(value.get("else_m", 0), "accuracy: else_m", lo=0.0, hi=MOST_ACCURACY_M),
    )


def _check_area(area: Box, space: Space) -> None:
    """Raise InvalidPlan unless the area has bounds in longitude and latitude, and is no wider than half of the earth.

    Of a circle or corridor, the box about it is checked.
    """
    bounds = area[0], area[1], area[space.n], area[space.n + 1]
    if not all(map(math.isfinite, bounds)) or bounds[2] - bounds[0] > WIDEST_DEG:
        raise InvalidPlan(
            "a query about tracks needs an area with bounds in longitude and latitude, at most "
            "%(widest_deg)g degrees wide and without a pole; got %(bounds)s",
            widest_deg=WIDEST_DEG,
            bounds=bounds,
        )
