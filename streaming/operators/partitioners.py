"""Partitioners decide where a region is cut in two, or in four: K-D tree, quadtree, geohash, and uniform grid.

References
----------
BBoxDB Streams (2022), sections 3.2 (space partitioners) and 5.4 (pre-partitioning).
Synopsis (2017), section 3.2: regions that are prefixes of geohashes.
"""

from collections.abc import Callable, Mapping

import numpy as np

from streaming.operators.region_map import InvalidMap, RegionMap
from streaming.spaces import Space

# Given a map, a region, and places in it (K, n), returns the map in which the region is split.
Split = Callable[[RegionMap, int, np.ndarray], RegionMap]


def kd_tree(known: RegionMap, region: int, places: np.ndarray) -> RegionMap:
    """Cut where half of the places are on each side, across the dimension in which they spread most.

    The spread is that of the middle half of the places, as a part of the space's extent. A few that lie far away do not
    decide.
    """
    n, cell = known.space.n, known.cells[region]
    spreads = []
    for axis, dimension in enumerate(known.space.dimensions):
        values = places[:, axis][np.isfinite(places[:, axis])]
        at = _border(values, cell[axis], cell[n + axis])
        if at is not None:
            low, high = np.quantile(values, [0.25, 0.75])
            spreads.append(((high - low) / dimension.extent, -axis, at))
    if not spreads:
        raise InvalidMap("region %(region)s has no places between which it could be cut", region=region)
    _, axis, at = max(spreads)
    return known.split(region, -axis, at)


def _border(values: np.ndarray, low: float, high: float) -> float | None:
    """Return a border between the places with about half of them on each side; None if all are at one place."""
    places, count = np.unique(values[(values > low) & (values < high)], return_counts=True)
    if not len(places):
        return None
    below = np.cumsum(count) - count
    at = int(np.argmin(np.abs(2 * below - count.sum())))
    return float(places[at]) if len(places) > 1 else None


def quadtree(known: RegionMap, region: int, places: np.ndarray) -> RegionMap:
    """Cut in the middle of the first two dimensions, into four; `places` do not matter."""
    across = _halved(known, region, 0)
    if known.space.n == 1:
        return across
    new = across.regions - 1
    return _halved(_halved(across, region, 1), new, 1)


def geohash(known: RegionMap, region: int, places: np.ndarray) -> RegionMap:
    """Cut in the middle of the first two dimensions in turn, as each bit of a geohash does; `places` do not matter."""
    cell, n = known.cells[region], known.space.n
    extents = [known.space.dimensions[axis].extent for axis in range(min(2, n))]
    halvings = [round(np.log2(extent / (cell[n + axis] - cell[axis]))) for axis, extent in enumerate(extents)]
    return _halved(known, region, int(len(halvings) > 1 and halvings[0] > halvings[1]))


def grid(known: RegionMap, region: int, places: np.ndarray) -> RegionMap:
    """Refuse: the cells of a uniform grid stay as they are."""
    raise InvalidMap("the regions of a uniform grid are not split: choose another partitioner")


def _halved(known: RegionMap, region: int, axis: int) -> RegionMap:
    cell, n = known.cells[region], known.space.n
    return known.split(region, axis, float(cell[axis] + cell[n + axis]) / 2)


PARTITIONERS: Mapping[str, Split] = {"kd": kd_tree, "quadtree": quadtree, "geohash": geohash, "grid": grid}


def partitioned(space: Space, partitioner: str, places: np.ndarray, regions: int) -> RegionMap:
    """Return a map with at least so many regions that suits some places; the fullest region is split again and again.

    Parameters
    ----------
    space : Space
    partitioner : str
        One of `PARTITIONERS`.
    places : ndarray of float64, shape (K, n)
    regions : int

    Returns
    -------
    RegionMap
        With fewer regions if the places lie too close together.
    """
    if partitioner == "grid":
        return RegionMap.grid(space, regions)
    known, whole = RegionMap(space, 0), set[int]()
    while known.regions < regions:
        of = known.region_of(np.hstack([places, places]))
        counts = np.bincount(of, minlength=known.regions)
        counts[list(whole)] = -1
        fullest = int(counts.argmax())
        if counts[fullest] < 0:
            break
        try:
            known = PARTITIONERS[partitioner](known, fullest, places[of == fullest])
        except InvalidMap:
            whole.add(fullest)
    return RegionMap(space, known.tree)
