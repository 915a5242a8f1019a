"""Predicted entries into an area: how a plan is read, written, described and evaluated."""

from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds import words
from streaming.kinds.approach.plan import APPROACH_KEYS, FASTEST_MPS, MOST_AHEAD_S, ApproachPlan
from streaming.kinds.approach.schema import definition
from streaming.kinds.area_documents import area_document, parse_area_value, shape_of
from streaming.kinds.areas import AreaShape, CircleArea, CorridorArea, Place, envelope, vertices_of
from streaming.kinds.base import Evaluation, Kind
from streaming.kinds.fields import common, emitted, opening
from streaming.kinds.parts import Box, box_document, check_keys, parse_number
from streaming.kinds.schema import of_kind
from streaming.language import gettext
from streaming.spaces import Space


class ApproachKind(Kind[ApproachPlan]):
    """Elements that are outside of an area, and in it soon if they keep their course and speed."""

    name, written, plan_class = "approach", "approach", ApproachPlan
    refinement = "streaming.operators.approaches:Approaches"

    def parse(self, document: dict[str, Any], space: Space) -> ApproachPlan:
        check_keys(document, APPROACH_KEYS, gettext("a predicted entry"))
        if not space.geographic:
            raise InvalidPlan(
                "a predicted entry needs a space with longitude and latitude; got %(name)s", name=repr(space.name)
            )
        target, filters = parse_area_value(document.get("target"), "target", space)
        if target is None:
            raise InvalidPlan("target must be the area that objects will enter; got none")
        within_s = parse_number(document.get("within_s"), "within_s", above=0.0, hi=MOST_AHEAD_S)
        shape = shape_of(filters)
        area = _reached(shape, target, FASTEST_MPS * within_s, space)
        return ApproachPlan(target=target, within_s=within_s, shape=shape, area=area, **common(document, space))

    def document(self, plan: ApproachPlan, space: Space) -> dict[str, Any]:
        target = area_document(plan.shape) if plan.shape else box_document(plan.target, space)
        return opening(plan) | {"target": target, "within_s": plan.within_s} | emitted(plan, space)

    def words(self, document: dict[str, Any], unit: str) -> str:
        target = document["target"]
        place = gettext("in %(words)s") % {"words": words.box(target)} if "lo" in target else words.shape(target, unit)
        return gettext("will be %(place)s within %(words)s s") % {
            "place": place,
            "words": words.number(document["within_s"]),
        }

    def definition(self) -> dict[str, Any]:
        return definition()

    def condition(self) -> dict[str, Any]:
        return of_kind(self.written)

    def evaluation(self, plan: ApproachPlan) -> Evaluation:
        return Evaluation.REGIONAL


def _reached(shape: AreaShape | None, target: Box, reach_m: float, space: Space) -> Box:
    """Return a box about all places within a distance of an area, with its bounds in height and other dimensions."""
    n = space.n
    corners: tuple[Place, ...] = ((target[0], target[1]), (target[n], target[n + 1]))
    if not all(abs(number) < float("inf") for corner in corners for number in corner):
        raise InvalidPlan("target must have bounds in longitude and latitude; got a box without")
    if shape is not None:
        corners = tuple(vertices_of(shape))
    if isinstance(shape, CircleArea):
        reach_m += shape.radius_m
    if isinstance(shape, CorridorArea):
        reach_m += shape.width_m / 2
    box = space.corners(*envelope(CorridorArea(corners, 2 * reach_m)))
    return (*box[:2], *target[2:n], *box[n : n + 2], *target[n + 2 :])
