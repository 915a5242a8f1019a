"""Brute force: distances on the ellipsoid of WGS 84 straight from their definition, by pyproj alone."""

import functools
import itertools

import numpy as np
import shapely
from pyproj import Geod
from shapely import affinity

WGS84 = Geod(ellps="WGS84")
SAMPLES, FINER, ROUNDS, LIKELY = 9, 9, 14, 250
PIECE_DEG = 3.0


def points_m(lon, lat, to_lon, to_lat):
    """The geodesics between points."""
    return WGS84.inv(*np.broadcast_arrays(*(np.asarray(c, dtype=np.float64) for c in (lon, lat, to_lon, to_lat))))[2]


def apart_m(one, other):
    """The least geodesic between a place of one geometry and a place of another; edges are straight in degrees."""
    return _apart_m(shapely.to_wkb(one), shapely.to_wkb(other))


@functools.lru_cache(maxsize=100_000)
def _apart_m(one, other):
    one, other = shapely.from_wkb(one), shapely.from_wkb(other)
    if any(affinity.translate(one, turn).intersects(other) for turn in (-360, 0, 360)):
        return 0.0
    edges, others = _edges(one), _edges(other)
    shares = np.linspace(0, 1, SAMPLES)
    coarse = points_m(*_at(edges, shares)[..., None, None], *_at(others, shares)[:, None, None])
    least = coarse.min(axis=(1, 3))
    step_m = 111_700 * sum(np.abs(side[:, 1]).max() for side in (edges, others)) / (SAMPLES - 1)
    likely = np.argsort(least, axis=None)[:LIKELY]
    likely = likely[least.flat[likely] <= least.min() + step_m]
    return min(_zoomed(edges[i], others[j]) for i, j in zip(*np.unravel_index(likely, least.shape), strict=True))


def _edges(geometry):
    """The edges of a geometry, long ones in pieces, each as start and way, (E, 2, 2)."""
    parts = [geometry.boundary if geometry.geom_type == "Polygon" else geometry]
    found = []
    for part in shapely.get_parts(parts):
        places = shapely.get_coordinates(part)
        places = places if len(places) > 1 else np.repeat(places, 2, axis=0)
        for start, end in itertools.pairwise(places):
            pieces = max(1, int(np.ceil(np.abs(end - start).max() / PIECE_DEG)))
            cuts = start + np.linspace(0, 1, pieces + 1)[:, None] * (end - start)
            found.append(np.stack([cuts[:-1], np.diff(cuts, axis=0)], axis=1))
    return np.concatenate(found)


def _at(edges, shares):
    """Places along edges, (2, E, S)."""
    return np.moveaxis(edges[:, None, 0] + shares[:, None] * edges[:, None, 1], -1, 0)


def _zoomed(edge, other):
    """The least geodesic between two edges: a grid over both, then a finer one about the best pair, and so on."""
    low, high, step, count = np.zeros(2), np.ones(2), 1 / (SAMPLES - 1), SAMPLES
    for _ in range(ROUNDS):
        shares = [np.linspace(low[axis], high[axis], count) for axis in (0, 1)]
        here, there = (side[0] + share[:, None] * side[1] for side, share in zip((edge, other), shares, strict=True))
        length = points_m(*here.T[:, :, None], *there.T[:, None])
        best = np.array([share[at] for share, at in zip(shares, divmod(length.argmin(), count), strict=True)])
        low, high, count = np.maximum(best - step, 0), np.minimum(best + step, 1), FINER
        step = 2 * step / (FINER - 1)
    return float(length.min())
