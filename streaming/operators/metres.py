"""Distances on the earth in metres, in the plane that touches it at an element."""

import numpy as np
import shapely

from streaming.spaces import FULL_TURN_DEG, Space

# NIMA TR8350.2, table 3.1: the ellipsoid of WGS 84.
WGS84_AXIS_M = 6_378_137.0
WGS84_FLATTENING = 1 / 298.257223563
# A tenth of a millimetre: more than the rounding of degrees.
ROUNDING_DEG = 1e-9
# A micrometre: more than the rounding of metres, which is that of a number as large as half the equator.
ROUNDING_M = 1e-6
# A latitude beyond this one has no local plane.
POLE_DEG = 89.999
# Of lines of so many vertices the distance is computed from all of them at once.
SHORT_LINE = 64
_ECCENTRICITY_2 = WGS84_FLATTENING * (2 - WGS84_FLATTENING)


def local_metres(lat_deg):
    """Return the lengths of a degree of longitude and of a degree of latitude.

    Parameters
    ----------
    lat_deg : float or ndarray of float64
        Where they are measured.

    Returns
    -------
    per_lon_m, per_lat_m : float or ndarray of float64
        Metres on the ellipsoid of WGS 84.

    References
    ----------
    J. P. Snyder, "Map Projections: A Working Manual", USGS Professional Paper 1395, 1987, equations 4-18 to 4-21: the
    radii of curvature along the meridian, and across it.

    Examples
    --------
    >>> [round(float(metres)) for metres in local_metres(0.0)]
    [111319, 110574]
    """
    latitude = np.radians(lat_deg)
    curved = 1 - _ECCENTRICITY_2 * np.sin(latitude) ** 2
    across_m = WGS84_AXIS_M / np.sqrt(curved)
    along_m = across_m * (1 - _ECCENTRICITY_2) / curved
    return np.radians(across_m * np.cos(latitude)), np.radians(along_m)


def distance_m(shapes, geometries) -> np.ndarray:
    """Return the distances between elements and geometries, a pair a row.

    The distance of a pair is that in the plane in which longitudes and latitudes are multiplied by the `local_metres`
    at the latitude of the centre of the element's bounding box. Places a turn of longitude apart are the same place.

    Parameters
    ----------
    shapes : geometry or array of geometries, shape (P,)
        Elements: points, lines, polygons, in finite degrees.
    geometries : geometry or array of geometries, shape (P,)
        The two are broadcast together.

    Returns
    -------
    ndarray of float64, shape (P,)
        Metres; 0 where the two meet, as a point within a polygon, or are less than a micrometre apart, which is less
        than the plane's coordinates can tell; NaN where one is missing or empty. Of points 10 km apart, within 0.1 %
        of the geodesic up to 70 degrees of latitude, within 0.2 % up to 80; less far, the error shrinks with the
        distance.

    Examples
    --------
    >>> distance_m(shapely.Point(25, 60), shapely.LineString([(24, 60.001), (26, 60.001)])).round(1).tolist()
    [111.4]
    """
    shapes, geometries = np.broadcast_arrays(np.atleast_1d(shapes), np.atleast_1d(geometries))
    bounds, others = shapely.bounds(shapes), shapely.bounds(geometries)
    factors = _factors(bounds)
    distance = _distance(shapes, geometries, factors)
    for turn in (-FULL_TURN_DEG, FULL_TURN_DEG):
        # A turned element is no nearer than the gap of longitude that is left, so few are measured again.
        gap = np.maximum(others[:, 0] - bounds[:, 2] - turn, bounds[:, 0] + turn - others[:, 2]) * factors[:, 0]
        near = np.flatnonzero(gap < distance)
        distance[near] = np.fmin(distance[near], _distance(shapes[near], geometries[near], factors[near], turn))
    distance[distance < ROUNDING_M] = 0.0
    return distance


def _distance(shapes, geometries, factors, turn=0.0):
    """Return the distances of pairs, the shapes moved by `turn`, both multiplied by their row of `factors` (P, 2)."""
    pointed = (shapely.get_type_id(shapes) == shapely.GeometryType.POINT) & ~shapely.is_empty(shapes)
    lined = shapely.get_type_id(geometries) == shapely.GeometryType.LINESTRING
    vertices = shapely.get_num_coordinates(geometries)
    short = pointed & lined & (vertices > 1) & (vertices <= SHORT_LINE)
    distance = np.empty(len(shapes))
    if short.any():
        points = (shapely.get_coordinates(shapes[short]) + np.array([turn, 0.0])) * factors[short]
        distance[short] = _to_lines(points, geometries[short], factors[short])
    rest = np.flatnonzero(~short)
    if len(rest):
        moved = _scaled(shapes[rest], factors[rest], turn)
        distance[rest] = shapely.distance(moved, _scaled(geometries[rest], factors[rest]))
    return distance


def _to_lines(points, lines, factors):
    """Return the distances of points (P, 2) from lines, each multiplied by its row of `factors` before.

    It makes no geometries, which takes longer than to measure them, and computes what GEOS does
    (``Distance::pointToSegment``).
    """
    vertices, line = shapely.get_coordinates(lines, return_index=True)
    vertices = vertices * factors[line]
    first = np.flatnonzero(line[1:] == line[:-1])
    of = line[first]
    start, along, beside = vertices[first], vertices[first + 1] - vertices[first], points[of] - vertices[first]
    length_2 = (along * along).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # a segment without length is its end
        share = np.nan_to_num((beside * along).sum(axis=1) / length_2)
        across = np.abs(along[:, 0] * beside[:, 1] - along[:, 1] * beside[:, 0]) / length_2 * np.sqrt(length_2)
    ends = points[of] - np.where((share <= 0)[:, None], start, vertices[first + 1])
    distance = np.where((share <= 0) | (share >= 1), np.sqrt((ends * ends).sum(axis=1)), across)
    return np.minimum.reduceat(distance, np.searchsorted(of, np.arange(len(lines))))


def closer_than(shapes, geometries, limit_m: float) -> np.ndarray:
    """Tell which pairs have a `distance_m` below a limit, bool of shape (P,).

    Prepared geometries make it fast: most pairs are decided by the distance in degrees, without a look at all vertices.
    """
    shapes, geometries = np.broadcast_arrays(np.atleast_1d(shapes), np.atleast_1d(geometries))
    surely = limit_m / _factors(shapely.bounds(shapes)).max(1) - ROUNDING_DEG
    closer = (surely > 0) & shapely.dwithin(geometries, shapes, surely)
    unsure = np.flatnonzero(~closer)
    unsure = unsure[perhaps_closer(shapes[unsure], geometries[unsure], limit_m)]
    closer[unsure] = distance_m(shapes[unsure], geometries[unsure]) < limit_m
    return closer


def perhaps_closer(shapes: np.ndarray, geometries: np.ndarray, limit_m: float) -> np.ndarray:
    """Tell which pairs may have a `distance_m` up to a limit, by distances in degrees, bool of shape (P,).

    Prepared geometries make it fast: it does not look at all vertices.
    """
    bounds, others = shapely.bounds(shapes), shapely.bounds(geometries)
    reach = max(limit_m, ROUNDING_M) / _factors(bounds).min(1) + ROUNDING_DEG
    closer = np.zeros(len(shapes), dtype=bool)
    for turn in (0.0, -FULL_TURN_DEG, FULL_TURN_DEG):
        beside = (bounds[:, 0] + turn - reach <= others[:, 2]) & (others[:, 0] <= bounds[:, 2] + turn + reach)
        near = np.flatnonzero(beside & ~closer)
        closer[near] = shapely.dwithin(geometries[near], turned(shapes[near], turn), reach[near])
    return closer


def within_reach(boxes: np.ndarray, distance: float, space: Space) -> np.ndarray:
    """Return boxes (K, 2n) larger by a distance in the plane: all that is no farther away lies in them.

    In a geographic space the distance is one of metres, otherwise in the unit of the dimensions.
    """
    n = space.n
    grown = boxes.copy()
    margin = np.full((len(boxes), 2), distance)
    if space.geographic:
        middle = np.clip((boxes[:, 1] + boxes[:, n + 1]) / 2, -POLE_DEG, POLE_DEG)
        margin = distance / np.stack(local_metres(middle), axis=1)
    margin = margin + ROUNDING_DEG
    for axis in range(min(2, n)):
        grown[:, axis] -= margin[:, axis]
        grown[:, n + axis] += margin[:, axis]
    return grown


def turned(geometries: np.ndarray, turn) -> np.ndarray:
    """Return geometries moved by a turn of longitude in degrees, or of both axes of a plane (x, y)."""
    return _scaled(geometries, np.ones((len(geometries), 2)), turn) if np.any(turn) else geometries


def _factors(bounds):
    """Return the metres of a degree of longitude and of latitude at the centres of boxes, (P, 2)."""
    # What is missing has no centre; its distance is NaN by any factor.
    return np.stack(local_metres(np.nan_to_num((bounds[:, 1] + bounds[:, 3]) / 2)), axis=1)


def _scaled(geometries, factors, turn=0.0):
    """Return geometries moved by a turn, as in `turned`, then multiplied by a row of `factors` (P, 2)."""
    coordinates, row = shapely.get_coordinates(geometries, return_index=True)
    move = np.array([turn, 0.0]) if np.ndim(turn) == 0 else turn
    return shapely.set_coordinates(geometries.copy(), (coordinates + move) * factors[row])
