"""Which objects will be in an area soon, if they keep their course and speed: a `Refinement`.

An object goes along a geodesic that begins in the direction of its course, for as many metres as its speed makes in
the time. Its way is drawn as a straight line in longitude and latitude, as all edges are (RFC 7946, section 3.1.1). The
geodesic is beside that line by about ``length² · tan(latitude) / (8 · radius of the earth)`` at most: 1.2 m for 6 km
at 60 degrees of latitude, 1.4 km for 200 km. Where the object will be is more uncertain than that.
"""

import copy
from collections.abc import Hashable, Sequence

import numpy as np
import pyproj
import shapely

from streaming.kinds.approach.plan import FASTEST_MPS, ApproachPlan
from streaming.kinds.areas import AreaFilter, PolygonArea
from streaming.kinds.range.plan import RangePlan
from streaming.operators.areas import Areas
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.geodesics import WGS84_AXIS_M, WGS84_FLATTENING
from streaming.operators.numbered import Numbered
from streaming.operators.spatial_join import FeaturesOf, Pairs
from streaming.property_columns import number_columns
from streaming.spaces import Space

# The properties that decoders call so; see docs/decoders.md.
COURSE, SPEED = "course_deg", "speed_mps"
_GEOD = pyproj.Geod(a=WGS84_AXIS_M, f=WGS84_FLATTENING)
_TURN_DEG = 360.0


class Approaches:
    """Predicted entries, evaluated together; see `Refinement`.

    Parameters
    ----------
    plans : sequence of ApproachPlan, length J
    space : Space
    """

    def __init__(self, plans: Sequence[ApproachPlan], space: Space) -> None:
        targets = Numbered.of([target_of(plan, space) for plan in plans])
        self._use(
            Numbered.of([_asked(plan) for plan in plans]),
            targets,
            Areas(targets.values, space),
            np.array([plan.within_s for plan in plans], dtype=np.float64),
        )

    def _use(self, column: Numbered, targets: Numbered, areas: Areas, within_s: np.ndarray) -> None:
        self.range, self._targets, self._areas, self._within_s = column, targets, areas, within_s
        self._kept = np.ones(len(within_s), dtype=bool)

    @classmethod
    def _of(cls, column: Numbered, targets: Numbered, areas: Areas, within_s: np.ndarray) -> "Approaches":
        made = cls.__new__(cls)
        made._use(column, targets, areas, within_s)
        return made

    @staticmethod
    def range_of(plan: ApproachPlan) -> RangePlan:
        """Return the range of the elements that may reach the area in time."""
        return RangePlan(plan.stream, plan.area, plan.area, where=plan.where, filters=plan.filters, emit=plan.emit)

    def take(self, queries: np.ndarray) -> tuple["Approaches", np.ndarray]:
        """Return the set of the queries at positions, and the former number of each of its ranges."""
        column, used = self.range.take(queries).used()
        return self._of(column, self._targets.take(queries), self._areas, self._within_s[queries]), used

    @classmethod
    def together(cls, parts: Sequence["Approaches"]) -> tuple["Approaches", np.ndarray]:
        """Return the queries of all parts, and the former number of each range."""
        column, source = Numbered.together([part.range for part in parts])
        targets, _ = Numbered.together([part._targets for part in parts])
        areas = Areas(targets.values, parts[0]._areas.space)
        return cls._of(column, targets, areas, np.concatenate([part._within_s for part in parts])), source

    def masked(self, kept: np.ndarray) -> "Approaches":
        """Return the set such that only queries that are kept have pairs."""
        masked = copy.copy(self)
        masked._kept = kept
        return masked

    def of(self, number: int) -> np.ndarray:
        """Return the positions of the queries of a range; int64."""
        return np.flatnonzero((self.range.number == number) & self._kept)

    def refined(
        self, elements: Elements, row: np.ndarray, number: np.ndarray, features_of: FeaturesOf, failures: Failures
    ) -> Pairs:
        """Return the pairs of an element and a query that it satisfies."""
        pair, query = np.nonzero((number[:, None] == self.range.number) & self._kept)
        pairs = Pairs.without_partners(row[pair], query)
        near = np.flatnonzero(self.lies(elements, pairs, features_of))
        return Pairs.without_partners(pairs.row[near], query[near])

    def charge(self, failures: Failures, ranges: np.ndarray, seconds: np.ndarray) -> None:
        """Charge the queries with the seconds that ranges took."""
        for number, spent in zip(ranges.tolist(), seconds.tolist(), strict=True):
            asking = self.of(number)
            failures.charge(asking, np.full(len(asking), spent / max(1, len(asking))))

    def lies(self, elements: Elements, pairs: Pairs, features_of: FeaturesOf) -> np.ndarray:
        """Tell which pairs satisfy their query, ranges and filters aside."""
        satisfied = np.zeros(len(pairs.row), dtype=bool)
        if not len(satisfied):
            return satisfied
        area = self._targets.number[pairs.query]
        rows, place = np.unique(pairs.row, return_inverse=True)
        course_deg, speed_mps = number_columns(elements.cold(rows)["properties"], [COURSE, SPEED])[:, place]
        moving = np.isfinite(course_deg) & (speed_mps > 0) & (speed_mps <= FASTEST_MPS)
        moving[moving] = ~self._areas.met(elements, pairs.row[moving], area[moving])
        left = np.flatnonzero(moving)
        lengths_m = speed_mps[left] * self._within_s[pairs.query[left]]
        ways = ways_ahead(elements.bounds[pairs.row[left]], self._areas.space.n, course_deg[left], lengths_m)
        satisfied[left] = self._areas.met_by_shapes(ways, area[left])
        return satisfied

    def reached(self, bounds: np.ndarray, features_of: FeaturesOf) -> np.ndarray:
        """Tell that no element has a partner."""
        return np.zeros(len(bounds), dtype=bool)


def ways_ahead(bounds: np.ndarray, n: int, course_deg: np.ndarray, length_m: np.ndarray) -> np.ndarray:
    """Return the ways that objects go if they keep their course: lines in longitude and latitude.

    Parameters
    ----------
    bounds : ndarray of float64, shape (N, 2n)
        The boxes of the objects; a way begins in the middle.
    n : int
        The number of dimensions.
    course_deg, length_m : ndarray of float64, shape (N,)

    Returns
    -------
    ndarray of geometries, shape (N,)
        Lines whose longitudes may be beyond 180 degrees, so that none goes around the earth.
    """
    lon, lat = ((bounds[:, axis] + bounds[:, n + axis]) / 2 for axis in (0, 1))
    to_lon, to_lat, _ = _GEOD.fwd(lon, lat, course_deg, length_m)
    to_lon = lon + (np.asarray(to_lon) - lon + _TURN_DEG / 2) % _TURN_DEG - _TURN_DEG / 2
    ends = np.stack([np.stack([lon, lat], axis=1), np.stack([to_lon, np.asarray(to_lat)], axis=1)], axis=1)
    return shapely.linestrings(ends)


def _asked(plan: ApproachPlan) -> Hashable:
    """Return what stands for the range of a plan."""
    return plan.stream, plan.area, plan.where, plan.filters, plan.emit


def target_of(plan: ApproachPlan, space: Space) -> AreaFilter:
    """Return the area that objects will enter as a filter; of a box, its sides in the first two dimensions."""
    if plan.shape is not None:
        return AreaFilter(plan.shape)
    west, south, east, north = plan.target[0], plan.target[1], plan.target[space.n], plan.target[space.n + 1]
    ring = ((west, south), (east, south), (east, north), (west, north), (west, south))
    return AreaFilter(PolygonArea(((ring,),)))
