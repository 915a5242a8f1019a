"""Elements and blocks: the one table that moves from decoder to region.

An element is one report about one object: its place (a box; a point has lo = hi), the time, and its other properties. A
*block* is a table of elements of one stream. The ingest log carries elements in blocks only.
"""

import functools
import math
import sys
import zlib
from collections.abc import Mapping, Sequence

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike

from streaming.spaces import EARTH, Space

# Mixes the stream's number into the key's hash. Any odd 64-bit constant with well spread bits would do.
_MIX = np.uint64(0x9E3779B97F4A7C15)

# Both bounds of an element in a dimension, from the third on, that it has, but in which it is not known where: within
# no interval that has a bound. `spaces.OPEN` is below it.
UNKNOWN = np.inf
# What stands for `UNKNOWN` as a lower bound in JSON.
_UNKNOWN_IN_JSON = sys.float_info.max

# The version of an element that is below that of every other: it changes no answer, and is stored at the most.
STORED_ONLY = int(np.iinfo(np.int64).min)

# Elements of a feed take a third of their size, at 0.1 us each to compress and 0.05 us to read. Redis copies every byte
# several times, and writes it to its file.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_ALIGNED = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.DataTypeSpecific, use_threads=False)


@functools.lru_cache(maxsize=64)
def element_schema(space: Space) -> pa.Schema:
    """Return the columns of the elements of a space.

    Returns
    -------
    pyarrow.Schema
        key : string, the object's name within its stream;
        key_hash : int64, `key_hashes` of it;
        time_us : int64, event time in microseconds since 1970 UTC;
        version : int64, a later version supersedes an earlier one (the event time if the feed has nothing better), and
            `STORED_ONLY` changes no answer;
        bounds : fixed-size list of 2n float64, ``[lo.., hi..]``, never NaN, -inf and inf in dimensions the element
            lacks, and `UNKNOWN` twice where it is not known;
        geometry : binary, WKB or null;
        properties : string, a JSON object; values are in SI units, which the names of the properties tell.
    """
    return pa.schema(
        [
            pa.field("key", pa.string(), nullable=False),
            pa.field("key_hash", pa.int64(), nullable=False),
            pa.field("time_us", pa.int64(), nullable=False),
            pa.field("version", pa.int64(), nullable=False),
            pa.field("bounds", pa.list_(pa.float64(), 2 * space.n), nullable=False),
            pa.field("geometry", pa.binary()),
            pa.field("properties", pa.string()),
        ]
    )


def stream_number(stream: str) -> int:
    """Return the number that stands for a stream's name inside the engine, 0 to 2**32 - 1.

    Examples
    --------
    >>> stream_number("vessels")
    3276618765
    """
    return zlib.crc32(stream.encode())


def key_hashes(stream: str, keys: Sequence[str]) -> np.ndarray:
    """Return the 64-bit hashes of keys.

    A hash is the same in every process. The same key has different hashes in different streams.

    Parameters
    ----------
    stream : str
    keys : sequence of str, length N

    Returns
    -------
    ndarray of int64, shape (N,)
    """
    hashed = pd.util.hash_array(np.asarray(keys, dtype=object), categorize=False)
    return ((hashed ^ np.uint64(stream_number(stream))) * _MIX).view(np.int64)


def partition_of(key_hash: np.ndarray, partitions: int) -> np.ndarray:
    """Return the ingest partition of each key, int64 of shape (N,), from 0 to ``partitions - 1``."""
    return (key_hash.view(np.uint64) >> np.uint64(32)).astype(np.int64) % partitions


def point_elements(
    stream: str,
    keys: Sequence[str],
    time_us: ArrayLike,
    coordinates: np.ndarray,
    properties: Sequence[Mapping | None],
    space: Space = EARTH,
) -> pa.Table:
    """Build elements that are points.

    Parameters
    ----------
    stream : str
    keys : sequence of str, length N
    time_us : array_like of int, shape (N,)
        Event times, in microseconds since 1970 UTC; they are the versions, too.
    coordinates : array_like of float, shape (N, m), m <= n
        In the order of the space's dimensions. NaN, or a missing column, means that the element lacks the dimension,
        and `UNKNOWN` that it is not known where it is.
    properties : sequence of mapping or None, length N
    space : Space

    Returns
    -------
    pyarrow.Table
        With `element_schema(space)`. On a dimension that wraps, coordinates are shifted into ``[lo, hi)``.
    """
    points = np.full((len(keys), space.n), np.nan)
    if len(keys):
        coordinates = np.asarray(coordinates, dtype=np.float64)
        points[:, : coordinates.shape[1]] = coordinates
    missing = np.isnan(points)
    bounds = np.hstack([np.where(missing, -np.inf, points), np.where(missing, np.inf, points)])
    return box_elements(stream, keys, time_us, bounds, properties, space=space)


def box_elements(
    stream: str,
    keys: Sequence[str],
    time_us: ArrayLike,
    bounds: np.ndarray,
    properties: Sequence[Mapping | None],
    geometry: Sequence[bytes | None] | None = None,
    space: Space = EARTH,
) -> pa.Table:
    """Build elements that are boxes.

    Parameters
    ----------
    bounds : ndarray of float64, shape (N, 2n)
        ``[lo.., hi..]`` with lo <= hi; -inf and inf in a dimension that the element lacks, and `UNKNOWN` twice where
        it is not known.
    geometry : sequence of bytes or None, length N, optional
        WKB.

    Returns
    -------
    pyarrow.Table
        With `element_schema(space)`; see `point_elements` for the other parameters.
    """
    time_us = np.asarray(time_us, dtype=np.int64)
    columns = [
        pa.array(keys, pa.string()),
        pa.array(key_hashes(stream, keys)),
        pa.array(time_us),
        pa.array(time_us),
        bounds_array(wrapped(np.array(bounds, dtype=np.float64), space)),
        pa.nulls(len(keys), pa.binary()) if geometry is None else pa.array(geometry, pa.binary()),
        pa.array([orjson.dumps(p or {}).decode() for p in properties], pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=element_schema(space))


def bounds_document(box: Sequence[float]) -> list[float | None]:
    """Return a box as JSON: null in a dimension that the element lacks, and the largest number and null if not known.

    Examples
    --------
    >>> bounds_document([24.9, 60.1, -np.inf, 24.9, 60.1, np.inf])
    [24.9, 60.1, None, 24.9, 60.1, None]
    >>> bounds_document([24.9, 60.1, UNKNOWN, 24.9, 60.1, UNKNOWN])[2]
    1.7976931348623157e+308
    """
    half = len(box) // 2
    low = [_UNKNOWN_IN_JSON if bound == UNKNOWN else bound for bound in box[:half]]
    return [bound if math.isfinite(bound) else None for bound in (*low, *box[half:])]


def box_of_document(bounds: Sequence[float | None]) -> np.ndarray:
    """Return a box as float64 of shape (2n,); the inverse of `bounds_document`."""
    half = len(bounds) // 2
    low = [-np.inf if bound is None else UNKNOWN if bound == _UNKNOWN_IN_JSON else bound for bound in bounds[:half]]
    return np.array([*low, *(np.inf if bound is None else bound for bound in bounds[half:])])


def wrapped(bounds: np.ndarray, space: Space) -> np.ndarray:
    """Shift boxes by whole turns so that their lower bounds lie in ``[lo, hi)`` of every dimension that wraps.

    Parameters
    ----------
    bounds : ndarray of float64, shape (N, 2n)
        Changed in place and returned.
    space : Space
    """
    for axis, dimension in enumerate(space.dimensions):
        if dimension.wraps:
            low = bounds[:, axis]
            finite = np.isfinite(low)
            turns = np.zeros(len(bounds))
            turns[finite] = np.floor((low[finite] - dimension.lo) / dimension.extent)
            out = turns != 0
            bounds[out, axis] -= turns[out] * dimension.extent
            bounds[out, space.n + axis] -= turns[out] * dimension.extent
    return bounds


def bounds_array(bounds: np.ndarray) -> pa.FixedSizeListArray:
    """Return boxes, float64 of shape (N, 2n), as an Arrow column; copy them only if they are not C-contiguous."""
    flat = pa.array(np.ascontiguousarray(bounds).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, bounds.shape[1])


def bounds_of(column: pa.ChunkedArray | pa.FixedSizeListArray) -> np.ndarray:
    """Return an Arrow column of boxes as float64 of shape (N, 2n); the inverse of `bounds_array`."""
    if isinstance(column, pa.ChunkedArray):
        column = whole_column(column)
    width = column.type.list_size
    return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)


def whole_column(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece; unlike `combine_chunks`, without a copy if it is in one piece already."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def to_ipc(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC stream, compressed with LZ4."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_ipc(payload: bytes | memoryview | pa.Buffer) -> pa.Table:
    """Return the table of an Arrow IPC stream; copy only the columns that are not aligned."""
    return pa.ipc.open_stream(payload, options=_ALIGNED).read_all()
