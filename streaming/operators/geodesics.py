"""Geodesic distances between points on the ellipsoid of WGS 84; arcs are used where they are exact enough.

References
----------
C. F. F. Karney, "Algorithms for geodesics", Journal of Geodesy 87, 2013: what `pyproj.Geod` computes, to nanometres.
B. Hofmann-Wellenhof, H. Moritz, "Physical Geodesy", 2006, equation 5-27: from longitude and latitude to rectangular
coordinates.
"""

from typing import overload

import numpy as np
import pyproj

# Mean radius of the earth by IUGG.
EARTH_RADIUS_M = 6_371_008.8
# NIMA TR8350.2, table 3.1: the ellipsoid of WGS 84.
WGS84_AXIS_M = 6_378_137.0
WGS84_FLATTENING = 1 / 298.257223563
ECCENTRICITY_2 = WGS84_FLATTENING * (2 - WGS84_FLATTENING)
# Half of the earth's circumference; no arc is longer.
FARTHEST_M = np.pi * EARTH_RADIUS_M
# Measured: up to 10,000 km, an arc errs by at most 0.0005 * length * (length / radius)^2.
ARC_ERROR = 6e-4
ARC_UNKNOWN_M = 10_000_000.0
# More than the rounding errors of coordinates and of the geodesic.
ROUNDED_M = 2e-8
# A shorter arc is returned in place of the geodesic: it is within 15 micrometres.
SHORT_M = 10_000.0
# The shortest and the longest degree of latitude, at the equator and at a pole; no degree of longitude is longer.
LEAST_DEGREE_M, MOST_DEGREE_M = 110_574.0, 111_695.0
# A latitude beyond this one counts as the pole.
POLE_DEG = 89.99
_GEOD = pyproj.Geod(a=WGS84_AXIS_M, f=WGS84_FLATTENING)


def geodesic_m(
    lon_deg: float | np.ndarray,
    lat_deg: float | np.ndarray,
    to_lon_deg: float | np.ndarray,
    to_lat_deg: float | np.ndarray,
    *,
    limit_m: float | np.ndarray = np.nan,
) -> np.ndarray:
    """Return the lengths of the geodesics between points.

    Parameters
    ----------
    lon_deg, lat_deg, to_lon_deg, to_lat_deg : float or ndarray of float64
        Degrees; the four are broadcast together.
    limit_m : float or ndarray of float64, optional
        The limit that the caller will compare the lengths with. A length beyond it need not be exact.

    Returns
    -------
    ndarray of float64
        Metres, the same in both directions. Lengths up to 10 km are within 15 micrometres, longer ones are exact, and
        those beyond the limit are only as exact as arcs. If this error could change the comparison with the limit, the
        length is exact, too. NaN if an input is NaN.

    Examples
    --------
    >>> round(float(geodesic_m(0, 0, 1, 0)))  # a degree of the equator is 111,319 m
    111319
    """
    arc = np.asarray(arc_m(lon_deg, lat_deg, to_lon_deg, to_lat_deg))
    again = (arc >= SHORT_M) & ~(arc > limit_m) | (np.abs(arc - limit_m) <= error_m(arc))
    return _remeasured(arc, again, (lon_deg, lat_deg, to_lon_deg, to_lat_deg))


def within_m(
    lon_deg: float | np.ndarray,
    lat_deg: float | np.ndarray,
    to_lon_deg: float | np.ndarray,
    to_lat_deg: float | np.ndarray,
    *,
    limit_m: float | np.ndarray,
) -> np.ndarray:
    """Tell which pairs of points have a geodesic no longer than a limit in metres, bool; see `geodesic_m`.

    Arcs decide all pairs except those whose arc is about as long as the limit.
    """
    arc = np.asarray(arc_m(lon_deg, lat_deg, to_lon_deg, to_lat_deg))
    unsure = np.abs(arc - limit_m) <= error_m(arc)
    return _remeasured(arc, unsure, (lon_deg, lat_deg, to_lon_deg, to_lat_deg)) <= limit_m


def along(from_place: tuple[float, float], to_place: tuple[float, float], length_m: float) -> tuple[float, float]:
    """Return the place at a distance from a place, on the geodesic towards another one, or beyond that one.

    Parameters
    ----------
    from_place, to_place : tuple of float, length 2
        Longitude and latitude. If the two are the same place, the way goes north.
    length_m : float

    Returns
    -------
    longitude, latitude : float

    Examples
    --------
    >>> [round(degrees, 3) for degrees in along((0, 0), (90, 0), 111_319.5)]
    [1.0, 0.0]
    """
    (lon_deg, lat_deg), (to_lon_deg, to_lat_deg) = from_place, to_place
    azimuth_deg, _, apart_m = _GEOD.inv(lon_deg, lat_deg, to_lon_deg, to_lat_deg)
    longitude, latitude, _ = _GEOD.fwd(lon_deg, lat_deg, azimuth_deg if apart_m else 0.0, length_m)
    return longitude, latitude


def _remeasured(arc: np.ndarray, again: np.ndarray, coordinates: tuple[float | np.ndarray, ...]) -> np.ndarray:
    """Return the lengths of arcs, but where `again` is true the lengths of the geodesics."""
    if not again.any():
        return arc
    chosen = [np.broadcast_to(np.asarray(degrees, dtype=np.float64), arc.shape)[again] for degrees in coordinates]
    for latitude in (1, 3):  # a place on an edge that ends at a pole may round to beyond the pole
        chosen[latitude] = np.clip(chosen[latitude], -90.0, 90.0)
    length = arc.copy()
    length[again] = _GEOD.inv(*chosen)[2]
    return length


def arc_m(
    lon_deg: float | np.ndarray,
    lat_deg: float | np.ndarray,
    to_lon_deg: float | np.ndarray,
    to_lat_deg: float | np.ndarray,
) -> np.ndarray:
    """Return the lengths of arcs over the straight lines through the earth between points.

    This is fast, and near the length of the geodesic: `error_m` bounds the difference. Poles and the antimeridian need
    no special case.

    Parameters
    ----------
    lon_deg, lat_deg, to_lon_deg, to_lat_deg : float or ndarray of float64
        Degrees; the four are broadcast together.

    Returns
    -------
    ndarray of float64
        Metres, at most `FARTHEST_M`. NaN where an input is NaN.
    """
    ends = np.broadcast_arrays(lon_deg, lat_deg, to_lon_deg, to_lat_deg)
    chord = rectangular(*ends[:2]) - rectangular(*ends[2:])
    return arc_of_chord(np.sqrt((chord * chord).sum(axis=0)))


def arc_of_chord(length_m: np.ndarray) -> np.ndarray:
    """Return the lengths of the arcs over straight lines, on a sphere of radius `EARTH_RADIUS_M`, in metres."""
    return 2 * EARTH_RADIUS_M * np.arcsin(np.minimum(length_m / (2 * EARTH_RADIUS_M), 1.0))


def error_m(arc: np.ndarray) -> np.ndarray:
    """Return a bound of the difference between an arc and its geodesic, in metres; infinite above `ARC_UNKNOWN_M`."""
    error = ROUNDED_M + ARC_ERROR * arc * (arc / EARTH_RADIUS_M) ** 2
    return np.where(arc > ARC_UNKNOWN_M, np.inf, error)


def rectangular(lon_deg: float | np.ndarray, lat_deg: float | np.ndarray) -> np.ndarray:
    """Return the rectangular coordinates of points on the ellipsoid, in metres, float64 of shape (3, ...)."""
    longitude, latitude = np.radians(lon_deg), np.radians(lat_deg)
    sine = np.sin(latitude)
    across_m = WGS84_AXIS_M / np.sqrt(1 - ECCENTRICITY_2 * sine * sine)
    from_axis = across_m * np.cos(latitude)
    coordinates = np.empty((3, *np.broadcast_shapes(np.shape(longitude), np.shape(latitude))))
    coordinates[0] = from_axis * np.cos(longitude)
    coordinates[1] = from_axis * np.sin(longitude)
    coordinates[2] = across_m * (1 - ECCENTRICITY_2) * sine
    return coordinates


@overload
def local_metres(lat_deg: float) -> tuple[float, float]: ...
@overload
def local_metres(lat_deg: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...
def local_metres(lat_deg: float | np.ndarray) -> tuple[float, float] | tuple[np.ndarray, np.ndarray]:
    """Return the lengths of a degree of longitude and of a degree of latitude.

    Parameters
    ----------
    lat_deg : float or ndarray of float64
        The latitude at which they are measured.

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
    curved = 1 - ECCENTRICITY_2 * np.sin(latitude) ** 2
    across_m = WGS84_AXIS_M / np.sqrt(curved)
    along_m = across_m * (1 - ECCENTRICITY_2) / curved
    return np.radians(across_m * np.cos(latitude)), np.radians(along_m)


def margins_deg(lat_deg: float | np.ndarray, reach_m: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return upper bounds of the differences in longitude and latitude to places within reach.

    Parameters
    ----------
    lat_deg : float or ndarray of float64
        The latitude from which the reach is measured.
    reach_m : float or ndarray of float64
        The length of the longest geodesic.

    Returns
    -------
    ndarray of float64, ndarray of float64
        Degrees of longitude, infinite if a pole may be within reach, and degrees of latitude.
    """
    north = np.asarray(reach_m) / LEAST_DEGREE_M
    # The geodesic stays within these latitudes, so no degree of longitude on its way is shorter than at their end.
    farthest = np.abs(lat_deg) + north
    with np.errstate(invalid="ignore"):
        east = reach_m / local_metres(np.minimum(farthest, POLE_DEG))[0]
        return np.where(farthest >= POLE_DEG, np.inf, east), north
