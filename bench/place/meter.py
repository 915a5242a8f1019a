"""Measure how old the engine's results are, by cause, from the result log as a web process reads it.

A batch is complete, and can be shown, when the last of its fragments is in the log; ages are taken then. A tuple whose
element is newer than the batch before was caused by the report of that element. A tuple whose element is older was
caused by something else that moved: the range over it, or a neighbour that is nearer now.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from bench.meter import Follower
from bench.place.workload import REGIONS, SPACE, kind_of
from streaming.elements import bounds_of
from streaming.eventlog import FIRST
from streaming.logs import read_fragment
from streaming.operators.region_map import RegionMap
from streaming.results import ENTERED, HANDOFF, LEFT, PLACED, QUIET_HANDOFF, Fragment
from streaming.results.netting import settled

KINDS = ("ranges", "neighbours")
WAIT_S, ENTRIES = 0.2, 64
# The blocks of one write do not come into the log at the same moment.
SLACK_US = 10_000


@dataclass
class AgeSpan:
    """What the engine published in a span of time; ages are in microseconds.

    Parameters
    ----------
    answers, queries : mapping of str to list of ndarray
        By kind of query, ages of answer updates (from an object's report to the tuples with its changes of answers) and
        of query updates (from a focal object's report to the changes in the answers of its query).
    handoffs, focal_handoffs : list of ndarray
        Ages of the reports with which objects in answers, and focal objects, changed their region.
    counters : dict
        Summed over all fragments.
    batches, partial, tuples, bytes : int
        Batches; partial tuples that regions sent to the assembler; tuples of netted answers; bytes of fragments.
    began_ms, ended_ms : int
        When the batch before the first, and the last, was complete.
    """

    answers: Mapping[str, list] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    queries: Mapping[str, list] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    handoffs: list = field(default_factory=list)
    focal_handoffs: list = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    batches: int = 0
    partial: int = 0
    tuples: int = 0
    bytes: int = 0
    began_ms: int = 0
    ended_ms: int = 0

    @property
    def seconds(self) -> float:
        """The length of the span in seconds."""
        return (self.ended_ms - self.began_ms) / 1000


class Reckoning:
    """Takes one batch after the other, and records the ages of its tuples.

    Attributes
    ----------
    span : AgeSpan
        What was recorded since the last `begin`.
    acked : dict of int to str or None
        The error, or None, of each query that was acknowledged.
    first_ms : dict of int to int
        When the first member of each query's answer was published.
    """

    def __init__(self) -> None:
        self.span = AgeSpan()
        self.acked: dict[int, str | None] = {}
        self.first_ms: dict[int, int] = {}
        self._newest_us, self._done_ms = 0, 0
        self._region: dict[int, int] = {}
        self._region_map = RegionMap.grid(SPACE, REGIONS)

    def begin(self) -> None:
        """Begin another span."""
        self.span = AgeSpan(began_ms=self._done_ms, ended_ms=self._done_ms)

    def take(self, fragments: Sequence[Fragment], done_ms: int, size: int) -> None:
        """Record a batch, given when it was complete and how many bytes it has."""
        span, fresh_us = self.span, self._newest_us - SLACK_US
        span.batches, span.bytes, span.ended_ms = span.batches + 1, span.bytes + size, done_ms
        for fragment in fragments:
            for name, count in fragment.counters.items():
                span.counters[name] = span.counters.get(name, 0) + count
            span.partial += sum(map(sum, fragment.sent.values()))
            self.acked |= {ack["query"]: ack["error"] for ack in fragment.acks}
        self._members(settled(fragments)[0], done_ms, fresh_us)
        told = pa.concat_tables([fragment.changes for fragment in fragments])
        reason, time_us = told["reason"].to_numpy(), told["time_us"].to_numpy()
        handed = ((reason == HANDOFF) | (reason == QUIET_HANDOFF)) & (time_us > fresh_us)
        span.handoffs.append(done_ms * 1000 - time_us[handed])
        self._focal_objects(told, done_ms, fresh_us)
        self._newest_us = max(self._newest_us, *(fragment.newest_us for fragment in fragments))
        self._done_ms = done_ms

    def _members(self, rows, done_ms, fresh_us):
        sign, query, time_us = (rows[name].to_numpy() for name in ("sign", "query", "time_us"))
        entered, kind = sign == ENTERED, kind_of(query)
        for number in np.unique(query[entered]).tolist():
            self.first_ms.setdefault(number, done_ms)
        member = entered | (sign == LEFT)
        self.span.tuples += int(member.sum())
        for position, name in enumerate(KINDS):
            mine = member & (kind == position) & (time_us > fresh_us)
            self.span.answers[name].append(done_ms * 1000 - time_us[mine])

    def _focal_objects(self, told, done_ms, fresh_us):
        """Record focal objects: whenever one reports, a tuple says where its query is."""
        placed = told.filter(pa.array(told["sign"].to_numpy() == PLACED))
        query, time_us = placed["query"].to_numpy(), placed["time_us"].to_numpy()
        region, fresh = self._region_map.region_of(bounds_of(placed["bounds"])), time_us > fresh_us
        moved = np.array([self._region.get(q, r) != r for q, r in zip(query.tolist(), region.tolist(), strict=True)])
        self._region |= dict(zip(query.tolist(), region.tolist(), strict=True))
        age_us = done_ms * 1000 - time_us
        self.span.focal_handoffs.append(age_us[fresh & moved.astype(bool)])
        for position, name in enumerate(KINDS):
            self.span.queries[name].append(age_us[fresh & (kind_of(query) == position)])


class PlaceMeter(Follower):
    """Passes each batch of the log that it follows on to a `Reckoning`.

    Attributes
    ----------
    reckoning : Reckoning
    """

    def __init__(self, redis_url: str) -> None:
        super().__init__(redis_url, SPACE.name)
        self.reckoning = Reckoning()
        self._batches: dict[int, list[tuple[Fragment, int, int]]] = {}
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Begin a span."""
        with self._lock:
            self.reckoning.begin()

    def end(self) -> AgeSpan:
        """End the span, and return it."""
        with self._lock:
            span, _ = self.reckoning.span, self.reckoning.begin()
            return span

    def _follow(self):
        position = FIRST
        while not self._stop.is_set():
            for entry in self._event_log.poll({self._log: position}, ENTRIES, WAIT_S).get(self._log, ()):
                position = entry.position
                self._take(entry.appended_ms, entry.fields)

    def _take(self, told_ms, fields):
        fragment = read_fragment(fields, SPACE)
        parts = self._batches.setdefault(fragment.batch, [])
        parts.append((fragment, told_ms, len(fields[b"changes"])))
        if len(parts) == fragment.regions:
            fragments, times, sizes = zip(*self._batches.pop(fragment.batch), strict=True)
            with self._lock:
                self.reckoning.take(fragments, max(times), sum(sizes))
