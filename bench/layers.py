"""The cost of importing a layer, and of geopandas reading the same file: ``python -m bench.layers``."""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson
import psutil

from bench.joins import KINDS
from bench.load import road_coordinates

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
FEATURES = 1_000_000
IMPORTED = "import"
POLL_S = 0.05

IMPORT = """
import sys
from pathlib import Path
from streaming.layers import Job, LayerStore, Limits
from streaming.layers.importing import import_file
path, folder = Path(sys.argv[1]), Path(sys.argv[2])
told = import_file(Job(path, folder, limits=Limits(features=1 << 40, unpacked_bytes=1 << 40)))
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
STEPS = {IMPORTED: IMPORT, "geopandas.read_file": GEOPANDAS, "read the stored version": READ}


def write_roads(path: Path, count: int) -> None:
    """Write road lines as a GeoJSON text sequence: short lines of six vertices, in towns."""
    lines_of = road_coordinates(count)
    with path.open("wb") as lines:
        for start in range(0, count, 50_000):
            for number, line in enumerate(lines_of[start : start + 50_000].tolist(), start):
                properties = {
                    "osm_id": 10_000_000 + number,
                    "highway": KINDS[number % 5],
                    "name": f"Street {number % 9999}",
                }
                geometry = {"type": "LineString", "coordinates": line}
                words = {"type": "Feature", "properties": properties, "geometry": geometry}
                lines.write(orjson.dumps(words) + b"\n")


def measured(code: str, *arguments: str) -> dict[str, float]:
    """Run Python code in its own process; return its seconds, its own peak memory in MiB and what it printed."""
    started_s = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, cwd=PAGE.parents[1]) as run:
        process, peak = psutil.Process(run.pid), 0
        while run.poll() is None:
            try:
                told = process.memory_info()
                peak = max(peak, told.rss - getattr(told, "shared", 0))  # pages of files take no memory of the process
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
    parser.add_argument("--only-import", action="store_true", help="of more features than geopandas can hold")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lookout-layers-") as name:
        folder = Path(name)
        path = folder / "roads.geojsonl"
        write_roads(path, options.features)
        print(f"{options.features:,} road lines, {path.stat().st_size / 2**20:,.0f} MiB as a GeoJSON text sequence")
        print("| what                    | seconds | peak memory MiB |")
        print("| ----------------------- | ------- | --------------- |")
        steps = {IMPORTED: IMPORT} if options.only_import else STEPS
        for what, code in steps.items():
            row = measured(code, str(path), str(folder))
            if row["features"] != options.features:
                raise SystemExit(f"{what} must see {options.features:,} features; got {row['features']:,}")
            print(f"| {what:23} | {row['seconds']:7.1f} | {row['peak_mib']:15,.0f} |")


if __name__ == "__main__":
    main()
