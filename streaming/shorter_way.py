"""Edges over more than half a turn of longitude: they are meant the shorter way, over the antimeridian.

References
----------
RFC 7946, section 3.1.9: geometries that cross the antimeridian.
"""

import numpy as np
import shapely

HALF_TURN, TURN, POLE = 180.0, 360.0, 90.0
# An edge of a whole turn has both ends on the antimeridian, as the box of the world does; it is meant as it is.
EDGE = 1e-6


def take_shorter_way(shapes: np.ndarray) -> np.ndarray:
    """Move vertices by whole turns, in place, such that no edge goes more than 180 degrees of longitude.

    Longitudes then go on beyond the antimeridian. A ring that goes around a pole is closed over the pole. Edges along a
    pole, and of a whole turn, stay.

    Parameters
    ----------
    shapes : ndarray of shapely.Geometry or None, shape (N,)
        In degrees of longitude and latitude.

    Returns
    -------
    ndarray of int64
        The rows that were changed.
    """
    bounds = shapely.bounds(shapes)
    with np.errstate(invalid="ignore"):
        wide = np.flatnonzero(bounds[:, 2] - bounds[:, 0] > HALF_TURN)
    changed = [row for row in wide.tolist() if _has_long_edge(shapes[row])]
    for row in changed:
        shapes[row] = _shorter(shapes[row])
    return np.array(changed, dtype=np.int64)


def _has_long_edge(shape: shapely.Geometry) -> bool:
    parts = shapely.get_parts(shape)
    lines = np.concatenate(
        [shapely.get_rings(parts), parts[shapely.get_type_id(parts) == shapely.GeometryType.LINESTRING]]
    )
    if any(_long_edges(shapely.get_coordinates(line)).any() for line in lines):
        return True
    return any(_has_long_edge(part) for part in parts if shapely.get_num_geometries(part) > 1)


def _long_edges(places: np.ndarray) -> np.ndarray:
    """Return by how many turns each edge is moved to be the shorter one, float64 of shape (N - 1,)."""
    step = np.diff(places[:, 0])
    at_pole = np.abs(places[:, 1]) >= POLE - EDGE
    is_long = (np.abs(step) > HALF_TURN) & (np.abs(step) < TURN - EDGE) & ~(at_pole[1:] & at_pole[:-1])
    return np.where(is_long, -np.sign(step), 0.0)


def _shorter(shape: shapely.Geometry) -> shapely.Geometry:
    if shape.geom_type == "LineString":
        return shapely.LineString(_unwound(shapely.get_coordinates(shape)))
    if shape.geom_type == "Polygon":
        outer, *holes = (_closed(_unwound(shapely.get_coordinates(ring))) for ring in shapely.get_rings(shape))
        return shapely.Polygon(outer, [_beside(hole, outer) for hole in holes])
    parts = shapely.get_parts(shape)
    return type(shape)([_shorter(part) for part in parts]) if shape.geom_type not in ("Point", "MultiPoint") else shape


def _unwound(places: np.ndarray) -> np.ndarray:
    """Return a line whose longitudes go on beyond the antimeridian; it begins in the world, [-180, 180), if it can."""
    moved = places.copy()
    moved[1:, 0] += TURN * np.cumsum(_long_edges(places))
    west = moved[:, 0].min()
    moved[:, 0] -= TURN * np.floor((west + HALF_TURN) / TURN)
    return moved


def _closed(ring: np.ndarray) -> np.ndarray:
    """Return a ring that ends where it begins: one around a pole ends a turn away, so it is led over the pole."""
    if abs(ring[-1, 0] - ring[0, 0]) < HALF_TURN:
        return ring
    pole = np.copysign(POLE, ring[:, 1].mean())
    return np.vstack([ring, [ring[-1, 0], pole], [ring[0, 0], pole], ring[:1]])


def _beside(hole: np.ndarray, outer: np.ndarray) -> np.ndarray:
    """Return a hole, moved by whole turns to where its polygon is."""
    away = (outer[:, 0].min() + outer[:, 0].max() - hole[:, 0].min() - hole[:, 0].max()) / 2
    return hole + np.array([TURN * np.round(away / TURN), 0.0])
