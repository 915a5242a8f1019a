"""Which region a regional server is."""

from dataclasses import dataclass

from streaming.operators.region_map import RegionMap


@dataclass(frozen=True)
class RegionPlace:
    """The number of a region, and the map that tells it from the others."""

    number: int
    region_map: RegionMap
