"""Continuous joins of a stream with the last known elements of a stream, evaluated together.

References
----------
BBoxDB Streams (2022), section 4.4.2: the query ``q_cj(S, R, alpha, sigma(theta, lambda))`` where R is a stream's table.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from time import perf_counter

import numpy as np
import shapely

from streaming.elements import stream_number
from streaming.kinds.base import Prediction
from streaming.kinds.join.plan import JoinPlan
from streaming.kinds.range.plan import RangePlan
from streaming.kinds.registry import kind_of
from streaming.operators.boxes import in_plane, intersects, points_of
from streaming.operators.candidates import JoinCandidates, KnownPairs, that_may_meet
from streaming.operators.closest import Closest, Motions, due_us, may_come_close, not_too_old, satisfying, ways_of
from streaming.operators.comparison import Comparison
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.features import IndexedBoxes
from streaming.operators.judging import Judging
from streaming.operators.lines import Look
from streaming.operators.meetings import Meetings, is_first
from streaming.operators.metres import within_reach
from streaming.operators.range_query import RangeQueries
from streaming.operators.runs import expand, find
from streaming.operators.stream_reach import reached
from streaming.spaces import Space
from streaming.udf import evaluate_pair
from streaming.udf.base import shapes_of


class StreamJoins:
    """An immutable set of joins with streams, ready to be matched.

    Parameters
    ----------
    plans : sequence of JoinPlan, length Q
    space : Space

    Attributes
    ----------
    keeps : ndarray of bool, shape (Q,)
        Which joins keep their answer.
    predicting : ndarray of bool, shape (Q,)
        Which of them compare where objects will be.
    horizons_s : frozenset of float
        For how many seconds the ways of objects are looked at.
    """

    def __init__(self, plans: Sequence[JoinPlan], space: Space) -> None:
        self.space = space
        self.keeps = np.array([plan.emit != "all" for plan in plans], dtype=bool)
        self.predicting = np.array([_prediction(plan) is not None for plan in plans], dtype=bool)
        groups: dict[Hashable, list[int]] = {}
        for query, plan in enumerate(plans):
            groups.setdefault(_way(plan), []).append(query)
        self._groups = [
            (_Predicting if self.predicting[group[0]] else _Group)(
                [plans[query] for query in group], np.array(group), space
            )
            for group in groups.values()
        ]
        self.horizons_s = frozenset(group.asked.ahead_s for group in self._groups if isinstance(group, _Predicting))

    def pairs(
        self,
        elements: Elements,
        key_hash: np.ndarray,
        left: np.ndarray,
        right: np.ndarray,
        failures: Failures | None = None,
    ) -> Meetings:
        """Return the pairs of elements that satisfy the joins; an object is never a pair with itself.

        Parameters
        ----------
        elements : Elements, N of them
        key_hash : ndarray of int64, shape (N,)
            The `key_hash` of each element.
        left, right : ndarray of int64
            The rows to compare as elements of a join's stream, and the rows to compare as their partners.
        failures : Failures, optional
            Receives the errors of user-defined filters, and what joins cost, by their positions.

        Returns
        -------
        Meetings
            With positions in `elements` and in `plans`.
        """
        return self._found(elements, key_hash, failures, lambda group: group.near(elements, left, right))

    def judged(
        self,
        elements: Elements,
        key_hash: np.ndarray,
        row: np.ndarray,
        partner: np.ndarray,
        failures: Failures | None = None,
    ) -> Meetings:
        """Return those of some pairs of elements that satisfy the joins, for callers that know which pairs may.

        Parameters
        ----------
        elements, key_hash, failures
            As `pairs` takes them.
        row, partner : ndarray of int64, shape (P,)
            Distinct pairs: the positions of an element of a join's stream, and of a partner.
        """
        return self._found(elements, key_hash, failures, lambda group: group.among(elements, row, partner))

    def _found(
        self,
        elements: Elements,
        key_hash: np.ndarray,
        failures: Failures | None,
        candidates: "Callable[[_Group], JoinCandidates | KnownPairs]",
    ) -> Meetings:
        """Return the pairs that satisfy the joins, given a function that returns the pairs that may, by group.

        Samples of those with many pairs come first, in half of the room at most. If there may be room for each, those
        that may have the fewest pairs come next. Once there is no room, the others are only counted.
        """
        failures, found = failures or Failures(), [Meetings.none(self.space)]
        asked = [
            Judging(candidates(group), partial(group.judged, elements, key_hash), group.queries, group.work, failures)
            for group in self._groups
        ]
        asked.sort(key=lambda one: one.pairs.most)
        for one in reversed(asked):
            if one.may_be_too_many and 2 * failures.allowance.left > failures.allowance.most:
                one.go_on()
        there_may_be_room = not any(one.failed.alone for one in asked)
        for one in asked:
            if there_may_be_room:
                one.finish()
            found += one.found
            failures.add(one.failed, one.queries)
        return Meetings.together(found)

    def meetings(self, row: np.ndarray, query: np.ndarray, partner: np.ndarray, elements: Elements) -> Meetings:
        """Return pairs that are known to satisfy joins, without their distances.

        Parameters
        ----------
        row, query, partner : ndarray of int64, shape (P,)
            As in `Meetings`.
        elements : Elements
        """
        reach, other = np.empty((2, len(row), 2 * self.space.n))
        due_us = np.full(len(row), np.nan)
        for group in self._groups:
            mine = np.flatnonzero(np.isin(query, group.queries))
            if len(mine):
                asked = find(group.queries, query[mine])[0]
                reach[mine], other[mine] = group.sides(elements, row[mine], partner[mine], asked)
                due_us[mine] = group.measured(elements, row[mine], partner[mine])[1]
        return Meetings(row, query, partner, np.full(len(row), np.nan), reach, other, due_us)


class _Group:
    """Joins with the same two streams that compare in the same way."""

    # As how many pairs one counts.
    work = 1

    def __init__(self, plans: Sequence[JoinPlan], queries: np.ndarray, space: Space) -> None:
        self.plan, self.plans, self.queries, self.space = plans[0], plans, queries, space
        self.stream, self.partner_stream = stream_number(self.plan.stream), stream_number(self.plan.partners.name)
        self._elements = RangeQueries([_of_elements(plan) for plan in plans], space)
        self._partners = RangeQueries([_of_partners(plan, space) for plan in plans], space)
        self._choosy = any(plan.partners.where or plan.partners.filters for plan in plans)

    def near(self, elements: Elements, left: np.ndarray, right: np.ndarray) -> JoinCandidates | KnownPairs:
        """Return the pairs (row, row of the partner) of the group's streams whose reach meets the partner's box."""
        rows = left[elements.stream[left] == self.stream]
        partners = right[elements.stream[right] == self.partner_stream]
        return self._meeting(rows, self.reach(elements.bounds[rows]), partners, elements.bounds[partners])

    def _meeting(
        self, rows: np.ndarray, reach: np.ndarray, partners: np.ndarray, others: np.ndarray
    ) -> JoinCandidates | KnownPairs:
        """Return the pairs of elements and partners, at rows and given their boxes, whose boxes meet."""
        if len(rows) and len(partners):
            chosen, near = that_may_meet(reach, others, self.space)
            if chosen.any() and near.any():
                return JoinCandidates(rows[chosen], reach[chosen], partners[near], others[near], self.space)
        return KnownPairs(rows[:0], partners[:0])

    def among(self, elements: Elements, row: np.ndarray, partner: np.ndarray) -> KnownPairs:
        """Return those of some pairs that `near` would return."""
        mine = (elements.stream[row] == self.stream) & (elements.stream[partner] == self.partner_stream)
        row, partner = row[mine], partner[mine]
        meet = intersects(self.reach(elements.bounds[row]), np.arange(len(row)), elements.bounds, partner, self.space)
        return KnownPairs(row[meet], partner[meet])

    def judged(
        self,
        elements: Elements,
        key_hash: np.ndarray,
        row: np.ndarray,
        partner: np.ndarray,
        failures: Failures,
        began: float,
    ) -> Meetings:
        """Return those of some pairs that satisfy the joins, of two different objects; `began` is when it was asked."""
        apart = key_hash[row] != key_hash[partner]
        look = failures.looking(np.arange(len(self.plans)))
        row, partner, distance = self._compared(elements, row[apart], partner[apart], look)
        failures.share(np.arange(len(self.plans)), perf_counter() - began)
        if not len(row):
            return Meetings.none(self.space)
        pair, query = self._passing(elements, row, partner, failures)
        return self._met(elements, row[pair], query, partner[pair], distance[pair])

    def _met(
        self, elements: Elements, row: np.ndarray, query: np.ndarray, partner: np.ndarray, distance: np.ndarray
    ) -> Meetings:
        """Return pairs that satisfy the joins at positions in `plans`."""
        due_us = self.measured(elements, row, partner)[1]
        return Meetings(row, self.queries[query], partner, distance, *self.sides(elements, row, partner, query), due_us)

    def sides(
        self, elements: Elements, row: np.ndarray, partner: np.ndarray, query: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the two boxes of pairs, for joins at positions in `plans`, that decide which region reports them."""
        return self.reach(elements.bounds[row]), elements.bounds[partner]

    def measured(self, elements: Elements, row: np.ndarray, partner: np.ndarray) -> tuple[Closest | None, np.ndarray]:
        """Return where pairs are closest, and when they are past it; None and NaN unless that is predicted."""
        return None, np.full(len(row), np.nan)

    def _compared(
        self, elements: Elements, row: np.ndarray, partner: np.ndarray, look: Look
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the pairs (row, row of the partner, distance) that satisfy the predicate, area and filters aside."""
        if not len(row) or self.plan.partners.predicate == "boxes":
            return row, partner, np.full(len(row), np.nan)
        (rows, at), (others, feature) = (np.unique(side, return_inverse=True) for side in (row, partner))
        comparison = Comparison(self.plan, self.space, _Partners(elements, others, self.space))
        at, feature, distance = comparison.judged(elements, rows, at, feature, look)
        return rows[at], others[feature], distance

    def reach(self, bounds: np.ndarray) -> np.ndarray:
        """Return the boxes (K, 2n) that a partner's box must meet, given the elements' own."""
        return reached(self.plan, bounds, self.space)

    def _passing(
        self,
        elements: Elements,
        row: np.ndarray,
        partner: np.ndarray,
        failures: Failures,
        judged: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (pair, position in `plans`) for each join whose area and filters the elements of the pair pass.

        `judged` tells of which of them the join may look at the pair; without it, of all.
        """
        rows, place = np.unique(row, return_inverse=True)
        found, query = self._elements.match(elements.at(rows), failures)
        start, stop = np.searchsorted(found, place, "left"), np.searchsorted(found, place, "right")
        pair, position = expand(start, stop - start)
        query = query[position]
        if self._choosy:
            rows, place = np.unique(partner[pair], return_inverse=True)
            failed = Failures()
            found, passing = self._partners.match(elements.at(rows), failed)
            # A partner filter sees the partners of all joins. Its failure matters only to joins that have a pair here.
            for number in np.intersect1d(list(failed.errors), query):
                failures.note(query[query == number], failed.errors[int(number)])
            failures.charge(*failed.costs())
            keep = find(found * len(self.plans) + passing, place * len(self.plans) + query)[1]
            pair, query = pair[keep], query[keep]
        if judged:
            keep = judged(pair, query)
            pair, query = pair[keep], query[keep]
        return self._judged(elements, row, partner, pair, query, failures)

    def _judged(
        self,
        elements: Elements,
        row: np.ndarray,
        partner: np.ndarray,
        pair: np.ndarray,
        query: np.ndarray,
        failures: Failures,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs and their joins, without those that do not pass the pair filters of the join."""
        keep = np.ones(len(pair), dtype=bool)
        for number, plan in enumerate(self.plans):
            mine = np.flatnonzero(query == number) if plan.partners.pair_filters else np.empty(0, np.int64)
            for entry in plan.partners.pair_filters:
                began = perf_counter()
                batches = elements.batch(row[pair[mine]]), elements.batch(partner[pair[mine]])
                judged = evaluate_pair(entry.udf, *batches, entry.argument)
                failures.note(query[mine], judged.error)
                failures.share(query[mine], perf_counter() - began)
                keep[mine] = judged.passes
                mine = mine[keep[mine]]
        return pair[keep], query[keep]


class _Predicting(_Group):
    """Joins of the same two streams that compare where objects will be.

    Whatever their limits are, a pair is compared once, with the largest ones, and then judged by those of each join.
    """

    # Measured: to find where two ways are closest takes as long as to measure so many distances.
    work = 8

    def __init__(self, plans: Sequence[JoinPlan], queries: np.ndarray, space: Space) -> None:
        super().__init__(plans, queries, space)
        names = "within_m", "within_s", "gap_s", "mirrored"
        asked = [_prediction(plan) for plan in plans]
        self._within_m, self._within_s, self._gap_s, self._mirrored = (
            np.array([getattr(one, name) for one in asked]) for name in names
        )
        self.asked = Prediction(
            self._within_m.max(), self._within_s.max(), self._gap_s.max(), bool(self._mirrored.all())
        )

    def judged(
        self,
        elements: Elements,
        key_hash: np.ndarray,
        row: np.ndarray,
        partner: np.ndarray,
        failures: Failures,
        began: float,
    ) -> Meetings:
        """As in `_Group`. Of two pairs that mirror each other, one is told; see `is_first`."""
        apart = key_hash[row] != key_hash[partner]
        row, partner = row[apart], partner[apart]
        near = np.flatnonzero(may_come_close(elements, row, partner, self.asked))
        row, partner = row[near], partner[near]
        found = Closest.of(elements, row, partner)
        close = np.flatnonzero(satisfying(found, self.asked.within_m, self.asked.within_s))
        row, partner, found = row[close], partner[close], found.take(close)
        failures.share(np.arange(len(self.plans)), perf_counter() - began)
        if not len(row):
            return Meetings.none(self.space)

        def within(pair: np.ndarray, query: np.ndarray) -> np.ndarray:
            soon = satisfying(found.take(pair), self._within_m[query], self._within_s[query])
            return soon & not_too_old(elements, row[pair], partner[pair], self._gap_s[query])

        pair, query = self._passing(elements, row, partner, failures, within)
        told = self._told(elements, row, partner, pair, query)
        pair, query = pair[told], query[told]
        row, partner, found = row[pair], partner[pair], found.take(pair)
        # The distance is told with the place and the time, if they are told: see `closest.Closest`.
        distance, due = np.full(len(row), np.nan), due_us(found, elements, row, partner)
        return Meetings(row, self.queries[query], partner, distance, *self.sides(elements, row, partner, query), due)

    def _told(
        self,
        elements: Elements,
        row: np.ndarray,
        partner: np.ndarray,
        pair: np.ndarray,
        query: np.ndarray,
    ) -> np.ndarray:
        """Tell which pairs of joins are told, since their mirrors are not, bool of shape (P,)."""
        told = np.ones(len(pair), dtype=bool)
        if self.stream != self.partner_stream:
            return told
        once = np.flatnonzero(~self._mirrored[query])
        if not len(once):
            return told
        back = once[~is_first(elements, row[pair[once]], partner[pair[once]])]
        pairs, place = np.unique(pair[back], return_inverse=True)
        mirror, passing = self._passing(elements, partner[pairs], row[pairs], Failures())
        count = len(self.plans)
        told[back[np.isin(place * count + query[back], mirror * count + passing)]] = False
        return told

    def near(self, elements: Elements, left: np.ndarray, right: np.ndarray) -> JoinCandidates | KnownPairs:
        rows, reach = self._ways(elements, left[elements.stream[left] == self.stream], self.asked.within_m)
        partners, others = self._ways(elements, right[elements.stream[right] == self.partner_stream])
        return self._meeting(rows, reach, partners, others)

    def among(self, elements: Elements, row: np.ndarray, partner: np.ndarray) -> KnownPairs:
        mine = (elements.stream[row] == self.stream) & (elements.stream[partner] == self.partner_stream)
        return KnownPairs(row[mine], partner[mine])

    def _ways(
        self, elements: Elements, rows: np.ndarray, within_m: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return those of some elements that are predicted, and the boxes about their ways."""
        ways = ways_of(elements, rows, self.asked.ahead_s)
        predicted = np.flatnonzero(~np.isnan(ways[:, 0]))
        rows, ways = rows[predicted], ways[predicted]
        return rows, ways if within_m is None else within_reach(ways, within_m, self.space)

    def sides(
        self, elements: Elements, row: np.ndarray, partner: np.ndarray, query: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        ahead_s = (self._within_s + self._gap_s)[query]
        ways = [Motions.of(elements, side).ways(ahead_s, self.space.n) for side in (row, partner)]
        return within_reach(ways[0], self._within_m[query], self.space), ways[1]

    def measured(self, elements: Elements, row: np.ndarray, partner: np.ndarray) -> tuple[Closest, np.ndarray]:
        found = Closest.of(elements, row, partner)
        return found, due_us(found, elements, row, partner)


class _Partners(IndexedBoxes):
    """Elements that take the place of features in a comparison, indexed; see `features.Features`."""

    def __init__(self, elements: Elements, rows: np.ndarray, space: Space) -> None:
        super().__init__(elements.bounds[rows], space)
        self.rows, self._elements = rows, elements

    def points(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self._elements.has_geometries else points_of(in_plane(self.bounds[rows], self.space))

    def shapes(self, rows: np.ndarray) -> np.ndarray:
        unique, place = np.unique(rows, return_inverse=True)
        shapes = shapes_of(self._elements.batch(self.rows[unique]))
        shapely.prepare(shapes)
        return shapes[place]

    def spans(self, rows: np.ndarray) -> np.ndarray:
        return shapely.bounds(self.shapes(rows))[:, [0, 2]]


def _way(plan: JoinPlan) -> Hashable:
    partners = plan.partners
    if _prediction(plan):
        return plan.stream, partners.name
    return plan.stream, partners.name, partners.predicate, partners.distance, plan.transform


def _prediction(plan: JoinPlan) -> Prediction | None:
    return kind_of(plan).prediction(plan)


def _of_elements(plan: JoinPlan) -> RangePlan:
    return RangePlan(plan.stream, plan.area, plan.area, where=plan.where, filters=plan.filters)


def _of_partners(plan: JoinPlan, space: Space) -> RangePlan:
    whole = tuple(space.whole().tolist())
    return RangePlan(plan.partners.name, whole, whole, where=plan.partners.where, filters=plan.partners.filters)
