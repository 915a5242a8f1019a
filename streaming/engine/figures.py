"""What a task of an engine counts about its batches, for the metrics: times, elements, and the costliest queries."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow.compute as pc

from streaming.results import ANSWER_NUMBERS, VIEW_NUMBERS, Fragment
from streaming.servers.way import RegionInput

# The stages of a batch, in their order: `exchange` is to send inputs and to wait for those of other tasks, `publish` to
# write results, `save` to wait until all tasks have saved their states.
STAGES = ("save", "home", "exchange", "region", "publish")
# A task reports as many queries.
TOP_QUERIES = 20
# The views of all connections count as one query.
VIEWS = 0
PEAK_S = 15.0
US = 1_000_000


class QueryFigures:
    """Counts what queries cost, and how many result tuples they got. Views count as one query, `VIEWS`."""

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}
        self._counted: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, fragments: Iterable[Fragment], seconds: Mapping[int, float]) -> None:
        """Count the tuples of fragments, and the seconds that queries took."""
        for query, cost_s in seconds.items():
            number = _number(query)
            self._seconds[number] = self._seconds.get(number, 0.0) + cost_s
        for fragment in fragments:
            if fragment.changes.num_rows:
                self._count(fragment)

    def _count(self, fragment: Fragment) -> None:
        counts = pc.value_counts(fragment.changes["query"])
        queries, tuples = (np.asarray(counts.field(name)) for name in ("values", "counts"))
        numbers = queries.copy()
        numbers[(queries >= VIEW_NUMBERS) & (queries < ANSWER_NUMBERS)] = VIEWS
        for place in np.flatnonzero(queries >= ANSWER_NUMBERS):
            # Of queries that share an answer, the first stands for all of them.
            numbers[place] = _number(next(iter(fragment.shared.get(int(queries[place]), ())), VIEWS))
        self._counted.append((numbers, tuples))

    def top(self, most: int = TOP_QUERIES) -> list[list[float]]:
        """Return the costliest queries, then those with the most tuples: number, seconds and tuples of each."""
        if not self._counted and not self._seconds:
            return []
        if self._counted:
            of, tuples = (np.concatenate(column) for column in zip(*self._counted, strict=True))
            queries, place = np.unique(of, return_inverse=True)
            self._counted = [(queries, np.bincount(place, tuples).astype(np.int64))]
        counts = dict(zip(*(column.tolist() for column in self._counted[0]), strict=True)) if self._counted else {}
        seconds = self._seconds
        known = sorted(counts.keys() | seconds.keys(), key=lambda q: (-seconds.get(q, 0.0), -counts.get(q, 0), q))
        return [[query, round(seconds.get(query, 0.0), 6), counts.get(query, 0)] for query in known[:most]]


class Peak:
    """The largest value of the last `PEAK_S` to twice that, so that whoever asks every `PEAK_S` misses none.

    Parameters
    ----------
    clock : function
        Returns monotonic time in seconds.

    Examples
    --------
    >>> now_s = 0.0
    >>> peak = Peak(lambda: now_s)
    >>> peak.add(3.0)
    >>> peak.add(1.0)
    >>> now_s = 1.5 * PEAK_S
    >>> peak.add(2.0)
    >>> peak.value()
    3.0
    >>> now_s = 2.5 * PEAK_S
    >>> peak.value()
    2.0
    >>> now_s = 9 * PEAK_S
    >>> peak.value() is None
    True
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._since_s = clock, clock()
        self._before: float | None = None
        self._now: float | None = None

    def add(self, value: float) -> None:
        """Observe a value."""
        self._turn()
        self._now = value if self._now is None else max(self._now, value)

    def value(self) -> float | None:
        """Return the largest value, None if there was none."""
        self._turn()
        return max((value for value in (self._before, self._now) if value is not None), default=None)

    def _turn(self) -> None:
        past = int((self._clock() - self._since_s) / PEAK_S)
        if past:
            self._before, self._now = (self._now if past == 1 else None), None
            self._since_s += past * PEAK_S


class TaskFigures:
    """What a task has done, since its engine has started.

    Parameters
    ----------
    before : mapping, optional
        What the attempt or the interval before has told: counting goes on from there. Queries are counted anew.
    """

    def __init__(self, before: Mapping[str, Any] | None = None) -> None:
        before = before or {}
        self.queries, self._longest, self._lag = QueryFigures(), Peak(), Peak()
        self._seconds = dict.fromkeys(STAGES, 0.0) | before.get("seconds", {})
        self._batches, self._elements = before.get("batches", 0), before.get("elements", 0)
        self._late, self._unjoined, self._doubted = before.get("late", 0), 0, before.get("doubted", 0)
        self._written_before = before.get("written_bytes", 0)
        self._batch_s, self._oldest_us = 0.0, 0

    @contextmanager
    def stage(self, name: str) -> Iterator[int]:
        """Count the time that a stage of a batch takes; the value is when it began, in nanoseconds since 1970 UTC."""
        began_s = time.perf_counter()
        try:
            yield time.time_ns()
        finally:
            took_s = time.perf_counter() - began_s
            self._seconds[name] += took_s
            self._batch_s += took_s

    def read(self, inputs: Sequence[RegionInput], oldest_us: int) -> None:
        """Count what a home server has read; its oldest element reached the gateway at `oldest_us`."""
        if elements := inputs[0].head["elements"]:
            self._elements += elements
            self._oldest_us = min(self._oldest_us or oldest_us, oldest_us)

    def end_batch(self, fragments: Iterable[Fragment]) -> None:
        """Count a batch whose results, these fragments, are published."""
        self._batches += 1
        self._late += sum(fragment.counters.get("late", 0) for fragment in fragments)
        self._doubted += sum(fragment.counters.get("doubted", 0) for fragment in fragments)
        self._unjoined = sum(fragment.counters.get("unjoined", 0) for fragment in fragments)
        self._longest.add(self._batch_s)
        if self._oldest_us:
            self._lag.add(max(0.0, time.time() - self._oldest_us / US))
        self._batch_s, self._oldest_us = 0.0, 0

    def told(self, written_bytes: int) -> dict[str, Any]:
        """Return the figures for the engine's report, given how much state the interval has written."""
        longest_s, lag_s = self._longest.value(), self._lag.value()
        return {
            "batches": self._batches,
            "elements": self._elements,
            "late": self._late,
            "doubted": self._doubted,
            "unjoined": self._unjoined,
            "seconds": {name: round(seconds, 4) for name, seconds in self._seconds.items()},
            "longest_s": None if longest_s is None else round(longest_s, 4),
            "lag_s": None if lag_s is None else round(lag_s, 4),
            "written_bytes": self._written_before + written_bytes,
            "queries": self.queries.top(),
        }


def _number(query: int) -> int:
    return VIEWS if query >= VIEW_NUMBERS else query
