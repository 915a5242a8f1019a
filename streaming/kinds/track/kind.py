"""Objects whose track is in an area: its rules, its words, and how it is evaluated."""

import math
from typing import Any

import pyarrow as pa

from streaming.errors import InvalidPlan
from streaming.kinds import words
from streaming.kinds.base import Evaluation, Fact, Kind
from streaming.kinds.details import Detail
from streaming.kinds.parts import Box
from streaming.kinds.track.plan import GAP_S, TrackPlan
from streaming.language import gettext, gettext_noop
from streaming.spaces import Space

# A wider area has no border that a track could cross only once on its way around the earth.
WIDEST_DEG = 180.0


def _interpolated(row: dict[str, Any], from_us: int, to_us: int) -> None:
    row |= {"interpolated": True, "from_us": from_us, "to_us": to_us}


# The times of the two reports between which an entry or exit was interpolated; none if it was at a report.
BETWEEN_REPORTS = Detail({"from_us": pa.int64(), "to_us": pa.int64()}, _interpolated)


class TrackKind(Kind[TrackPlan]):
    """Objects whose track is in an area."""

    name, written, plan_class = "track", "track", TrackPlan
    called, geographic = gettext_noop("a query about tracks"), True
    explained = "streaming.explaining.tracks:track_term"
    details = (BETWEEN_REPORTS,)

    def completed(self, fields: dict[str, Any], document: dict[str, Any], space: Space) -> dict[str, Any]:
        _check_area(fields["area"], space)
        return fields

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

    def evaluation(self, plan: TrackPlan) -> Evaluation:
        return Evaluation.TRACK

    def facts(self, plan: TrackPlan) -> tuple[Fact, ...]:
        return ("fix", "member")


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
