"""Closest points of approach: the plan.

References
----------
IMO resolution A.823(19), 1995: distance at the closest point of approach (CPA), and time to it (TCPA).
"""

from dataclasses import dataclass, fields

from streaming.kinds.join.plan import Partners
from streaming.kinds.parts import Box, Filter

GAP_S = 300.0
# A pair that keeps its distance has no closest point: slower than this, two do not come nearer.
SLOWEST_MPS = 0.1
MOST_WITHIN_M = 100_000.0


@dataclass(frozen=True)
class ClosestApproachPlan:
    """Pairs of objects that will be close to each other soon, if both keep the course and speed of their newest report.

    Parameters
    ----------
    stream : str
        The stream whose objects the query evaluates.
    partners : Partners
        The stream of the other objects, and the filters that they must pass; without it, the query's own stream.
    within_m : float
        The two must be no farther from each other at the closest point of approach, in metres.
    within_s : float
        The closest point of approach must be at most so many seconds after the later of the two reports.
    area : tuple of float, length 2n
        The object must be in this area now; its partner may be elsewhere.
    gap_s : float
        The two reports must not be more than so many seconds apart.
    mirrored : bool
        If both objects are of one stream: whether a pair that satisfies the query both ways is told both ways.
    where : str
        CQL2 text over the object's properties; empty for none.
    filters : tuple of Filter
        An object must pass all of them.
    emit : {"changes", "membership"}
        ``changes``: entries, exits, and other places or times of the closest point; ``membership``: entries and exits
        only.
    """

    stream: str
    partners: Partners
    within_m: float
    within_s: float
    area: Box
    gap_s: float = GAP_S
    mirrored: bool = False
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: str = "changes"
    kind: str = "closest_approach"

    @property
    def transform(self) -> tuple[()]:
        """Nothing: it is not the box of an object that is compared."""
        return ()


KEYS = ("join", *(field.name for field in fields(ClosestApproachPlan) if field.name != "partners"))
PARTNER_KEYS = ("stream", "where", "filters", "pair_filters")
