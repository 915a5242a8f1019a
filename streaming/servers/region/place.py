"""Which region a regional server is."""

import math
from dataclasses import dataclass

import numpy as np

from streaming.operators.allowance import PairAllowance
from streaming.operators.region_map import RegionMap

# So many boxes are looked at to tell how many of them a region keeps.
SAMPLED = 1_000


@dataclass(frozen=True)
class RegionPlace:
    """The number of a region, and the map that tells it from the others."""

    number: int
    region_map: RegionMap

    def allowance(self, elements: np.ndarray, known: np.ndarray) -> PairAllowance:
        """Return how many pairs a step of the region may look at: those of all regions together have a limit.

        Parameters
        ----------
        elements, known : ndarray of float64, shapes (E, 2n) and (N, 2n)
            The boxes of elements that came, and of objects that the region knows, with copies of other regions' ones.
        """
        return PairAllowance(self._kept(elements), self._kept(known), self.region_map.regions)

    def allowance_for_elements(self, elements: np.ndarray) -> PairAllowance:
        """Return how many pairs a step may look at that compares only elements which came, with what waits for them.

        Parameters
        ----------
        elements : ndarray of float64, shape (E, 2n)
            Their boxes, with copies of other regions' ones.
        """
        return PairAllowance(self._kept(elements), 0, self.region_map.regions, begins=False)

    def _kept(self, bounds: np.ndarray) -> int:
        """Return about how many of some boxes (N, 2n) the region keeps."""
        some = bounds[:: len(bounds) // SAMPLED + 1]
        return math.ceil(len(bounds) * self.region_map.keeps(self.number, some).mean()) if len(some) else 0
