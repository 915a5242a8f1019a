"""Distributed queries, evaluated together: queries that move, and queries whose answers need several servers.

References
----------
PLACE* (2007), sections 4 and 5: participating servers answer ranges locally, for every kind of query.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streaming.kinds.aggregate.plan import AggregatePlan
from streaming.kinds.around import Focus, Rectangle
from streaming.kinds.base import Evaluation
from streaming.kinds.knn.plan import NearestPlan
from streaming.kinds.moving_range.plan import MovingRangePlan
from streaming.kinds.registry import kind_of
from streaming.operators.boxes import in_plane, intersects
from streaming.operators.crossings import crossed
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.focal_ranges import FocalRanges, PlacedRanges
from streaming.operators.places import distances
from streaming.operators.range_query import RangeQueries
from streaming.operators.runs import find
from streaming.operators.spatial_join import Pairs
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
        The positions of the kNN queries, of the aggregates, and of the moving ranges; ascending.
    focused : ndarray of int64
        The positions of queries that have a focus, ascending.
    focal : ndarray of int64, shape (Q,)
        The `key_hash` of each focal object; 0 if there is none.
    farthest : ndarray of float64, shape (Q,)
        The `max_distance` of each kNN query, in its unit; infinite if there is no limit.
    choosy : ndarray of bool, shape (Q,)
        Which queries have filters.
    bordered : ndarray of bool, shape (Q,)
        Which queries are ranges that emit membership only, and have no filters, no area and no bounds beyond the
        plane. Only elements that cross the border of such a range in the plane change its answer.
    """

    def __init__(self, plans: Sequence[DistributedPlan], space: Space) -> None:
        self.plans, self.space = plans, space
        self.nearest = _evaluated_as(Evaluation.NEAREST, plans)
        self.aggregates = _evaluated_as(Evaluation.AGGREGATE, plans)
        self.ranges = _evaluated_as(Evaluation.MOVING_RANGE, plans)
        looked: list[Any] = [kind_of(plan).members(plan) for plan in plans]
        self._fixed = np.flatnonzero([kind_of(plan).focus(plan) is None for plan in plans])
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
        """Return the focus of a query, given its position; raise KeyError if it has none."""
        plan = self.plans[position]
        focus = kind_of(plan).focus(plan)
        if focus is None:
            raise KeyError(position)
        return focus

    def placed(self, keys: np.ndarray, bounds: np.ndarray, reach: np.ndarray) -> "PlacedQueries":
        """Place the queries at their focal objects; see `FocalRanges.placed`, but `reach` is of shape (Q,).

        A search region is never larger than `max_distance`, even if an edit has just lowered that.
        """
        reach = np.minimum(reach, self.farthest)[self.focused]
        return PlacedQueries(self, self.focal_ranges.placed(keys, bounds, reach))

    def in_ranges(self, elements: Elements, failures: Failures, chosen: np.ndarray | None) -> Pairs:
        """Return the pairs of elements and queries with a fixed range, in whose range they lie.

        Parameters
        ----------
        elements : Elements
        failures : Failures
            Receives the errors of user-defined filters, and what queries cost, by their positions.
        chosen : ndarray of int64 or None
            The positions of the queries to match; None for all.

        Returns
        -------
        Pairs
        """
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
    """Distributed queries at the places where they are now.

    Parameters
    ----------
    queries : DistributedQueries, Q of them
    ranges : PlacedRanges
        The ranges of `queries.focused`, in that order.
    """

    queries: DistributedQueries
    ranges: PlacedRanges

    @property
    def places(self) -> np.ndarray:
        """The place of each query, float64 of shape (Q, 2); NaN if the focus is not known, or there is none."""
        places = np.full((len(self.queries), 2), np.nan)
        places[self.queries.focused] = self.ranges.places
        return places

    @property
    def radius(self) -> np.ndarray:
        """The radius of each circle, float64 of shape (Q,); NaN for other ranges."""
        radius = np.full(len(self.queries), np.nan)
        radius[self.queries.focused] = self.ranges.radius
        return radius

    def match(
        self, elements: Elements, keys: np.ndarray, failures: Failures, chosen: np.ndarray | None = None
    ) -> Pairs:
        """Return the pairs of elements and queries in whose range they lie, fixed ones included.

        For the parameters see `PlacedRanges.match`; positions are those of queries.
        """
        asked = None if chosen is None else _within(self.queries.focused, chosen)
        failed = Failures()
        pairs = self.ranges.match(elements, keys, failed, asked)
        failures.add(failed, self.queries.focused)
        return Pairs.together([self._of_queries(pairs), self.queries.in_ranges(elements, failures, chosen)])

    def lies(self, bounds: np.ndarray, row: np.ndarray, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Tell which pairs of a box and a query with a focus have the box in the query's range, bool of shape (P,).

        See `PlacedRanges.lies`; `query` has the positions of queries.
        """
        return self.ranges.lies(bounds, row, find(self.queries.focused, query)[0], keys)[0]

    def distances(self, bounds: np.ndarray, keys: np.ndarray, query: np.ndarray) -> np.ndarray:
        """Return the distances of objects from the places of queries that have a focus, a pair a row.

        Parameters
        ----------
        bounds : ndarray of float64, shape (P, 2n)
            The boxes of the objects.
        keys : ndarray of int64, shape (P,)
            The `key_hash` of the objects.
        query : ndarray of int64, shape (P,)
            The positions of the queries.

        Returns
        -------
        ndarray of float64, shape (P,)
            See `places.distances`. Infinite if the query has no place, the object lies outside its area, or the object
            is its focal object.
        """
        position, ranges = find(self.queries.focused, query)[0], self.ranges.ranges
        seen = intersects(bounds, np.arange(len(bounds)), ranges.area, position, ranges.space)
        places, way = self.ranges.places[position], np.full(len(bounds), np.inf)
        seen &= (keys != ranges.focal[position]) & ~np.isnan(places).any(1)
        way[seen] = distances(bounds[seen], places[seen], ranges.space)
        return way

    def passing(self, elements: Elements, row: np.ndarray, query: np.ndarray) -> np.ndarray:
        """Tell which pairs of an element and a query with a focus have an element that passes the query's filters.

        Parameters
        ----------
        elements : Elements
        row, query : ndarray of int64, shape (P,)
            The positions of elements and of queries.

        Returns
        -------
        ndarray of bool, shape (P,)
            False if a user-defined filter fails; the error is not reported.
        """
        conditions = self.queries.focal_ranges.conditions
        return conditions.passing(row, find(self.queries.focused, query)[0], elements, Failures())

    def crowding(self, chosen: np.ndarray, bounds: np.ndarray) -> float:
        """Return about how many of some ranges a box lies in, on the average.

        Compares boxes in the plane, and does not look across the end of a circle.

        Parameters
        ----------
        chosen : ndarray of int64
            The positions of queries that have a focus.
        bounds : ndarray of float64, shape (N, 2n)
            The boxes.
        """
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
        """Return the members of ranges before and now, given the queries' positions at both times.

        See `crossings.crossed`; positions are those of queries.
        """
        positions = find(were.queries.focused, ranges[0])[0], find(self.queries.focused, ranges[1])[0]
        failed = Failures()
        old, new = crossed(were.ranges, self.ranges, positions, elements, keys, chosen, failed)
        failures.add(failed, self.queries.focused)
        return were._of_queries(old), self._of_queries(new)

    def _of_queries(self, pairs):
        """Return pairs of elements and ranges as pairs of elements and queries."""
        return Pairs(pairs.row, self.queries.focused[pairs.query], pairs.partner, pairs.distance)


def _is_bordered(plan, space):
    ranges = kind_of(plan).evaluation(plan) is Evaluation.MOVING_RANGE
    if not ranges or plan.emit != "membership" or plan.where or plan.filters:
        return False
    upright = isinstance(plan.shape, Rectangle) and np.isfinite(plan.shape.half_widths[2:]).any()
    return not upright and np.isinf(plan.area).all()


def _evaluated_as(evaluation, plans):
    chosen = (query for query, plan in enumerate(plans) if kind_of(plan).evaluation(plan) is evaluation)
    return np.fromiter(chosen, dtype=np.int64)


def _within(ordered, values):
    """Return the positions of values in an ordered array; values that it lacks are left out."""
    position, present = find(ordered, np.sort(values))
    return position[present]
