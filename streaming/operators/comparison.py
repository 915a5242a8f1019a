"""One way of comparing elements with features: boxes first, then the real geometries.

References
----------
J. Patel, D. DeWitt, "Partition Based Spatial-Merge Join", SIGMOD 1996: a filter step on boxes, then refinement.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Generic, Protocol, TypeVar, cast

import numpy as np
import shapely

from streaming.kinds.join.plan import JoinPlan
from streaming.operators.allowance import pieces
from streaming.operators.boxes import in_plane, points_of, transformed, turns
from streaming.operators.elements import Elements
from streaming.operators.features import IndexedBoxes
from streaming.operators.gathered import GatheredFeatures
from streaming.operators.lines import Look, without_limit
from streaming.operators.metres import distance_m, perhaps_closer, points_apart_m, turned, within_reach
from streaming.spaces import Space
from streaming.udf.base import box_shapes, shapes_of

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


class Shaped(Protocol):
    """What else is asked of partners where their boxes do not decide; see the methods of `features.Features`."""

    def points(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the places (K, 2) of the partners at rows if it is known that all are points, otherwise None."""

    def shapes(self, rows: np.ndarray) -> np.ndarray:
        """Return the prepared geometries of the partners at rows (K,)."""

    def spans(self, rows: np.ndarray) -> np.ndarray:
        """Return the least and the greatest first coordinate of the geometries at rows (K,), float64 of (K, 2)."""


# Measured: to look at so many edges takes as long as to look at a pair. A pair with few edges counts as one anyway.
EDGES = 4
FEW_EDGES = 64

F = TypeVar("F", bound=IndexedBoxes | GatheredFeatures, covariant=True)


class Comparison(Generic[F]):
    """One way of comparing elements with the features of a layer.

    Parameters
    ----------
    plan : JoinPlan
        Only its transformations, predicate and distance are used.
    space : Space
    features : Features or GatheredFeatures
        The partners; for `near`, `IndexedBoxes` are enough. All other methods need what is `Shaped`.
    """

    def __init__(self, plan: JoinPlan, space: Space, features: F) -> None:
        self.plan, self.space, self.features = plan, space, features
        self.predicate, self.limit = plan.partners.predicate, plan.partners.distance

    def pairs(self, elements: Elements, rows: np.ndarray, look: Look = without_limit) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs (position in `rows`, feature) for which the predicate holds, int64 each; each pair once."""
        at, feature, _ = self.measured(elements, rows, look)
        return at, feature

    def reached(self, bounds: np.ndarray) -> np.ndarray:
        """Return the positions of those boxes of elements (K, 2n) that may have a partner, int64; some may repeat."""
        if self.predicate == "disjoint" or not len(self.features):
            return np.arange(len(bounds) if len(self.features) else 0)
        return self.near(bounds)[0]

    def near(self, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs (box, feature) of boxes of elements (K, 2n) and features that may be partners, int64 each.

        Only the boxes of the features count; not for ``disjoint``, whose partners are anywhere.
        """
        return self._near(transformed(bounds, self.plan.transform, self.space))

    def measured(
        self, elements: Elements, rows: np.ndarray, look: Look = without_limit
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the pairs as `pairs` does, and their distances, which are NaN unless the predicate is ``dwithin``.

        Distances are in metres in a geographic space, elsewhere in the unit of the first dimension. `look` counts the
        edges that distances are measured from, besides the pairs; see `_close`.
        """
        if not len(self.features):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
        if self.predicate == "disjoint":
            at, feature = self._disjoint(elements, rows)
            return at, feature, np.full(len(at), np.nan)
        boxes = transformed(elements.bounds[rows], self.plan.transform, self.space)
        return self._judged(elements, rows, boxes, *self._near(boxes), look)

    def pieces(self, elements: Elements, rows: np.ndarray, most: int) -> Iterator[np.ndarray]:
        """Yield consecutive parts of `rows`, for each of which `measured` compares few pairs.

        Parameters
        ----------
        elements : Elements
        rows : ndarray of int64, shape (K,)
        most : int
            The most pairs that a part compares, and the most rows in it. Only a part of a single row may compare more:
            as many as there are features, once for each turn of the space.
        """
        for part in pieces(self._most_candidates(elements.bounds[rows]), most):
            yield from (rows[start : min(start + most, part.stop)] for start in range(part.start, part.stop, most))

    def most(self, elements: Elements, rows: np.ndarray) -> int:
        """Return how many pairs `measured` compares at most for the elements at rows (K,)."""
        return int(self._most_candidates(elements.bounds[rows]).sum())

    def _most_candidates(self, bounds: np.ndarray) -> np.ndarray:
        """Return how many features `measured` compares with each of some boxes (K, 2n) at most, int64 of shape (K,)."""
        if self.predicate == "disjoint" or not len(self.features):
            return np.full(len(bounds), len(self.features))
        boxes = self._reach(transformed(bounds, self.plan.transform, self.space))
        return self.features.counts(boxes)

    def judged(
        self,
        elements: Elements,
        rows: np.ndarray,
        at: np.ndarray,
        feature: np.ndarray,
        look: Look = without_limit,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return those of some pairs that `near` finds for which the predicate holds, as `measured` does.

        Parameters
        ----------
        elements : Elements
        rows : ndarray of int64, shape (K,)
        at, feature : ndarray of int64, shape (P,)
            The pairs, as positions in `rows` and features; not for ``disjoint``.
        look : callable, optional
            See `measured`.
        """
        boxes = transformed(elements.bounds[rows], self.plan.transform, self.space)
        return self._judged(elements, rows, boxes, at, feature, look)

    def _judged(
        self,
        elements: Elements,
        rows: np.ndarray,
        boxes: np.ndarray,
        at: np.ndarray,
        feature: np.ndarray,
        look: Look,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the pairs for which the predicate holds, and their distances, given the transformed boxes."""
        shapes = _Shapes(self, elements, rows, boxes)
        if self.predicate == "dwithin":
            return self._close(shapes, at, feature, look)
        if len(at) and self.predicate != "boxes":
            holds = self._holds(shapes, at, feature)
            at, feature = at[holds], feature[holds]
        return at, feature, np.full(len(at), np.nan)

    def _disjoint(self, elements: Elements, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        meeting = Comparison(_with_predicate(self.plan, "intersects"), self.space, self.features)
        at, feature = meeting.pairs(elements, rows)
        together = np.zeros((len(rows), len(self.features)), dtype=bool)
        together[at, feature] = True
        at, feature = np.nonzero(~together)
        return at, feature

    def _shapes(self, elements: Elements, rows: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """Return the geometries to compare: transformed boxes, or the elements' own if the plan transforms nothing."""
        if not self.plan.transform:
            return shapes_of(elements.batch(rows)) if elements.has_geometries else box_shapes(elements.bounds[rows])
        bounds = boxes.copy()
        for axis, dimension in enumerate(self.space.dimensions):
            bounds[:, axis] = np.where(np.isfinite(boxes[:, axis]), boxes[:, axis], dimension.lo)
            high = self.space.n + axis
            bounds[:, high] = np.where(np.isfinite(boxes[:, high]), boxes[:, high], dimension.hi)
        return box_shapes(bounds)

    def _near(self, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs (box, feature) that may be partners, given the transformed boxes."""
        return self.features.meeting(self._reach(boxes))

    def _close(
        self, shapes: "_Shapes", at: np.ndarray, feature: np.ndarray, look: Look
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the pairs within the distance, and their distances; not those whose edges there is no room for.

        `look` takes positions of pairs, and how many edges are to be looked at for each.
        """
        features = cast(Shaped, self.features)
        places, others = shapes.points(at), features.points(feature)
        if self.space.geographic and places is not None and others is not None:
            distance = points_apart_m(places, others, self.limit)
            holds = distance <= self.limit
            return at[holds], feature[holds], distance[holds]
        mine, partners = shapes.of(at), features.shapes(feature)
        if self.space.geographic:  # both functions handle the antimeridian themselves
            near = np.flatnonzero(perhaps_closer(mine, partners, self.limit))
            distance = _distance_m(mine[near], partners[near], self.limit, look)
            holds = distance <= self.limit
            return at[near][holds], feature[near][holds], distance[holds]
        moved = [turned(mine, turn) for turn in turns(self.space)]
        near = np.flatnonzero(np.any([shapely.dwithin(partners, shape, self.limit) for shape in moved], axis=0))
        distance = np.min([shapely.distance(shape[near], partners[near]) for shape in moved], axis=0)
        return at[near], feature[near], distance

    def _reach(self, boxes: np.ndarray) -> np.ndarray:
        """Return the boxes that a partner's box must meet: for ``dwithin``, the given ones enlarged by the distance."""
        return within_reach(boxes, self.limit, self.space) if self.predicate == "dwithin" else boxes

    def _holds(self, shapes: "_Shapes", at: np.ndarray, feature: np.ndarray) -> np.ndarray:
        """Evaluate the predicate on the real geometries of candidate pairs."""
        features = cast(Shaped, self.features)
        partners = features.shapes(feature)
        points = shapes.points(at) if self.predicate in OF_POINTS else None
        spans = features.spans(feature)
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


def _distance_m(shapes: np.ndarray, others: np.ndarray, limit_m: float, look: Look) -> np.ndarray:
    """Return the distances of pairs, float64 of shape (P,); infinite where there is no room for their edges."""
    count = shapely.get_num_coordinates(shapes) * shapely.get_num_coordinates(others)
    distance, work = np.full(len(shapes), np.inf), np.where(count > FEW_EDGES, count // EDGES, 0)
    for part in pieces(np.maximum(1, count)):
        if look(np.arange(part.start, part.stop), work[part]):
            distance[part] = distance_m(shapes[part], others[part], limit_m)
    return distance


class _Shapes:
    """The shapes of elements, each made on first use."""

    def __init__(self, comparison: Comparison, elements: Elements, rows: np.ndarray, boxes: np.ndarray) -> None:
        self._make = lambda at: comparison._shapes(elements, rows[at], boxes[at])
        self._made = np.full(len(rows), None, dtype=object)
        self.plane = in_plane(boxes, comparison.space)
        self._pointed = not comparison.plan.transform and not elements.has_geometries

    def of(self, at: np.ndarray) -> np.ndarray:
        """Return the shapes at positions."""
        wanted = at[shapely.is_missing(self._made[at])]
        if len(wanted):
            wanted = np.unique(wanted)
            self._made[wanted] = self._make(wanted)
        return self._made[at]

    def points(self, at: np.ndarray) -> np.ndarray | None:
        """Return the coordinates (K, 2) of the elements at positions if all of them are points, otherwise None."""
        return points_of(self.plane[at]) if self._pointed else None


def _with_predicate(plan: JoinPlan, predicate: str) -> JoinPlan:
    return replace(plan, partners=replace(plan.partners, predicate=predicate, distance=0.0))
