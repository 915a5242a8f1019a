"""Distances on the earth in metres, between geometries of all kinds, and tests of which geometries may be near.

The distance of two geometries is the length of the least geodesic on the ellipsoid of WGS 84 between a place of the one
and a place of the other.
"""

import numpy as np
import shapely

from streaming.operators.edges import apart_m
from streaming.operators.geodesics import MOST_DEGREE_M, geodesic_m, margins_deg
from streaming.spaces import FULL_TURN_DEG, Space

# A tenth of a millimetre: more than the rounding error of degrees.
ROUNDING_DEG = 1e-9
# A micrometre: more than the rounding error of metres, which is that of numbers as large as the radius of the earth.
ROUNDING_M = 1e-6
# Farther apart than any two longitudes.
ANYWHERE_DEG = 1_000.0
# Two geometries with at most this many pairs of vertices are measured without a test whether they may be near.
FEW = 64
_POINT, _LINE = 0, 1


def distance_m(
    shapes: shapely.Geometry | np.ndarray,
    geometries: shapely.Geometry | np.ndarray,
    limit_m: float | np.ndarray = np.nan,
) -> np.ndarray:
    """Return the distances between elements and geometries, a pair a row; the same in both directions.

    Parameters
    ----------
    shapes, geometries : geometry or array of geometries, shape (P,)
        Points, lines, polygons, in finite degrees; the two are broadcast together. Edges are straight lines in
        longitude and latitude. Places a turn of longitude apart are the same place.
    limit_m : float or ndarray of float64, shape (P,), optional
        The limit that the caller will compare the distances with. A distance beyond it need not be exact.

    Returns
    -------
    ndarray of float64, shape (P,)
        Metres. 0 if the two intersect, such as a point within a polygon, or are less than a micrometre apart, which is
        less than degrees can tell. NaN if one is missing or empty. For the exactness see `geodesics.geodesic_m` and
        `edges.apart_m`.

    Examples
    --------
    >>> distance_m(shapely.Point(25, 60), shapely.LineString([(24, 60.001), (26, 60.001)])).round(1).tolist()
    [111.4]
    """
    shapes, geometries = np.broadcast_arrays(np.atleast_1d(shapes), np.atleast_1d(geometries))
    distance, limit_m = np.full(len(shapes), np.nan), np.broadcast_to(limit_m, len(shapes))
    kinds = [_kinds(side) for side in (shapes, geometries)]
    known = (kinds[0] >= _POINT) & (kinds[1] >= _POINT)
    points = known & (kinds[0] == _POINT) & (kinds[1] == _POINT)
    points &= shapely.get_num_coordinates(shapes) * shapely.get_num_coordinates(geometries) == 1
    places = [shapely.get_coordinates(side[points]).T for side in (shapes, geometries)]
    distance[points] = geodesic_m(*places[0], *places[1], limit_m=limit_m[points])
    rest = np.flatnonzero(known & ~points)
    distance[rest] = apart_m(shapes[rest], geometries[rest], limit_m[rest])
    # For a point that lies on a line, `apart_m` finds 0 already; only pairs with more dimensions are tested.
    rest = np.flatnonzero(known & (kinds[0] + kinds[1] > _LINE))
    distance[rest[meets(shapes[rest], geometries[rest])]] = 0.0
    distance[distance < ROUNDING_M] = 0.0
    return distance


def points_apart_m(places: np.ndarray, others: np.ndarray, limit_m: float = np.nan) -> np.ndarray:
    """Return the distances between points, a pair a row, as `distance_m` does, without making geometries of them.

    Parameters
    ----------
    places, others : ndarray of float64, shape (P, 2)
        Finite degrees.
    limit_m : float, optional
        As `distance_m` takes it.

    Returns
    -------
    ndarray of float64, shape (P,)

    Examples
    --------
    >>> points_apart_m(np.array([[25.0, 60.0]]), np.array([[25.0, 60.001]])).round(1).tolist()
    [111.4]
    """
    distance = geodesic_m(*places.T, *others.T, limit_m=limit_m)
    distance[distance < ROUNDING_M] = 0.0
    return distance


def _kinds(geometries: np.ndarray) -> np.ndarray:
    """Return the dimensions of geometries, -1 for missing and empty ones."""
    return np.where(shapely.is_empty(geometries), -1, shapely.get_dimensions(geometries))


def meets(shapes: np.ndarray, geometries: shapely.Geometry | np.ndarray) -> np.ndarray:
    """Tell which elements intersect their geometry; places a turn of longitude apart are the same place.

    Parameters
    ----------
    shapes : ndarray of geometries, shape (N,)
        In degrees.
    geometries : geometry or ndarray of geometries, shape (N,)
        In degrees. It is fast if they are prepared.

    Returns
    -------
    ndarray of bool, shape (N,)
    """
    geometries = np.broadcast_to(geometries, shapes.shape)
    met = shapely.intersects(geometries, shapes)
    low, high = shapely.bounds(shapes).T[[0, 2]]
    others_low, others_high = shapely.bounds(geometries).T[[0, 2]]
    for turn in (-FULL_TURN_DEG, FULL_TURN_DEG):
        over = np.flatnonzero(~met & (low + turn <= others_high) & (others_low <= high + turn))
        met[over] = shapely.intersects(geometries[over], turned(shapes[over], turn))
    return met


def closer_than(
    shapes: shapely.Geometry | np.ndarray, geometries: shapely.Geometry | np.ndarray, limit_m: float
) -> np.ndarray:
    """Tell which pairs have a `distance_m` below a limit, bool of shape (P,).

    It is fast if the geometries are prepared: the distance in degrees then decides most pairs without reading all
    vertices.
    """
    shapes, geometries = np.broadcast_arrays(np.atleast_1d(shapes), np.atleast_1d(geometries))
    surely = limit_m / MOST_DEGREE_M - ROUNDING_DEG
    closer = (surely > 0) & shapely.dwithin(geometries, shapes, surely)
    unsure = np.flatnonzero(~closer)
    unsure = unsure[perhaps_closer(shapes[unsure], geometries[unsure], limit_m)]
    closer[unsure] = distance_m(shapes[unsure], geometries[unsure], limit_m) < limit_m
    return closer


def perhaps_closer(shapes: np.ndarray, geometries: np.ndarray, limit_m: float | np.ndarray) -> np.ndarray:
    """Tell which pairs may have a `distance_m` up to a limit, by distances in degrees, bool of shape (P,).

    The limit is a float, or float64 of shape (P,).
    It is fast if the geometries are prepared: then it need not read all vertices. It returns True for all pairs with
    few vertices, because measuring these takes less time than this test.
    """
    closer = shapely.get_num_coordinates(shapes) * shapely.get_num_coordinates(geometries) <= FEW
    heavy = np.flatnonzero(~closer)
    limit_m = np.broadcast_to(limit_m, len(shapes))
    closer[heavy] = _perhaps_closer(shapes[heavy], geometries[heavy], limit_m[heavy])
    return closer


def _perhaps_closer(shapes: np.ndarray, geometries: np.ndarray, limit_m: np.ndarray) -> np.ndarray:
    bounds, others = shapely.bounds(shapes), shapely.bounds(geometries)
    reach = np.max(_margins(bounds[:, 1], bounds[:, 3], limit_m), axis=0)
    reach = np.minimum(np.nan_to_num(reach), ANYWHERE_DEG)
    closer = np.zeros(len(shapes), dtype=bool)
    for turn in (0.0, -FULL_TURN_DEG, FULL_TURN_DEG):
        beside = (bounds[:, 0] + turn - reach <= others[:, 2]) & (others[:, 0] <= bounds[:, 2] + turn + reach)
        near = np.flatnonzero(beside & ~closer)
        closer[near] = shapely.dwithin(geometries[near], turned(shapes[near], turn), reach[near])
    return closer


def within_reach(boxes: np.ndarray, distance: float | np.ndarray, space: Space) -> np.ndarray:
    """Return boxes (K, 2n) enlarged in the plane so that they contain all places within a distance of the given ones.

    The distance, one or one for each box, is in metres in a geographic space, otherwise in the unit of the dimensions.
    A box that reaches around the whole circle becomes infinite in longitude.
    """
    n = space.n
    grown = boxes.copy()
    margin = np.broadcast_to(np.asarray(distance)[..., None] + ROUNDING_DEG, (len(boxes), 2))
    if space.geographic:
        margin = np.stack(_margins(boxes[:, 1], boxes[:, n + 1], distance), axis=1)
    for axis in range(min(2, n)):
        grown[:, axis] -= margin[:, axis]
        grown[:, n + axis] += margin[:, axis]
    if space.geographic:
        around = grown[:, n] - grown[:, 0] >= FULL_TURN_DEG
        grown[around, 0], grown[around, n] = -np.inf, np.inf
    return grown


def turned(geometries: np.ndarray, turn: float | np.ndarray) -> np.ndarray:
    """Return geometries moved by `turn`: degrees of longitude, or (x, y) in the axes of a plane."""
    if not np.any(turn):
        return geometries
    move = np.array([turn, 0.0]) if np.ndim(turn) == 0 else turn
    return shapely.set_coordinates(geometries.copy(), shapely.get_coordinates(geometries) + move)


def _margins(south: np.ndarray, north: np.ndarray, limit_m: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how far boxes must grow in longitude and latitude to contain all places within a limit, (P,) each.

    The straight line in degrees between two places within the limit is no longer than the larger of the two margins.
    """
    farthest = np.minimum(np.maximum(np.abs(south), np.abs(north)), 90.0)
    east, up = margins_deg(farthest, np.maximum(limit_m, ROUNDING_M))
    return east + ROUNDING_DEG, np.broadcast_to(up + ROUNDING_DEG, east.shape)
