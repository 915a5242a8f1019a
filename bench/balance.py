"""How evenly partitioners share recorded streams: ``python -m bench.balance FILE...`` cuts each by its first elements.

A recording is a CSV or JSON file of pandas, perhaps compressed, with columns of longitude, latitude and time. The rest
of its elements is counted by region, and by node: regions go to five nodes in turn.

References
----------
BBoxDB Streams (2022), section 6.10: pre-partitioning by the first elements of a stream, and by a sample.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from streaming.operators.partitioners import PARTITIONERS, partitioned
from streaming.operators.region_map import RegionMap
from streaming.spaces import EARTH, FULL_TURN_DEG

NODES = 5
COUNTS = (1_000, 2_000, 10_000, 20_000)
REGIONS = (10, 20, 40)
SAMPLED = 0.002
# What recordings name their columns, in lower case.
LON, LAT, TIME = ("lon", "longitude"), ("lat", "latitude"), ("basedatetime", "timestamp", "time")


def places_of(path: Path) -> np.ndarray:
    """Return the places of a recording in the order of their times, float64 of shape (N, 3)."""
    table = pd.read_json(path) if ".json" in path.name else pd.read_csv(path)
    table = table.rename(columns=str.lower)
    lon, lat, time = (table[next(name for name in names if name in table)] for names in (LON, LAT, TIME))
    lon, lat = lon.to_numpy(np.float64), lat.to_numpy(np.float64)
    sound = np.isfinite(lon) & np.isfinite(lat) & (np.abs(lat) <= 90) & (np.abs(lon) <= FULL_TURN_DEG / 2)
    sound &= (lon != 0) | (lat != 0)
    order = np.argsort(time[sound].astype(str).to_numpy(), kind="stable")
    return np.column_stack([lon[sound], lat[sound], np.full(sound.sum(), -np.inf)])[order]


def deviations(known: RegionMap, places: np.ndarray) -> tuple[float, float]:
    """Return the standard deviation of elements by node and by region, each as a part of the mean."""
    counts = np.bincount(known.region_of(np.hstack([places, places])), minlength=known.regions)
    nodes = np.bincount(np.arange(known.regions) % NODES, weights=counts, minlength=NODES)
    return float(nodes.std() / nodes.mean()), float(counts.std() / counts.mean())


def rows_of(path: Path) -> list[str]:
    """Return the lines of a recording's table."""
    places = places_of(path)
    rows = [f"**{path.name}**, {len(places):,} elements", "", _row("partitioner", "cut by", *REGIONS)]
    rows.append(_row(*["---"] * (2 + len(REGIONS))))
    drawn = np.random.default_rng(0).permutation(len(places))[: max(100, int(SAMPLED * len(places)))]
    sources = {f"first {count:,}": (places[:count], places[count:]) for count in COUNTS if count < len(places) / 2}
    sources[f"sample of {SAMPLED:.1%}"] = places[drawn], places
    for partitioner in PARTITIONERS:
        for name, (by, rest) in sources.items() if partitioner != "grid" else [("nothing", (places, places))]:
            maps = [partitioned(EARTH, partitioner, by, regions) for regions in REGIONS]
            cells = [" / ".join(f"{100 * share:.0f} %" for share in deviations(known, rest)) for known in maps]
            rows.append(_row(partitioner, name, *cells))
    return [*rows, ""]


def _row(*cells):
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Print a table for each recording."""
    parser = argparse.ArgumentParser(prog="python -m bench.balance", description=__doc__.split("\n")[0])
    parser.add_argument("recordings", nargs="+", type=Path)
    print("Standard deviation of elements by node / by region, in parts of the mean, by the number of regions.\n")
    for path in parser.parse_args().recordings:
        print("\n".join(rows_of(path)))


if __name__ == "__main__":
    main()
