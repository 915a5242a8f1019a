"""Make elements from columns of text with Arrow alone, without a Python object per row."""

from collections.abc import Mapping

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from streaming.decoders.time_texts import TimeTexts
from streaming.decoders.units import LATEST_US, MICROSECONDS
from streaming.elements import bounds_array, element_schema, key_hashes, wrapped
from streaming.spaces import Space

# Microseconds of the unit of each form of epoch.
EPOCHS = {"epoch_s": float(MICROSECONDS), "epoch_ms": 1e3, "epoch_us": 1.0, "epoch_ns": 1e-3}

_NUMBER = r"^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
# Marks between groups of three digits.
_GROUP_MARKS = r"[ '\x{2019}\x{a0}\x{202f}\x{2009}]"
_GROUPED = r"^-?[1-9]\d{0,2}(%s\d{3})+(\.\d*)?$"
# By decimal sign, commas between groups; a single one without a point behind it may be another's decimal comma.
_COMMAS = {".": r"^-?[1-9]\d{0,2}((,\d{3})+\.\d*|(,\d{3}){2,})$", ",": _GROUPED % ","}


def numbers(texts: pa.Array, decimal: str = ".") -> pa.Array:
    """Return texts as float64, null if a text is no finite number.

    Digits may stand in groups of three: ``1 234.5``, ``1,234.5``, and with a decimal comma ``1.234,5``.

    Parameters
    ----------
    texts : pyarrow.StringArray
    decimal : {".", ","}, optional

    Examples
    --------
    >>> numbers(pa.array(["1.5", "", "x", "inf", "-2e3", "1 000"])).to_pylist()
    [1.5, None, None, None, -2000.0, 1000.0]
    >>> numbers(pa.array(["1.234,5", "60.17", "24,95"]), ",").to_pylist()
    [1234.5, None, 24.95]
    """
    try:
        values = pc.cast(_with_point(texts) if decimal == "," else texts, pa.float64())
    except pa.ArrowInvalid:
        plain = _ungrouped(_with_point(texts) if decimal == "," else texts, decimal)
        values = pc.cast(pc.if_else(pc.match_substring_regex(plain, _NUMBER), plain, None), pa.float64())
    return pc.if_else(pc.is_finite(values), values, None)


def _with_point(texts: pa.Array) -> pa.Array:
    """Return numbers with a point where they have a decimal comma, and with commas where they have points."""
    swapped = pc.replace_substring(pc.replace_substring(texts, ".", "\0"), ",", ".")
    return pc.replace_substring(swapped, "\0", ",")


def _ungrouped(texts: pa.Array, decimal: str) -> pa.Array:
    """Return numbers without a plus sign and without marks between groups of digits."""
    texts = pc.replace_substring(pc.replace_substring_regex(texts, r"^\+", ""), "\u2212", "-")
    for marks, pattern in ((_GROUP_MARKS, _GROUPED % _GROUP_MARKS), (",", _COMMAS[decimal])):
        grouped = pc.match_substring_regex(texts, pattern)
        if pc.any(grouped, min_count=0).as_py():
            texts = pc.if_else(grouped, pc.replace_substring_regex(texts, marks, ""), texts)
    return texts


def times_us(texts: pa.Array, time_format: str, forms: TimeTexts, decimal: str = ".") -> pa.Array:
    """Return texts as int64 microseconds since 1970, null if a text is no time between 1970 and 2200.

    Parameters
    ----------
    texts : pyarrow.StringArray
    time_format : str
        `epoch_s`, `epoch_ms`, `epoch_us` or `epoch_ns`; for any other, `forms` reads the texts.
    forms : TimeTexts
    decimal : {".", ","}, optional
        The decimal sign of epochs.
    """
    if time_format not in EPOCHS:
        return forms.array_us(texts)
    scaled = pc.multiply(numbers(texts, decimal), EPOCHS[time_format])
    in_range = pc.and_(pc.greater_equal(scaled, 0), pc.less(scaled, LATEST_US))
    times = pc.cast(pc.round(pc.if_else(in_range, scaled, None)), pa.int64())
    return pc.if_else(pc.less(times, LATEST_US), times, None)


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
