"""Distributed queries, evaluated together: queries that move, and queries whose answers need several servers.

References
----------
PLACE* (2007), sections 4 and 5: participating servers answer ranges locally, for every kind of query.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streaming.kinds.aggregate.plan import AggregatePlan
from streaming.kinds.around import Focus, Rectangle
from streaming.kinds.base import Evaluation
from streaming.kinds.knn.plan import NearestPlan
from streaming.kinds.moving_range.plan import MovingRangePlan
from streaming.kinds.registry import kind_of
from streaming.operators.boxes import intersects
from streaming.operators.crossings import RangeBorders
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.focal_ranges import FocalRanges, PlacedRanges, SomeRanges
from streaming.operators.places import distances
from streaming.operators.range_query import RangeQueries
from streaming.operators.runs import find
from streaming.operators.spatial_join import Pairs
from streaming.operators.stream_boxes import Look
from streaming.spaces import Space

DistributedPlan = MovingRangePlan | NearestPlan | AggregatePlan

# A box of the plane that contains all elements.
EVERYWHERE = np.array([[-np.inf, -np.inf, np.inf, np.inf]])


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
    k : ndarray of int64, shape (Q,)
        How many neighbours each kNN query asks for; 0 for the others.
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
        self.k = np.array([getattr(plan, "k", 0) for plan in plans], dtype=np.int64)
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

    def fixed_ranges(self, chosen: np.ndarray) -> tuple[np.ndarray, RangeQueries]:
        """Return those of some queries that have a fixed range: their positions, ascending, and their ranges."""
        asked = np.intersect1d(chosen, self._fixed)
        if len(asked) == len(self._fixed):
            return asked, self._range_queries
        return asked, RangeQueries([self._fixed_plans[query] for query in asked.tolist()], self.space)


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
        return self.some(np.arange(len(self.queries)) if chosen is None else chosen).match(elements, keys, failures)

    def some(self, chosen: np.ndarray) -> "SomeQueries":
        """Return the queries at some positions, ready to be matched with several tables of elements."""
        return SomeQueries(self, chosen)

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

    def borders(self, were: "PlacedQueries", before: np.ndarray, now: np.ndarray) -> "QueryBorders":
        """Return the borders of the same queries before and now, given their positions at both times."""
        positions = find(were.queries.focused, before)[0], find(self.queries.focused, now)[0]
        return QueryBorders(were, self, RangeBorders(were.ranges, self.ranges, *positions))

    def _of_queries(self, pairs: Pairs) -> Pairs:
        """Return pairs of elements and ranges as pairs of elements and queries."""
        return Pairs(pairs.row, self.queries.focused[pairs.query], pairs.partner, pairs.distance)


@dataclass(frozen=True)
class SomeQueries:
    """Some of the queries, at the positions `chosen`; the indices over them are made once."""

    placed: PlacedQueries
    chosen: np.ndarray

    @functools.cached_property
    def _focused(self) -> SomeRanges:
        return self.placed.ranges.some(_within(self.placed.queries.focused, self.chosen))

    @functools.cached_property
    def _fixed(self) -> tuple[np.ndarray, RangeQueries]:
        return self.placed.queries.fixed_ranges(self.chosen)

    def match(self, elements: Elements, keys: np.ndarray, failures: Failures) -> Pairs:
        """Return the pairs of elements and queries in whose range they lie.

        For the parameters see `SomeRanges.match`; positions are those of queries.
        """
        queries = self.placed.queries
        if not len(self.chosen) or not len(elements):
            return Pairs.without_partners(*np.empty((2, 0), dtype=np.int64))
        failed = Failures()
        pairs = self.placed._of_queries(self._focused.match(elements, keys, failed))
        failures.add(failed, queries.focused)
        return Pairs.together([pairs, self._in_fixed(elements, failures)])

    def search(self, look: Look, failures: Failures) -> tuple[Pairs, np.ndarray]:
        """Return the same pairs for the elements of an index, and the `key_hash` of the elements that it found.

        Fixed ranges are matched with all elements.
        """
        failed = Failures()
        pairs, keys = self._focused.search(look, failed)
        pairs = self.placed._of_queries(pairs)
        failures.add(failed, self.placed.queries.focused)
        if not len(self._fixed[0]):
            return pairs, keys
        everything = look(EVERYWHERE)
        fixed = self._in_fixed(everything.elements, failures)
        fixed = replace(fixed, row=fixed.row + len(keys))
        return Pairs.together([pairs, fixed]), np.r_[keys, everything.keys]

    def _in_fixed(self, elements: Elements, failures: Failures) -> Pairs:
        """Return the pairs of elements and fixed ranges."""
        asked, ranges = self._fixed
        if not len(asked):
            return Pairs.without_partners(*np.empty((2, 0), dtype=np.int64))
        failed = Failures()
        row, query = ranges.match(elements, failed)
        failures.add(failed, asked)
        return Pairs.without_partners(row, asked[query])


@dataclass(frozen=True)
class QueryBorders:
    """The borders of queries that lasted; see `crossings.RangeBorders`, but positions are those of queries."""

    were: PlacedQueries
    are: PlacedQueries
    borders: RangeBorders

    def crossed_by(self, old: Elements, new: Elements, keys: np.ndarray, failures: Failures) -> tuple[Pairs, Pairs]:
        """Return the members before and now of ranges whose border elements may have crossed by moving."""
        failed = Failures()
        return self._of_queries(*self.borders.crossed_by(old, new, keys, failed), failed, failures)

    def crossing(self, look: Look, rested: Callable, failures: Failures) -> tuple[Pairs, Pairs, np.ndarray]:
        """Return the members before and now of ranges whose border may have crossed elements that rest."""
        failed = Failures()
        old, new, keys = self.borders.crossing(look, rested, failed)
        return *self._of_queries(old, new, failed, failures), keys

    def _of_queries(self, old: Pairs, new: Pairs, failed: Failures, failures: Failures) -> tuple[Pairs, Pairs]:
        failures.add(failed, self.are.queries.focused)
        return self.were._of_queries(old), self.are._of_queries(new)


def _is_bordered(plan: Any, space: Space) -> bool:
    ranges = kind_of(plan).evaluation(plan) is Evaluation.MOVING_RANGE
    if not ranges or plan.emit != "membership" or plan.where or plan.filters:
        return False
    upright = isinstance(plan.shape, Rectangle) and np.isfinite(plan.shape.half_widths[2:]).any()
    return bool(not upright and np.isinf(plan.area).all())


def _evaluated_as(evaluation: Evaluation, plans: Sequence[DistributedPlan]) -> np.ndarray:
    chosen = (query for query, plan in enumerate(plans) if kind_of(plan).evaluation(plan) is evaluation)
    return np.fromiter(chosen, dtype=np.int64)


def _within(ordered: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the positions of values in an ordered array; values that it lacks are left out."""
    position, present = find(ordered, np.sort(values))
    return position[present]
