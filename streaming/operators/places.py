"""Distances of boxes from places, over the surface of the earth or in a plane.

A place is a point of the first two dimensions; a box is as far from it as the place of the box that is nearest in
each dimension by itself. Of points that is their distance.
"""

import numpy as np

from streaming.operators.boxes import EARTH_RADIUS_M, POLE_DEG
from streaming.operators.metres import WGS84_AXIS_M, WGS84_FLATTENING
from streaming.spaces import Space

# Half of the way around: nothing on earth is farther away.
FARTHEST_M = np.pi * EARTH_RADIUS_M
# How much an ellipsoid's degree differs from a sphere's, and more; a reach beyond `ANYWHERE_M` has no box.
SLACK = 1.01
ANYWHERE_M = 15_000_000.0
_ECCENTRICITY_2 = WGS84_FLATTENING * (2 - WGS84_FLATTENING)


def surface_distance_m(lon_deg, lat_deg, to_lon_deg, to_lat_deg) -> np.ndarray:
    """Return the distances between points on the ellipsoid of WGS 84: the straight line between them, as an arc.

    Poles and the antimeridian need no case of their own.

    Parameters
    ----------
    lon_deg, lat_deg, to_lon_deg, to_lat_deg : float or ndarray of float64
        Degrees; the four are broadcast together.

    Returns
    -------
    ndarray of float64
        Metres, at most `FARTHEST_M`; within 1e-6 of the geodesic up to 100 km, 1e-4 up to 1,000 km, 0.5 % up to
        15,000 km, and 5 % near the other side of the earth. NaN where an input is NaN.

    References
    ----------
    B. Hofmann-Wellenhof, H. Moritz, "Physical Geodesy", 2006, equation 5-27: from longitude and latitude to
    rectangular coordinates.

    Examples
    --------
    >>> round(float(surface_distance_m(0, 0, 1, 0)))  # a degree of the equator is 111,319 m
    111319
    """
    chord = _rectangular(lon_deg, lat_deg) - _rectangular(to_lon_deg, to_lat_deg)
    length = np.sqrt((chord * chord).sum(axis=0))
    return 2 * EARTH_RADIUS_M * np.arcsin(np.minimum(length / (2 * EARTH_RADIUS_M), 1.0))


def _rectangular(lon_deg, lat_deg):
    """Return rectangular coordinates in metres, of shape (3, ...)."""
    longitude, latitude = np.radians(lon_deg), np.radians(lat_deg)
    sine = np.sin(latitude)
    across_m = WGS84_AXIS_M / np.sqrt(1 - _ECCENTRICITY_2 * sine * sine)
    from_axis = across_m * np.cos(latitude)
    return np.stack(
        np.broadcast_arrays(
            from_axis * np.cos(longitude), from_axis * np.sin(longitude), across_m * (1 - _ECCENTRICITY_2) * sine
        )
    )


def distances(boxes: np.ndarray, places: np.ndarray, space: Space) -> np.ndarray:
    """Return the distances of boxes (P, 2n) from places (P, 2), a pair a row.

    Returns
    -------
    ndarray of float64, shape (P,)
        Metres over the surface in a geographic space; elsewhere the length of the straight line in the plane of the
        first two dimensions, in their unit. NaN where the place is.
    """
    offset = offsets(boxes, places, space)
    if not space.geographic:
        return np.hypot(offset[:, 0], offset[:, 1])
    latitude = np.clip(places[:, 1] + offset[:, 1], -90.0, 90.0)
    return surface_distance_m(places[:, 0], places[:, 1], places[:, 0] + offset[:, 0], latitude)


def offsets(boxes: np.ndarray, places: np.ndarray, space: Space) -> np.ndarray:
    """Return the way from each place (P, 2) to the nearest place of its box (P, 2n), float64 of shape (P, 2)."""
    way = np.zeros((len(boxes), 2))
    for axis, dimension in enumerate(space.dimensions[:2]):
        low, high = boxes[:, axis] - places[:, axis], boxes[:, space.n + axis] - places[:, axis]
        way[:, axis] = _nearest(low, high)
        for turn in (dimension.extent, -dimension.extent) if dimension.wraps else ():
            turned = _nearest(low + turn, high + turn)
            way[:, axis] = np.where(np.abs(turned) < np.abs(way[:, axis]), turned, way[:, axis])
    return way


def _nearest(low, high):
    """Return the number nearest to 0 in each interval."""
    return np.maximum(low, 0) + np.minimum(high, 0)


def middles(boxes: np.ndarray, space: Space) -> np.ndarray:
    """Return the middles of boxes (N, 2n), float64 of shape (N, max(2, n)).

    NaN in a dimension without an end, but 0 in the first two, so that each is somewhere, and in one that is missing.
    """
    middle = np.zeros((len(boxes), max(2, space.n)))
    middle[:, 2:] = np.nan
    for axis in range(space.n):
        low, high = boxes[:, axis], boxes[:, space.n + axis]
        bounded = np.isfinite(low) & np.isfinite(high)
        middle[bounded, axis] = (low[bounded] + high[bounded]) / 2
    return middle


def within_boxes(places: np.ndarray, reach: np.ndarray, space: Space) -> np.ndarray:
    """Return boxes of the plane, (Q, 4), that hold all that is within reach (Q,) of places (Q, 2)."""
    margin = np.stack([reach, reach], axis=1)
    if space.geographic:
        north = np.where(reach > ANYWHERE_M, np.inf, reach * SLACK / (EARTH_RADIUS_M * np.pi / 180))
        nearest_pole = np.abs(places[:, 1]) + north
        with np.errstate(invalid="ignore"):
            cosine = np.cos(np.radians(np.minimum(nearest_pole, POLE_DEG)))
        margin = np.stack([np.where(nearest_pole >= POLE_DEG, np.inf, north / cosine), north], axis=1)
    boxes = np.hstack([places - margin, places + margin])
    for axis, dimension in enumerate(space.dimensions[:2]):
        if dimension.wraps:
            around = boxes[:, 2 + axis] - boxes[:, axis] >= dimension.extent
            boxes[around, axis], boxes[around, 2 + axis] = -np.inf, np.inf
    return boxes
