"""Range queries over fixed boxes: how a plan is read, written, described and evaluated."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds import words
from streaming.kinds.area_documents import shape_of
from streaming.kinds.base import Evaluation, Kind
from streaming.kinds.fields import area_of, compared, emitted, opening, whole
from streaming.kinds.parts import Box, box_document, check_keys, parse_box, parse_choice, transform_document
from streaming.kinds.range.plan import RANGE_KEYS, REPORTS, RangePlan
from streaming.kinds.range.schema import definition
from streaming.language import gettext
from streaming.spaces import Space


class RangeKind(Kind[RangePlan]):
    """Elements that meet a fixed box, or do not."""

    name, written, plan_class = "range", "range", RangePlan
    boxes = ("area", "compare")

    def parse(self, document: dict[str, Any], space: Space) -> RangePlan:
        check_keys(
            {name: value for name, value in document.items() if name != "around"}, RANGE_KEYS, gettext("a range query")
        )
        if document.get("area") is None and document.get("compare") is None:
            raise InvalidPlan("a plan needs an area or a compare box, or around; got none of them")
        report = parse_choice(document, "report", REPORTS)
        fields = compared(document, space)
        named = None if document.get("area") is None else fields["area"]
        compare = parse_box(document.get("compare"), "compare", space)
        if report == "outside" and compare is None and shape_of(fields["filters"]):
            raise InvalidPlan("report outside needs a compare box beside an area that is no box; got none")
        compare = compare or named
        assert compare is not None
        area = named or (compare if report == "inside" else whole(space))
        return RangePlan(**fields | {"area": area, "compare": compare, "report": report})

    def like(self, plan: RangePlan, boxes: Mapping[str, Sequence[Box]]) -> list[RangePlan]:
        compare = boxes.get("compare") or boxes["area"]
        derived = {"compare": compare} | ({"area": compare} if plan.report == "inside" else {})
        return super().like(plan, derived | dict(boxes))

    def document(self, plan: RangePlan, space: Space) -> dict[str, Any]:
        boxes = {"compare": box_document(plan.compare, space), "report": plan.report}
        if shape_of(plan.filters) and plan.compare == plan.area:
            del boxes["compare"]
        missing = plan.compare if plan.report == "inside" else whole(space)
        transform = {"transform": transform_document(plan.transform)}
        return opening(plan) | boxes | transform | emitted(plan, space) | area_of(plan, space, missing)

    def words(self, document: dict[str, Any], unit: str) -> str:
        compare, area = document.get("compare"), words.within(document, unit)
        if compare is None and area:
            return area.strip()
        text = gettext("outside %(box)s") if document.get("report") == "outside" else gettext("inside %(box)s")
        return text % {"box": words.box(compare or document["area"])} + area

    def definition(self) -> dict[str, Any]:
        return definition()

    def evaluation(self, plan: RangePlan) -> Evaluation:
        return Evaluation.REGIONAL

    def moved(self, was: RangePlan, now: RangePlan) -> list[tuple[Box, Box]] | None:
        if was.transform or replace(was, area=now.area, compare=now.compare) != now:
            return None
        pairs = dict.fromkeys([(was.area, now.area), (was.compare, now.compare)])
        return [(one, other) for one, other in pairs if one != other]

    def box(self, plan: RangePlan) -> Box:
        return plan.compare if plan.report == "inside" else plan.area
