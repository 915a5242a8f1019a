"""Features of a layer as GeoJSON: those in a box, with the detail that a zoom level shows."""

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from django.conf import settings
from django.utils.translation import gettext

from streaming.elements import bounds_of
from streaming.layers import InvalidLayer, LayerStore
from streaming.spaces import Space
from webapp.layers.versions import space_of
from webapp.models import Layer
from webapp.models.layers import layer_store
from webapp.words.refusals import Refused

MAX_FEATURES = 5_000
MAX_FOUND = 20
MAX_ZOOM = 24
TILE_PIXELS = 256
FULL_TURN_DEG = 360.0
# A geometry with more vertices than this is clipped to the box, enlarged by its width and height on every side.
WHOLE_VERTICES = 2_000


@dataclass(frozen=True)
class Box:
    """A box in degrees of longitude and latitude; `east` exceeds 180 if the box crosses the antimeridian."""

    west: float
    south: float
    east: float
    north: float


class FeatureTables:
    """A cache of the features of the layer versions read last. Threads may share it.

    Parameters
    ----------
    max_bytes : int
        Most bytes of all tables together; the newest table is kept whatever its size.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._lock = max_bytes, threading.Lock()
        self._tables: OrderedDict[tuple, tuple[pa.Table, np.ndarray]] = OrderedDict()

    def get(self, store: LayerStore, layer: str, version: int, space: Space) -> tuple[pa.Table, np.ndarray]:
        """Return the features of a version, and their boxes, float64 of shape (N, 2n)."""
        name = (store.root, layer, version)
        # Hold the lock while reading: two requests for the same large layer should not read it twice.
        with self._lock:
            if name not in self._tables:
                table = store.read(layer, version, space)
                self._tables[name] = table, bounds_of(table["bounds"])
            self._tables.move_to_end(name)
            while len(self._tables) > 1 and sum(t.nbytes for t, _ in self._tables.values()) > self._max_bytes:
                self._tables.popitem(last=False)
            return self._tables[name]


TABLES = FeatureTables(settings.LAYER_CACHE_BYTES)


def parse_box(text: str) -> Box:
    """Return the box of a text ``west,south,east,north``; if east < west, it crosses the antimeridian.

    Raises
    ------
    Refused
        ``bbox`` where the text is not a box.

    Examples
    --------
    >>> parse_box("170,-10,-170,10")
    Box(west=170.0, south=-10.0, east=190.0, north=10.0)
    """
    try:
        west, south, east, north = (float(number) for number in text.split(","))
    except ValueError:
        west = south = east = north = float("nan")
    if not (np.isfinite([west, south, east, north]).all() and south <= north):
        raise Refused(
            "bbox", gettext("bbox must be west,south,east,north in degrees; got %(text)s") % {"text": f"{text!r:.100}"}
        )
    return Box(west, south, east + FULL_TURN_DEG if east < west else east, north)


def parse_zoom(text: str) -> int:
    """Return the zoom level of a text, from 0 to `MAX_ZOOM`; raise Refused if it is not one."""
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_ZOOM):
        raise Refused(
            "zoom",
            gettext("zoom must be a whole number from 0 to %(max_zoom)s; got %(text)s")
            % {"max_zoom": MAX_ZOOM, "text": f"{text!r:.20}"},
        )
    return int(text)


def draw(
    layer: Layer,
    version: int,
    box: Box | None = None,
    zoom: int | None = None,
    keys: list[str] | None = None,
    find: str = "",
) -> bytes:
    """Return features as a GeoJSON FeatureCollection; only the `MAX_FEATURES` largest if there are more.

    Parameters
    ----------
    layer : Layer
    version : int
    box : Box, optional
        Return only features whose boxes meet it.
    zoom : int, optional
        Simplify geometries by half a pixel of this zoom level. Without it they are returned unchanged.
    keys : list of str, optional
        Return only features with these keys.
    find : str, optional
        Return only features with this text in their key or in a property, whatever its case; the `MAX_FOUND` largest.

    Raises
    ------
    Refused
        ``version`` where there is no such version, ``layer`` where the layer's space has one dimension.
    """
    space = space_of(layer)
    if space.n < 2:
        raise Refused(
            "layer",
            gettext("features are drawn in spaces of two dimensions or more; %(name)s is in %(space)s")
            % {"name": f"{layer.name!r}", "space": f"{space.name!r}"},
        )
    try:
        table, bounds = TABLES.get(layer_store(), layer.name, version, space)
    except InvalidLayer as error:
        raise Refused("version", str(error)) from None
    flat = bounds[:, [0, 1, space.n, space.n + 1]]
    rows = np.flatnonzero(_asked(table, flat, box, keys) & _found(table, find))
    drawn = _largest(rows, flat, MAX_FOUND if find else MAX_FEATURES)
    features = table.take(pa.array(drawn))
    shapes = shapely.from_wkb(features["geometry"].to_numpy())
    boxed = shapely.is_missing(shapes)
    shapes[boxed] = shapely.box(*flat[drawn[boxed]].T)
    collection: dict[str, Any] = {"type": "FeatureCollection", "layer": layer.name, "version": version}
    collection |= {"truncated": len(rows) > len(drawn)}
    return orjson.dumps(collection | {"features": _features(features, _for_zoom(shapes, box, zoom))})


def _asked(table: pa.Table, flat: np.ndarray, box: Box | None, keys: list[str] | None) -> np.ndarray:
    asked = np.ones(len(flat), dtype=bool)
    if keys is not None:
        asked &= pc.is_in(table["key"], pa.array(keys, pa.string())).to_numpy(zero_copy_only=False)
    if box is not None:
        asked &= (flat[:, 1] <= box.north) & (flat[:, 3] >= box.south)
        turns = [(flat[:, 0] <= box.east + turn) & (flat[:, 2] >= box.west + turn) for turn in (-360.0, 0.0, 360.0)]
        asked &= np.any(turns, axis=0)
    return asked


def _found(table: pa.Table, find: str) -> np.ndarray:
    """Select the features with a text in their key, or in the value of a property, not in its name."""
    if not find:
        return np.ones(len(table), dtype=bool)
    written = re.escape(orjson.dumps(find)[1:-1].decode())
    within = pc.match_substring_regex(table["properties"], rf':\s*("([^"\\]|\\.)*|[^",]*){written}', ignore_case=True)
    found = pc.or_(pc.match_substring(table["key"], find, ignore_case=True), pc.fill_null(within, False))
    return found.to_numpy()


def _largest(rows: np.ndarray, flat: np.ndarray, most: int) -> np.ndarray:
    """Return the rows with the largest boxes, `most` at most, in the order of the table."""
    if len(rows) <= most:
        return rows
    size = np.maximum(flat[rows, 2] - flat[rows, 0], flat[rows, 3] - flat[rows, 1])
    return np.sort(rows[np.argpartition(-size, most)[:most]])


def _for_zoom(shapes: np.ndarray, box: Box | None, zoom: int | None) -> np.ndarray:
    """Return geometries with the detail that a zoom level shows; some may be empty."""
    if zoom is None:
        return shapes
    pixel = FULL_TURN_DEG / (TILE_PIXELS * 2**zoom)
    simple = shapely.simplify(shapes, pixel / 2)
    if box is not None:
        large = shapely.get_num_coordinates(simple) > WHOLE_VERTICES
        simple[large] = [_clipped(shape, box) for shape in simple[large]]
    digits = max(0, int(np.ceil(-np.log10(pixel))) + 1)
    return shapely.transform(simple, lambda coordinates: np.round(coordinates, digits))


def _clipped(shape: shapely.Geometry, box: Box) -> shapely.Geometry:
    """Return a geometry clipped to three times the box; unclipped if the box crosses the antimeridian."""
    width, height = box.east - box.west, box.north - box.south
    if box.west < -FULL_TURN_DEG / 2 or box.east > FULL_TURN_DEG / 2:
        return shape
    return shapely.clip_by_rect(shape, box.west - width, box.south - height, box.east + width, box.north + height)


def _features(features: pa.Table, shapes: np.ndarray) -> list[dict[str, Any]]:
    there = ~shapely.is_empty(shapes)
    texts = zip(
        features["key"].filter(pa.array(there)).to_pylist(),
        shapely.to_geojson(shapes[there]),
        features["properties"].filter(pa.array(there)).to_pylist(),
        strict=True,
    )
    return [
        {
            "type": "Feature",
            "id": key,
            "geometry": orjson.Fragment(geometry),
            "properties": orjson.Fragment(properties or "{}"),
        }
        for key, geometry, properties in texts
    ]
