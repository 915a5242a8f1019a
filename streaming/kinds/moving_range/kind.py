"""Range queries about a focus: its rules, its words, and how it is evaluated."""

from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds import words
from streaming.kinds.aggregate.schema import aggregated
from streaming.kinds.around import (
    Focus,
    shape_reach,
)
from streaming.kinds.base import Evaluation, Kind, Source, focal_source
from streaming.kinds.moving_range.plan import MovingRangePlan
from streaming.kinds.schema import Schema, given_as
from streaming.language import gettext, gettext_noop
from streaming.spaces import Space


class MovingRangeKind(Kind[MovingRangePlan]):
    """Elements in a shape about a focus."""

    name, written, plan_class = "moving_range", "range", MovingRangePlan
    called = gettext_noop("a range query with around")
    explained = "streaming.explaining.moving:range_term"
    boxes = ("area",)

    @property
    def keys(self) -> tuple[str, ...]:
        return (*super().keys, "aggregate")

    def claims(self, document: dict[str, Any]) -> bool:
        return super().claims(document) and document.get("around") is not None

    def parse(self, document: dict[str, Any], space: Space) -> MovingRangePlan:
        fixed = [name for name in ("compare", "report", "transform") if name in document]
        if fixed:
            raise InvalidPlan(
                "a plan has around, or compare, report and transform; got around and %(fixed)s", fixed=", ".join(fixed)
            )
        return super().parse(document, space)

    def words(self, document: dict[str, Any], unit: str) -> str:
        return _about(document["around"], unit) + words.within(document, unit)

    def definition(self) -> Schema:
        schema = super().definition()
        schema["properties"]["aggregate"] = aggregated()
        return schema

    def condition(self) -> dict[str, Any]:
        return given_as("around", "object")

    def evaluation(self, plan: MovingRangePlan) -> Evaluation:
        return Evaluation.MOVING_RANGE

    def sources(self, plan: MovingRangePlan) -> tuple[Source, ...]:
        return focal_source(plan.focus)

    def focus(self, plan: MovingRangePlan) -> Focus:
        return plan.focus

    def reach(self, plan: MovingRangePlan) -> float:
        return shape_reach(plan.shape)


def _about(around: dict[str, Any], unit: str) -> str:
    """Return the range about a focus as text."""
    focus = words.focus(around)
    if "radius" in around:
        return gettext("within %(words)s%(unit)s of %(focus)s") % {
            "words": words.number(around["radius"]),
            "unit": unit,
            "focus": focus,
        }
    if "polygon" in around:
        return gettext("in a polygon of %(count)s corners around %(focus)s") % {
            "count": len(around["polygon"]),
            "focus": focus,
        }
    halves = [*around["half_widths"], None][:2]
    sides = " × ".join("any" if half is None else f"{words.number(2 * half)}{unit}" for half in halves)
    return gettext("in %(sides)s around %(focus)s") % {"sides": sides, "focus": focus}
