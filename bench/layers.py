"""What it costs to import a layer: ``python -m bench.layers``, beside geopandas reading the same file."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
FEATURES = 1_000_000
VERTICES = 6
# A street of 60 m is 0.0005 degrees; the towns are those of a country.
TOWNS, TOWN_DEG, STREET_DEG = 400, 0.2, 0.0005
KINDS = ("residential", "service", "track", "primary", "footway")
POLL_S = 0.05

IMPORT = """
import sys
from pathlib import Path
from streaming.layers import Job, LayerStore
from streaming.layers.importing import import_file
path, folder = Path(sys.argv[1]), Path(sys.argv[2])
told = import_file(Job(path, folder))
store = LayerStore(folder / "store")
print(store.manifest("roads", store.adopt("roads", told.part, told.summary)).features)
"""
GEOPANDAS = """
import sys
import geopandas
print(len(geopandas.read_file(sys.argv[1])))
"""
READ = """
import sys
from pathlib import Path
from streaming.layers import LayerStore
print(LayerStore(Path(sys.argv[2]) / "store").read("roads", 1).num_rows)
"""


def write_roads(path: Path, count: int) -> None:
    """Write road lines as a GeoJSON text sequence: short lines of six vertices, in towns."""
    rng = np.random.default_rng(7)
    towns = rng.uniform([5.0, 45.0], [15.0, 55.0], (TOWNS, 2))
    with path.open("w") as lines:
        for start in range(0, count, 50_000):
            n = min(50_000, count - start)
            first = towns[rng.integers(TOWNS, size=n)] + rng.normal(0, TOWN_DEG, (n, 2))
            steps = rng.normal(0, STREET_DEG, (n, VERTICES, 2))
            steps[:, 0] = first
            for number, line in enumerate(np.round(steps.cumsum(axis=1), 6).tolist(), start):
                properties = {
                    "osm_id": 10_000_000 + number,
                    "highway": KINDS[number % 5],
                    "name": f"Street {number % 9999}",
                }
                geometry = {"type": "LineString", "coordinates": line}
                lines.write(json.dumps({"type": "Feature", "properties": properties, "geometry": geometry}) + "\n")


def measured(code: str, *arguments: str) -> dict[str, float]:
    """Run Python code in a process of its own; return its seconds, its largest resident memory and what it printed."""
    started_s = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, cwd=PAGE.parents[1]) as run:
        process, peak = psutil.Process(run.pid), 0
        while run.poll() is None:
            try:
                peak = max(peak, process.memory_info().rss)
            except psutil.NoSuchProcess:
                break
            time.sleep(POLL_S)
        out = run.stdout.read()
    if run.returncode:
        raise SystemExit(f"a measured process must end well; got code {run.returncode}")
    return {"seconds": time.monotonic() - started_s, "peak_mib": peak / 2**20, "features": int(out)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.layers", description=__doc__)
    parser.add_argument("--features", type=int, default=FEATURES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lookout-layers-") as name:
        folder = Path(name)
        path = folder / "roads.geojsonl"
        write_roads(path, options.features)
        print(f"{options.features:,} road lines, {path.stat().st_size / 2**20:,.0f} MiB as a GeoJSON text sequence")
        print("| what                    | seconds | peak memory MiB |")
        print("| ----------------------- | ------- | --------------- |")
        for what, code in (("import", IMPORT), ("geopandas.read_file", GEOPANDAS), ("read the stored version", READ)):
            row = measured(code, str(path), str(folder))
            if row["features"] != options.features:
                raise SystemExit(f"{what} must see {options.features:,} features; got {row['features']:,}")
            print(f"| {what:23} | {row['seconds']:7.1f} | {row['peak_mib']:15,.0f} |")


if __name__ == "__main__":
    main()
