"""Measure shares of the workload, one after the other, and what the engine takes for each."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from bench.client import figures
from bench.live import StackFailed, wait_for
from bench.place.meter import KINDS, AgeSpan, PlaceMeter
from bench.place.servers import EngineProcesses, running
from bench.place.workload import REGIONS, Workload
from bench.processes import cpu_s, pss_mib
from bench.stack import child, said

SHARES = (1 / 100, 1 / 30, 1 / 10, 1 / 3, 1.0)
LIMIT_MS = 1_000.0
# How many more shares are tried between the largest one that keeps the limit and the next one.
BETWEEN = 2
SETTLE_S = 8.0
# Queries are registered in portions of so many answer tuples; the last few are registered alone, and timed.
PORTION_ROWS = 500_000
ALONE = 5
TOLD_S = 120.0
FULL_MIB = 14_000.0


@dataclass(frozen=True)
class PlaceRow:
    """What was measured with a number of queries of each kind.

    Parameters
    ----------
    queries : int
    span : AgeSpan
    first_ms : mapping of str to ndarray
        By kind, the time from the registration of each query that was registered alone to the first of its answer.
    cores, memory_mib : mapping
        Processor time a second, and proportional set size in MiB, of each program.
    backlog : int
        Blocks that the engine had not taken at the end, in the longer partition.
    """

    queries: int
    span: AgeSpan
    first_ms: Mapping[str, np.ndarray]
    cores: Mapping[str, float]
    memory_mib: Mapping[str, float]
    backlog: int

    @property
    def elements_per_s(self) -> float:
        """Reports that the engine took in a second."""
        return self.span.counters.get("elements", 0) / self.span.seconds if self.span.batches else 0.0

    @property
    def engine_us(self) -> float:
        """Processor time of the engine for a report, in microseconds."""
        return 1e6 * self.cores.get("engine", 0.0) / self.elements_per_s if self.elements_per_s else float("inf")

    @property
    def batch_ms(self) -> float:
        """The milliseconds that a batch took: reports come all the time, so batches follow upon each other."""
        return 1000 * self.span.seconds / self.span.batches if self.span.batches else float("inf")

    @property
    def inputs_per_s(self) -> float:
        """Messages between servers a second: of each home server to each region, of each region to the assembler."""
        return self.span.batches * REGIONS * (2 + 1) / self.span.seconds if self.span.batches else 0.0

    def per_s(self, count: int) -> float:
        """Return how many of something there were in a second, given how many in the span."""
        return count / self.span.seconds if self.span.batches else 0.0

    def latency(self, ages: Sequence[np.ndarray]) -> Mapping[str, float | int | None]:
        """Return the `client.figures` of ages in microseconds."""
        return figures(np.concatenate([np.empty(0), *ages]))

    @property
    def answer_p99_ms(self) -> float:
        """The 99th percentile of answer updates in ms, for the slower kind of queries; infinite if there were none."""
        p99 = [self.latency(self.span.answers[kind])["p99_ms"] for kind in KINDS]
        return max((value for value in p99 if value is not None), default=float("inf"))


class Bench:
    """Servers under the load of a workload.

    Parameters
    ----------
    servers : EngineProcesses
    meter : PlaceMeter
    workload : Workload
    """

    def __init__(self, servers: EngineProcesses, meter: PlaceMeter, workload: Workload) -> None:
        self.servers, self.meter, self.workload = servers, meter, workload
        self.plans = workload.plans()
        self.registered = 0

    def raise_to(self, queries: int) -> Mapping[str, np.ndarray]:
        """Register more queries, until there are `queries` of each kind; return by kind how many ms the last ones took.

        Raises
        ------
        StackFailed
            Where the engine refuses one, or takes too long.
        """
        portion = max(1, round(PORTION_ROWS / self.workload.answer_rows()))
        alone = max(self.registered, queries - ALONE)
        while self.registered < alone:
            self._register(range(self.registered, min(self.registered + portion, alone)))
        took = [self._alone(position) for position in range(self.registered, queries)]
        return {kind: np.array([times[n] for times in took]) for n, kind in enumerate(KINDS)}

    def _register(self, positions):
        """Register both queries at each position, and wait for their answers; return when each was sent."""
        sent = {number: self._send(number) for position in positions for number in _numbers(position)}
        self._wait_for(sent)
        self.registered = positions[-1] + 1
        return sent

    def _alone(self, position):
        """Register the two queries of a position, one after the other; return how many ms each answer took."""
        took = []
        for number in _numbers(position):
            sent = {number: self._send(number)}
            self._wait_for(sent)
            took.append(self.meter.reckoning.first_ms[number] - sent[number])
        self.registered = position + 1
        return took

    def _send(self, number):
        entry = self.servers.log.send("register", query=number, revision=1, plan=self.plans[number])
        return int(entry.split("-")[0])

    def _wait_for(self, sent):
        first, acked = self.meter.reckoning.first_ms, self.meter.reckoning.acked

        def told():
            self.servers.check()
            wrong = [f"query {number}: {acked[number]}" for number in sent if acked.get(number)]
            if wrong:
                raise StackFailed(wrong[0])
            return sent.keys() <= first.keys()

        wait_for(told, f"the answers of {len(sent)} queries after {self.registered}", TOLD_S)

    def measure(self, first_ms: Mapping[str, np.ndarray], seconds: float) -> PlaceRow:
        """Measure for `seconds`, once the load has settled."""
        time.sleep(SETTLE_S)
        before, began_s = cpu_s(self.servers.home), time.monotonic()
        self.meter.begin()
        time.sleep(seconds)
        span = self.meter.end()
        after, spent_s = cpu_s(self.servers.home), time.monotonic() - began_s
        self.servers.check()
        cores = {program: (after[program] - before.get(program, 0.0)) / spent_s for program in after}
        memory = pss_mib(self.servers.home)
        return PlaceRow(self.registered, span, first_ms, cores, memory, self.servers.log.backlog())


def _numbers(position):
    return 2 * position + 1, 2 * position + 2


@contextmanager
def loaded(workload: Workload) -> Iterator[Bench]:
    """Start servers and the load, until the servers know all objects; end them afterwards."""
    crowd = ("--crowd", str(workload.crowd))
    with (
        running() as servers,
        PlaceMeter(servers.redis_url) as meter,
        child("bench.place.load", servers.redis_url, *crowd) as generator,
    ):
        said(generator, "filled")
        yield Bench(servers, meter, workload)


def series(
    workload: Workload, counts: Sequence[int], seconds: float, limit_ms: float, say: Callable[[str], None]
) -> list[PlaceRow]:
    """Measure ascending numbers of queries on one engine, up to the first that misses the limit or overloads it."""
    rows: list[PlaceRow] = []
    with loaded(workload) as bench:
        for count in counts:
            say(f"{count:,} ranges and {count:,} queries for neighbours ...")
            try:
                rows.append(bench.measure(bench.raise_to(count), seconds))
            except StackFailed as failed:
                say(f"too much: {str(failed)[:300]}")
                break
            if rows[-1].answer_p99_ms > limit_ms or sum(rows[-1].memory_mib.values()) > FULL_MIB:
                break
    return rows


def shares(workload: Workload, seconds: float, say: Callable[[str], None]) -> list[PlaceRow]:
    """Measure larger and larger shares of the workload, then some between the last that is fast enough and the next."""
    counts = [max(1, round(share * workload.queries)) for share in SHARES]
    rows = series(workload, counts, seconds, LIMIT_MS, say)
    further = between(counts, fast_enough(rows))
    return sorted(
        rows + (series(workload, further, seconds, LIMIT_MS, say) if further else []), key=lambda r: r.queries
    )


def share_of(queries: int, scale: float, seconds: float) -> tuple[PlaceRow, Workload]:
    """Measure one number of queries of each kind on an engine of its own.

    Parameters
    ----------
    queries : int
    scale : float
        The part of the objects and the queries that there are.
    seconds : float

    Returns
    -------
    PlaceRow, Workload

    Raises
    ------
    StackFailed
        When the engine refuses a query, or takes too long.
    """
    workload = Workload(max(1, round(Workload.crowd * scale)))
    with loaded(workload) as bench:
        return bench.measure(bench.raise_to(max(1, round(queries * scale))), seconds), workload


def fast_enough(rows: Sequence[PlaceRow]) -> int:
    """Return the largest number of queries whose answer updates keep the limit; 0 if there is none."""
    return max((row.queries for row in rows if row.answer_p99_ms <= LIMIT_MS), default=0)


def between(counts: Sequence[int], good: int) -> list[int]:
    """Return numbers of queries, in even ratios, between `good` and the next count; none after the last count.

    If `good` is 0, they begin at a ninth of the first count.

    Examples
    --------
    >>> between([90, 300, 900], 90), between([90, 300, 900], 900), between([90, 300], 0)
    ([134, 201], [], [10, 21, 43])
    """
    worse = [count for count in counts if count > good]
    if not worse:
        return []
    low = good or worse[0] / 9
    steps = [round(low * (worse[0] / low) ** (n / (BETWEEN + 1))) for n in range(BETWEEN + 1)]
    return sorted({step for step in steps if good < step < worse[0]})
