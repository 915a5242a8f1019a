"""How far an element is from the border of an area, a feature or a range, and where the border is nearest."""

import math
from collections.abc import Sequence

import numpy as np
import shapely
from numpy.typing import ArrayLike

from streaming.explaining.subject import Subject
from streaming.explaining.terms import BorderDistance
from streaming.kinds.area_documents import polygons_geometry
from streaming.kinds.areas import AreaShape, CircleArea, PolygonArea
from streaming.kinds.parts import Box
from streaming.operators.edges import apart_m, nearest_places
from streaming.operators.geodesics import along
from streaming.operators.metres import distance_m
from streaming.spaces import Space

FARTHEST_LONGITUDES = (-180.0, 180.0)
FARTHEST_LATITUDES = (-90.0, 90.0)


def border_of_shape(shape: AreaShape, within: bool, subject: Subject) -> BorderDistance | None:
    """Return the border of a polygon, a circle or a corridor; None outside of geographic spaces.

    Parameters
    ----------
    shape : PolygonArea or CircleArea or CorridorArea
    within : bool
        Whether the element meets the area.
    subject : Subject
    """
    if not subject.space.geographic:
        return None
    if isinstance(shape, PolygonArea):
        return border_of_lines(shapely.boundary(polygons_geometry(shape)), within, subject)
    if isinstance(shape, CircleArea):
        return border_about(shapely.Point(shape.center), shape.radius_m, subject)
    return border_about(shapely.LineString(shape.line), shape.width_m / 2, subject)


def border_of_box(box: Box, within: bool, subject: Subject) -> BorderDistance | None:
    """Return the border of a box in longitude and latitude; None if it has none, or outside of geographic spaces."""
    lines = _sides(box, subject.space) if subject.space.geographic else []
    return border_of_lines(shapely.MultiLineString(lines), within, subject) if lines else None


def _sides(box: Box, space: Space) -> list[list[tuple[float, float]]]:
    """Return the sides of a box that are bounded, as lines."""
    west, south, east, north = (box[i] for i in (0, 1, space.n, space.n + 1))
    if math.isfinite(west) and space.dimensions[0].extent <= east - west:
        west, east = -math.inf, math.inf  # it reaches around the earth
    low, high = (clipped(side, *FARTHEST_LONGITUDES) for side in (west, east))
    bottom, top = np.clip([south, north], *FARTHEST_LATITUDES).tolist()
    sides = [[(x, bottom), (x, top)] for x in (west, east) if math.isfinite(x)]
    return sides + [[(low, y), (high, y)] for y in (south, north) if -90.0 < y < 90.0]


def clipped(bound: float, low: float, high: float) -> float:
    """Return a bound, or the limit of the dimension where it is infinite."""
    return bound if math.isfinite(bound) else (low if bound < 0 else high)


def border_of_lines(lines: shapely.Geometry, within: bool, subject: Subject) -> BorderDistance:
    """Return the border that lines are, given whether the element is within it."""
    lines = np.array([lines], dtype=object)
    distance = float(apart_m(subject.shape, lines)[0])
    here, there = nearest_places(subject.shape, lines)
    return BorderDistance(-distance if within else distance, _pair(here[0]), _pair(there[0]))


def border_about(middle: shapely.Geometry, reach_m: float, subject: Subject) -> BorderDistance:
    """Return the border that lies at a distance from a place or a line; the distance 0 stands for the line itself."""
    about = np.array([middle], dtype=object)
    distance = float(distance_m(subject.shape, about)[0])
    here, there = (_pair(places[0]) for places in nearest_places(subject.shape, about))
    return BorderDistance(distance - reach_m, here, along(there, here, reach_m))


def border_of_feature(geometry: shapely.Geometry, subject: Subject) -> BorderDistance:
    """Return the border of a feature: of a polygon its outline, otherwise the feature itself."""
    areal = shapely.get_dimensions(geometry) == 2
    if not areal:
        return border_about(geometry, 0.0, subject)
    met = bool(distance_m(subject.shape, np.array([geometry], dtype=object))[0] == 0.0)
    return border_of_lines(shapely.boundary(geometry), met, subject)


def outside_by(low: Sequence[float], high: Sequence[float], bounds: Box, axis: int, space: Space) -> float:
    """Return how far an interval of an element is outside of a box in a dimension, in its unit; negative within."""
    return max(bounds[axis] - high[axis], low[axis] - bounds[space.n + axis])


def _pair(place: ArrayLike) -> tuple[float, float]:
    longitude, latitude = np.asarray(place).tolist()
    return longitude, latitude
