"""Joins over event time, on one core: ``python -m bench.time_joins``.

Two streams report from ships on a sparse sea. The baselines join the same reports: the paper's, which partitions one
side at random, sends the other side everywhere, and compares each report with all; and the join of two streams that
Spark has, by cells, with the distance as a condition.

References
----------
Li et al., "Distributed join query method for large-scale spatial data streams", 2023, section 3: the baseline; how
throughput and latency depend on windows, intervals, bins and grids.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from pyarrow import parquet

from streaming.elements import bounds_array, bounds_of, key_hashes, stream_number
from streaming.operators.geodesics import EARTH_RADIUS_M
from streaming.operators.region_map import RegionMap
from streaming.operators.watermarks import Progress
from streaming.servers.control.registry import Applied, Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.region.place import RegionPlace
from streaming.servers.ways.time_joins.region import TimeJoins, step
from streaming.servers.ways.time_joins.reports import reports_schema
from streaming.spaces import EARTH

US, BATCH_S, OBJECTS, DISTANCE_M = 1_000_000, 0.2, 100_000, 1_000.0
STREAMS = ("a", "b")
# For so long, in seconds of event time, a join goes on after it has all that waits.
MORE_S = 65.0
SEA = (-20.0, 30.0, 20.0, 60.0)
JOIN = {"stream": "b", "predicate": "dwithin", "distance": DISTANCE_M}
# The baseline compares as many reports of a window with all of the other side.
SAMPLED = 200
# Degrees of latitude of a cell in Spark's join, a little more than the distance.
CELL_DEG = 0.0091

# What waits is in RocksDB: on the heap it would not fit.
SPARK = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "6g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


@dataclass(frozen=True)
class Load:
    """Two streams of ships that drift: `rate` reports a second together, for so many seconds of event time."""

    rate: int
    seconds: float

    def places(self) -> Iterator[tuple[int, dict[str, tuple[np.ndarray, np.ndarray]]]]:
        """Yield for each batch its time and, by stream, which ships report and where, (N,) and (N, 2)."""
        rng, count = np.random.default_rng(1), int(self.rate * BATCH_S / 2)
        west, south, east, north = SEA
        homes = {stream: rng.uniform([west, south], [east, north], (OBJECTS, 2)) for stream in STREAMS}
        for number in range(int(self.seconds / BATCH_S)):
            ships = (np.arange(count) + number * count) % OBJECTS
            drift = rng.normal(0, 1e-3, (2, count, 2))
            told = {stream: (ships, homes[stream][ships] + drift[side]) for side, stream in enumerate(STREAMS)}
            yield round((1_000 + number * BATCH_S) * US), told

    def tables(self) -> Iterator[tuple[int, pa.Table]]:
        """Yield the time and the reports of each batch, as home servers send them."""
        keys = {stream: np.array([f"{stream}{n}" for n in range(OBJECTS)], dtype=object) for stream in STREAMS}
        hashes = {stream: key_hashes(stream, keys[stream].tolist()) for stream in STREAMS}
        for time_us, told in self.places():
            tables = [
                _reports(stream, keys[stream][ships], hashes[stream][ships], time_us, places)
                for stream, (ships, places) in told.items()
            ]
            yield time_us, pa.concat_tables(tables)


def _reports(stream, keys, hashes, time_us, places):
    rows, flat = len(keys), np.full((len(keys), 1), np.inf)
    times = dict.fromkeys(("time_us", "version", "heard_us", "seen_us"), np.full(rows, time_us))
    columns = times | {
        "key": pa.array(keys),
        "key_hash": hashes,
        "bounds": bounds_array(np.hstack([places, -flat, places, flat])),
        "properties": pa.array(["{}"] * rows),
        "stream": np.full(rows, stream_number(stream)),
    }
    schema = reports_schema(EARTH)
    return pa.table([columns.get(field.name, pa.nulls(rows, field.type)) for field in schema], schema=schema)


def figures(document: Mapping[str, Any], load: Load, grid: int = 1, every_s: float = 0.0) -> dict[str, Any]:
    """Join a load in `grid` x `grid` regions, one after the other; return what it took of a processor's time.

    With `every_s`, ``each`` has the reports that are kept, and the memory, each time so much event time has passed.
    """
    plan = {"stream": "a", "join": JOIN, "lateness_s": 1} | document
    registry, applied = Registry(EARTH).apply([{"op": "register", "query": 1, "revision": 1, "plan": plan}])
    control = ControlStep(Registry(EARTH), registry, applied, 0)
    known = regions_of_sea(grid)
    states = [TimeJoins.empty(EARTH) for _ in range(known.regions)]
    took, told, reports, each = [], 0, 0, []
    for time_us, table in load.tables():
        met = registry.report_reach.regions(bounds_of(table["bounds"]), table["stream"].to_numpy(), known)
        homes = [{stream_number(stream): Progress(time_us, time_us) for stream in STREAMS}]
        parts = [table.filter(pa.array(met[:, number])) for number in range(known.regions)]
        began_s = time.process_time()
        for number, part in enumerate(parts):
            states[number], results = step(states[number], part, homes, control, RegionPlace(number, known))
            told += results.changes.num_rows
        took.append(time.process_time() - began_s)
        reports += table.num_rows
        control = ControlStep(registry, registry, Applied(), time_us)
        if every_s and len(took) % round(every_s / BATCH_S) == 0:
            each.append((sum(len(state.reports) for state in states), _resident_mib()))
    milliseconds = 1_000 * np.array(took)
    return {
        "reports/s": reports / sum(took),
        "pairs a report": told / reports,
        "p50 ms": float(np.median(milliseconds)),
        "p99 ms": float(np.quantile(milliseconds, 0.99)),
        "longest ms": float(milliseconds.max()),
        "kept": sum(len(state.reports) for state in states),
        "resident MiB": _resident_mib(),
    } | ({"each": each} if every_s else {})


def _resident_mib():
    return psutil.Process().memory_info().rss / (1 << 20)


def regions_of_sea(grid: int) -> RegionMap:
    """Return a map that cuts the sea into `grid` x `grid` regions of one size."""
    west, south, east, north = SEA
    known, columns = RegionMap.grid(EARTH, 1), [0]
    for x in np.linspace(west, east, grid + 1)[1:-1].tolist():
        known = known.split(columns[-1], 0, x)
        columns.append(known.regions - 1)
    for column in columns:
        last = column
        for y in np.linspace(south, north, grid + 1)[1:-1].tolist():
            known = known.split(last, 1, y)
            last = known.regions - 1
    return known


def plainly(load: Load, window_s: float) -> float:
    """Return how many reports/s of a window the paper's baseline joins: each with all of the other side."""
    last = list(load.places())[-round(window_s / BATCH_S) :]
    one, other = (np.radians(np.concatenate([told[stream][1] for _, told in last])) for stream in STREAMS)
    chosen = np.random.default_rng(2).choice(len(one), SAMPLED, replace=False)
    began, near = time.process_time(), 0
    for lon, lat in one[chosen].tolist():
        near += int((haversine_m(lon, lat, other[:, 0], other[:, 1]) <= DISTANCE_M).sum())
    each_s = (time.process_time() - began) / SAMPLED
    return (len(one) + len(other)) / (each_s * len(one))


def haversine_m(lon: float, lat: float, to_lon: np.ndarray, to_lat: np.ndarray) -> np.ndarray:
    """Return distances on the sphere in metres; all angles are radians."""
    half = np.sin((to_lat - lat) / 2) ** 2 + np.cos(lat) * np.cos(to_lat) * np.sin((to_lon - lon) / 2) ** 2
    return 2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(half))


def by_spark(load: Load, interval_s: float, folder: Path, files: int = 10) -> tuple[float, int]:
    """Join a load by the join of two streams of Spark on two cores; return reports/s of wall time, and the pairs.

    Spark joins streams by equal keys, so a report of one side goes to the nine cells about its own.
    """
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    batches = list(load.places())
    for stream in STREAMS:
        (folder / stream).mkdir()
        for number, part in enumerate(np.array_split(np.arange(len(batches)), files)):
            rows = [(np.full(len(batches[n][1][stream][0]), batches[n][0]), *batches[n][1][stream]) for n in part]
            times, ships, places = (np.concatenate(column) for column in zip(*rows, strict=True))
            table = {"time_us": times, "ship": ships, "lon": places[:, 0], "lat": places[:, 1]}
            parquet.write_table(pa.table(table), folder / stream / f"{number:04}.parquet")
    builder = SparkSession.builder.master("local[2]")
    for name, value in SPARK.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    sides = {}
    for stream in STREAMS:
        schema = "time_us long, ship long, lon double, lat double"
        read = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / stream))
        read = read.withColumn("at", f.timestamp_micros("time_us")).withWatermark("at", "1 second")
        # Cells as wide as the distance at the sea's northern edge.
        wide = CELL_DEG / np.cos(np.radians(SEA[3]))
        x, y = f.floor(f.col("lon") / wide), f.floor(f.col("lat") / CELL_DEG)
        if stream == "b":
            near = f.array(*(f.array(x + i, y + j) for i in (-1, 0, 1) for j in (-1, 0, 1)))
            read = read.withColumn("cell", f.explode(near))
        else:
            read = read.withColumn("cell", f.array(x, y))
        sides[stream] = read.select(*(f.col(name).alias(f"{stream}_{name}") for name in ("at", "lon", "lat", "cell")))
    apart = [f.radians(f.col(f"b_{axis}") - f.col(f"a_{axis}")) / 2 for axis in ("lat", "lon")]
    cosines = f.cos(f.radians("a_lat")) * f.cos(f.radians("b_lat"))
    half = f.pow(f.sin(apart[0]), 2) + cosines * f.pow(f.sin(apart[1]), 2)
    within = f.expr(f"b_at between a_at - interval {interval_s} seconds and a_at")
    joined = sides["a"].join(sides["b"], (f.col("a_cell") == f.col("b_cell")) & within)
    joined = joined.where(2 * EARTH_RADIUS_M * f.asin(f.sqrt(half)) <= DISTANCE_M)
    pairs = []
    writer = joined.writeStream.foreachBatch(lambda rows, _: pairs.append(rows.count())).trigger(availableNow=True)
    began = time.perf_counter()
    writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    took_s = time.perf_counter() - began
    spark.stop()
    reports = sum(len(told[stream][0]) for _, told in batches for stream in STREAMS)
    return reports / took_s, sum(pairs)


def window(minutes: float) -> dict[str, Any]:
    """Return the keys of a window join of as many minutes."""
    return {"kind": "window_join", "window_s": 60 * minutes}


def interval(minutes: float, bin_minutes: float | None = None) -> dict[str, Any]:
    """Return the keys of an interval join over the last minutes, with bins of as many minutes."""
    bins = {} if bin_minutes is None else {"bin_s": 60 * bin_minutes}
    return {"kind": "interval_join", "lower_s": -60 * minutes, "upper_s": 0} | bins


def rows(asked: str) -> list[tuple[str, dict[str, Any], int, int]]:
    """Return the rows of a table: its name, the keys of the join, by what the rate is divided, and the grid."""
    tables: dict[str, list[tuple[str, dict[str, Any], int, int]]] = {
        "windows": [(f"window of {minutes} min", window(minutes), 1, 1) for minutes in (1, 5, 10)],
        "intervals": [(f"interval of {minutes} min", interval(minutes), 1, 1) for minutes in (1, 5, 10)],
        "bins": [
            (f"interval of 5 min, bins of {size:g} min", interval(5, size), 4, 1) for size in (0.5, 1, 2.5, 5, 10)
        ],
        "grids": [
            (f"{name} of 1 min, {grid} x {grid} regions", join, 2, grid)
            for name, join in (("window", window(1)), ("interval", interval(1)))
            for grid in (1, 2, 4, 8)
        ],
    }
    return tables[asked]


def minutes_of(document: Mapping[str, Any]) -> float:
    """Return how long a window or an interval is."""
    return document.get("window_s", -document.get("lower_s", 0)) / 60


def line(name: str, told: Mapping[str, float]) -> str:
    """Return a line of a table."""
    return f"| {name} | " + " | ".join(f"{n:,.3g}" if n < 1 else f"{n:,.0f}" for n in told.values()) + " |"


def head(name: str, told: Mapping[str, float]) -> str:
    """Return the first two lines of a table."""
    return f"| {name} | " + " | ".join(told) + " |\n" + "| --- " * (len(told) + 1) + "|"


def print_table(asked: str, rate: int) -> None:
    """Measure and print a table of `rows`."""
    for number, (name, document, part, grid) in enumerate(rows(asked)):
        told = figures(document, Load(rate // part, 60 * minutes_of(document) + MORE_S), grid)
        if not number:
            print(head("join", told))
        print(line(name, told), flush=True)


def print_hour(rate: int) -> None:
    """Print what an hour of event time keeps in memory, every ten minutes."""
    for name, document in (("window of 1 min", window(1)), ("interval of 1 min", interval(1))):
        kept = figures(document, Load(rate, 3_600), every_s=600.0)["each"]
        print(head(name, {f"{10 * (place + 1)} min": 0.0 for place in range(len(kept))}))
        for number, figure in enumerate(("kept", "resident MiB")):
            print(line(figure, {str(place): told[number] for place, told in enumerate(kept)}), flush=True)


def print_baselines(rate: int, seconds: float) -> None:
    """Print what the baselines take, and beside them the joins of the same load."""
    load = Load(rate, 60 + MORE_S)
    ours, plain = figures(window(1), load)["reports/s"], plainly(load, 60)
    print(f"window of 1 min: {ours:,.0f} reports/s; the paper's baseline: {plain:,.0f}, {ours / plain:,.0f} times")
    load = Load(rate, seconds)
    ours = figures(interval(1), load)["reports/s"]
    with tempfile.TemporaryDirectory() as folder:
        theirs, pairs = by_spark(load, 60, Path(folder))
    print(
        f"interval of 1 min: {ours:,.0f} reports/s on one core; Spark's join of streams on two: {theirs:,.0f}, "
        f"{ours / theirs:,.0f} times ({pairs:,} pairs)"
    )


TABLES = ("windows", "intervals", "bins", "grids")


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rate", type=int, default=20_000, help="reports/s of event time, both streams together")
    options.add_argument("--spark-seconds", type=float, default=40.0, help="event time that Spark joins; 0 for none")
    options.add_argument("--only", action="append", choices=(*TABLES, "hour", "baselines"))
    asked = options.parse_args()
    for table in TABLES:
        if table in (asked.only or TABLES):
            print_table(table, asked.rate)
    if "hour" in (asked.only or ["hour"]):
        print_hour(asked.rate // 10)
    if "baselines" in (asked.only or ["baselines"]):
        print_baselines(asked.rate, asked.spark_seconds)


if __name__ == "__main__":
    main()
