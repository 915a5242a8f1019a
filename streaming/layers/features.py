"""Features: the rows of a layer. A feature is an element without a time."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import shapely

from streaming.elements import bounds_array, key_hashes, wrapped
from streaming.errors import LookoutError
from streaming.language import gettext_noop
from streaming.spaces import EARTH, Space

# The bits of a cell's coordinate on each axis; two axes of 16 bits fill the 32 bits of a position on the Hilbert curve.
HILBERT_BITS = 16
MAX_KEY_CHARACTERS = 200
NO_FEATURE_BUT = gettext_noop(
    "a layer needs a feature with a geometry; got none in %(rows)s rows; row %(row)s was %(problem)s"
)
LAYER_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


class InvalidLayer(LookoutError):
    """A layer, its name, its file or its features break a rule."""


def check_name(name: Any) -> str:
    """Return the name of a layer if it is valid; it is also the name of the layer's folder.

    Raises
    ------
    InvalidLayer
        When it is not the name of a layer.
    """
    if not isinstance(name, str) or not LAYER_NAME.fullmatch(name):
        raise InvalidLayer(
            "the name of a layer must be 1 to 40 lower case letters, digits, - and _, a letter first; got %(name)s",
            name=f"{name!r:.80}",
        )
    return name


def feature_schema(space: Space) -> pa.Schema:
    """Return the columns of a feature.

    Returns
    -------
    pyarrow.Schema
        key : string, unique within a version of a layer;
        key_hash : int64, ``elements.key_hashes(layer, keys)``;
        bounds : fixed-size list of 2n float64, ``[lo.., hi..]``, infinite in dimensions that the feature lacks;
        geometry : binary, WKB; null if the feature is only a box;
        properties : string, a JSON object.
    """
    return pa.schema(
        [
            pa.field("key", pa.string(), nullable=False),
            pa.field("key_hash", pa.int64(), nullable=False),
            pa.field("bounds", pa.list_(pa.float64(), 2 * space.n), nullable=False),
            pa.field("geometry", pa.binary()),
            pa.field("properties", pa.string()),
        ]
    )


def feature_table(
    layer: str,
    keys: Sequence[str],
    geometries: Sequence[Any] | np.ndarray,
    properties: Sequence[Mapping | None],
    bounds: np.ndarray | None = None,
    space: Space = EARTH,
) -> pa.Table:
    """Build a table of features.

    Parameters
    ----------
    layer : str
    keys : sequence of str, length N
        Without duplicates.
    geometries : sequence of shapely.Geometry or None, length N
        In the first two dimensions of the space. This function repairs nothing; see `streaming.layers.importing`.
    properties : sequence of mapping or None, length N
    bounds : ndarray of float64, shape (N, 2n), optional
        The features' boxes; by default the boxes of the geometries, unbounded in further dimensions.
    space : Space

    Returns
    -------
    pyarrow.Table
        With `feature_schema(space)`, in the order given.

    Raises
    ------
    InvalidLayer
        When keys repeat, or a feature has neither geometry nor box.
    """
    shapes = np.asarray(geometries, dtype=object).reshape(len(keys))
    boxes = geometry_bounds(shapes, space) if bounds is None else np.array(bounds, dtype=np.float64)
    columns = [
        pa.array(keys, pa.string()),
        bounds_array(wrapped(boxes, space)),
        pa.array(shapely.to_wkb(shapes), pa.binary()),
        pa.array([orjson.dumps(p or {}).decode() for p in properties], pa.string()),
    ]
    return with_hashes(layer, pa.table(columns, names=["key", "bounds", "geometry", "properties"]), space)


def with_hashes(layer: str, table: pa.Table, space: Space) -> pa.Table:
    """Return features with the hashes of their keys: a table with `feature_schema(space)`.

    Raises
    ------
    InvalidLayer
        When keys repeat.
    """
    keys = table["key"].to_numpy()
    hashes = key_hashes(layer, keys)
    if len(np.unique(hashes)) < len(hashes):
        raise InvalidLayer("the keys of a layer must differ; got %(keys)s twice", keys=repr(_repeated(keys)))
    columns = {name: table[name] for name in table.column_names} | {"key_hash": pa.array(hashes)}
    schema = feature_schema(space)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _repeated(keys: np.ndarray) -> str:
    different, counts = np.unique(keys.astype(str), return_counts=True)
    return str(different[np.argmax(counts)])


def geometry_bounds(geometries: np.ndarray, space: Space) -> np.ndarray:
    """Return the boxes of geometries in a space, unbounded in the dimensions that they lack.

    Parameters
    ----------
    geometries : ndarray of shapely.Geometry, shape (N,)
        In the first two dimensions of the space, which must have at least two. Heights are ignored: a layer is flat.
    space : Space

    Returns
    -------
    ndarray of float64, shape (N, 2n)

    Raises
    ------
    InvalidLayer
        When a geometry is missing or empty, or the space has one dimension.
    """
    if space.n < 2:
        raise InvalidLayer(
            "geometries need a space of two dimensions or more; got %(name)s with %(n)s",
            name=repr(space.name),
            n=space.n,
        )
    flat = shapely.bounds(geometries).reshape(-1, 4)
    if np.isnan(flat).any():
        row = int(np.argmax(np.isnan(flat).any(axis=1)))
        raise InvalidLayer(
            "a feature must have a geometry that is not empty, or a box; got none in row %(row)s", row=row
        )
    bounds = np.tile(space.whole(), (len(flat), 1))
    bounds[:, :2], bounds[:, space.n : space.n + 2] = flat[:, :2], flat[:, 2:]
    return bounds


def hilbert_order(bounds: np.ndarray, space: Space) -> np.ndarray:
    """Return the order of boxes along a Hilbert curve, in which neighbours are close to each other in space.

    Parameters
    ----------
    bounds : ndarray of float64, shape (N, 2n)
        Only their centres in the first two dimensions count; in a space of one dimension, in that one.
    space : Space

    Returns
    -------
    ndarray of int64, shape (N,)
        Positions in `bounds`.
    """
    middle = middles(bounds, space)
    low, high = np.fmin.reduce(middle, initial=np.inf), np.fmax.reduce(middle, initial=-np.inf)
    return np.argsort(hilbert_positions(middle, low, high), kind="stable")


def middles(bounds: np.ndarray, space: Space) -> np.ndarray:
    """Return the centres of boxes in the first two dimensions, or in the only one.

    Parameters
    ----------
    bounds : ndarray of float64, shape (N, 2n)
    space : Space

    Returns
    -------
    ndarray of float64, shape (N, min(2, n))
        NaN where a box is unbounded.
    """
    axes = min(2, space.n)
    low, high = bounds[:, :axes], bounds[:, space.n : space.n + axes]
    with np.errstate(invalid="ignore"):
        middle = low + (high - low) / 2
    return np.where(np.isfinite(middle), middle, np.nan)


def hilbert_positions(middle: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the positions of places along a Hilbert curve through a box; in one dimension, along the axis.

    Parameters
    ----------
    middle : ndarray of float64, shape (N, d)
        In one or two dimensions; NaN lies in the first cell.
    low, high : ndarray of float64, shape (d,)
        The box around all places.

    Returns
    -------
    ndarray of uint32, shape (N,)
    """
    extent = np.where(high > low, high - low, np.inf)
    with np.errstate(invalid="ignore"):
        cells = (middle - low) * ((2**HILBERT_BITS - 1) / extent)
    columns = np.where(np.isnan(cells), 0, cells).astype(np.uint32).T
    return columns[0] if len(columns) == 1 else hilbert_distance(*columns)


def hilbert_distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the positions of cells along a Hilbert curve.

    Parameters
    ----------
    x, y : ndarray of uint32, shape (N,)
        The columns and rows of the cells, below ``2 ** HILBERT_BITS``.

    Returns
    -------
    ndarray of uint32, shape (N,)

    References
    ----------
    J. K. Lawder, "Calculation of Mappings Between One and n-dimensional Values Using the Hilbert Space-filling Curve",
    Birkbeck College, 2000. In two dimensions, each step chooses a quadrant and turns the rest of the coordinates.

    Examples
    --------
    >>> corners = np.array([0, 0, 2**15, 2**15]), np.array([0, 2**15, 2**15, 0])
    >>> (hilbert_distance(*(axis.astype(np.uint32) for axis in corners)) >> 30).tolist()
    [0, 1, 2, 3]
    """
    x, y = x.copy(), y.copy()
    distance = np.zeros(len(x), dtype=np.uint32)
    for bit in range(HILBERT_BITS - 1, -1, -1):
        side = np.uint32(1 << bit)
        right, upper = (x & side) > 0, (y & side) > 0
        distance = (distance << np.uint32(2)) | ((3 * right) ^ upper).astype(np.uint32)
        x, y = x & (side - np.uint32(1)), y & (side - np.uint32(1))
        mirrored = right & ~upper
        x[mirrored], y[mirrored] = side - 1 - x[mirrored], side - 1 - y[mirrored]
        turned = ~upper
        x[turned], y[turned] = y[turned], x[turned]
    return distance
