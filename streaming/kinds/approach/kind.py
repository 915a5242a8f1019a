"""Predicted entries into an area: its rules, its words, and how it is evaluated."""

from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds import words
from streaming.kinds.approach.plan import FASTEST_MPS, ApproachPlan
from streaming.kinds.areas import AreaShape, CircleArea, CorridorArea, Place, envelope, vertices_of
from streaming.kinds.base import Evaluation, Kind
from streaming.kinds.parts import Box
from streaming.language import gettext, gettext_noop
from streaming.spaces import Space


class ApproachKind(Kind[ApproachPlan]):
    """Elements that are outside of an area, and in it soon if they keep their course and speed."""

    name, written, plan_class = "approach", "approach", ApproachPlan
    called, geographic = gettext_noop("a predicted entry"), True
    explained = "streaming.explaining.approaches:approach_term"
    refinement = "streaming.operators.approaches:Approaches"

    def completed(self, fields: dict[str, Any], document: dict[str, Any], space: Space) -> dict[str, Any]:
        reach_m = FASTEST_MPS * fields["within_s"]
        return fields | {"area": _reached(fields["shape"], fields["target"], reach_m, space)}

    def words(self, document: dict[str, Any], unit: str) -> str:
        target = document["target"]
        place = gettext("in %(words)s") % {"words": words.box(target)} if "lo" in target else words.shape(target, unit)
        return gettext("will be %(place)s within %(words)s s") % {
            "place": place,
            "words": words.number(document["within_s"]),
        }

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
