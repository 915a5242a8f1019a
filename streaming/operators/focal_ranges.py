"""Ranges about places: circles, rectangles and polygons that move with focal objects, evaluated together.

References
----------
PLACE* (2007), section 4: continuous range queries whose focal objects move; section 5: search regions of kNN queries.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import shapely

from streaming.elements import key_hashes, stream_number
from streaming.kinds.around import Carried, Circle, Focus, Rectangle, Shape
from streaming.kinds.knn.plan import NearestPlan
from streaming.kinds.moving_range.plan import MovingRangePlan
from streaming.operators.boxes import in_plane, intersects, turns
from streaming.operators.conditions import Conditions
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.geodesics import local_metres
from streaming.operators.places import distances, middles, within, within_boxes
from streaming.operators.query_index import FAR
from streaming.operators.runs import distinct, find
from streaming.operators.spatial_join import Pairs
from streaming.operators.stream_boxes import Look, StreamBoxes
from streaming.spaces import Space

CIRCLE, RECTANGLE, CARRIED = range(3)


class FocalRanges:
    """An immutable set of ranges about focal objects or fixed places.

    Parameters
    ----------
    plans : sequence of MovingRangePlan or NearestPlan, length Q
        The range of a NearestPlan is its search region, a circle.
    space : Space

    Attributes
    ----------
    focal : ndarray of int64, shape (Q,)
        The `key_hash` of each focal object; 0 for a fixed place.
    radius : ndarray of float64, shape (Q,)
        The radius of each circle: metres in a geographic space, elsewhere the unit of the first dimensions. NaN for
        other ranges and for search regions.
    """

    def __init__(self, plans: Sequence[MovingRangePlan | NearestPlan], space: Space) -> None:
        count, n = len(plans), space.n
        self.space = space
        self.area = np.array([plan.area for plan in plans]).reshape(count, 2 * n)
        self.focal = focal_keys([plan.focus for plan in plans])
        self.radius = np.array([_radius(plan) for plan in plans], dtype=np.float64)
        self.half_widths = np.full((count, n), np.inf)
        self.kind = np.full(count, CIRCLE)
        self.carried: dict[int, shapely.Polygon] = {}
        self.at = np.full((count, 2), np.nan)
        for query, plan in enumerate(plans):
            if plan.focus.at:
                self.at[query] = np.r_[plan.focus.at, 0.0][:2]
            if plan.shape is not None:
                self._shape(query, plan.shape)
        self.streams = np.array([stream_number(plan.stream) for plan in plans], dtype=np.int64)
        self.conditions = Conditions(plans, space)

    def __len__(self) -> int:
        return len(self.focal)

    def _shape(self, query: int, shape: Shape) -> None:
        if isinstance(shape, Rectangle):
            self.kind[query], self.half_widths[query] = RECTANGLE, shape.half_widths
        elif isinstance(shape, Carried):
            polygon = shapely.Polygon(shape.polygon)
            shapely.prepare(polygon)
            x_lo, y_lo, x_hi, y_hi = polygon.bounds
            self.kind[query], self.carried[query] = CARRIED, polygon
            self.half_widths[query, :2] = [max(-x_lo, x_hi), max(-y_lo, y_hi)][: self.space.n]

    def placed(self, keys: np.ndarray, bounds: np.ndarray, reach: np.ndarray) -> "PlacedRanges":
        """Place the ranges at their focal objects.

        Parameters
        ----------
        keys : ndarray of int64, shape (F,)
            The `key_hash` of the known focal objects, ascending.
        bounds : ndarray of float64, shape (F, 2n)
            Their boxes; a range lies about the middle of the box.
        reach : ndarray of float64, shape (Q,)
            The radii of search regions. NaN for a search region without a radius (yet), and for other ranges.
        """
        n = self.space.n
        position, known = find(keys, self.focal)
        middle = np.full((len(self), max(2, self.space.n)), np.nan)
        middle[:, :2] = self.at
        about = bounds[position[known]]
        middle[known] = middles(about, self.space)
        # A range that is bounded in height is nowhere if the height of its focal object is not known.
        unknown = np.isposinf(about[:, 2:n]) & np.isfinite(self.half_widths[known, 2:])
        middle[np.flatnonzero(known)[unknown.any(axis=1)]] = np.nan
        return PlacedRanges(self, middle, np.where(np.isnan(self.radius), reach, self.radius))


@dataclass(frozen=True)
class PlacedRanges:
    """Ranges at the places where they are now.

    Parameters
    ----------
    ranges : FocalRanges, Q of them
    middle : ndarray of float64, shape (Q, max(2, n))
        The middle of each range. NaN in the first two dimensions if the focal object is not known, and in a further
        dimension if the object has no place in it.
    radius : ndarray of float64, shape (Q,)
        The radius of each circle and search region. NaN for other ranges, and for search regions without a radius,
        which contain nothing.
    """

    ranges: FocalRanges
    middle: np.ndarray
    radius: np.ndarray

    @property
    def places(self) -> np.ndarray:
        """The places of ranges in the first two dimensions, float64 of shape (Q, 2)."""
        return self.middle[:, :2]

    @functools.cached_property
    def boxes(self) -> np.ndarray:
        """Boxes that contain the ranges, float64 of shape (Q, 2n); NaN without a place, or a circle without radius."""
        ranges, n = self.ranges, self.ranges.space.n
        margin = ranges.half_widths.copy()
        if ranges.space.geographic:
            with np.errstate(divide="ignore"):
                margin[:, :2] /= np.stack(local_metres(self.places[:, 1]), axis=1)
        middle = np.nan_to_num(self.middle[:, :n])
        margin[:, 2:][np.isnan(self.middle[:, 2:n])] = np.inf
        boxes = np.hstack([middle - margin, middle + margin])
        circles = np.flatnonzero(ranges.kind == CIRCLE)
        plane = within_boxes(self.places[circles], self.radius[circles], ranges.space)
        for axis in range(min(2, n)):
            boxes[circles, axis], boxes[circles, n + axis] = plane[:, axis], plane[:, 2 + axis]
        for axis, dimension in enumerate(ranges.space.dimensions[:2]):
            if dimension.wraps:
                around = boxes[:, n + axis] - boxes[:, axis] >= dimension.extent
                boxes[around, axis], boxes[around, n + axis] = -np.inf, np.inf
        nowhere = np.isnan(self.places).any(1) | (np.isnan(self.radius) & (ranges.kind == CIRCLE))
        boxes[nowhere] = np.nan
        return boxes

    def match(
        self, elements: Elements, keys: np.ndarray, failures: Failures, chosen: np.ndarray | None = None
    ) -> Pairs:
        """Return the pairs of elements and ranges in which they lie; see `SomeRanges.match`.

        `chosen` has the positions of the ranges to match; all if left out.
        """
        return self.some(np.arange(len(self.ranges)) if chosen is None else chosen).match(elements, keys, failures)

    def some(self, chosen: np.ndarray) -> "SomeRanges":
        """Return the ranges at some positions, ready to be matched with several tables of elements."""
        return SomeRanges(self, chosen)

    def exactly(
        self, row: np.ndarray, query: np.ndarray, elements: Elements, keys: np.ndarray, failures: Failures
    ) -> Pairs:
        """Return those of the candidate pairs whose element lies in the range and passes its filters.

        Parameters
        ----------
        row, query : ndarray of int64, shape (P,)
            The candidates: positions of elements and of ranges.
        elements, keys, failures
            As for `SomeRanges.match`.

        Returns
        -------
        Pairs
            As from `SomeRanges.match`.
        """
        began = perf_counter()
        keep, distance = self.lies(elements.bounds, row, query, keys)
        failures.share(query, perf_counter() - began)
        row, query, distance = row[keep], query[keep], distance[keep]
        keep = self.ranges.conditions.passing(row, query, elements, failures)
        row, query = row[keep], query[keep]
        return Pairs(row, query, np.zeros(len(row), dtype=np.int64), distance[keep])

    def lies(
        self, bounds: np.ndarray, row: np.ndarray, query: np.ndarray, keys: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Tell which pairs of a box and a range have the box in the range, filters aside but for the area's shape.

        Parameters
        ----------
        bounds : ndarray of float64, shape (N, 2n)
        row, query : ndarray of int64, shape (P,)
            Positions of boxes and of ranges.
        keys : ndarray of int64, shape (N,)
            The `key_hash` of the objects with these boxes.

        Returns
        -------
        lies : ndarray of bool, shape (P,)
        distance : ndarray of float64, shape (P,)
            From the place of a search region, see `places.distances`. NaN for other ranges, and for pairs that are
            ruled out before they are measured.
        """
        ranges, space = self.ranges, self.ranges.space
        lies = intersects(bounds, row, ranges.area, query, space) & (keys[row] != ranges.focal[query])
        lies &= ~np.isnan(self.boxes[query, 0])
        lies[lies] = ranges.conditions.met_by_boxes(bounds, row[lies], query[lies])
        kind, distance = ranges.kind[query], np.full(len(query), np.nan)
        circles, searched = kind == CIRCLE, np.isnan(ranges.radius[query])
        at = np.flatnonzero(lies & circles & ~searched)
        lies[at] = within(bounds[row[at]], self.places[query[at]], self.radius[query[at]], space)
        at = np.flatnonzero(lies & circles & searched)
        distance[at] = distances(bounds[row[at]], self.places[query[at]], space, self.radius[query[at]])
        lies[at] = distance[at] <= self.radius[query[at]]
        at = np.flatnonzero(lies & ~circles)
        lies[at] = intersects(bounds, row[at], self.boxes, query[at], space)
        for number in distinct(query[(kind == CARRIED) & lies]).tolist():
            at = np.flatnonzero((query == number) & lies)
            relative = _relative(bounds[row[at]], self.places[number], space)
            lies[at] = shapely.intersects(ranges.carried[number], _shapes(relative))
        return lies, distance


@dataclass(frozen=True)
class SomeRanges:
    """Some of the ranges, at the positions `chosen`; the index over their boxes is made once."""

    placed: PlacedRanges
    chosen: np.ndarray

    @functools.cached_property
    def _boxes(self) -> StreamBoxes:
        ranges, boxes = self.placed.ranges, self.placed.boxes
        queries = self.chosen[~np.isnan(boxes[self.chosen, 0])]
        return StreamBoxes(queries, in_plane(boxes[queries], ranges.space), ranges.streams[queries], ranges.space)

    def match(self, elements: Elements, keys: np.ndarray, failures: Failures) -> Pairs:
        """Return the pairs of elements and ranges in which they lie; a focal object never lies in its own range.

        Parameters
        ----------
        elements : Elements, N of them
        keys : ndarray of int64, shape (N,)
            The `key_hash` of each element.
        failures : Failures
            Receives the errors of user-defined filters, and what queries cost, by their positions.

        Returns
        -------
        Pairs
            Each pair once. For search regions with the distance from their place, otherwise NaN.
        """
        began = perf_counter()
        row, query = self._boxes.met_by(elements.stream, elements.bounds)
        return self._exactly(row, query, elements, keys, failures, began)

    def search(self, look: Look, failures: Failures) -> tuple[Pairs, np.ndarray]:
        """Return the same pairs for the elements of an index, and the `key_hash` of the elements that it found.

        The cost follows the elements that are found, not all of them.
        """
        began = perf_counter()
        near = self._boxes.meeting(look)
        return self._exactly(near.row, near.box, near.elements, near.keys, failures, began), near.keys

    def _exactly(
        self, row: np.ndarray, query: np.ndarray, elements: Elements, keys: np.ndarray, failures: Failures, began: float
    ) -> Pairs:
        space, total = self.placed.ranges.space, len(self.placed.ranges)
        if any(dimension.wraps for dimension in space.dimensions[:2]):
            row, query = np.divmod(distinct(row * total + query), max(1, total))
        failures.share(query, perf_counter() - began)
        return self.placed.exactly(row, query, elements, keys, failures)


def focal_keys(foci: Sequence[Focus]) -> np.ndarray:
    """Return the `key_hash` of each focal object, 0 for a fixed place: int64 of shape (Q,)."""
    keys = np.zeros(len(foci), dtype=np.int64)
    of_stream: dict[str, list[int]] = {}
    for query, focus in enumerate(foci):
        if focus.key:
            of_stream.setdefault(focus.stream, []).append(query)
    for stream, queries in of_stream.items():
        keys[queries] = key_hashes(stream, [foci[query].key for query in queries])
    return keys


def _radius(plan: MovingRangePlan | NearestPlan) -> float:
    return plan.shape.radius if isinstance(plan.shape, Circle) else np.nan


def _relative(boxes: np.ndarray, place: np.ndarray, space: Space) -> np.ndarray:
    """Return boxes (P, 2n) as offsets from a place in the plane, (P, 4); in metres in a geographic space."""
    plane = in_plane(boxes, space) - np.r_[place, place]
    for turn in turns(space)[1:]:
        turned = plane + np.r_[turn, turn]
        nearer = np.abs(turned[:, :2] + turned[:, 2:]).sum(1) < np.abs(plane[:, :2] + plane[:, 2:]).sum(1)
        plane = np.where(nearer[:, None], turned, plane)
    if space.geographic:
        metres = np.array(local_metres(place[1]))
        plane = plane * np.r_[metres, metres]
    return np.clip(plane, -FAR, FAR)


def _shapes(plane: np.ndarray) -> np.ndarray:
    """Return boxes of the plane as geometries; a box without extent is a point."""
    pointed = (plane[:, :2] == plane[:, 2:]).all(1)
    shapes = np.empty(len(plane), dtype=object)
    shapes[pointed] = shapely.points(plane[pointed, :2])
    shapes[~pointed] = shapely.box(*plane[~pointed].T)
    return shapes
