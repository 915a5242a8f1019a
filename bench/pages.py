"""What a layer of many features costs the processes that join with it, by region: ``python -m bench.pages``.

Each region has a process of its own, as if each had a machine of its own; they take turns, so that they do not wait for
each other's processor time. The features are small squares all over the world. A region joins points in its cell with
the squares within a distance, in batches, as its server does. Its pairs must be those of a process that has the whole
layer as one page.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import shapely

from streaming.layers.features import feature_table
from streaming.layers.pages import SUFFIX, mapped_pages, write_pages
from streaming.layers.parts import read_groups, read_parts, write_part
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.features import Features
from streaming.operators.layer import LayerVersion
from streaming.operators.padding import LayerReach, Padding
from streaming.operators.region_map import RegionMap
from streaming.operators.spatial_join import SpatialJoins
from streaming.plans import parse_plan
from streaming.spaces import EARTH

LAYER, PART = "squares", "squares.parquet"
FEATURES, CHUNK = 10_000_000, 500_000
WEST_SOUTH, EAST_NORTH, SIDE_DEG = (-180.0, -80.0), (179.9, 80.0), 0.002
REGIONS, STRATEGIES = (2, 4, 8), ("dynamic", "static", "fetch")
WHOLE = "whole layer"
DISTANCES_M = (1_000.0, 10_000.0, 30_000.0)
# The fixed padding is right for the second of the distances, and too small for the third.
STATIC_M = 10_000.0
ELEMENTS, BATCHES = 2_000, 4
ROOT = Path(__file__).parents[1]
WRITE = """
import sys
from pathlib import Path
from bench.pages import write_layer
write_layer(Path(sys.argv[1]), int(sys.argv[2]))
"""
COLUMNS = (
    "regions",
    "kept in memory",
    "distance km",
    "largest RSS MiB",
    "largest PSS MiB",
    "PSS of all MiB",
    "CPU of the first batch ms",
    "CPU of a batch ms",
    "elements/s",
    "read MiB/batch",
)


def squares(count: int) -> pa.Table:
    """Return small squares all over the world, as features."""
    tables, rng = [], np.random.default_rng(11)
    for start in range(0, count, CHUNK):
        keys = [str(number) for number in range(start, min(start + CHUNK, count))]
        low = rng.uniform(WEST_SOUTH, EAST_NORTH, (len(keys), 2))
        shapes = shapely.box(*low.T, *(low + SIDE_DEG).T)
        tables.append(feature_table(LAYER, keys, shapes, [{}] * len(keys)))
    return pa.concat_tables(tables)


def write_layer(folder: Path, count: int) -> None:
    """Write the part of a layer, and its pages; print how long each takes, and the memory afterwards."""
    table, part = squares(count), folder / PART
    for what, made in (
        ("sort and write the part", lambda: write_part(part, table, EARTH)),
        ("copy it as pages", lambda: write_pages(part.with_suffix(SUFFIX), read_groups(LAYER, part, EARTH), EARTH)),
    ):
        began_s = time.perf_counter()
        made()
        print(f"{what}: {time.perf_counter() - began_s:.1f} s", flush=True)


def _layer(folder, strategy):
    if strategy != WHOLE:
        return LayerVersion([mapped_pages(folder / f"squares{SUFFIX}")], np.empty(0, dtype=np.int64), EARTH)
    return LayerVersion.of(Features(read_parts(LAYER, [folder / PART], [None], EARTH), EARTH))


def _elements(regions, number, batch):
    """Return some points in a region."""
    cell, rng = RegionMap.grid(EARTH, regions).cells[number], np.random.default_rng((regions, number, batch))
    low, high = np.maximum(cell[:2], WEST_SOUTH), np.minimum(cell[3:5], EAST_NORTH)
    places = rng.uniform(low, high, (ELEMENTS, 2))
    bounds = np.tile(EARTH.whole(), (ELEMENTS, 1))
    bounds[:, :2] = bounds[:, 3:5] = places
    no_more = pa.table({})  # points are compared by their boxes
    return Elements(np.zeros(ELEMENTS, dtype=np.int64), bounds, lambda rows: no_more, has_geometries=False)


def serve(folder: Path, strategy: str, regions: int, kept_for: int, distance_m: float) -> None:
    """Join a batch at each line of the standard input, a region and a batch; print what it cost and found as JSON."""
    join = {"layer": LAYER, "predicate": "dwithin", "distance": distance_m}
    joins = SpatialJoins([parse_plan({"stream": "ships", "kind": "join", "join": join})], EARTH)
    layer, cells = _layer(folder, strategy), RegionMap.grid(EARTH, regions).cells
    if strategy != WHOLE:
        kept = Padding(strategy, STATIC_M).kept(layer, cells[kept_for], [LayerReach(LAYER, (), distance_m)])
        layer.keep(kept_for, 0, kept)
    rows = np.arange(ELEMENTS)
    for line in sys.stdin:
        elements, read = _elements(regions, *map(int, line.split())), layer.read_bytes
        began = time.process_time(), time.perf_counter()
        pairs = joins.refined(elements, rows, np.zeros_like(rows), lambda _: layer, Failures())
        cost = {"cpu_s": time.process_time() - began[0], "s": time.perf_counter() - began[1]}
        found = {"pairs": len(pairs.row), "sum": int((pairs.partner * (pairs.row + 1)).sum())}
        print(json.dumps(cost | found | {"read_mib": (layer.read_bytes - read) / 2**20}), flush=True)


class Region:
    """The process of a region."""

    def __init__(self, folder: Path, strategy: str, regions: int, number: int, distance_m: float) -> None:
        told = [strategy, regions, number, distance_m]
        command = [sys.executable, "-m", "bench.pages", "--folder", folder, "--serve", *told]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.number = number
        self._run = subprocess.Popen(list(map(str, command)), cwd=ROOT, text=True, **pipes)

    def join(self, batch: int, number: int | None = None) -> dict[str, float]:
        """Run a batch of this region, or of another one; return what it cost and found."""
        self._run.stdin.write(f"{self.number if number is None else number} {batch}\n")
        self._run.stdin.flush()
        return json.loads(self._run.stdout.readline())

    def memory_mib(self) -> tuple[float, float]:
        """Return the resident and the proportional set size."""
        memory = psutil.Process(self._run.pid).memory_full_info()
        return memory.rss / 2**20, memory.pss / 2**20

    def end(self) -> None:
        """End the process."""
        self._run.communicate()


def measure(folder: Path, strategy: str, regions: int, distance_m: float, whole: Region) -> str:
    """Measure all regions under a strategy; return a row of the table. Raise SystemExit if pairs differ."""
    servers = [Region(folder, strategy, regions, number, distance_m) for number in range(regions)]
    first = [server.join(0) for server in servers]
    later = [server.join(batch) for batch in range(1, BATCHES) for server in servers]
    memory = np.array([server.memory_mib() for server in servers])
    for server in servers:
        server.end()
    for number, told in enumerate(first):
        expected = whole.join(0, number)
        if any(told[name] != expected[name] for name in ("pairs", "sum")):
            raise SystemExit(f"the pairs of region {number} must be those of the whole layer; got {told}, {expected}")
    cpu_s, read_mib = (float(np.mean([told[name] for told in later])) for name in ("cpu_s", "read_mib"))
    sizes = f"{memory[:, 0].max():,.0f}", f"{memory[:, 1].max():,.0f}", f"{memory[:, 1].sum():,.0f}"
    costs = f"{1000 * max(told['cpu_s'] for told in first):,.0f}", *_speed(cpu_s), f"{read_mib:,.1f}"
    return _row(regions, strategy, distance_m / 1000, *sizes, *costs)


def measure_whole(server: Region, regions: int, distance_m: float) -> str:
    """Measure the process that has the whole layer; return a row of the table."""
    first, later = server.join(0), server.join(1)
    sizes = (f"{mib:,.0f}" for mib in server.memory_mib())
    return _row(
        regions, WHOLE, distance_m / 1000, *sizes, "", f"{1000 * first['cpu_s']:,.0f}", *_speed(later["cpu_s"]), ""
    )


def _speed(cpu_s):
    return f"{1000 * cpu_s:,.0f}", f"{ELEMENTS / cpu_s:,.0f}"


def _row(*cells):
    return "| " + " | ".join(f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in cells) + " |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description=__doc__)
    parser.add_argument("--features", type=int, default=FEATURES)
    parser.add_argument("--regions", type=int, nargs="+", default=REGIONS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        strategy, regions, number, distance_m = options.serve
        serve(options.folder, strategy, int(regions), int(number), float(distance_m))
        return
    with tempfile.TemporaryDirectory(prefix="lookout-pages-") as name:
        folder = Path(name)
        # In a process of its own, which gives its memory back.
        subprocess.run([sys.executable, "-c", WRITE, name, str(options.features)], cwd=ROOT, check=True)
        print(_row(*COLUMNS), _row(*["---"] * len(COLUMNS)), sep="\n", flush=True)
        near, right, far = DISTANCES_M
        most = max(options.regions)
        for regions, distance_m in [*((count, right) for count in options.regions), (most, near), (most, far)]:
            whole = Region(folder, WHOLE, regions, 0, distance_m)
            print(measure_whole(whole, regions, distance_m), flush=True)
            for strategy in STRATEGIES:
                print(measure(folder, strategy, regions, distance_m, whole), flush=True)
            whole.end()


if __name__ == "__main__":
    main()
