"""Distances and courses on a sphere."""

import numpy as np
from numpy.typing import ArrayLike

EARTH_RADIUS_M = 6_371_008.8


def distance_m(lon_deg: ArrayLike, lat_deg: ArrayLike, to_lon_deg: ArrayLike, to_lat_deg: ArrayLike) -> np.ndarray:
    """Return the great-circle distance between points, in metres.

    Parameters
    ----------
    lon_deg, lat_deg, to_lon_deg, to_lat_deg : float or ndarray of float64
        The four are broadcast together.

    Returns
    -------
    float or ndarray of float64
        Metres on a sphere of radius `EARTH_RADIUS_M`.

    References
    ----------
    R. W. Sinnott, "Virtues of the Haversine", Sky and Telescope 68(2), 1984, p. 159.

    Examples
    --------
    >>> round(float(distance_m(0, 0, 0, 1)))  # one degree of latitude
    111195
    """
    lon, lat, to_lon, to_lat = (np.radians(angle) for angle in (lon_deg, lat_deg, to_lon_deg, to_lat_deg))
    half = np.sin((to_lat - lat) / 2) ** 2 + np.cos(lat) * np.cos(to_lat) * np.sin((to_lon - lon) / 2) ** 2
    return 2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.minimum(half, 1.0)))


def course_deg(lon_deg: ArrayLike, lat_deg: ArrayLike, to_lon_deg: ArrayLike, to_lat_deg: ArrayLike) -> np.ndarray:
    """Return the initial course from the first point to the second, in degrees clockwise from north, in [0, 360).

    Parameters
    ----------
    lon_deg, lat_deg, to_lon_deg, to_lat_deg : float or ndarray of float64
        The four are broadcast together.

    Returns
    -------
    float or ndarray of float64

    Examples
    --------
    >>> round(float(course_deg(0, 0, 1, 0)))
    90
    """
    lon, lat, to_lon, to_lat = (np.radians(angle) for angle in (lon_deg, lat_deg, to_lon_deg, to_lat_deg))
    east = np.sin(to_lon - lon) * np.cos(to_lat)
    north = np.cos(lat) * np.sin(to_lat) - np.sin(lat) * np.cos(to_lat) * np.cos(to_lon - lon)
    return np.degrees(np.arctan2(east, north)) % 360.0
