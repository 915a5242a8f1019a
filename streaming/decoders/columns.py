"""Make elements from columns of text with Arrow alone, without a Python object per row."""

from collections.abc import Mapping

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from streaming.decoders.units import LATEST_US, MICROSECONDS, iso_us
from streaming.elements import bounds_array, element_schema, key_hashes, wrapped
from streaming.spaces import Space

_NUMBER = r"^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_ZONED = r"(Z|z|[+-]\d\d(:?\d\d)?)$"


def numbers(texts: pa.Array) -> pa.Array:
    """Return texts as float64, null if a text is no finite number.

    Examples
    --------
    >>> numbers(pa.array(["1.5", "", "x", "inf", "-2e3"])).to_pylist()
    [1.5, None, None, None, -2000.0]
    """
    try:
        values = pc.cast(texts, pa.float64())
    except pa.ArrowInvalid:
        is_number = pc.match_substring_regex(texts, _NUMBER)
        values = pc.cast(pc.if_else(is_number, texts, None), pa.float64())
    return pc.if_else(pc.is_finite(values), values, None)


def times_us(texts: pa.Array, time_format: str, utc_offset_s: float) -> pa.Array:
    """Return texts as int64 microseconds since 1970, null if a text is no time between 1970 and 2200.

    Parameters
    ----------
    texts : pyarrow.StringArray
    time_format : {"iso8601", "epoch_s", "epoch_ms", "epoch_us"}
    utc_offset_s : float
        Local time minus UTC, for ISO 8601 texts that do not state it.
    """
    if time_format == "iso8601":
        times = _iso_us(texts, utc_offset_s)
    else:
        factor = {"epoch_s": MICROSECONDS, "epoch_ms": 1000, "epoch_us": 1}[time_format]
        scaled = pc.multiply(numbers(texts), float(factor))
        in_range = pc.and_(pc.greater_equal(scaled, 0), pc.less(scaled, LATEST_US))
        times = pc.cast(pc.round(pc.if_else(in_range, scaled, None)), pa.int64())
    in_range = pc.and_(pc.greater_equal(times, 0), pc.less(times, LATEST_US))
    return pc.if_else(in_range, times, None)


def _iso_us(texts: pa.Array, utc_offset_s: float) -> pa.Array:
    zoned = pc.and_(pc.match_substring(texts, ":"), pc.match_substring_regex(texts, _ZONED))
    offset_us = round(utc_offset_s * MICROSECONDS)
    try:
        with_zone = pc.cast(pc.if_else(zoned, texts, None), pa.timestamp("us", "UTC"))
        without = pc.cast(pc.if_else(zoned, None, texts), pa.timestamp("us"))
    except pa.ArrowInvalid:
        return pa.array([None if t is None else iso_us(t, utc_offset_s) for t in texts.to_pylist()], pa.int64())
    return pc.coalesce(pc.cast(with_zone, pa.int64()), pc.subtract(pc.cast(without, pa.int64()), offset_us))


def json_objects(columns: Mapping[str, pa.Array], count: int) -> pa.Array:
    r"""Return one JSON object per row, without the names whose value is null.

    Parameters
    ----------
    columns : mapping of str to pyarrow.Array, each of length `count`
        Texts or finite numbers.
    count : int

    Examples
    --------
    >>> json_objects({"a": pa.array([1.5, None]), "b": pa.array(['x"y', "z"])}, 2).to_pylist()
    ['{"a":1.5,"b":"x\\"y"}', '{"b":"z"}']
    """
    members = [_members(name, column) for name, column in columns.items()]
    if not members:
        return pa.array(["{}"]).take(pa.array(np.zeros(count, dtype=np.int64)))
    # Not null_handling="skip": Arrow then leaves out the rows where every member is null (narwhals-dev/narwhals#3965).
    inside = pc.binary_join_element_wise(*members, "")
    return pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(inside, 1), "}", "")


def _members(name: str, column: pa.Array) -> pa.Array:
    """Return ``,"name":value`` for each row, or an empty text if the value is null."""
    start = "," + orjson.dumps({name: 0}).decode()[1:-2]
    if pa.types.is_floating(column.type):
        members = pc.binary_join_element_wise(start, pc.cast(column, pa.string()), "")
        return pc.fill_null(members, "")
    distinct = column.dictionary_encode()
    values = distinct.dictionary.to_pylist()
    members = pa.array([start + orjson.dumps(value).decode() for value in values], pa.string())
    return pc.fill_null(members.take(distinct.indices), "")


def box_table(
    stream: str, keys: pa.Array, times: np.ndarray, bounds: np.ndarray, properties: pa.Array, space: Space
) -> pa.Table:
    """Return elements that are boxes from columns, as `streaming.elements.box_elements` does from sequences.

    Parameters
    ----------
    stream : str
    keys : pyarrow.StringArray, length N, without null
    times : ndarray of int64, shape (N,)
        Microseconds since 1970.
    bounds : ndarray of float64, shape (N, 2n)
        ``[lo.., hi..]``; changed in place.
    properties : pyarrow.StringArray, length N
        JSON objects.
    space : Space
    """
    distinct = keys.dictionary_encode()
    hashes = key_hashes(stream, distinct.dictionary.to_pylist())[distinct.indices.to_numpy()]
    time = pa.array(times, pa.int64())
    columns = [
        keys,
        pa.array(hashes),
        time,
        time,
        bounds_array(wrapped(bounds, space)),
        pa.nulls(len(keys), pa.binary()),
        properties,
    ]
    return pa.Table.from_arrays(columns, schema=element_schema(space))
