"""Brute force: distances on the ellipsoid of WGS 84 straight from their definition, by pyproj alone."""

import functools
import itertools

import numpy as np
import shapely
from pyproj import Geod
from shapely import affinity

WGS84 = Geod(ellps="WGS84")
SAMPLES, BOUNDED, ROUNDS = 9, 4, 14
PIECE_DEG = 3.0
# No place of a piece is farther from its nearest sample, in steps: half of one, and more as steps differ in metres.
NEAREST_STEP = 0.6


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
    long_m = _lengths_m(edges)[:, None] + _lengths_m(others)
    at_least = coarse.min(axis=(1, 3)) - NEAREST_STEP * long_m / (SAMPLES - 1)
    least = np.inf
    for pair in np.argsort(at_least, axis=None):
        if at_least.flat[pair] >= least:
            break
        i, j = np.unravel_index(pair, at_least.shape)
        least = min(least, _zoomed(edges[i], others[j]))
    return least


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


def _lengths_m(edges):
    """How long edges are, (E,)."""
    places = _at(edges, np.linspace(0, 1, SAMPLES))
    return points_m(*places[..., :-1], *places[..., 1:]).sum(axis=1)


def _zoomed(edge, other):
    """The least geodesic between two edges: grids over ever smaller parts, in the end about the best pair."""
    low, high, long_m = np.zeros(2), np.ones(2), _lengths_m(np.stack([edge, other]))
    for number in range(BOUNDED + ROUNDS):
        shares, step = np.linspace(low, high, SAMPLES), (high - low) / (SAMPLES - 1)
        here, there = (side[0] + share[:, None] * side[1] for side, share in zip((edge, other), shares.T, strict=True))
        length = points_m(*here.T[:, :, None], *there.T[:, None])
        # At first wherever the least may be. Seen from a pole, all places of an edge may be equally far away.
        bound = length.min() + (NEAREST_STEP * step @ long_m if number < BOUNDED else 0)
        near = np.argwhere(length <= bound)
        best = near if number < BOUNDED else near[:1]
        low, high = np.maximum(low + (best.min(0) - 1) * step, 0), np.minimum(low + (best.max(0) + 1) * step, 1)
    return float(length.min())
