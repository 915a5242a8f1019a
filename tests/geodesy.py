"""Brute force: distances on the ellipsoid of WGS 84 straight from their definition, by pyproj alone."""

import functools
import itertools

import numpy as np
import shapely
from pyproj import Geod
from shapely import affinity

WGS84 = Geod(ellps="WGS84")
SAMPLES, ROUNDS, MOST_DIPS = 9, 12, 4
PIECE_DEG = 3.0
# No place of a piece is farther from its nearest sample, in steps: half of one, and more as steps differ in metres.
NEAREST_STEP = 0.6


def points_m(lon, lat, to_lon, to_lat):
    """The geodesics between points."""
    return WGS84.inv(*np.broadcast_arrays(*(np.asarray(c, dtype=np.float64) for c in (lon, lat, to_lon, to_lat))))[2]


def apart_m(one, other):
    """The least geodesic between a place of one geometry and a place of another; edges are straight in degrees."""
    return _apart_m(shapely.to_wkb(one), shapely.to_wkb(other), None)


def within(one, other, most_m):
    """Tell whether that is at most so long, which mostly takes no closer look."""
    return _apart_m(shapely.to_wkb(one), shapely.to_wkb(other), most_m) <= most_m


@functools.lru_cache(maxsize=100_000)
def _apart_m(one, other, most_m):
    """The least geodesic, or, if `most_m` is not None, any length that lies on the same side of that."""
    one, other = shapely.from_wkb(one), shapely.from_wkb(other)
    if any(affinity.translate(one, turn).intersects(other) for turn in (-360, 0, 360)):
        return 0.0
    edges, others = _edges(one), _edges(other)
    shares = np.linspace(0, 1, SAMPLES)
    coarse = points_m(*_at(edges, shares)[..., None, None], *_at(others, shares)[:, None, None])
    long_m = _lengths_m(edges)[:, None] + _lengths_m(others)
    at_least = coarse.min(axis=(1, 3)) - NEAREST_STEP * long_m / (SAMPLES - 1)
    least = float(coarse.min())
    for pair in np.argsort(at_least, axis=None):
        decided = most_m is not None and (least <= most_m or at_least.flat[pair] > most_m)
        if decided or at_least.flat[pair] >= least:
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
    """The least geodesic between two edges, from the least at each of some places of the one.

    Edges may be nearly parallel. A grid over both at once would then see which places lie opposite each other, and not
    which of them are nearest.
    """
    if not other[1].any():
        edge, other = other, edge
    if not edge[1].any():
        return float(_to_edge_m(edge[0][:, None], other)[0])
    shares, step = np.linspace(0, 1, 4 * SAMPLES), 1 / (4 * SAMPLES - 1)
    least = _to_edge_m(_at(edge[None], shares)[:, 0], other)
    padded = np.pad(least, 1, constant_values=np.inf)
    dips = np.flatnonzero((least <= padded[:-2]) & (least <= padded[2:]))[:MOST_DIPS]
    return min(_in_dip(edge, other, shares[dip] - step, shares[dip] + step) for dip in dips)


def _in_dip(edge, other, low, high):
    """The least geodesic from the places of an edge between two shares, among which there is one dip."""
    for _ in range(ROUNDS):
        low, high = max(low, 0.0), min(high, 1.0)
        shares, step = np.linspace(low, high, SAMPLES), (high - low) / (SAMPLES - 1)
        least = _to_edge_m(_at(edge[None], shares)[:, 0], other)
        low, high = shares[least.argmin()] - step, shares[least.argmin()] + step
    return float(least.min())


def _to_edge_m(places, edge):
    """The least geodesic from each place, (2, P), to an edge: its samples, then ever closer ones about the nearest."""
    low, high = np.zeros(places.shape[1]), np.ones(places.shape[1])
    for _ in range(ROUNDS):
        shares, step = np.linspace(low, high, SAMPLES), (high - low) / (SAMPLES - 1)
        there = edge[0][:, None, None] + edge[1][:, None, None] * shares
        length = points_m(*places[:, None], *there)
        nearest = shares[length.argmin(axis=0), np.arange(len(low))]
        low, high = np.maximum(nearest - step, 0), np.minimum(nearest + step, 1)
    return length.min(axis=0)
