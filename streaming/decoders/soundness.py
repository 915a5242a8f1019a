"""Check decoded elements by the rules on which everything behind the decoders relies."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from streaming.decoders.base import MAX_SAMPLE_BYTES, NULL_ISLAND, OUT_OF_RANGE, Decoded, Malformed
from streaming.decoders.units import LATEST_US
from streaming.elements import UNKNOWN, bounds_array, bounds_of, element_schema
from streaming.language import gettext_noop
from streaming.spaces import Space

NOT_ELEMENTS = gettext_noop("not elements")
NO_KEY = gettext_noop("key missing or too long")
NUL = gettext_noop("NUL character")
TIME = gettext_noop("time out of range")
GEOMETRY = gettext_noop("unsound geometry")
PROPERTIES = gettext_noop("unsound properties")
TOO_LARGE = gettext_noop("properties too large")

MAX_KEY_BYTES = 1_000
MAX_REASON_CHARACTERS = 100
MAX_VERSION = 1 << 62
MAX_GEOMETRY_BYTES = 16_000_000
MAX_PROPERTIES_BYTES = 100_000
MAX_PROPERTIES = 1_000
MAX_NAME_CHARACTERS = 1_000
MAX_TEXT_CHARACTERS = 10_000
MAX_DEPTH = 32
# A text this short holds no name or value that breaks a bound, and not too many of them.
_SHORT_BYTES = 1_000
_ESCAPED_NUL = b"\\u0000"


def sound(decoded: Decoded, space: Space, drop_null_island: bool = True, unknown_everywhere: bool = False) -> Decoded:
    """Return decoded elements without those that break a rule; count these as malformed.

    Parameters
    ----------
    decoded : Decoded
    space : Space
    drop_null_island : bool
        Whether a point at longitude and latitude 0 is no position.
    unknown_everywhere : bool
        Whether elements are everywhere in dimensions in which it is not known where they are, instead of nowhere.

    Returns
    -------
    Decoded
        Each of its elements has a key, a time, and a box within the space. Its texts are UTF-8 without NUL, its
        properties are a JSON object of bounded size, and its geometry, if any, is WKB. See docs/decoders.md.
    """
    malformed = tuple(map(_plain, decoded.malformed))
    elements = decoded.elements
    if not _is_well_formed(elements, space):
        sample = str(getattr(elements, "schema", type(elements))).encode()[:MAX_SAMPLE_BYTES]
        return Decoded(element_schema(space).empty_table(), (*malformed, Malformed(NOT_ELEMENTS, sample)))
    if not elements.num_rows:
        return Decoded(elements, malformed)
    good = np.ones(elements.num_rows, dtype=bool)
    for reason, bad in _faults(elements, space, drop_null_island):
        rows = np.flatnonzero(bad & good)
        malformed += tuple(Malformed(reason, sample) for sample in _samples(elements, rows))
        good[rows] = False
    elements = elements if good.all() else elements.filter(pa.array(good))
    return Decoded(_everywhere(elements, space) if unknown_everywhere else elements, malformed)


def _everywhere(elements: pa.Table, space: Space) -> pa.Table:
    """Return elements that are everywhere in dimensions in which it is not known where they are."""
    bounds = bounds_of(elements["bounds"])
    unknown = np.isposinf(bounds[:, : space.n])
    if not unknown.any():
        return elements
    low = np.where(unknown, -np.inf, bounds[:, : space.n])
    place = elements.schema.get_field_index("bounds")
    told = bounds_array(np.hstack([low, bounds[:, space.n :]]))
    return elements.set_column(place, elements.schema.field(place), told)


def _plain(fault: Malformed) -> Malformed:
    """Return a fault with a short reason, in valid UTF-8 without NUL, so that it can be written anywhere."""
    reason = str(fault.reason)[:MAX_REASON_CHARACTERS].encode(errors="replace").decode().replace("\0", " ")
    return Malformed(reason, bytes(fault.sample[:MAX_SAMPLE_BYTES]))


def _is_well_formed(elements: Any, space: Space) -> bool:
    """Return whether a table has the columns of elements, UTF-8 texts, and no null in columns that forbid it."""
    if not isinstance(elements, pa.Table) or elements.schema != element_schema(space):
        return False
    try:
        elements.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return all(elements[field.name].null_count == 0 for field in elements.schema if not field.nullable)


def _faults(elements: pa.Table, space: Space, drop_null_island: bool) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each reason, and the rows to which it applies as booleans of shape (N,)."""
    yield NO_KEY, _outside(pc.binary_length(elements["key"]), 1, MAX_KEY_BYTES + 1)
    yield NUL, _contains(elements["key"], b"\0")
    version = elements["version"]
    times = _outside(elements["time_us"], 0, LATEST_US) | _outside(version, -MAX_VERSION, MAX_VERSION)
    yield TIME, times
    bounds = bounds_of(elements["bounds"])
    yield OUT_OF_RANGE, _beyond(bounds, space)
    if drop_null_island and space.geographic:
        # Devices without a position say 0, 0.
        yield NULL_ISLAND, (bounds[:, [0, 1, space.n, space.n + 1]] == 0.0).all(axis=1)
    if elements["geometry"].null_count < elements.num_rows:
        yield GEOMETRY, _unsound_geometry(elements["geometry"])
    yield from _property_faults(elements["properties"])


def _outside(values: pa.ChunkedArray, lo: int, hi: int) -> np.ndarray:
    """Return which numbers are below `lo`, or not below `hi`."""
    values = values.to_numpy()
    return (values < lo) | (values >= hi)


def _contains(column: pa.ChunkedArray, needle: bytes) -> np.ndarray:
    """Return which texts contain `needle`; most often, one search through all bytes shows that none does."""
    if not any(needle in data for data in _data(column)):
        return np.zeros(len(column), dtype=bool)
    return pc.fill_null(pc.match_substring(column, needle.decode()), False).to_numpy()


def _data(column: pa.ChunkedArray) -> list[bytes]:
    """Return each chunk's text bytes, which may also hold texts before and after those of the column."""
    return [memoryview(chunk.buffers()[2] or b"").tobytes() for chunk in column.chunks if len(chunk)]


def _beyond(bounds: np.ndarray, space: Space) -> np.ndarray:
    """Return which boxes, shape (N, 2n), do not lie within the space; see `elements.element_schema`."""
    lo, hi = bounds[:, : space.n], bounds[:, space.n :]
    bad = ~np.all(lo <= hi, axis=1)
    for axis, dimension in enumerate(space.dimensions):
        low, high = lo[:, axis], hi[:, axis]
        unknown = (low == UNKNOWN) & (axis > 1 and not dimension.wraps)
        bad |= (low == np.inf) & ~unknown | (high == -np.inf)
        bad |= np.isfinite(low) & ((low < dimension.lo) | (low > dimension.hi))
        turn = dimension.extent if dimension.wraps else 0.0
        bad |= np.isfinite(high) & ((high < dimension.lo) | (high > dimension.hi + turn))
        if dimension.wraps:
            bad |= np.isfinite(low) != np.isfinite(high)
            bad |= np.isfinite(low) & (high > low + turn)
    return bad


def _unsound_geometry(column: pa.ChunkedArray) -> np.ndarray:
    """Return which geometries are too long, not WKB, empty, or have a coordinate that is not finite; null is sound."""
    given = pc.is_valid(column).to_numpy()
    bad = np.zeros(len(given), dtype=bool)
    rows = np.flatnonzero(given)
    texts = column.filter(pc.is_valid(column))
    shapes = shapely.from_wkb(texts.to_numpy(), on_invalid="ignore")
    bad[rows] = (pc.binary_length(texts).to_numpy() > MAX_GEOMETRY_BYTES) | ~np.isfinite(shapely.bounds(shapes)).all(1)
    coordinates, owner = shapely.get_coordinates(shapes, include_z=True, return_index=True)
    bad[rows[owner[~np.isfinite(coordinates[:, :2]).all(1) | np.isinf(coordinates[:, 2])]]] = True
    return bad


def _property_faults(column: pa.ChunkedArray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each fault of properties with its rows; only texts that may break a bound are read one by one."""
    texts = column.to_numpy()
    bad = np.zeros(len(texts), dtype=bool)
    if not _are_objects(texts):
        bad = ~np.fromiter(map(_is_object, texts), dtype=bool, count=len(texts))
    reasons = np.full(len(texts), PROPERTIES if bad.any() else None, dtype=object)
    for row in np.flatnonzero(~bad & _suspicious(column)):
        reasons[row] = _text_fault(texts[row])
        bad[row] = reasons[row] is not None
    for reason in (PROPERTIES, TOO_LARGE, NUL) if bad.any() else ():
        yield reason, bad & (reasons == reason)


def _are_objects(texts: np.ndarray) -> bool:
    """Return whether all texts are JSON objects, without a Python step per text: nearly always they are."""
    try:
        return set(map(type, map(orjson.loads, texts))) <= {dict}
    except orjson.JSONDecodeError:
        return False


def _is_object(text: str | None) -> bool:
    if text is None:
        return True
    try:
        return type(orjson.loads(text)) is dict
    except orjson.JSONDecodeError:
        return False


def _suspicious(column: pa.ChunkedArray) -> np.ndarray:
    """Return which texts are long, may hold a NUL, or may be nested too deep."""
    lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy()
    suspicious = (lengths > _SHORT_BYTES) | _contains(column, _ESCAPED_NUL)
    if sum(data.count(b"[") + data.count(b"{") for data in _data(column)) > len(column):
        brackets = pc.count_substring_regex(column, r"[\[{]")
        suspicious |= pc.fill_null(brackets, 0).to_numpy() > MAX_DEPTH
    return suspicious


def _text_fault(text: str) -> str | None:
    """Return why the properties of a JSON object are unsound, or None."""
    if len(text.encode()) > MAX_PROPERTIES_BYTES:
        return TOO_LARGE
    level = [orjson.loads(text)]
    names, depth = 0, 0
    while level:
        depth += 1
        texts = [value for value in level if isinstance(value, str)]
        keys = [name for value in level if isinstance(value, dict) for name in value]
        names += len(keys)
        if any("\0" in word for word in (*texts, *keys)):
            return NUL
        too_long = max(map(len, texts), default=0) > MAX_TEXT_CHARACTERS
        too_long |= max(map(len, keys), default=0) > MAX_NAME_CHARACTERS
        if too_long or names > MAX_PROPERTIES or depth > MAX_DEPTH:
            return TOO_LARGE
        level = [inner for value in level for inner in _inside(value)]
    return None


def _inside(value: Any) -> Iterable[Any]:
    """Return the values directly inside a value of a JSON document."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _samples(elements: pa.Table, rows: np.ndarray) -> list[bytes]:
    """Return the beginning of the key and properties of each row, as a sample."""
    if not len(rows):
        return []
    chosen = elements.select(["key", "properties"]).take(pa.array(rows)).to_pylist()
    return [f"{row['key'][:80]} {row['properties'] or ''}".encode()[:MAX_SAMPLE_BYTES] for row in chosen]
