"""Continuous spatial joins with features, evaluated together: boxes first, then the real geometries.

References
----------
BBoxDB Streams (2022), section 4.4.2: the query ``q_cj(S, R, alpha, sigma(theta, lambda))``.
J. Patel, D. DeWitt, "Partition Based Spatial-Merge Join", SIGMOD 1996: a filter step on boxes, then refinement.
"""

import copy
import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import shapely

from streaming.kinds.join.plan import JoinPlan
from streaming.kinds.parts import Filter, UserFilter
from streaming.kinds.range.plan import RangePlan
from streaming.operators.boxes import in_plane, intersects, transformed, turns
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.features import Features
from streaming.operators.metres import distance_m, perhaps_closer, turned, within_reach
from streaming.operators.numbered import Numbered
from streaming.operators.query_index import FAR
from streaming.operators.runs import expand, find, last_of_runs
from streaming.spaces import Space
from streaming.udf import evaluate_pair
from streaming.udf.base import box_shapes, shapes_of

FeaturesOf = Callable[[str], Features]

# The prepared geometry of the feature must be the first argument, so each predicate maps to its converse.
CONVERSE = {
    "intersects": shapely.intersects,
    "within": shapely.contains,
    "contains": shapely.within,
    "covers": shapely.covered_by,
    "covered_by": shapely.covers,
    "touches": shapely.touches,
    "crosses": shapely.crosses,
    "overlaps": shapely.overlaps,
    "equals": shapely.equals,
}
# The predicates that shapely evaluates for points from their coordinates alone.
OF_POINTS = {
    "intersects": shapely.intersects_xy,
    "covered_by": shapely.intersects_xy,
    "within": shapely.contains_xy,
}


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
    def of(cls, asked, join, ranges):
        """Return a condition, given its filters, its joins, and the range of each join, ascending."""
        ranges, first, count = np.unique(ranges, return_index=True, return_counts=True)
        return cls(*asked, join, ranges, first, count)

    def members(self, number, kept):
        """Return the joins of ranges (K,) that are kept: the position of its range in `number`, and the join."""
        place, known = find(self.ranges, number)
        known = np.flatnonzero(known)
        member, position = expand(self.first[place[known]], self.count[place[known]])
        member, join = known[member], self.join[position]
        return (member, join) if kept is None else (member[kept[join]], join[kept[join]])

    def asks(self, number, kept):
        """Tell which ranges (K,) have a join that is kept, bool of shape (K,)."""
        if kept is None:
            return find(self.ranges, number)[1]
        ranges, place = np.unique(number, return_inverse=True)
        return (np.bincount(self.members(ranges, kept)[0], minlength=len(ranges)) > 0)[place]

    def note(self, failures, number, kept, error):
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

    def _use(self, space, ranges, way, condition, plan_of):
        self.space, self.range, self._way, self._condition, self._plan_of = (space, ranges, way, condition, plan_of)
        self._kept: np.ndarray | None = None

    @classmethod
    def _of(cls, *columns):
        joins = cls.__new__(cls)
        joins._use(*columns)
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
    def _groups(self):
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

    def _comparisons(self, features_of):
        """Yield each way to compare: its number, the comparison, and the conditions of the joins."""
        for way, plan, conditions in self._groups:
            yield way, Comparison(plan, self.space, features_of(plan.partners.layer)), conditions

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
            Returns the `Features` of a layer by its name.
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
        for _, comparison, conditions in self._comparisons(features_of):
            asked = [condition.asks(number, self._kept) for condition in conditions]
            mine = np.flatnonzero(np.any(asked, axis=0))
            if len(mine):
                began = perf_counter()
                found += self._of_group(comparison, conditions, elements, row[mine], number[mine], failures)
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
        for way, comparison, _ in self._comparisons(features_of):
            mine = np.flatnonzero(way_of == way)
            feature, there = comparison.features.find(pairs.partner[mine])
            mine, feature = mine[there], feature[there]
            rows, place = np.unique(pairs.row[mine], return_inverse=True)
            if len(rows):
                at, partner, _ = comparison.measured(elements, rows)
                size = len(comparison.features)
                lies[mine] = find(np.sort(at * size + partner), place * size + feature)[1]
        return lies

    def reached(self, bounds: np.ndarray, features_of: FeaturesOf) -> np.ndarray:
        """Tell which elements, given their boxes (N, 2n), may have a partner in one of the joins: bool of (N,)."""
        reached = np.zeros(len(bounds), dtype=bool)
        for _, comparison, _ in self._comparisons(features_of):
            left = np.flatnonzero(~reached)
            reached[left[comparison.reached(bounds[left])]] = True
        return reached

    def _of_group(self, comparison, conditions, elements, row, number, failures):
        """Yield the pairs of joins that compare in the same way, one `Pairs` for each condition and its joins."""
        rows = row[last_of_runs(row)]
        at, feature, distance = comparison.measured(elements, rows)
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
            yield Pairs(at[of], join, features.key_hash[feature[of]], distance[of])

    def _share(self, failures, conditions, ranges, count, seconds):
        """Share a cost among joins in proportion to how many elements were compared for each: `count` by range."""
        work = [condition.members(ranges, self._kept) for condition in conditions]
        each = seconds / max(1, sum(count[range_].sum() for range_, _ in work))
        for range_, join in work:
            failures.charge(join, each * count[range_])


def _key(plan):
    """Return what stands for a plan: a digest, since the hash of a plan is computed anew each time."""
    return hashlib.blake2b(repr(plan).encode(), digest_size=16).digest()


def _conditions(partners):
    return partners.where, partners.filters, partners.pair_filters


def _way(plan):
    partners = plan.partners
    return partners.source, partners.name, partners.predicate, partners.distance, plan.transform


class Comparison:
    """One way of comparing elements with the features of a layer.

    Parameters
    ----------
    plan : JoinPlan
        Only its transformations, predicate and distance are used.
    space : Space
    features : Features
        The partners.
    """

    def __init__(self, plan: JoinPlan, space: Space, features: Features) -> None:
        self.plan, self.space, self.features = plan, space, features
        self.predicate, self.limit = plan.partners.predicate, plan.partners.distance

    def pairs(self, elements: Elements, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs (position in `rows`, feature) for which the predicate holds, int64 each; each pair once."""
        at, feature, _ = self.measured(elements, rows)
        return at, feature

    def reached(self, bounds: np.ndarray) -> np.ndarray:
        """Return the positions of those boxes of elements (K, 2n) that may have a partner, int64; some may repeat."""
        if self.predicate == "disjoint" or not len(self.features):
            return np.arange(len(bounds) if len(self.features) else 0)
        return self._near(transformed(bounds, self.plan.transform, self.space))[0]

    def measured(self, elements: Elements, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the pairs as `pairs` does, and their distances, which are NaN unless the predicate is ``dwithin``.

        Distances are in metres in a geographic space, elsewhere in the unit of the first dimension.
        """
        if not len(self.features):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
        if self.predicate == "dwithin":
            return self._close(elements, rows)
        at, feature = self._disjoint(elements, rows) if self.predicate == "disjoint" else self._meeting(elements, rows)
        return at, feature, np.full(len(at), np.nan)

    def _disjoint(self, elements, rows):
        meeting = Comparison(_with_predicate(self.plan, "intersects"), self.space, self.features)
        at, feature = meeting.pairs(elements, rows)
        together = np.zeros((len(rows), len(self.features)), dtype=bool)
        together[at, feature] = True
        at, feature = np.nonzero(~together)
        return at, feature

    def _shapes(self, elements, rows, boxes):
        """Return the geometries to compare: transformed boxes, or the elements' own if the plan transforms nothing."""
        if not self.plan.transform:
            return shapes_of(elements.batch(rows)) if elements.has_geometries else box_shapes(elements.bounds[rows])
        bounds = boxes.copy()
        for axis, dimension in enumerate(self.space.dimensions):
            bounds[:, axis] = np.where(np.isfinite(boxes[:, axis]), boxes[:, axis], dimension.lo)
            high = self.space.n + axis
            bounds[:, high] = np.where(np.isfinite(boxes[:, high]), boxes[:, high], dimension.hi)
        return box_shapes(bounds)

    def _near(self, boxes):
        """Return the pairs (box, feature) that may be partners, given the transformed boxes."""
        near = self._reach(boxes)
        at, feature = self._candidates(np.clip(in_plane(near, self.space), -FAR, FAR))
        keep = intersects(near, at, self.features.bounds, feature, self.space)
        return at[keep], feature[keep]

    def _close(self, elements, rows):
        """Return the pairs within the distance, and their distances."""
        boxes = transformed(elements.bounds[rows], self.plan.transform, self.space)
        at, feature = self._near(boxes)
        shapes, partners = _Shapes(self, elements, rows, boxes).of(at), self.features.shapes(feature)
        if self.space.geographic:  # both functions handle the antimeridian themselves
            near = np.flatnonzero(perhaps_closer(shapes, partners, self.limit))
            distance = distance_m(shapes[near], partners[near], self.limit)
            holds = distance <= self.limit
        else:
            moved = [turned(shapes, turn) for turn in turns(self.space)]
            near = np.flatnonzero(np.any([shapely.dwithin(partners, shape, self.limit) for shape in moved], axis=0))
            distance = np.min([shapely.distance(shape[near], partners[near]) for shape in moved], axis=0)
            holds = slice(None)
        return at[near][holds], feature[near][holds], distance[holds]

    def _meeting(self, elements, rows):
        boxes = transformed(elements.bounds[rows], self.plan.transform, self.space)
        at, feature = self._near(boxes)
        if len(at) and self.predicate != "boxes":
            holds = self._holds(_Shapes(self, elements, rows, boxes), at, feature)
            at, feature = at[holds], feature[holds]
        return at, feature

    def _reach(self, boxes):
        """Return the boxes that a partner's box must meet: for ``dwithin``, the given ones enlarged by the distance."""
        return within_reach(boxes, self.limit, self.space) if self.predicate == "dwithin" else boxes

    def _candidates(self, plane):
        """Return the pairs of boxes of the plane (K, 4) and features whose boxes meet, perhaps after a turn."""
        low, high = self.features.extent[:2], self.features.extent[2:]
        found = [np.empty((2, 0), dtype=np.int64)]
        for turn in turns(self.space):
            moved = plane + np.tile(turn, 2)
            close = np.flatnonzero((moved[:, :2] <= high).all(1) & (moved[:, 2:] >= low).all(1))
            moved = moved[close]
            points = (moved[:, :2] == moved[:, 2:]).all()
            at, feature = self.features.tree.query(shapely.points(moved[:, :2]) if points else shapely.box(*moved.T))
            found.append(np.stack([close[at], feature]))
        if sum(part.shape[1] > 0 for part in found) < 2:
            return max(found, key=np.size)
        return np.unique(np.hstack(found), axis=1)

    def _holds(self, shapes, at, feature):
        """Evaluate the predicate on the real geometries of candidate pairs."""
        partners = self.features.shapes(feature)
        points = shapes.points(at) if self.predicate in OF_POINTS else None
        spans = self.features.spans(feature)
        holds = np.zeros(len(at), dtype=bool)
        for turn in turns(self.space):
            low, high = shapes.plane[at, 0] + turn[0], shapes.plane[at, 2] + turn[0]
            wanted = np.flatnonzero((low <= spans[:, 1]) & (spans[:, 0] <= high))
            if not len(wanted):
                continue
            if points is not None:
                x, y = (points[wanted] + turn).T
                holds[wanted] |= OF_POINTS[self.predicate](partners[wanted], x, y)
            else:
                shape = turned(shapes.of(at[wanted]), turn)
                holds[wanted] |= CONVERSE[self.predicate](partners[wanted], shape)
        return holds


class _Shapes:
    """The shapes of elements, each made on first use."""

    def __init__(self, comparison, elements, rows, boxes):
        self._make = lambda at: comparison._shapes(elements, rows[at], boxes[at])
        self._made = np.full(len(rows), None, dtype=object)
        self.plane = in_plane(boxes, comparison.space)
        self._pointed = not comparison.plan.transform and not elements.has_geometries

    def of(self, at):
        """Return the shapes at positions."""
        wanted = at[shapely.is_missing(self._made[at])]
        if len(wanted):
            wanted = np.unique(wanted)
            self._made[wanted] = self._make(wanted)
        return self._made[at]

    def points(self, at):
        """Return the coordinates (K, 2) of the elements at positions if all of them are points, otherwise None."""
        boxes = self.plane[at]
        return boxes[:, :2] if self._pointed and (boxes[:, :2] == boxes[:, 2:]).all() else None


def _with_predicate(plan, predicate):
    return replace(plan, partners=replace(plan.partners, predicate=predicate, distance=0.0))
