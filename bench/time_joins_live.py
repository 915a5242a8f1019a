"""Joins over event time through the whole engine: ``python -m bench.time_joins_live``.

A load generator writes the reports of two streams of ships into the ingest log. The engine joins them within 1 km,
and whoever follows the result log sees when each pair comes: the age of a pair is counted from its second report.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench.deployments import DEPLOYMENTS
from bench.live import Live, wait_for
from bench.load import WORLD
from bench.machine import machine
from bench.meter import Follower
from bench.processes import cpu_s, pss_mib
from bench.report import figure_text, table
from bench.scenarios import FULL_SPEED
from bench.stack import child, said
from bench.time_joins import SEA, STREAMS, interval, window
from streaming.logs import read_fragment
from streaming.spaces import EARTH

OBJECTS, DISTANCE_M = 100_000, 1_000.0
HERE = "this machine, Redis, local state"
JOINS = {"window of 1 min": window(1), "interval of 1 min": interval(1)}
# At full speed there are so many reports that only ships all over the globe meet seldom.
RATES = {"20,000/s": (20_000, SEA), "full speed": (FULL_SPEED, WORLD)}


class Pairs(Follower):
    """Follows the result log, and keeps when pairs came, and how old they were.

    Attributes
    ----------
    batches : dict of int to int
        When the newest fragment of each batch was appended, in milliseconds.
    ages_ms : dict of int to list of ndarray
        By query, how old pairs were when they came.
    elements : dict of int to int
        How many elements each batch took.
    """

    def __init__(self, stack: Live) -> None:
        super().__init__(stack.redis_url, log_url=stack.log_url)
        self.batches: dict[int, int] = {}
        self.ages_ms: dict[int, list[np.ndarray]] = {}
        self.elements: Counter[int] = Counter()
        self._position = self._event_log.newest(self._log)

    def _follow(self):
        while not self._stop.is_set():
            for entry in self._event_log.poll({self._log: self._position}, 20, 0.2).get(self._log, ()):
                self._position = entry.position
                fragment = read_fragment(entry.fields, EARTH)
                self.batches[fragment.batch] = max(self.batches.get(fragment.batch, 0), entry.appended_ms)
                self.elements[fragment.batch] += fragment.counters["elements"]
                self._count(fragment.changes, entry.appended_ms)

    def _count(self, changes, at_ms):
        query, *times = (changes[name].to_numpy() for name in ("query", "time_us", "partner_time_us"))
        ages_ms = at_ms - np.maximum(*times) / 1_000
        for number in np.unique(query).tolist():
            self.ages_ms.setdefault(number, []).append(ages_ms[query == number])

    def figures(self) -> dict[str, float | None]:
        """Return the figures of what was followed."""
        at_ms = np.array([self.batches[batch] for batch in sorted(self.batches)])
        # The first batch ends where the time begins.
        elements = self.elements.total() - self.elements[min(self.batches)]
        span_ms = max(1, at_ms[-1] - at_ms[0])
        told = {
            "elements/s": 1_000 * elements / span_ms,
            "longest batch ms": float(np.diff(at_ms).max(initial=0)),
            "batches/s": 1_000 * (len(at_ms) - 1) / span_ms,
        }
        for number, parts in self.ages_ms.items():
            ages_ms = np.concatenate(parts)
            told |= {f"pairs {number}": len(ages_ms), f"p50 ms {number}": float(np.median(ages_ms))}
            told |= {f"p99 ms {number}": float(np.quantile(ages_ms, 0.99))}
        return told


@dataclass(frozen=True)
class Run:
    """What is measured: joins by their names, a rate by its name, a deployment, for so many seconds after a window."""

    joins: tuple[str, ...]
    rate: str
    deployment: str = HERE
    seconds: float = 70.0


RUNS = {
    "latency": Run(tuple(JOINS), "20,000/s", seconds=130.0),
    "most": Run(("window of 1 min",), "full speed", seconds=125.0),
    "none": Run((), "full speed", seconds=20.0),
    **{
        f"executors-{count}": Run(("window of 1 min",), "full speed", name, 70.0)
        for count, name in ((1, "1 executor"), (2, "2 executors"), (4, "4 executors"))
    },
}


def measured(run: Run) -> Mapping[str, float | None]:
    """Start everything, put it under load, and return the figures."""
    with (
        TemporaryDirectory(prefix="lookout-joined-", ignore_cleanup_errors=True) as folder,
        DEPLOYMENTS[run.deployment](Path(folder)) as settings,
        live(Path(folder), settings) as stack,
    ):
        for number, name in enumerate(run.joins, 1):
            join = {"stream": STREAMS[1], "predicate": "dwithin", "distance": DISTANCE_M}
            plan = {"stream": STREAMS[0], "join": join, "lateness_s": 1} | JOINS[name]
            stack.log.send("register", query=number, revision=1, plan=plan)
        with loaded(stack, *RATES[run.rate]):
            before, began_s = cpu_s(stack.home), time.monotonic()
            with Pairs(stack) as pairs:
                time.sleep(run.seconds)
            spent_s = time.monotonic() - began_s
            cores = {name: (cpu - before.get(name, 0.0)) / spent_s for name, cpu in cpu_s(stack.home).items()}
            memory = pss_mib(stack.home)
    return pairs.figures() | {
        "engine cores": cores["engine"],
        "engine MiB": memory["engine"],
        "redis MiB": memory.get("redis"),
    }


@contextmanager
def live(folder: Path, settings: Mapping[str, str]) -> Iterator[Live]:
    """Start a Lookout without streams and queries; end it afterwards."""
    (folder / "lookout").mkdir()
    stack = Live(folder / "lookout")
    stack.environment |= settings
    try:
        stack.start()
        yield stack
    finally:
        stack.end()


@contextmanager
def loaded(stack: Live, rate: int, area: tuple[float, ...]) -> Iterator[None]:
    """Have both streams report, and wait until the engine knows all ships."""
    streams = [option for stream in STREAMS for option in ("--stream", stream)]
    options = ("--rate", str(rate), "--objects", str(OBJECTS), "--area", *map(str, area))
    where = ("--partitions", str(stack.partitions), "--log-url", stack.log_url)
    with child("bench.load", stack.redis_url, *streams, *options, *where) as load:
        said(load, "filled")
        wait_for(lambda: stack.report().get(b"joins") is not None, stack.words, 60.0)
        yield


def main() -> int:
    """Print the figures of each run."""
    parser = argparse.ArgumentParser(prog="python -m bench.time_joins_live", description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=RUNS)
    for name in parser.parse_args().only or RUNS:
        told = measured(RUNS[name])
        print(
            f"{name}\n{table(['what', 'figure'], [[what, figure_text(value)] for what, value in told.items()])}",
            flush=True,
        )
    print(machine())
    return 0


if __name__ == "__main__":
    sys.exit(main())
