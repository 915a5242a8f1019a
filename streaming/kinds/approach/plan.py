"""Predicted entries into an area: the plan."""

from dataclasses import dataclass

from streaming.kinds.areas import AreaShape
from streaming.kinds.parts import Box, Filter

# An object that says it is faster than this is not predicted: no ship, vehicle or airliner is.
FASTEST_MPS = 350.0
# A prediction farther ahead says little, and many objects would have to be looked at for it.
MOST_AHEAD_S = 3_600.0


@dataclass(frozen=True)
class ApproachPlan:
    """Objects outside of an area that will be in it soon, if they keep the course and speed of their newest report.

    Parameters
    ----------
    stream : str
        The stream whose elements the query evaluates.
    target : tuple of float, length 2n
        The area: a box, or the box about its shape. Objects must have its height already.
    within_s : float
        So many seconds after its newest report, at most, an object must be in the area.
    shape : PolygonArea or CircleArea or CorridorArea or None
        The shape of the area; None if it is a box.
    area : tuple of float, length 2n
        The box of all places from which an object may reach the area in time.
    where : str
        CQL2 text over the element's properties; empty for none.
    filters : tuple of Filter
        An element must pass all of them.
    emit : {"changes", "membership", "all"}
        As in `RangePlan`.
    """

    stream: str
    target: Box
    within_s: float
    shape: AreaShape | None
    area: Box
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: str = "changes"
    kind: str = "approach"


APPROACH_KEYS = ("stream", "kind", "target", "within_s", "where", "filters", "emit")
