"""Which servers answer a query: the home and tracking servers of its focal object, and the participating servers.

References
----------
PLACE* (2007), sections 3.1 and 3.3: home server, and the Query-Track-Participate model.
"""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from streaming.elements import bounds_of, key_hashes, partition_of
from streaming.kinds.base import Plan
from streaming.kinds.knn.plan import NearestPlan
from streaming.kinds.moving_range.plan import MovingRangePlan
from streaming.kinds.registry import kind_of
from streaming.operators.focal_ranges import FocalRanges
from streaming.operators.region_map import RegionMap
from streaming.results import DROPPED, EXPIRED, PLACED
from streaming.spaces import Space


@dataclass(frozen=True)
class FocusPlace:
    """Where the focus of a query is.

    Parameters
    ----------
    bounds : ndarray of float64, shape (2n,)
        The box of the focal object, or the fixed place.
    reach : float
        The radius of the circle, or of the search region of nearest neighbours, in metres in a geographic space; NaN
        without one.
    """

    bounds: np.ndarray
    reach: float


def places_in(rows: pa.Table) -> dict[int, FocusPlace | None]:
    """Return the places of moving queries from their ``@`` tuples, by query; None where the focal object is lost."""
    placed = rows.filter(pc.equal(rows["sign"], PLACED))
    bounds, reach = bounds_of(placed["bounds"]), placed["distance"].to_numpy()
    lost = np.isin(placed["reason"].to_numpy(), (EXPIRED, DROPPED))
    queries = placed["query"].to_pylist()
    return {query: None if lost[row] else FocusPlace(bounds[row], reach[row]) for row, query in enumerate(queries)}


class Servers:
    """Finds the servers of a space that answer a query.

    Parameters
    ----------
    space : Space
    partitions : int
        How many home servers there are.
    region_map : RegionMap
        The regional servers.
    """

    def __init__(self, space: Space, partitions: int, region_map: RegionMap) -> None:
        self.space, self.partitions, self.region_map = space, partitions, region_map

    @property
    def regions(self) -> int:
        """How many regional servers there are."""
        return self.region_map.regions

    def home_of(self, plan: Plan) -> int | None:
        """Return the home server, the ingest partition of the focal object's key; None without a focal object."""
        focus = kind_of(plan).focus(plan)
        if focus is None or not focus.key:
            return None
        return int(partition_of(key_hashes(focus.stream, [focus.key]), self.partitions)[0])

    def tracking(self, plan: Plan, place: FocusPlace | None) -> int | None:
        """Return the region in which the focal object lies; None if there is none or its place is unknown."""
        if place is None or self.home_of(plan) is None:
            return None
        return int(self.region_map.region_of(place.bounds[None])[0])

    def participating(self, plan: Plan, place: FocusPlace | None) -> np.ndarray:
        """Return which regions the range of a query meets now, bool of shape (regions,).

        The transformations of a range query, which enlarge elements, are not considered.
        """
        kind, met = kind_of(plan), self._met(plan.area)
        focus = kind.focus(plan)
        if focus is None:
            return met & self._met(kind.box(plan))
        if place is None and not focus.at:
            return np.zeros(self.regions, dtype=bool)
        members = cast("MovingRangePlan | NearestPlan", kind.members(plan))  # no other kind has a focus
        ranges = FocalRanges([replace(members, where="", filters=())], self.space)
        keys, bounds = ranges.focal, place.bounds[None] if place else self.space.whole()[None]
        known = int(bool(focus.key))
        reach = np.array([place.reach if place else np.nan])
        box = ranges.placed(keys[:known], bounds[:known], reach).boxes[0]
        return np.zeros(self.regions, dtype=bool) if np.isnan(box[0]) else met & self._met(box)

    def describe(self, region: int) -> dict[str, Any]:
        """Return the number of a region, and its low and high corner in the first two dimensions."""
        cell, n = self.region_map.cells[region].tolist(), self.space.n
        return {"region": region, "lo": cell[: min(2, n)], "hi": cell[n : n + min(2, n)]}

    def _met(self, box: ArrayLike) -> np.ndarray:
        return self.region_map.regions_of(np.asarray(box, dtype=np.float64)[None])[0]
