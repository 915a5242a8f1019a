"""Closest approaches and tracks, beside ranges, in one process: ``python -m bench.closest``.

An engine for each set of queries runs, batch by batch in turn, over the same ships on a sea. As in operation, the clock
is set and the states are saved once a second. Times are those of the processor, of all tasks together.
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyproj

from bench.machine import machine
from bench.report import table
from bench.rescaling import TASKS
from bench.rules import RULES, SECOND_US, Engine, entries
from bench.scenarios import SEED, STREAM
from streaming.elements import partition_of, point_elements
from streaming.operators import stream_join

SHIPS, RATE, BATCH_S = 10_000, 20_000, 0.1
WARM_UP, BATCHES, QUERIES = 10, 50, 100
# West, south, east, north. The border of the two regions goes through it.
SEA = -5.0, 50.0, 5.0, 56.0
HALF_DEG = 0.5
# So many of the reports have another course.
TURNING, TURN_DEG = 0.02, 20.0
START_S = 1_700_000_000
GEOD = pyproj.Geod(ellps="WGS84")


@dataclass(frozen=True)
class Block:
    """The reports of one partition of the ingest log."""

    partition: int
    table: pa.Table


class Ships:
    """Ships that go on their courses, and turn now and then."""

    def __init__(self, rng: np.random.Generator) -> None:
        west, south, east, north = SEA
        self.rng, self.lon, self.lat = rng, rng.uniform(west, east, SHIPS), rng.uniform(south, north, SHIPS)
        self.course_deg, self.speed_mps = rng.uniform(0, 360, SHIPS), rng.uniform(0, 12, SHIPS)
        self.told_s = np.zeros(SHIPS)

    def blocks(self, number: int) -> Iterator[Block]:
        """Yield the reports of a batch, a block for each partition."""
        count, now_s = round(RATE * BATCH_S), number * BATCH_S
        mine = (np.arange(count) + number * count) % SHIPS
        way_m = self.speed_mps[mine] * (now_s - self.told_s[mine])
        self.lon[mine], self.lat[mine], _ = GEOD.fwd(self.lon[mine], self.lat[mine], self.course_deg[mine], way_m)
        turning = mine[self.rng.random(count) < TURNING]
        self.course_deg[turning] += self.rng.uniform(-TURN_DEG, TURN_DEG, len(turning))
        self.told_s[mine] = now_s
        told = zip(self.course_deg[mine].round(1).tolist(), self.speed_mps[mine].round(1).tolist(), strict=True)
        properties = [{"course_deg": course_deg, "speed_mps": speed_mps} for course_deg, speed_mps in told]
        times_us = np.full(count, round((START_S + now_s) * SECOND_US))
        places = np.stack([self.lon[mine], self.lat[mine]], axis=1)
        elements = point_elements(STREAM, mine.astype(str).tolist(), times_us, places, properties)
        of = partition_of(elements["key_hash"].to_numpy(), TASKS)
        for partition in range(TASKS):
            yield Block(partition, elements.filter(pa.array(of == partition)))


def areas(count: int) -> list[dict[str, Any]]:
    """Return the areas of queries: boxes of a degree, or the whole sea if there is one query."""
    west, south, east, north = SEA
    if count == 1:
        return [{"lo": [west, south], "hi": [east, north]}]
    middles = np.random.default_rng(SEED).uniform([west, south], [east, north], (count, 2)).tolist()
    return [{"lo": [x - HALF_DEG, y - HALF_DEG], "hi": [x + HALF_DEG, y + HALF_DEG]} for x, y in middles]


def ranges(count: int) -> list[dict[str, Any]]:
    """Return plans of ranges."""
    return [{"stream": STREAM, "area": area} for area in areas(count)]


def tracks(count: int) -> list[dict[str, Any]]:
    """Return plans of queries about tracks."""
    noise = {"kind": "track", "accuracy": 10, "fastest_m_s": 50}
    return [plan | noise for plan in ranges(count)]


def closest_approaches(count: int, step_m: float = 0.0) -> list[dict[str, Any]]:
    """Return plans of closest approaches; the limits of each are `step_m` and as many seconds above the one before."""
    return [
        plan | {"kind": "closest_approach", "within_m": 500 + number * step_m, "within_s": 600 + number * step_m}
        for number, plan in enumerate(ranges(count))
    ]


SETS = {
    "1 range": ranges(1),
    f"{QUERIES} ranges": ranges(QUERIES),
    "1 track": tracks(1),
    f"{QUERIES} tracks": tracks(QUERIES),
    "1 closest approach": closest_approaches(1),
    f"{QUERIES} closest approaches": closest_approaches(QUERIES),
    f"{QUERIES} of different limits": closest_approaches(QUERIES, 1.0),
}


class Measured:
    """How many pairs were compared by straight lines, and how many by geodesics."""

    def __init__(self) -> None:
        self.lines, self.geodesics = 0, 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what is compared in the block."""
        lines = stream_join.may_come_close

        def counting(elements, row, partner, asked):
            self.lines += len(row)
            found = lines(elements, row, partner, asked)
            self.geodesics += int(found.sum())
            return found

        stream_join.may_come_close = counting
        try:
            yield
        finally:
            stream_join.may_come_close = lines


@dataclass
class Run:
    """What the batches of one set of queries took: seconds of the processor each, and what was compared and told."""

    engine: Engine
    waiting: list[dict[str, Any]]
    spent_s: list[float]
    measured: Measured

    def batch(self, blocks: list[Block], number: int) -> None:
        """Run a batch."""
        now_us = round((START_S + number * BATCH_S) * SECOND_US)
        if number == WARM_UP:
            self.engine.told, self.measured.lines, self.measured.geodesics = 0, 0, 0
        with self.measured.counted():
            self.spent_s.append(self.engine.batch_at(blocks, self.waiting, now_us))
        self.waiting = []

    def row(self, name: str, batches: int, baseline_ms: float) -> list[str]:
        """Return the row of the table."""
        mean_ms = 1_000 * float(np.mean(self.spent_s[WARM_UP:]))
        reports = RATE * BATCH_S * batches
        found = f"{self.measured.lines / reports:.2f}", f"{self.measured.geodesics / reports:.3f}"
        return [name, f"{mean_ms:,.0f}", f"{mean_ms / baseline_ms:.2f}", *found, f"{self.engine.told / batches:,.0f}"]


def compared(names: list[str], batches: int) -> list[list[str]]:
    """Run all engines in turn; return a row for each."""
    ships = Ships(np.random.default_rng(SEED))
    with tempfile.TemporaryDirectory() as folder:
        runs = {
            name: Run(Engine(Path(folder) / str(place)), entries(SETS[name], RULES + 1), [], Measured())
            for place, name in enumerate(names)
        }
        for number in range(WARM_UP + batches):
            blocks = list(ships.blocks(number))
            for run in runs.values():
                run.batch(blocks, number)
        baseline_ms = 1_000 * float(np.mean(next(iter(runs.values())).spent_s[WARM_UP:]))
        return [run.row(name, batches, baseline_ms) for name, run in runs.items()]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.closest", description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SETS), help=f"of queries: {', '.join(SETS)}")
    parser.add_argument("--batches", type=int, default=BATCHES, help="that are measured")
    given = parser.parse_args()
    head = "queries", "ms a batch", "ratio", "pairs by lines a report", "by geodesics a report", "tuples a batch"
    print(table(list(head), compared(given.sets, given.batches)))
    print(machine())


if __name__ == "__main__":
    main()
