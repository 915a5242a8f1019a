"""The same questions to the sketch and to DuckDB over the same elements as Parquet, each in a process of its own."""

import multiprocessing
import re
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from bench.sketch.coverage import random_selection
from bench.sketch.recordings import Recording
from streaming.sketch import codec, statistics
from streaming.sketch.chosen import choose
from streaming.spaces import EARTH
from streaming.state.codec import Tables

QUESTIONS = 100


def rows_of(recording: Recording) -> list[str]:
    """Return rows of a table: bytes that are read, time of the questions, and the memory of the process."""
    drawn = np.random.default_rng(3)
    asked = []
    while len(asked) < QUESTIONS:
        selection, rows = random_selection(recording, drawn)
        if len(rows):
            asked.append((selection, str(drawn.choice(recording.settings.features))))
    sketch = recording.sketch()
    parts = {name: [_bytes(table) for table in part.tables()] for name, part in codec.encode(sketch).items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "elements.parquet"
        parquet.write_table(_table(recording), path)
        size = path.stat().st_size
        none = _apart(_nothing)
        base = _apart(_duckdb, str(path), asked)
    own = _apart(_sketch, parts, asked)
    rows = []
    for name, kept, (taken, peak) in (("DuckDB, Parquet", size, base), ("sketch", sketch.nbytes, own)):
        told = f"{kept / 1e6:.1f} | {np.median(taken):.2f} | {taken.sum() / 1e3:.2f} | {(peak - none[1]) / 1e6:.0f}"
        rows.append(f"| {recording.name} | {name} | {told} |")
    return rows


def _apart(ask, *arguments):
    """Return what a function returns in a process of its own, and the most memory that this took, in bytes."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_measured, (ask, arguments))


def _measured(ask, arguments):
    told = ask(*arguments)
    # The peak that `resource` tells is that of the process before it, if that was higher.
    status = Path("/proc/self/status").read_text()
    return told, 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])


def _nothing():
    return np.empty(0)


def _sketch(parts, asked):
    """Return the milliseconds that each question to the sketch takes."""
    read = {name: Tables([pa.ipc.open_stream(table).read_all() for table in tables]) for name, tables in parts.items()}
    sketch, taken = codec.decode(read, EARTH), []
    for selection, feature in asked:
        began = time.perf_counter()
        chosen = choose(sketch, selection)
        for ask in (statistics.mean, statistics.std, statistics.minimum, statistics.maximum):
            ask(chosen, feature)
        taken.append((time.perf_counter() - began) * 1e3)
    return np.array(taken)


def _duckdb(path, asked):
    """Return the milliseconds that each question to DuckDB takes, on one core."""
    taken = []
    with duckdb.connect(config={"threads": 1}) as database:
        for selection, feature in asked:
            began = time.perf_counter()
            where = _where(selection)
            told = f'avg("{feature}"), stddev_samp("{feature}"), min("{feature}"), max("{feature}")'
            database.execute(f"SELECT {told} FROM '{path}' WHERE {where}").fetchall()
            taken.append((time.perf_counter() - began) * 1e3)
    return np.array(taken)


def _where(selection):
    conditions = ["true"]
    for west, south, east, north in selection.areas:
        conditions.append(f"x BETWEEN {west!r} AND {east!r} AND y BETWEEN {south!r} AND {north!r}")
    if selection.times is not None:
        spans = (f"time_us >= {start} AND time_us < {end}" for start, end in selection.times.limits.tolist())
        conditions.append("(" + " OR ".join(spans) + ")")
    for one in selection.ranges:
        conditions.append(f'"{one.feature}" BETWEEN {float(one.low)!r} AND {float(one.high)!r}')
    return " AND ".join(conditions)


def _table(recording):
    elements = recording.elements
    values = zip(recording.settings.features, elements.values, strict=True)
    columns = {name: pa.array(column, from_pandas=True) for name, column in values}
    return pa.table({"time_us": elements.time_us, "x": elements.place[0], "y": elements.place[1]} | columns)


def _bytes(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
