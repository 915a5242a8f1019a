"""The objects and the queries of the paper's evaluation.

The unit square is cut into 3 x 3 regions. In each region, 50,000 *local* objects move about and never leave it; 50,000
 *global* objects move about everywhere. Each object reports every 30 s. In each region, 1,000 global objects are the
focal objects of ranges, which are squares of 1 % to 10 % of the space. As many are the focal objects of queries for
nearest neighbours, with k from 50 to 500 and a search region that is a fifth larger. The paper leaves open how objects
move. Here, an object goes straight on, on average 0.2 % of the square's side between two reports (a car in a city of
100 km). At the edge of the area in which it may be, it turns back.

References
----------
PLACE* (2007), section 6.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streaming.operators.region_map import RegionMap
from streaming.spaces import Dimension, Space

SPACE = Space("place", (Dimension("x", "", 0.0, 1.0), Dimension("y", "", 0.0, 1.0)))
STREAM = "objects"
REGIONS, ACROSS = 9, 3
PERIOD_S = 30.0
STEP = 0.002
# Local objects turn back at this distance from the edge of their region.
MARGIN = 1e-6
AREAS = tuple(percent / 100 for percent in range(1, 11))
KS = tuple(range(50, 501, 50))
ALPHA = 0.2
SEED = 2007


@dataclass(frozen=True)
class Workload:
    """Objects, and the plans of queries over them; they are the same in every process.

    Parameters
    ----------
    crowd : int
        Local objects of each region, and global ones in all.
    each : int
        Queries of each kind for each region.
    areas : tuple of float
        The areas of the ranges, as parts of the space.
    ks : tuple of int
        The numbers of neighbours that queries ask for.
    """

    crowd: int = 50_000
    each: int = 1_000
    areas: tuple[float, ...] = AREAS
    ks: tuple[int, ...] = KS

    @property
    def objects(self) -> int:
        """How many objects there are."""
        return self.crowd * (REGIONS + 1)

    @property
    def queries(self) -> int:
        """How many queries there are of each kind."""
        return self.each * REGIONS

    @property
    def rate(self) -> float:
        """How many reports come in a second."""
        return self.objects / PERIOD_S

    @cached_property
    def home(self) -> np.ndarray:
        """The region in which each object stays, int64 of shape (N,), in random order; -1 for global objects."""
        return np.random.default_rng(SEED).permutation(np.repeat(np.arange(-1, REGIONS), self.crowd))

    @cached_property
    def _course(self) -> tuple[np.ndarray, ...]:
        """The area in which each object may be (low corner, extent), its start in that area, and its step."""
        rng = np.random.default_rng(SEED + 1)
        cell = np.column_stack(np.divmod(self.home, ACROSS)) / ACROSS + MARGIN
        local = (self.home >= 0)[:, None]
        low, extent = np.where(local, cell, 0.0), np.where(local, 1 / ACROSS - 2 * MARGIN, 1.0)
        angle, length = rng.random(self.objects) * 2 * np.pi, rng.random(self.objects) * 2 * STEP
        step = length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        return low, extent, rng.random((self.objects, 2)) * extent, step

    def places(self, numbers: np.ndarray, reports: int) -> np.ndarray:
        """Return the places of some objects after `reports` reports, float64 of shape (N, 2)."""
        low, extent, start, step = (part[numbers] for part in self._course)
        # There and back is twice the extent.
        way = (start + reports * step) % (2 * extent)
        return low + np.where(way > extent, 2 * extent - way, way)

    def plans(self) -> dict[int, dict]:
        """Return the plans of all queries as JSON documents, by number: ranges are odd, nearest neighbours even.

        The first plans, however many, are a smaller workload: as many of each kind, even over regions, areas and k.
        """
        rng, plans = np.random.default_rng(SEED + 2), {}
        focal = [self._focal(region, rng) for region in range(REGIONS)]
        for turn in range(self.each):
            for region, (ranging, nearing) in enumerate(focal):
                position = turn * REGIONS + region
                widths = [self.areas[position % len(self.areas)] ** 0.5 / 2] * 2
                near = {"k": self.ks[position % len(self.ks)], "alpha": ALPHA, "around": {"key": key_of(nearing[turn])}}
                common = {"stream": STREAM, "emit": "membership"}
                plans[2 * position + 1] = common | {"around": {"key": key_of(ranging[turn]), "half_widths": widths}}
                plans[2 * position + 2] = common | {"kind": "knn"} | near
        return plans

    def _focal(self, region, rng):
        """Draw each kind's focal objects from the global objects that start in a region; none twice if they suffice."""
        travelling = np.flatnonzero(self.home < 0)
        place = self.places(travelling, 0)
        there = travelling[RegionMap.grid(SPACE, REGIONS).region_of(np.hstack([place, place])) == region]
        return [np.resize(rng.permutation(there), self.each) for _ in range(2)]

    def answer_rows(self) -> float:
        """Return about how many objects are in the answers of a range and of a query for neighbours together."""
        return float(np.mean(self.areas) * self.objects + np.mean(self.ks))


def key_of(number: int) -> str:
    """Return the key of an object."""
    return f"object {number}"


def kind_of(query: np.ndarray) -> np.ndarray:
    """Return 0 for ranges, 1 for nearest neighbours."""
    return 1 - query % 2
