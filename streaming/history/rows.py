"""Stored elements as tables: while they wait for a part, in a part (Parquet), and as rows of an answer."""

import functools
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streaming.elements import bounds_array, bounds_of, element_schema, from_ipc
from streaming.layers.features import hilbert_order
from streaming.spaces import Space

ROWS_PER_GROUP = 16_384
INSTANT = pa.timestamp("us", tz="UTC")
# Shifting a box by a turn rounds its bounds, so the condition of `meets` is this much wider; an exact test follows it.
MARGIN = 1e-9


@functools.lru_cache(maxsize=32)
def waiting_schema(space: Space) -> pa.Schema:
    """Return the columns of elements that wait for a part.

    Returns
    -------
    pyarrow.Schema
        The columns of `elements.element_schema` without key_hash and version;
        heard_us : int64, when the gateway received the element, in microseconds since 1970 UTC; of one that came too
            late to change an answer, when it would have received it in its turn;
        late_us : int64, when it received an element that came too late; null for others;
        stream : dictionary of string, the name of the stream.
    """
    kept = [field for field in element_schema(space) if field.name not in ("key_hash", "version")]
    heard = [pa.field(name, pa.int64()) for name in ("heard_us", "late_us")]
    return pa.schema([*kept, *heard, pa.field("stream", pa.dictionary(pa.int32(), pa.string()))])


@functools.lru_cache(maxsize=32)
def part_schema(space: Space) -> pa.Schema:
    """Return the columns of a part.

    Returns
    -------
    pyarrow.Schema
        key : string;
        time, heard, late : timestamp in UTC, the event time, and `heard_us` and `late_us` of `waiting_schema`;
        lo_0, hi_0, lo_1, .. : float64, each bound in a column of its own, so that readers can skip row groups by their
        minimum and maximum;
        geometry : binary, WKB or null;
        properties : string, a JSON object.
    """
    bounds = [pa.field(f"{side}_{axis}", pa.float64()) for axis in range(space.n) for side in ("lo", "hi")]
    times = [pa.field(name, INSTANT) for name in ("time", "heard", "late")]
    fields = [pa.field("key", pa.string()), *times, *bounds]
    return pa.schema([*fields, pa.field("geometry", pa.binary()), pa.field("properties", pa.string())])


@functools.lru_cache(maxsize=32)
def row_schema(space: Space) -> pa.Schema:
    """Return the columns of the rows of an answer.

    Returns
    -------
    pyarrow.Schema
        key : string;
        time_us : int64, event time in microseconds since 1970 UTC; null in a layer;
        bounds : fixed-size list of 2n float64;
        geometry : binary, WKB or null;
        properties : string, a JSON object.
    """
    schema = element_schema(space)
    fields = [schema.field(name) for name in ("key", "time_us", "bounds", "geometry", "properties")]
    return pa.schema([field.with_nullable(True) for field in fields])


def waiting(elements: pa.Table, names: Mapping[int, str], space: Space) -> pa.Table:
    """Return the elements of stored streams, with `waiting_schema(space)`.

    Parameters
    ----------
    elements : pyarrow.Table
        With `servers.elements.tracked_schema(space)`, or with `belated_schema(space)` if they came too late.
    names : mapping of int to str
        The names of the stored streams, by number. Elements of other streams are left out.
    space : Space
    """
    numbers, schema = np.array(sorted(names), dtype=np.int64), waiting_schema(space)
    stream = elements["stream"].to_numpy()
    mine = np.isin(stream, numbers)
    elements, stream = (elements, stream) if mine.all() else (elements.filter(pa.array(mine)), stream[mine])
    words = pa.array([names[number] for number in numbers.tolist()], pa.string())
    codes = pa.array(np.searchsorted(numbers, stream).astype(np.int32))
    columns = {name: elements[name] for name in schema.names[:-1] if name in elements.column_names}
    columns.setdefault("late_us", pa.nulls(elements.num_rows, pa.int64()))
    columns["stream"] = pa.chunked_array([pa.DictionaryArray.from_arrays(codes, words)])
    return pa.table([columns[name] for name in schema.names], schema=schema)


def waiting_of(payload: bytes, space: Space) -> pa.Table:
    """Return the elements of a pending file, with `waiting_schema(space)`; none if the space was defined anew since."""
    table, schema = from_ipc(payload), waiting_schema(space)
    if "late_us" not in table.column_names:  # written before there was this column
        place = schema.get_field_index("late_us")
        table = table.add_column(place, schema.field(place), pa.nulls(table.num_rows, pa.int64()))
    return table if table.schema.equals(schema) else schema.empty_table()


def days(elements: pa.Table) -> np.ndarray:
    """Return the day in UTC of each element's event time: datetime64[D] of shape (N,)."""
    return elements["time_us"].to_numpy().astype("datetime64[us]").astype("datetime64[D]")


def stored(elements: pa.Table, space: Space) -> pa.Table:
    """Return elements with `waiting_schema(space)` as a table with `part_schema(space)`."""
    bounds = bounds_of(elements["bounds"]) if elements.num_rows else np.empty((0, 2 * space.n))
    sides = {
        f"{side}_{axis}": pa.array(np.ascontiguousarray(bounds[:, first + axis]))
        for side, first in (("lo", 0), ("hi", space.n))
        for axis in range(space.n)
    }
    columns = sides | {name: elements[name] for name in ("key", "geometry", "properties")}
    columns |= {name: elements[f"{name}_us"].cast(INSTANT) for name in ("time", "heard", "late")}
    schema = part_schema(space)
    return pa.table([columns[name] for name in schema.names], schema=schema)


def write_rows(path: Path, table: pa.Table, space: Space) -> None:
    """Write elements with `part_schema(space)` as Parquet, along a Hilbert curve, so that row groups are compact.

    Late elements that repeat others are left out: feeds tell what they have buffered again and again.
    """
    table = _without_repeats(table)
    order = hilbert_order(boxes(table, space), space)
    pq.write_table(table.take(pa.array(order)), path, compression="zstd", row_group_size=ROWS_PER_GROUP)


def _without_repeats(table: pa.Table) -> pa.Table:
    """Return elements without the late ones that differ from another one only by when they were received."""
    if table["late"].null_count == table.num_rows:
        return table
    late = pl.col("late").is_not_null()
    rows = pl.DataFrame(table).with_row_index("row").sort(late, maintain_order=True)
    told = pl.struct(pl.all().exclude("row", "heard", "late"))
    return table.take(rows.filter(~late | told.is_first_distinct())["row"].sort().to_arrow())


def boxes(table: pa.Table, space: Space) -> np.ndarray:
    """Return the boxes of elements with `part_schema(space)`, float64 of shape (N, 2n)."""
    names = [f"{side}_{axis}" for side in ("lo", "hi") for axis in range(space.n)]
    return np.stack([table[name].to_numpy() for name in names], axis=1)


def rows_of(table: pa.Table, space: Space) -> pa.Table:
    """Return elements with `part_schema(space)` as a table with `row_schema(space)`."""
    columns = {name: table[name] for name in ("key", "geometry", "properties")}
    columns |= {"time_us": table["time"].cast(pa.int64()), "bounds": bounds_array(boxes(table, space))}
    schema = row_schema(space)
    return pa.table([columns[name] for name in schema.names], schema=schema)


def meets(box: np.ndarray, space: Space) -> pc.Expression:
    """Return a condition that holds for every stored element whose box intersects `box`, and for few others.

    Parameters
    ----------
    box : ndarray of float64, shape (2n,)
    space : Space

    Returns
    -------
    pyarrow.compute.Expression
        Over the columns of `part_schema`.
    """
    condition = pc.scalar(True)
    for axis, dimension in enumerate(space.dimensions):
        low, high = box[axis], box[space.n + axis]
        if np.isneginf(low) and np.isposinf(high):
            continue
        turns = (0.0, dimension.extent, -dimension.extent) if dimension.wraps else (0.0,)
        there = pc.scalar(False)
        for turn in turns:
            reaches = pc.field(f"hi_{axis}") >= float(low - turn - MARGIN)
            there = there | (reaches & (pc.field(f"lo_{axis}") <= float(high - turn + MARGIN)))
        condition = condition & there
    return condition


def within(span: tuple[int | None, int | None]) -> pc.Expression:
    """Return the condition that the event time lies in a span, in microseconds since 1970 UTC.

    Both ends are included; None leaves an end open.
    """
    condition = pc.scalar(True)
    start, stop = span
    if start is not None:
        condition = condition & (pc.field("time") >= pa.scalar(start, INSTANT))
    if stop is not None:
        condition = condition & (pc.field("time") <= pa.scalar(stop, INSTANT))
    return condition
