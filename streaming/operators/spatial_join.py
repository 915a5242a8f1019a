"""Continuous spatial joins with features, evaluated together: boxes first, then the real geometries.

References
----------
BBoxDB Streams (2022), section 4.4.2: the query ``q_cj(S, R, alpha, sigma(theta, lambda))``.
J. Patel, D. DeWitt, "Partition Based Spatial-Merge Join", SIGMOD 1996: a filter step on boxes, then refinement.
"""

import copy
import functools
import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from streaming.kinds.join.partners import Partners
from streaming.kinds.join.plan import JoinPlan
from streaming.kinds.parts import Filter, UserFilter
from streaming.kinds.range.plan import RangePlan
from streaming.operators.allowance import PIECE
from streaming.operators.comparison import Comparison
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.features import Features
from streaming.operators.gathered import GatheredFeatures
from streaming.operators.layer import LayerVersion
from streaming.operators.numbered import Numbered
from streaming.operators.runs import expand, find, last_of_runs
from streaming.spaces import Space
from streaming.udf import evaluate_pair

FeaturesOf = Callable[[str], LayerVersion]


@dataclass(frozen=True)
class Pairs:
    """Pairs of elements and queries, and their partners where the query is a join.

    Parameters
    ----------
    row, query : ndarray of int64, shape (P,)
        The positions of elements and of queries.
    partner : ndarray of int64, shape (P,)
        The `key_hash` of the feature; 0 for a query that is no join.
    distance : ndarray of float64, shape (P,)
        The distance of the partner in a join by ``dwithin``, or of the place of a search region; otherwise NaN.
    """

    row: np.ndarray
    query: np.ndarray
    partner: np.ndarray
    distance: np.ndarray

    @classmethod
    def none(cls) -> "Pairs":
        """Return no pairs."""
        return cls.without_partners(*np.empty((2, 0), dtype=np.int64))

    @classmethod
    def without_partners(cls, row: np.ndarray, query: np.ndarray) -> "Pairs":
        """Return the pairs of queries that are no joins, given their rows and queries, (P,) each."""
        return cls(row, query, np.zeros(len(row), dtype=np.int64), np.full(len(row), np.nan))

    @classmethod
    def together(cls, parts: Sequence["Pairs"]) -> "Pairs":
        """Return the pairs of all parts, one part after the other; needs at least one part."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in NAMES))

    def merged(self, more: "Pairs") -> "Pairs":
        """Return these pairs and more, preferably fewer, pairs; all are ordered by row, then query."""
        start, stop = np.searchsorted(self.row, more.row, "left"), np.searchsorted(self.row, more.row, "right")
        of, place = expand(start, stop - start)
        place = start + np.bincount(of[self.query[place] < more.query[of]], minlength=len(start))
        return Pairs(*(np.insert(getattr(self, name), place, getattr(more, name)) for name in NAMES))

    def take(self, rows: np.ndarray) -> "Pairs":
        """Return the pairs at positions, or where a mask is true."""
        return Pairs(self.row[rows], self.query[rows], self.partner[rows], self.distance[rows])


NAMES = tuple(Pairs.__dataclass_fields__)


@dataclass(frozen=True)
class _Condition:
    """The filters of features and pairs that some joins of a comparison have in common, and these joins by range.

    The joins of the range ``ranges[i]`` are ``join[first[i] : first[i] + count[i]]``; `ranges` is ascending.
    """

    where: str
    filters: tuple[Filter, ...]
    pair_filters: tuple[UserFilter, ...]
    join: np.ndarray
    ranges: np.ndarray
    first: np.ndarray
    count: np.ndarray

    @classmethod
    def of(
        cls, asked: tuple[str, tuple[Filter, ...], tuple[UserFilter, ...]], join: np.ndarray, ranges: np.ndarray
    ) -> "_Condition":
        """Return a condition, given its filters, its joins, and the range of each join, ascending."""
        ranges, first, count = np.unique(ranges, return_index=True, return_counts=True)
        return cls(*asked, join, ranges, first, count)

    def members(self, number: np.ndarray, kept: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the joins of ranges (K,) that are kept: the position of its range in `number`, and the join."""
        place, known = find(self.ranges, number)
        known = np.flatnonzero(known)
        member, position = expand(self.first[place[known]], self.count[place[known]])
        member, join = known[member], self.join[position]
        return (member, join) if kept is None else (member[kept[join]], join[kept[join]])

    def asks(self, number: np.ndarray, kept: np.ndarray | None) -> np.ndarray:
        """Tell which ranges (K,) have a join that is kept, bool of shape (K,)."""
        if kept is None:
            return find(self.ranges, number)[1]
        ranges, place = np.unique(number, return_inverse=True)
        return (np.bincount(self.members(ranges, kept)[0], minlength=len(ranges)) > 0)[place]

    def note(self, failures: Failures, number: np.ndarray, kept: np.ndarray | None, error: str | None) -> None:
        """Note that a filter failed for the joins of some ranges; do nothing if there is no error."""
        if error is not None:
            failures.note(self.members(np.unique(number), kept)[1], error)


class SpatialJoins:
    """An immutable set of joins, a `Refinement`.

    Joins share work: a range, if stream, area, filters of elements and `emit` are the same; the comparison, if they
    compare in the same way (layer, predicate, distance and transformations); and the evaluation of equal filters of
    features.

    Parameters
    ----------
    plans : sequence of JoinPlan, length J
    space : Space

    Attributes
    ----------
    range : Numbered, J rows
        The range of each join; joins of equal ranges share one. Its values stand for the ranges.
    """

    def __init__(self, plans: Sequence[JoinPlan], space: Space) -> None:
        ways = [_way(plan) for plan in plans]
        self._use(
            space,
            Numbered.of([_key(self.range_of(plan)) for plan in plans]),
            Numbered.of(ways),
            Numbered.of([_conditions(plan.partners) for plan in plans]),
            dict(zip(ways, plans, strict=True)),
        )

    @staticmethod
    def range_of(plan: JoinPlan) -> RangePlan:
        """Return the range query over a join's area, which finds the elements that the join compares."""
        return RangePlan(plan.stream, plan.area, plan.area, where=plan.where, filters=plan.filters, emit=plan.emit)

    def _use(
        self, space: Space, ranges: Numbered, way: Numbered, condition: Numbered, plan_of: Mapping[Hashable, JoinPlan]
    ) -> None:
        self.space, self.range, self._way, self._condition, self._plan_of = (space, ranges, way, condition, plan_of)
        self._kept: np.ndarray | None = None

    @classmethod
    def _of(
        cls,
        space: Space,
        ranges: Numbered,
        way: Numbered,
        condition: Numbered,
        plan_of: Mapping[Hashable, JoinPlan],
    ) -> "SpatialJoins":
        joins = cls.__new__(cls)
        joins._use(space, ranges, way, condition, plan_of)
        return joins

    def take(self, joins: np.ndarray) -> tuple["SpatialJoins", np.ndarray]:
        """Return the set of the joins at positions, in that order, and the former number of each of its ranges."""
        ranges, used = self.range.take(joins).used()
        way, condition = (column.take(joins).used()[0] for column in (self._way, self._condition))
        return self._of(self.space, ranges, way, condition, {name: self._plan_of[name] for name in way.values}), used

    @classmethod
    def together(cls, parts: Sequence["SpatialJoins"]) -> tuple["SpatialJoins", np.ndarray]:
        """Return the joins of all parts, and the number of each range among those of all parts, one after the other."""
        ranges, source = Numbered.together([part.range for part in parts])
        way, condition = (
            Numbered.together([getattr(part, name) for part in parts])[0] for name in ("_way", "_condition")
        )
        plan_of = {way: plan for part in parts for way, plan in part._plan_of.items()}
        return cls._of(parts[0].space, ranges, way, condition, plan_of), source

    def masked(self, kept: np.ndarray) -> "SpatialJoins":
        """Return the set such that only joins that are kept (bool, shape (J,)) have pairs; positions stay."""
        _ = self._groups  # which both share from now on
        joins = copy.copy(self)
        joins._kept = kept
        return joins

    @functools.cached_property
    def _groups(self) -> list[tuple[int, JoinPlan, list[_Condition]]]:
        """The number of each way to compare, a plan that compares so, and the conditions of the joins that do."""
        order = np.lexsort((self.range.number, self._condition.number, self._way.number))
        way, condition = self._way.number[order], self._condition.number[order]
        start = 1 + np.flatnonzero((way[1:] != way[:-1]) | (condition[1:] != condition[:-1]))
        groups: dict[int, list[_Condition]] = {}
        for join in np.split(order, start) if len(order) else ():
            asked = _Condition.of(
                self._condition.values[self._condition.number[join[0]]], join, self.range.number[join]
            )
            groups.setdefault(int(self._way.number[join[0]]), []).append(asked)
        return [(way, self._plan_of[self._way.values[way]], conditions) for way, conditions in groups.items()]

    def _comparisons(self, features_of: FeaturesOf) -> Iterator[tuple[int, JoinPlan, LayerVersion, list[_Condition]]]:
        """Yield each way to compare: its number, a plan that does so, the layer, and the conditions of the joins."""
        for way, plan, conditions in self._groups:
            yield way, plan, features_of(plan.partners.layer), conditions

    def of(self, number: int) -> np.ndarray:
        """Return the positions of the joins of a range, given its number; int64."""
        asking = [asked for _, _, conditions in self._groups for asked in conditions]
        return np.concatenate([asked.members(np.array([number]), self._kept)[1] for asked in asking])

    def refined(
        self, elements: Elements, row: np.ndarray, number: np.ndarray, features_of: FeaturesOf, failures: Failures
    ) -> Pairs:
        """Join the elements that satisfy ranges with their partners.

        Parameters
        ----------
        elements : Elements
        row, number : ndarray of int64, shape (P,)
            The positions of elements, and the numbers of the ranges that they satisfy; ordered by row.
        features_of : callable
            Returns a `LayerVersion` by its name.
        failures : Failures
            Receives the errors of user-defined filters, and what joins cost, by their positions.

        Returns
        -------
        Pairs
            In any order.
        """
        found = [Pairs.none()]
        if not len(row):
            return found[0]
        for _, plan, layer, conditions in self._comparisons(features_of):
            asked = [condition.asks(number, self._kept) for condition in conditions]
            mine = np.flatnonzero(np.any(asked, axis=0))
            if len(mine):
                began = perf_counter()
                found += self._of_group((plan, layer, conditions), elements, row[mine], number[mine], failures)
                ranges, count = np.unique(number[mine], return_counts=True)
                self._share(failures, conditions, ranges, count, perf_counter() - began)
        return Pairs.together(found)

    def charge(self, failures: Failures, ranges: np.ndarray, seconds: np.ndarray) -> None:
        """Charge the joins with the seconds that ranges took, (R,) each; joins of a range share evenly."""
        asking = [condition for _, _, conditions in self._groups for condition in conditions]
        members = [condition.members(ranges, self._kept) for condition in asking] if len(ranges) else []
        sharing = np.zeros(len(ranges), dtype=np.int64)
        for range_, _ in members:
            sharing += np.bincount(range_, minlength=len(ranges))
        for range_, join in members:
            failures.charge(join, seconds[range_] / sharing[range_])

    def lies(self, elements: Elements, pairs: Pairs, features_of: FeaturesOf) -> np.ndarray:
        """Tell which pairs satisfy the predicate of their join, area and filters aside: bool of shape (P,)."""
        lies = np.zeros(len(pairs.row), dtype=bool)
        way_of = self._way.number[pairs.query]
        for way, plan, layer, _ in self._comparisons(features_of):
            mine = np.flatnonzero(way_of == way)
            for position, features, feature in layer.located(pairs.partner[mine]):
                rows, place = np.unique(pairs.row[mine[position]], return_inverse=True)
                at, partner, _ = Comparison(plan, self.space, features).measured(elements, rows)
                size = len(features)
                lies[mine[position]] = find(np.sort(at * size + partner), place * size + feature)[1]
        return lies

    def reached(self, bounds: np.ndarray, features_of: FeaturesOf) -> np.ndarray:
        """Tell which elements, given their boxes (N, 2n), may have a partner in one of the joins: bool of (N,)."""
        reached = np.zeros(len(bounds), dtype=bool)
        for _, plan, layer, _ in self._comparisons(features_of):
            left = np.flatnonzero(~reached)
            for comparison, rows in layer.comparisons(plan, bounds[left]):
                reached[left[rows[comparison.reached(bounds[left[rows]])]]] = True
        return reached

    def _of_group(
        self,
        group: tuple[JoinPlan, LayerVersion, list[_Condition]],
        elements: Elements,
        row: np.ndarray,
        number: np.ndarray,
        failures: Failures,
    ) -> Iterator[Pairs]:
        """Yield the pairs of joins that compare in the same way, some for each condition, page and piece.

        Once the step has no room, the rest is only counted.
        """
        plan, layer, conditions = group
        rows = row[last_of_runs(row)]
        for comparison, some in layer.comparisons(plan, elements.bounds[rows]):
            for part in comparison.pieces(elements, rows[some], PIECE):
                near = slice(None) if len(part) == len(rows) else find(part, row)[1]
                if failures.allowance.has_room:
                    yield from self._of_page(comparison, conditions, elements, (row[near], number[near]), failures)
                else:
                    failures.miss(self._asking(conditions, number[near]), comparison.most(elements, part))

    def _asking(self, conditions: list[_Condition], ranges: np.ndarray) -> np.ndarray:
        """Return the joins with some conditions of some ranges (K,), which may repeat; int64."""
        return np.concatenate([asked.members(np.unique(ranges), self._kept)[1] for asked in conditions])

    def _of_page(
        self,
        comparison: Comparison[Features | GatheredFeatures],
        conditions: list[_Condition],
        elements: Elements,
        satisfied: tuple[np.ndarray, np.ndarray],
        failures: Failures,
    ) -> Iterator[Pairs]:
        """Yield the pairs with one page of features, given the elements and the ranges that they satisfy."""
        row, number = satisfied
        rows = row[last_of_runs(row)]
        joins = self._asking(conditions, number)
        at, feature, distance = comparison.measured(elements, rows, failures.looking(joins))
        failures.find(joins, len(at))
        order = np.lexsort((feature, at))
        at, feature, distance = rows[at[order]], feature[order], distance[order]
        start, stop = np.searchsorted(at, row, "left"), np.searchsorted(at, row, "right")
        pair, position = expand(start, stop - start)
        number, features, kept = number[pair], comparison.features, self._kept
        for asked in conditions:
            keep = asked.asks(number, kept)
            if asked.where or asked.filters:
                judged = features.judged(asked.where, asked.filters)
                asked.note(failures, number[keep], kept, judged.error)
                keep &= judged.passes[feature[position]]
            chosen = np.flatnonzero(keep)
            for entry in asked.pair_filters:
                batches = elements.batch(at[position[chosen]]), features.batch(feature[position[chosen]])
                judged = evaluate_pair(entry.udf, *batches, entry.argument)
                asked.note(failures, number[chosen], kept, judged.error)
                chosen = chosen[judged.passes]
            member, join = asked.members(number[chosen], kept)
            of = position[chosen[member]]
            yield Pairs(at[of], join, features.hashes(feature[of]), distance[of])

    def _share(
        self, failures: Failures, conditions: list[_Condition], ranges: np.ndarray, count: np.ndarray, seconds: float
    ) -> None:
        """Share a cost among joins in proportion to how many elements were compared for each: `count` by range."""
        work = [condition.members(ranges, self._kept) for condition in conditions]
        each = seconds / max(1, sum(count[range_].sum() for range_, _ in work))
        for range_, join in work:
            failures.charge(join, each * count[range_])


def _key(plan: RangePlan) -> bytes:
    """Return what stands for a plan: a digest, since the hash of a plan is computed anew each time."""
    return hashlib.blake2b(repr(plan).encode(), digest_size=16).digest()


def _conditions(partners: Partners) -> tuple[str, tuple[Filter, ...], tuple[UserFilter, ...]]:
    return partners.where, partners.filters, partners.pair_filters


def _way(plan: JoinPlan) -> Hashable:
    partners = plan.partners
    return partners.source, partners.name, partners.predicate, partners.distance, plan.transform
