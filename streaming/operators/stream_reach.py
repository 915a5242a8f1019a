"""How far elements of joined streams reach for partners, and so to which regions they must be sent."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from streaming.elements import stream_number
from streaming.kinds.join.plan import JoinPlan
from streaming.kinds.parts import Enlargement
from streaming.kinds.registry import kind_of
from streaming.operators.approaches import COURSE, SPEED
from streaming.operators.boxes import transformed
from streaming.operators.closest import Motions
from streaming.operators.metres import within_reach
from streaming.operators.region_map import RegionMap
from streaming.operators.runs import find
from streaming.property_columns import number_columns
from streaming.spaces import Space

Transform = tuple[Enlargement, ...]


@dataclass(frozen=True)
class Reach:
    """How far elements of joined streams reach for partners, and so to which regions they must be sent.

    Parameters
    ----------
    space : Space
    ways : mapping of (int, tuple of Enlargement or None) to float
        By stream number and transformation, the largest distance of the joins of that stream with that transformation.
        A stream that has partners has the entry (number, None) with the distance 0.
    ahead : mapping of int to (float, float)
        By the number of a stream whose places are predicted: for how many seconds, and the largest distance of the
        joins that do so.
    """

    space: Space
    ways: Mapping[tuple[int, Transform | None], float]
    ahead: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, plans: Sequence[JoinPlan], space: Space) -> "Reach":
        """Return the reach of joins with streams."""
        ways: dict[tuple[int, Transform | None], float] = {}
        ahead: dict[int, tuple[float, float]] = {}
        for plan in plans:
            if asked := kind_of(plan).prediction(plan):
                for number in map(stream_number, (plan.stream, plan.partners.name)):
                    known_s, known_m = ahead.get(number, (0.0, 0.0))
                    ahead[number] = max(known_s, asked.ahead_s), max(known_m, asked.within_m)
            way = stream_number(plan.stream), plan.transform
            ways[way] = max(ways.get(way, 0.0), plan.partners.distance)
            ways[stream_number(plan.partners.name), None] = 0.0
        return cls(space, ways, ahead)

    def __bool__(self) -> bool:
        return bool(self.ways)

    @functools.cached_property
    def streams(self) -> np.ndarray:
        """The numbers of the streams that are on either side of a join, int64, ascending."""
        return np.array(sorted({stream for stream, _ in self.ways}), dtype=np.int64)

    def exceeds(self, other: "Reach") -> bool:
        """Tell whether elements may have to be sent to regions to which `other` does not send them."""
        further = any(
            ahead_s > other.ahead.get(number, (0.0, 0.0))[0] or within_m > other.ahead.get(number, (0.0, 0.0))[1]
            for number, (ahead_s, within_m) in self.ahead.items()
        )
        return further or any(other.ways.get(way, -1.0) < distance for way, distance in self.ways.items())

    def regions(
        self,
        bounds: np.ndarray,
        stream: np.ndarray,
        region_map: RegionMap,
        properties: pa.Array | pa.ChunkedArray | None = None,
    ) -> np.ndarray:
        """Tell which regions must know which elements.

        Parameters
        ----------
        bounds : ndarray of float64, shape (N, 2n)
        stream : ndarray of int64, shape (N,)
        region_map : RegionMap
        properties : Arrow array of string, length N, optional
            The properties of the elements; needed if places are predicted.

        Returns
        -------
        ndarray of bool, shape (N, regions)
            The regions that the element's box meets, and those that its reach for a join meets. None for elements of
            streams that are not joined.
        """
        met = region_map.regions_of(bounds)
        for (number, transform), distance in self.ways.items():
            if transform is not None:
                rows = np.flatnonzero(stream == number)
                boxes = transformed(bounds[rows], transform, self.space)
                met[rows] |= region_map.regions_of(within_reach(boxes, distance, self.space))
        for number, (ahead_s, within_m) in self.ahead.items():
            rows = np.flatnonzero(stream == number)
            assert properties is not None, "predictions need properties"
            told = number_columns(properties.take(pa.array(rows)), [COURSE, SPEED])
            ways = Motions.told(bounds[rows], *told).ways(ahead_s, self.space.n)
            ways[np.isnan(ways).any(1)] = self.space.whole()
            met[rows] |= region_map.regions_of(within_reach(ways, within_m, self.space))
        return met & find(self.streams, stream)[1][:, None]

    def reaching(self, bounds: np.ndarray, stream: int, region_map: RegionMap, number: int) -> np.ndarray:
        """Return the elements of one stream that a region must know, as positions in `bounds`, ascending."""
        return np.flatnonzero(self.regions(bounds, np.full(len(bounds), stream), region_map)[:, number])


def reached(plan: JoinPlan, bounds: np.ndarray, space: Space) -> np.ndarray:
    """Return the boxes (K, 2n) that the box of a partner must meet, given the boxes of elements."""
    boxes = transformed(bounds, plan.transform, space)
    return within_reach(boxes, plan.partners.distance, space) if plan.partners.predicate == "dwithin" else boxes


def unfiltered(plan: JoinPlan) -> JoinPlan:
    """Return a join without its filters: only area, transformations, predicate and distance decide."""
    return replace(plan, where="", filters=(), partners=replace(plan.partners, where="", filters=(), pair_filters=()))
