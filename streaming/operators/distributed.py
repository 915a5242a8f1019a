"""Distributed queries, all together: those that move, and those to whose answers several servers contribute.

References
----------
PLACE* (2007), sections 4 and 5: participating servers answer ranges locally, whatever the query makes of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streaming.operators.boxes import in_plane, intersects
from streaming.operators.crossings import crossed
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.focal_ranges import FocalRanges, PlacedRanges
from streaming.operators.places import distances
from streaming.operators.range_query import RangeQueries
from streaming.operators.runs import find
from streaming.operators.spatial_join import Pairs
from streaming.plans import AggregatePlan, Focus, MovingRangePlan, NearestPlan, RangePlan, Rectangle
from streaming.spaces import Space

DistributedPlan = MovingRangePlan | NearestPlan | AggregatePlan


class DistributedQueries:
    """An immutable set of distributed queries of one space.

    Parameters
    ----------
    plans : sequence of MovingRangePlan, NearestPlan or AggregatePlan, length Q
    space : Space

    Attributes
    ----------
    nearest, aggregates, ranges : ndarray of int64
        The positions of queries for nearest neighbours, of aggregates, and of ranges.
    focused : ndarray of int64
        The positions of queries that have a focus.
    focal : ndarray of int64, shape (Q,)
        The `key_hash` of each focal object; 0 where there is none.
    farthest : ndarray of float64, shape (Q,)
        How far each may look for neighbours; infinite without a limit.
    choosy : ndarray of bool, shape (Q,)
        Which have filters.
    bordered : ndarray of bool, shape (Q,)
        Which are ranges that tell membership alone, and have nothing but a border in the plane: whatever does not
        cross it changes nothing.
    """

    def __init__(self, plans: Sequence[DistributedPlan], space: Space) -> None:
        self.plans, self.space = plans, space
        self.nearest = _positions(plans, NearestPlan)
        self.aggregates = _positions(plans, AggregatePlan)
        self.ranges = _positions(plans, MovingRangePlan)
        self._looked = looked = [plan.range if isinstance(plan, AggregatePlan) else plan for plan in plans]
        self._fixed = _positions(looked, RangePlan)
        self.focused = np.setdiff1d(np.arange(len(plans)), self._fixed)
        self._fixed_plans = {query: looked[query] for query in self._fixed.tolist()}
        self._range_queries = RangeQueries(list(self._fixed_plans.values()), space)
        self.focal_ranges = FocalRanges([looked[query] for query in self.focused.tolist()], space)
        self.farthest = np.array([getattr(plan, "max_distance", np.inf) for plan in plans], dtype=np.float64)
        self.focal = np.zeros(len(plans), dtype=np.int64)
        self.focal[self.focused] = self.focal_ranges.focal
        self.choosy = np.array([bool(plan.where or plan.filters) for plan in plans], dtype=bool)
        self.bordered = np.array([_is_bordered(plan, space) for plan in plans], dtype=bool)

    def __len__(self) -> int:
        return len(self.plans)

    def focus(self, position: int) -> Focus:
        """Return the focus of one of `focused`."""
        plan = self._looked[position]
        if isinstance(plan, RangePlan):
            raise KeyError(position)
        return plan.focus

    def placed(self, keys: np.ndarray, bounds: np.ndarray, reach: np.ndarray) -> "PlacedQueries":
        """Return the queries where their focal objects are; see `FocalRanges.placed`, but `reach` is of shape (Q,).

        No search region is larger than its query allows, even where an edit has just narrowed it.
        """
        reach = np.minimum(reach, self.farthest)[self.focused]
        return PlacedQueries(self, self.focal_ranges.placed(keys, bounds, reach))

    def in_ranges(self, elements: Elements, failures: Failures, chosen: np.ndarray | None) -> Pairs:
        """Return the pairs of elements and queries whose range has a fixed box."""
        asked = self._fixed if chosen is None else np.intersect1d(chosen, self._fixed)
        if not len(asked):
            return Pairs.without_partners(*np.empty((2, 0), dtype=np.int64))
        queries = self._range_queries
        if len(asked) < len(self._fixed):
            queries = RangeQueries([self._fixed_plans[query] for query in asked.tolist()], self.space)
        failed = Failures()
        row, query = queries.match(elements, failed)
        failures.add(failed, asked)
        return Pairs.without_partners(row, asked[query])


@dataclass(frozen=True)
class PlacedQueries:
    """Distributed queries where they are now.

    Parameters
    ----------
    queries : DistributedQueries, Q of them
    ranges : PlacedRanges
        Of `queries.focused`.
    """

    queries: DistributedQueries
    ranges: PlacedRanges

    @property
    def places(self) -> np.ndarray:
        """Where each query is, float64 of shape (Q, 2); NaN where it is nowhere, or has no focus."""
        places = np.full((len(self.queries), 2), np.nan)
        places[self.queries.focused] = self.ranges.places
        return places

    @property
    def radius(self) -> np.ndarray:
        """The radius of each circle, float64 of shape (Q,); NaN of what is none."""
        radius = np.full(len(self.queries), np.nan)
        radius[self.queries.focused] = self.ranges.radius
        return radius

    def match(
        self, elements: Elements, keys: np.ndarray, failures: Failures, chosen: np.ndarray | None = None
    ) -> Pairs:
        """Return the pairs of elements and queries in whose range they lie; see `PlacedRanges.match`."""
        asked = None if chosen is None else _within(self.queries.focused, chosen)
        failed = Failures()
        pairs = self.ranges.match(elements, keys, failed, asked)
        failures.add(failed, self.queries.focused)
        return Pairs.together([self._of_queries(pairs), self.queries.in_ranges(elements, failures, chosen)])

    def lies(self, bounds: np.ndarray, row: np.ndarray, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Tell of pairs of a box and a query whether the one lies in the range about the other's focus.

        See `PlacedRanges.lies`.
        """
        return self.ranges.lies(bounds, row, find(self.queries.focused, query)[0], keys)[0]

    def distances(self, bounds: np.ndarray, keys: np.ndarray, query: np.ndarray) -> np.ndarray:
        """Return how far boxes (P, 2n) of objects (P,) are from where queries (P,) are that have a focus.

        Infinite where the query is nowhere, or does not look at the object.
        """
        position, ranges = find(self.queries.focused, query)[0], self.ranges.ranges
        seen = intersects(bounds, np.arange(len(bounds)), ranges.area, position, ranges.space)
        places, way = self.ranges.places[position], np.full(len(bounds), np.inf)
        seen &= (keys != ranges.focal[position]) & ~np.isnan(places).any(1)
        way[seen] = distances(bounds[seen], places[seen], ranges.space)
        return way

    def passing(self, elements: Elements, row: np.ndarray, query: np.ndarray) -> np.ndarray:
        """Tell of pairs of an element and a query with a focus whether the one passes the filters of the other."""
        conditions = self.queries.focal_ranges.conditions
        return conditions.passing(row, find(self.queries.focused, query)[0], elements, Failures())

    def crowding(self, chosen: np.ndarray, bounds: np.ndarray) -> float:
        """Return in the boxes of how many ranges, given their positions, each of some boxes (N, 2n) lies, about."""
        space = self.queries.space
        ranges = in_plane(self.ranges.boxes[find(self.queries.focused, chosen)[0]], space)[:, None]
        plane = in_plane(bounds, space)
        meet = (ranges[..., :2] <= plane[:, 2:]).all(2) & (plane[:, :2] <= ranges[..., 2:]).all(2)
        return meet.sum() / max(1, len(bounds))

    def crossed(
        self,
        were: "PlacedQueries",
        ranges: tuple[np.ndarray, np.ndarray],
        elements: tuple[Elements, Elements],
        keys: np.ndarray,
        chosen: np.ndarray,
        failures: Failures,
    ) -> tuple[Pairs, Pairs]:
        """Return who was and who is in ranges, given their positions before and now; see `crossings.crossed`."""
        positions = find(were.queries.focused, ranges[0])[0], find(self.queries.focused, ranges[1])[0]
        failed = Failures()
        old, new = crossed(were.ranges, self.ranges, positions, elements, keys, chosen, failed)
        failures.add(failed, self.queries.focused)
        return were._of_queries(old), self._of_queries(new)

    def _of_queries(self, pairs):
        """Return pairs of ranges as those of their queries."""
        return Pairs(pairs.row, self.queries.focused[pairs.query], pairs.partner, pairs.distance)


def _is_bordered(plan, space):
    if not isinstance(plan, MovingRangePlan) or plan.emit != "membership" or plan.where or plan.filters:
        return False
    upright = isinstance(plan.shape, Rectangle) and np.isfinite(plan.shape.half_widths[2:]).any()
    return not upright and np.isinf(plan.area).all()


def _positions(plans, kind):
    return np.array([query for query, plan in enumerate(plans) if isinstance(plan, kind)], dtype=np.int64)


def _within(ordered, values):
    """Return the positions in an ordered array of those values that it has."""
    position, present = find(ordered, np.sort(values))
    return position[present]
