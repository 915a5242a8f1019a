"""The areas of reports: boxes and polygons in longitude and latitude, and where segments cross their borders."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyproj
import shapely

from streaming.kinds.area_documents import polygons_geometry
from streaming.kinds.areas import LEAST_LATITUDE_M, POLE_DEG, AreaShape, CircleArea, PolygonArea
from streaming.language import gettext, thousands
from streaming.reports.errors import InvalidReport

TURNS_DEG = (0.0, 360.0, -360.0)
POLYGONAL = ("Polygon", "MultiPolygon")
MOST_VERTICES = 500_000
# A corridor's line is looked at every so many degrees, since it is straight in degrees, and not in metres.
SEGMENT_DEG = 0.05
# The border of a circle has so many corners in a quarter of a turn.
QUARTER_TURN = 32


@dataclass(frozen=True)
class Area:
    """A part of the earth's surface; its border belongs to it, its edges are straight in longitude and latitude.

    Parameters
    ----------
    shape : shapely.Polygon or shapely.MultiPolygon
        In degrees, longitude first. Longitudes may go on beyond 180, so that an area can cross the antimeridian.
    """

    shape: shapely.Geometry

    def __post_init__(self) -> None:
        shapely.prepare(self.shape)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east and north, in degrees."""
        return self.shape.bounds

    def turn_of(self, lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
        """Return by how many degrees places must be turned eastwards to lie in the shape, NaN if they do not.

        Parameters
        ----------
        lon, lat : ndarray of float64, shape (N,)
            Degrees, longitudes in [-180, 180].

        Returns
        -------
        ndarray of float64, shape (N,)
            0, 360 or -360 where the place lies in the area or on its border, else NaN.
        """
        found = np.full(len(lon), np.nan)
        west, south, east, north = self.bounds
        for turn in TURNS_DEG:
            near = (lon + turn >= west) & (lon + turn <= east) & (lat >= south) & (lat <= north) & np.isnan(found)
            at = np.flatnonzero(near)
            found[at[shapely.intersects_xy(self.shape, lon[at] + turn, lat[at])]] = turn
        return found

    def contains(self, lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
        """Tell which places lie in the area or on its border, bool of shape (N,)."""
        return ~np.isnan(self.turn_of(lon, lat))

    def crossed_at(
        self, lon: np.ndarray, lat: np.ndarray, inside_lon: np.ndarray, inside_lat: np.ndarray
    ) -> np.ndarray:
        """Return where segments from a place outside to a place inside cross the border for the last time.

        Parameters
        ----------
        lon, lat : ndarray of float64, shape (N,)
            Places outside.
        inside_lon, inside_lat : ndarray of float64, shape (N,)
            Places inside. A segment is straight in longitude and latitude, and takes the short way round the earth.

        Returns
        -------
        ndarray of float64, shape (N,)
            The share of the segment before the crossing, from 0 to 1.
        """
        end = np.column_stack([inside_lon + self.turn_of(inside_lon, inside_lat), inside_lat])
        begin = np.column_stack([end[:, 0] + short_turn(lon - inside_lon), lat])
        segments = shapely.linestrings(np.stack([begin, end], axis=1))
        edges = _edges(self.shape)
        segment, edge = shapely.STRtree(edges).query(segments, predicate="intersects")
        crossing = shapely.intersection(segments[segment], edges[edge])
        nearest = np.full(len(segments), np.inf)
        np.minimum.at(nearest, segment, shapely.distance(crossing, shapely.points(end[segment])))
        length = shapely.length(segments)
        # A crossing that rounding hides is at the place inside.
        return np.clip(1 - np.where(np.isfinite(nearest), nearest, 0.0) / length, 0.0, 1.0)


def short_turn(degrees: np.ndarray) -> np.ndarray:
    """Return differences of longitudes by the short way round the earth, in [-180, 180)."""
    return (degrees + 180.0) % 360.0 - 180.0


def _edges(shape: shapely.Geometry) -> np.ndarray:
    """Return the edges of a shape's border, ndarray of LineString."""
    corners, ring = shapely.get_coordinates(_rings(shape), return_index=True)
    pairs = np.stack([corners[:-1], corners[1:]], axis=1)
    return shapely.linestrings(pairs[ring[:-1] == ring[1:]])


def _rings(shape: shapely.Geometry) -> np.ndarray:
    return shapely.get_rings(shapely.get_parts(shape))


def box_area(west: float, south: float, east: float, north: float) -> Area:
    """Return a box in degrees as an area; its east may exceed 180 where it crosses the antimeridian.

    Raises
    ------
    InvalidReport
        When it is no such box.

    Examples
    --------
    >>> box_area(170, -10, 190, 10).contains(np.array([-175.0, 0.0]), np.array([5.0, 5.0])).tolist()
    [True, False]
    """
    sound = -180 <= west <= 180 and west <= east <= west + 360 and -90 <= south <= north <= 90
    if not sound:
        raise InvalidReport(
            "a box must be west,south,east,north in degrees, west from -180, east at most a turn "
            "further; got %(west)g,%(south)g,%(east)g,%(north)g",
            west=west,
            south=south,
            east=east,
            north=north,
        )
    if east - west >= 360:  # no segment then crosses its western or eastern side
        west, east = -540.0, 540.0
    return Area(shapely.box(west, south, east, north))


def polygon_area(document: str | bytes) -> Area:
    """Return the area of a GeoJSON Polygon or MultiPolygon, given as a text.

    Raises
    ------
    InvalidReport
        When it is no such polygon.
    """
    try:
        parsed = orjson.loads(document)
        kind = parsed.get("type") if isinstance(parsed, dict) else None
        if kind not in POLYGONAL:
            raise InvalidReport("an area must be a GeoJSON Polygon or MultiPolygon; got %(kind)s", kind=f"{kind!r:.80}")
        shape = shapely.from_geojson(orjson.dumps(parsed))
    except (orjson.JSONDecodeError, shapely.errors.GEOSException) as error:
        raise InvalidReport("polygon must be GeoJSON; %(error)s", error=f"{error!s:.200}") from None
    return shape_area(shape)


def shape_area(shape: Any) -> Area:
    """Return the area of a shape in degrees, longitude first.

    Raises
    ------
    InvalidReport
        When it is no polygon, breaks the rules of polygons, or has too many vertices.
    """
    if shape is None or shape.geom_type not in POLYGONAL or shape.is_empty:
        got = (
            "none"
            if shape is None
            else gettext("an empty %(geom_type)s") % {"geom_type": shape.geom_type}
            if shape.is_empty
            else shape.geom_type
        )
        raise InvalidReport("an area must be a Polygon or MultiPolygon; got %(got)s", got=got)
    if (vertices := shapely.get_num_coordinates(shape)) > MOST_VERTICES:
        raise InvalidReport(
            "an area may have at most %(most_vertices)s vertices; got %(vertices)s",
            most_vertices=thousands(MOST_VERTICES),
            vertices=thousands(vertices),
        )
    if not shape.is_valid:
        raise InvalidReport(
            "a polygon must be valid; got one with: %(shapely)s", shapely=f"{shapely.is_valid_reason(shape):.200}"
        )
    west, south, east, north = shape.bounds
    if west < -360 or east > 540 or south < -90 or north > 90:
        raise InvalidReport(
            "the longitudes of a polygon must lie within -360 and 540, its latitudes within -90 "
            "and 90; got %(west)g,%(south)g to %(east)g,%(north)g",
            west=west,
            south=south,
            east=east,
            north=north,
        )
    return Area(shapely.force_2d(shape))


def ring_area(ring: Iterable[Iterable[float]]) -> Area:
    """Return the area within a ring of [longitude, latitude]; its first corner need not be repeated."""
    return shape_area(shapely.Polygon([tuple(corner) for corner in ring]))


def drawn_area(shape: AreaShape) -> Area:
    """Return the area of a query that has a shape. Circles and corridors become polygons with 128 corners a turn.

    The border of such a polygon is within the true one by at most a 3,000th of the radius, or of half the width: 1.5 m
    for 5 km. Where a corridor is 100 km from its middle, it is also at most a 20,000th narrower or wider.

    Raises
    ------
    InvalidReport
        As `shape_area`; also if the shape may contain a pole.
    """
    if isinstance(shape, PolygonArea):
        return shape_area(polygons_geometry(shape))
    if isinstance(shape, CircleArea):
        line, reach_m = shapely.Point(shape.center), shape.radius_m
    else:
        line, reach_m = shapely.segmentize(shapely.LineString(shape.line), SEGMENT_DEG), shape.width_m / 2
    if max(abs(line.bounds[1]), abs(line.bounds[3])) + reach_m / LEAST_LATITUDE_M > POLE_DEG:
        raise InvalidReport(
            "the area of a report must not contain a pole; got one that reaches %(reach_m)s m far",
            reach_m=f"{reach_m:,.0f}",
        )
    middle = line.centroid
    metres = pyproj.Proj(proj="aeqd", lon_0=middle.x, lat_0=middle.y, ellps="WGS84")
    flat = shapely.transform(line, lambda places: np.stack(metres(*places.T), axis=1))
    round_it = shapely.buffer(flat, reach_m, quad_segs=QUARTER_TURN)
    x_m, y_m = shapely.get_coordinates(round_it).T
    lon, lat = metres(x_m, y_m, inverse=True)
    lon = middle.x + (np.asarray(lon) - middle.x + 180.0) % 360.0 - 180.0
    return shape_area(shapely.set_coordinates(round_it, np.stack([lon, np.asarray(lat)], axis=1)))
