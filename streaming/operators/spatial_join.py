"""Continuous spatial joins, all together: boxes first, then the real geometries.

References
----------
BBoxDB Streams (2022), section 4.4.2: the query ``q_cj(S, R, alpha, sigma(theta, lambda))``.
J. Patel, D. DeWitt, "Partition Based Spatial-Merge Join", SIGMOD 1996: a filter step on boxes, then refinement.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import shapely

from streaming.operators.boxes import enlarged, in_plane, intersects
from streaming.operators.elements import Elements
from streaming.operators.features import Features
from streaming.operators.metres import closer_than, distance_m, turned, within_reach
from streaming.operators.query_index import FAR
from streaming.operators.runs import expand
from streaming.plans import JoinPlan
from streaming.spaces import Space
from streaming.udf import evaluate_pair
from streaming.udf.base import box_shapes, shapes_of

# The prepared geometry of the feature goes first, so what an element is to it is asked the other way round.
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
# Of points, by their coordinates alone.
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
    partner : ndarray of int64, shape (P,)
        The `key_hash` of the feature; 0 for a query that is no join.
    distance : ndarray of float64, shape (P,)
        Of a join by distance; otherwise NaN.
    """

    row: np.ndarray
    query: np.ndarray
    partner: np.ndarray
    distance: np.ndarray

    @classmethod
    def without_partners(cls, row: np.ndarray, query: np.ndarray) -> "Pairs":
        """Return the pairs of queries that are no joins."""
        return cls(row, query, np.zeros(len(row), dtype=np.int64), np.full(len(row), np.nan))

    def take(self, rows: np.ndarray) -> "Pairs":
        """Return the pairs at positions or of a mask."""
        return Pairs(self.row[rows], self.query[rows], self.partner[rows], self.distance[rows])


class SpatialJoins:
    """An immutable set of joins.

    Joins that compare in the same way share that work: those with the same layer, predicate and transformations.

    Parameters
    ----------
    plans : mapping of int to JoinPlan
        By the position of the query.
    space : Space
    features_of : callable
        Returns the `Features` of a layer by its name.
    """

    def __init__(self, plans: Mapping[int, JoinPlan], space: Space, features_of: Callable[[str], Features]) -> None:
        self._queries = np.array(sorted(plans), dtype=np.int64)
        conditions = {query: _conditions(plan.partners) for query, plan in plans.items()}
        self._conditions = list(dict.fromkeys(conditions.values()))
        self._condition = np.full(max(plans, default=-1) + 1, -1, dtype=np.int64)
        for query, condition in conditions.items():
            self._condition[query] = self._conditions.index(condition)
        groups: dict[tuple, list[int]] = {}
        for query, plan in plans.items():
            groups.setdefault(_way(plan), []).append(query)
        self._groups = [
            (Comparison(plans[queries[0]], space, features_of(plans[queries[0]].partners.name)), np.array(queries))
            for queries in groups.values()
        ]

    def refined(self, elements: Elements, row: np.ndarray, query: np.ndarray) -> Pairs:
        """Join elements that lie in the areas of queries and pass their filters.

        Parameters
        ----------
        elements : Elements
        row, query : ndarray of int64, shape (P,)
            Ordered by row. Queries that are no joins pass as they are.

        Returns
        -------
        Pairs
            Ordered by row, then query.
        """
        joins = np.isin(query, self._queries)
        found = [Pairs.without_partners(row[~joins], query[~joins])]
        for comparison, queries in self._groups:
            mine = np.flatnonzero(np.isin(query, queries))
            if len(mine):
                found.append(self._of_group(comparison, elements, row[mine], query[mine]))
        pairs = Pairs(*(np.concatenate([getattr(p, name) for p in found]) for name in Pairs.__dataclass_fields__))
        return pairs.take(np.lexsort((pairs.query, pairs.row)))

    def _of_group(self, comparison, elements, row, query):
        rows = np.unique(row)
        at, feature = comparison.pairs(elements, rows)
        order = np.lexsort((feature, at))
        at, feature = rows[at[order]], feature[order]
        distance = comparison.distances(elements, at, feature)
        start, stop = np.searchsorted(at, row, "left"), np.searchsorted(at, row, "right")
        pair, position = expand(start, stop - start)
        query, position = self._passing(comparison.features, elements, query[pair], at, feature, position)
        features = comparison.features
        return Pairs(at[position], query, features.key_hash[feature[position]], distance[position])

    def _passing(self, features, elements, query, at, feature, position):
        """Drop the pairs whose feature, or which themselves, do not pass the filters of their query."""
        keep = np.ones(len(query), dtype=bool)
        condition = self._condition[query]
        for number in np.unique(condition):
            where, filters, pair_filters = self._conditions[number]
            mine = np.flatnonzero(condition == number)
            if where or filters:
                keep[mine] = features.passing(where, filters)[feature[position[mine]]]
                mine = mine[keep[mine]]
            for entry in pair_filters:
                batches = elements.batch(at[position[mine]]), features.batch(feature[position[mine]])
                keep[mine] = evaluate_pair(entry.udf, *batches, entry.argument).passes
                mine = mine[keep[mine]]
        return query[keep], position[keep]


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
        Of which the transformations, the predicate and the distance count.
    space : Space
    features : Features
    """

    def __init__(self, plan: JoinPlan, space: Space, features: Features) -> None:
        self.plan, self.space, self.features = plan, space, features
        self.predicate, self.limit = plan.partners.predicate, plan.partners.distance

    def pairs(self, elements: Elements, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs (position in `rows`, feature) for which the predicate holds, int64 each, no pair twice."""
        if not len(self.features):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        if self.predicate != "disjoint":
            return self._meeting(elements, rows)
        meeting = Comparison(_with_predicate(self.plan, "intersects"), self.space, self.features)
        at, feature = meeting.pairs(elements, rows)
        together = np.zeros((len(rows), len(self.features)), dtype=bool)
        together[at, feature] = True
        at, feature = np.nonzero(~together)
        return at, feature

    def measured(self, elements: Elements, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the pairs as `pairs` does, and their distances, NaN where the predicate is none of distance."""
        at, feature = self.pairs(elements, rows)
        return at, feature, self.distances(elements, rows[at], feature)

    def distances(self, elements: Elements, rows: np.ndarray, feature: np.ndarray) -> np.ndarray:
        """Return the distances of pairs (row, feature) where the predicate is one of distance; otherwise NaN."""
        if self.predicate != "dwithin" or not len(rows):
            return np.full(len(rows), np.nan)
        shapes = self._shapes(elements, rows, self._boxes(elements, rows))
        measure = distance_m if self.space.geographic else shapely.distance
        return measure(shapes, self.features.shapes(feature))

    def _boxes(self, elements, rows):
        """Return the transformed boxes of elements, (K, 2n)."""
        boxes = elements.bounds[rows]
        for step in self.plan.transform:
            boxes = enlarged(boxes, step.by, step.amount, self.space)
        return boxes

    def _shapes(self, elements, rows, boxes):
        """Return what is compared: the transformed box, or the geometry where nothing is transformed."""
        if not self.plan.transform:
            return shapes_of(elements.batch(rows))
        bounds = boxes.copy()
        for axis, dimension in enumerate(self.space.dimensions):
            bounds[:, axis] = np.where(np.isfinite(boxes[:, axis]), boxes[:, axis], dimension.lo)
            high = self.space.n + axis
            bounds[:, high] = np.where(np.isfinite(boxes[:, high]), boxes[:, high], dimension.hi)
        return box_shapes(bounds)

    def _meeting(self, elements, rows):
        boxes = self._boxes(elements, rows)
        near = self._reach(boxes)
        at, feature = self._candidates(np.clip(in_plane(near, self.space), -FAR, FAR))
        keep = intersects(near, at, self.features.bounds, feature, self.space)
        at, feature = at[keep], feature[keep]
        if len(at) and self.predicate != "boxes":
            holds = self._holds(_Shapes(self, elements, rows, boxes), at, feature)
            at, feature = at[holds], feature[holds]
        return at, feature

    def _turns(self):
        dimension = self.space.dimensions[0]
        return (0.0, dimension.extent, -dimension.extent) if dimension.wraps else (0.0,)

    def _reach(self, boxes):
        """Return the boxes that a partner's box must meet: for a join by distance larger by it."""
        return within_reach(boxes, self.limit, self.space) if self.predicate == "dwithin" else boxes

    def _candidates(self, plane):
        """Return the pairs of boxes of the plane (K, 4) and features whose boxes meet, after a turn perhaps."""
        low, high = self.features.extent[:2], self.features.extent[2:]
        found = [np.empty((2, 0), dtype=np.int64)]
        for turn in self._turns():
            moved = plane + np.array([turn, 0, turn, 0])
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
        if self.predicate == "dwithin":
            if self.space.geographic:  # it looks beyond the antimeridian by itself
                return closer_than(shapes.of(at), partners, np.nextafter(self.limit, np.inf))
            return shapely.dwithin(partners, shapes.of(at), self.limit)
        points = shapes.points(at) if self.predicate in OF_POINTS else None
        spans = self.features.spans(feature)
        holds = np.zeros(len(at), dtype=bool)
        for turn in self._turns():
            low, high = shapes.plane[at, 0] + turn, shapes.plane[at, 2] + turn
            wanted = np.flatnonzero((low <= spans[:, 1]) & (spans[:, 0] <= high))
            if not len(wanted):
                continue
            if points is not None:
                x, y = points[wanted].T
                holds[wanted] |= OF_POINTS[self.predicate](partners[wanted], x + turn, y)
            else:
                shape = turned(shapes.of(at[wanted]), turn)
                holds[wanted] |= CONVERSE[self.predicate](partners[wanted], shape)
        return holds


class _Shapes:
    """The shapes of elements, made when first asked for."""

    def __init__(self, comparison, elements, rows, boxes):
        self._make = lambda at: comparison._shapes(elements, rows[at], boxes[at])
        self._made = np.full(len(rows), None, dtype=object)
        self.plane = in_plane(boxes, comparison.space)
        self._pointed = not comparison.plan.transform and not elements.has_geometries

    def of(self, at):
        """Return the shapes at positions."""
        wanted = np.unique(at)
        wanted = wanted[shapely.is_missing(self._made[wanted])]
        if len(wanted):
            self._made[wanted] = self._make(wanted)
        return self._made[at]

    def points(self, at):
        """Return the coordinates of the elements at positions where all of them are points, otherwise None."""
        boxes = self.plane[at]
        return boxes[:, :2] if self._pointed and (boxes[:, :2] == boxes[:, 2:]).all() else None


def _with_predicate(plan, predicate):
    return replace(plan, partners=replace(plan.partners, predicate=predicate, distance=0.0))
