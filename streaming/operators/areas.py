"""Which elements meet areas that are polygons, circles or corridors, evaluated together.

All pairs of elements and areas of one form are compared by one call, however many areas there are.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial

import numpy as np
import shapely

from streaming.kinds.area_documents import polygons_geometry
from streaming.kinds.areas import AreaFilter, AreaShape, CircleArea, CorridorArea, PolygonArea
from streaming.operators.allowance import pieces
from streaming.operators.boxes import in_plane, turns
from streaming.operators.elements import Elements
from streaming.operators.geodesics import within_m
from streaming.operators.lines import IndexedLines, Look, without_limit
from streaming.operators.metres import distance_m, perhaps_closer, turned
from streaming.spaces import Space
from streaming.udf.base import box_shapes, shapes_of

POLYGON, CIRCLE, CORRIDOR = range(3)
# So many geometries are kept in a process.
_KEPT = 4_096
_FORM = {PolygonArea: POLYGON, CircleArea: CIRCLE, CorridorArea: CORRIDOR}


class Areas:
    """An immutable list of areas.

    Parameters
    ----------
    filters : sequence of AreaFilter, length A
    space : Space

    Attributes
    ----------
    form : ndarray of int8, shape (A,)
        `POLYGON`, `CIRCLE` or `CORRIDOR`.
    geometry : ndarray of geometries, shape (A,)
        The polygons, the centre of the circle, or the line of the corridor; prepared.
    reach_m : ndarray of float64, shape (A,)
        How far elements may be from the geometry.
    """

    def __init__(self, filters: Sequence[AreaFilter], space: Space) -> None:
        self.space = space
        shapes = [entry.shape for entry in filters]
        self.form = np.array([_FORM[type(shape)] for shape in shapes], dtype=np.int8)
        self.geometry = np.full(len(shapes), None, dtype=object)
        self.geometry[:] = [_geometry(shape) for shape in shapes]
        shapely.prepare(self.geometry)
        self.reach_m = np.array([_reach_m(shape) for shape in shapes], dtype=np.float64)
        bounds = shapely.bounds(self.geometry)
        self._low, self._high = bounds[:, 0], bounds[:, 2]
        self._center = bounds[:, :2]
        self._line = np.cumsum(self.form == CORRIDOR) - 1

    @cached_property
    def _lines(self) -> IndexedLines:
        """The lines of the corridors, in their order."""
        corridors = self.form == CORRIDOR
        return IndexedLines(self.geometry[corridors], self.reach_m[corridors])

    def met(self, elements: Elements, row: np.ndarray, area: np.ndarray, look: Look = without_limit) -> np.ndarray:
        """Tell which pairs have an element whose geometry, or box if it has none, meets the area.

        Parameters
        ----------
        elements : Elements
            Their geometries are read only if some may have one.
        row, area : ndarray of int64, shape (P,)
            The pairs, as positions in `elements` and among the areas.
        look : callable, optional
            Counts what is looked at besides the pairs themselves; see `IndexedLines.within`.

        Returns
        -------
        ndarray of bool, shape (P,)
        """
        if not elements.has_geometries:
            return self.met_by_boxes(elements.bounds, row, area, look)
        rows, place = np.unique(row, return_inverse=True)
        return self._met(_Things.of_shapes(shapes_of(elements.batch(rows))), place, area, look)

    def met_by_boxes(
        self, bounds: np.ndarray, row: np.ndarray, area: np.ndarray, look: Look = without_limit
    ) -> np.ndarray:
        """Tell which pairs of a box (N, 2n) and an area meet, bool of shape (P,); see `met`."""
        rows, place = np.unique(row, return_inverse=True)
        return self._met(_Things.of_boxes(bounds[rows], self.space), place, area, look)

    def met_by_shapes(self, shapes: np.ndarray, area: np.ndarray) -> np.ndarray:
        """Tell which pairs of a geometry and an area meet, bool of shape (P,), given both (P,)."""
        return self._met(_Things.of_shapes(shapes), np.arange(len(shapes)), area, without_limit)

    def _met(self, things: "_Things", thing: np.ndarray, area: np.ndarray, look: Look) -> np.ndarray:
        met = np.zeros(len(thing), dtype=bool)
        form, pointed = self.form[area], things.pointed[thing]
        for mine, compare in (
            ((form == POLYGON) & pointed, self._points_in_polygons),
            ((form == POLYGON) & ~pointed, self._shapes_in_polygons),
            ((form == CIRCLE) & pointed, self._points_in_circles),
            ((form == CORRIDOR) & pointed, self._points_near_lines),
            ((form != POLYGON) & ~pointed, self._near),
        ):
            pair = np.flatnonzero(mine)
            if len(pair):
                mine = partial(_look_at, look, pair)
                met[pair] = compare(things, thing[pair], area[pair], mine)
        return met

    def _points_in_polygons(self, things: "_Things", thing: np.ndarray, area: np.ndarray, look: Look) -> np.ndarray:
        places = things.places[thing]
        met = np.zeros(len(thing), dtype=bool)
        for turn in turns(self.space):
            x, y = (places + turn).T
            left = np.flatnonzero(~met & (self._low[area] <= x) & (x <= self._high[area]))
            met[left] = shapely.intersects_xy(self.geometry[area[left]], x[left], y[left])
        return met

    def _shapes_in_polygons(self, things: "_Things", thing: np.ndarray, area: np.ndarray, look: Look) -> np.ndarray:
        shapes = things.shapes[thing]
        met, (low, high) = np.zeros(len(thing), dtype=bool), shapely.bounds(shapes).T[[0, 2]]
        for turn in turns(self.space):
            beside = (low + turn[0] <= self._high[area]) & (self._low[area] <= high + turn[0])
            left = np.flatnonzero(~met & beside)
            met[left] = shapely.intersects(self.geometry[area[left]], turned(shapes[left], turn))
        return met

    def _points_in_circles(self, things: "_Things", thing: np.ndarray, area: np.ndarray, look: Look) -> np.ndarray:
        return within_m(*things.places[thing].T, *self._center[area].T, limit_m=self.reach_m[area])

    def _points_near_lines(self, things: "_Things", thing: np.ndarray, area: np.ndarray, look: Look) -> np.ndarray:
        return self._lines.within(things.places[thing], self._line[area], look)

    def _near(self, things: "_Things", thing: np.ndarray, area: np.ndarray, look: Look) -> np.ndarray:
        """Tell which elements are within reach of a line or a centre."""
        shapes, geometries, reach_m = things.shapes[thing], self.geometry[area], self.reach_m[area]
        met = np.zeros(len(thing), dtype=bool)
        near = np.flatnonzero(perhaps_closer(shapes, geometries, reach_m))
        vertices = shapely.get_num_coordinates(shapes[near]) * shapely.get_num_coordinates(geometries[near])
        for part in pieces(vertices):
            some = near[part]
            if look(some, vertices[part]):
                met[some] = distance_m(shapes[some], geometries[some], reach_m[some]) <= reach_m[some]
        return met


class _Things:
    """The distinct elements of some pairs: their shapes, which of them are points, and the places of these."""

    def __init__(self, places: np.ndarray, pointed: np.ndarray, make: Callable[[], np.ndarray]) -> None:
        self.places, self.pointed, self._make = places, pointed, make

    @classmethod
    def of_shapes(cls, shapes: np.ndarray) -> "_Things":
        pointed = (shapely.get_type_id(shapes) == shapely.GeometryType.POINT) & ~shapely.is_empty(shapes)
        places = np.full((len(shapes), 2), np.nan)
        places[pointed] = shapely.get_coordinates(shapes[pointed])
        return cls(places, pointed, lambda: shapes)

    @classmethod
    def of_boxes(cls, bounds: np.ndarray, space: Space) -> "_Things":
        plane = in_plane(bounds, space)
        return cls(plane[:, :2], (plane[:, :2] == plane[:, 2:]).all(1), partial(box_shapes, bounds))

    @cached_property
    def shapes(self) -> np.ndarray:
        """The shapes of all elements; those of boxes are made on first use."""
        return self._make()


def _look_at(look: Look, pairs: np.ndarray, at: np.ndarray, count: np.ndarray) -> bool:
    """Count what is looked at for some of the pairs, given their positions among these."""
    return look(pairs[at], count)


@lru_cache(maxsize=_KEPT)
def _geometry(shape: AreaShape) -> shapely.Geometry:
    """Return the geometry of an area. It is kept: whoever adds an area to many has the others already."""
    if isinstance(shape, PolygonArea):
        return polygons_geometry(shape)
    return shapely.Point(shape.center) if isinstance(shape, CircleArea) else shapely.linestrings(np.array(shape.line))


def _reach_m(shape: AreaShape) -> float:
    if isinstance(shape, PolygonArea):
        return 0.0
    return shape.radius_m if isinstance(shape, CircleArea) else shape.width_m / 2
