"""Range queries over fixed boxes: its rules, its words, and how it is evaluated."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds import words
from streaming.kinds.aggregate.schema import aggregated
from streaming.kinds.area_documents import shape_of
from streaming.kinds.base import Evaluation, Kind
from streaming.kinds.fields import KEPT
from streaming.kinds.parts import Box, box_document
from streaming.kinds.range.plan import RangePlan
from streaming.kinds.schema import Schema, given_as
from streaming.language import gettext, gettext_noop
from streaming.spaces import Space


class RangeKind(Kind[RangePlan]):
    """Elements that meet a fixed box, or do not."""

    name, written, plan_class = "range", "range", RangePlan
    called = gettext_noop("a range query")
    explained = "streaming.explaining.ranges:box_term"
    boxes = ("area", "compare")

    @property
    def keys(self) -> tuple[str, ...]:
        return (*super().keys, "aggregate")

    def parse(self, document: dict[str, Any], space: Space) -> RangePlan:
        return super().parse({name: value for name, value in document.items() if name != "around"}, space)

    def completed(self, fields: dict[str, Any], document: dict[str, Any], space: Space) -> dict[str, Any]:
        report, compare = fields["report"], fields["compare"]
        named = None if document.get("area") is None else fields["area"]
        if named is None and compare is None:
            raise InvalidPlan("a plan needs an area or a compare box, or around; got none of them")
        if report == "outside" and compare is None and shape_of(fields["filters"]):
            raise InvalidPlan("report outside needs a compare box beside an area that is no box; got none")
        compare = compare or named
        area = named or (compare if report == "inside" else fields["area"])
        return fields | {"area": area, "compare": compare}

    def like(self, plan: RangePlan, boxes: Mapping[str, Sequence[Box]]) -> list[RangePlan]:
        compare = boxes.get("compare") or boxes["area"]
        derived = {"compare": compare} | ({"area": compare} if plan.report == "inside" else {})
        return super().like(plan, derived | dict(boxes))

    def document(self, plan: RangePlan, space: Space) -> dict[str, Any]:
        document = super().document(plan, space)
        if plan.compare == plan.area:
            if shape_of(plan.filters):
                del document["compare"]
        elif plan.report == "inside":  # without an area, it would be the box that is compared
            document.setdefault("area", box_document(plan.area, space))
        return document

    def words(self, document: dict[str, Any], unit: str) -> str:
        compare, area = document.get("compare"), words.within(document, unit)
        if compare is None and area:
            return area.strip()
        text = gettext("outside %(box)s") if document.get("report") == "outside" else gettext("inside %(box)s")
        return text % {"box": words.box(compare or document["area"])} + area

    def definition(self) -> Schema:
        schema = super().definition()
        schema["properties"] |= {
            "aggregate": aggregated(),
            "around": {"type": "null", "description": "An aggregate over a fixed area has no focus."},
        }
        kept = {"properties": {"emit": {"enum": list(KEPT)}}}
        boxes = [given_as(name, "object") for name in self.boxes]
        return schema | {"anyOf": boxes, "if": given_as("aggregate", "object"), "then": kept}

    def condition(self) -> None:
        return None

    def evaluation(self, plan: RangePlan) -> Evaluation:
        return Evaluation.REGIONAL

    def moved(self, was: RangePlan, now: RangePlan) -> list[tuple[Box, Box]] | None:
        if was.transform or replace(was, area=now.area, compare=now.compare) != now:
            return None
        pairs = dict.fromkeys([(was.area, now.area), (was.compare, now.compare)])
        return [(one, other) for one, other in pairs if one != other]

    def box(self, plan: RangePlan) -> Box:
        return plan.compare if plan.report == "inside" else plan.area
