"""Areas of any shape: polygons, circles and corridors, and the boxes about them.

The box about a shape is the `area` of a plan. The index, the admission and the levels know only this box. The shape
itself is a filter of the plan, `AreaFilter`, which passes the elements that meet it.
"""

import math
from dataclasses import dataclass

# Half of the earth's circumference is 20,037,508 m at the equator; a little more covers the earth.
MAX_AREA_METRES = 20_100_000.0
MAX_AREA_VERTICES = 1_000
# The shortest degree of latitude on the ellipsoid of WGS 84, at the equator.
LEAST_LATITUDE_M = 110_574.0
# A degree of longitude at the equator; at a latitude it is at least this times the cosine of the latitude.
EQUATOR_DEGREE_M = 111_319.0
# A latitude beyond this one counts as the pole.
POLE_DEG = 89.99
# A tenth of a millimetre: more than the rounding error of degrees.
ROUNDING_DEG = 1e-9
FULL_TURN_DEG = 360.0

Place = tuple[float, float]
Ring = tuple[Place, ...]


@dataclass(frozen=True)
class PolygonArea:
    """An area of one or more polygons, which may have holes (RFC 7946, 3.1.6).

    Parameters
    ----------
    polygons : tuple of tuple of tuple of tuple of float
        The rings of each polygon, the outline first. A ring ends where it begins.
    """

    polygons: tuple[tuple[Ring, ...], ...]


@dataclass(frozen=True)
class CircleArea:
    """The places within a distance of a centre.

    Parameters
    ----------
    center : tuple of float, length 2
        Longitude and latitude.
    radius_m : float
        The length of the longest geodesic from the centre to a place of the area.
    """

    center: Place
    radius_m: float


@dataclass(frozen=True)
class CorridorArea:
    """The places within half a width of a line; its ends are round.

    Parameters
    ----------
    line : tuple of tuple of float
        Longitudes and latitudes. Edges are straight lines in longitude and latitude (RFC 7946, 3.1.1).
    width_m : float
        Twice the length of the longest geodesic from the line to a place of the area.
    """

    line: tuple[Place, ...]
    width_m: float


AreaShape = PolygonArea | CircleArea | CorridorArea


@dataclass(frozen=True)
class AreaFilter:
    """Passes the elements that meet an area: their geometry, or their box if they have none.

    Parameters
    ----------
    shape : PolygonArea or CircleArea or CorridorArea
    """

    shape: AreaShape


def vertices_of(shape: AreaShape) -> list[Place]:
    """Return all places that a shape is made of."""
    if isinstance(shape, CircleArea):
        return [shape.center]
    if isinstance(shape, CorridorArea):
        return list(shape.line)
    return [place for polygon in shape.polygons for ring in polygon for place in ring]


def envelope(shape: AreaShape) -> tuple[list[float | None], list[float | None]]:
    """Return the corners of a box about a shape, as `Space.corners` takes them.

    Of a circle or a corridor, the box may be a little wider than needed. It has no bounds in longitude if the shape
    may contain a pole, or reaches around the earth.

    Examples
    --------
    >>> low, high = envelope(CircleArea((179.9, 89.0), 200_000.0))
    >>> low[0], round(low[1], 3), high
    (None, 87.191, [None, 90.0])
    """
    longitudes, latitudes = zip(*vertices_of(shape), strict=True)
    low, high = [min(longitudes), min(latitudes)], [max(longitudes), max(latitudes)]
    if isinstance(shape, PolygonArea):
        return [*low], [*high]
    reach_m = shape.radius_m if isinstance(shape, CircleArea) else shape.width_m / 2
    north = reach_m / LEAST_LATITUDE_M + ROUNDING_DEG
    farthest = max(abs(low[1]), abs(high[1])) + north
    south, end = max(low[1] - north, -90.0), min(high[1] + north, 90.0)
    # A geodesic stays within these latitudes, so no degree of longitude on its way is shorter than at their end.
    east = math.inf
    if farthest < POLE_DEG:
        east = reach_m / (EQUATOR_DEGREE_M * math.cos(math.radians(farthest))) + ROUNDING_DEG
    west, across = low[0] - east, high[0] - low[0] + 2 * east
    if not across < FULL_TURN_DEG:
        return [None, south], [None, end]
    west += FULL_TURN_DEG if west < -FULL_TURN_DEG / 2 else 0.0
    return [west, south], [west + across, end]
