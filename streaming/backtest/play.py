"""Play elements through the servers, in the order in which they were heard, while a clock follows them."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from streaming.backtest.asked import US, BacktestRequest
from streaming.backtest.cuts import Nearby, micro_batches
from streaming.backtest.servers import BacktestServers
from streaming.backtest.unchanged import Unchanged, by_themselves
from streaming.kinds.registry import kind_of
from streaming.language import gettext, thousands
from streaming.operators.runs import first_of_runs
from streaming.results import ENTERED
from streaming.results.netting import net
from streaming.servers.elements import no_elements


@dataclass(frozen=True)
class PlayedBatch:
    """What one micro-batch told.

    Parameters
    ----------
    time_us : int
        The clock after the batch: a whole second, in microseconds since 1970 UTC.
    rows : pyarrow.Table
        The result tuples, netted, with `results.result_schema`; perhaps none. Those of the first batch have the reason
        ``registered``: the objects that were in the answers at the beginning.
    """

    time_us: int
    rows: pa.Table


class Playing:
    """One back-test, as it goes on.

    Parameters
    ----------
    asked : BacktestRequest
    layers : Path, optional
        The folder of the layers, if a plan is joined with one.
    now_s : callable, optional
        Returns the time that `BacktestLimits.seconds` limits, in seconds.

    Attributes
    ----------
    clock_us : int
        Up to when it has come, in microseconds since 1970 UTC.
    elements, played : int
        How many elements it has been given, and how many of these went through the servers: the others were far from
        all queries.
    stopped : str
        Which limit ended it; empty if none did.
    """

    def __init__(
        self, asked: BacktestRequest, layers: Path | None = None, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.asked = asked
        self.clock_us, self.elements, self.played, self.stopped = asked.span[0], 0, 0, ""
        self._layers, self._now_s, self._began_s = layers, now_s, now_s()
        plans = [asked.parsed(number) for number in asked.plans]
        self._nearby = Nearby(plans, asked.space)
        self._unchanged = None if asked.moves or not by_themselves(plans) else Unchanged(asked)
        self._rules = np.array([n for n, plan in zip(asked.plans, plans, strict=True) if kind_of(plan).queries(plan)])

    @property
    def share(self) -> float:
        """How much of the span is done, 0 to 1."""
        begin_us, end_us = self.asked.span
        return min(1.0, max(0.0, (self.clock_us - begin_us) / (end_us - begin_us)))

    def play(self, tables: Iterable[pa.Table]) -> Iterator[PlayedBatch]:
        """Play elements; yield what is told, micro-batch by micro-batch.

        Parameters
        ----------
        tables : iterable of pyarrow.Table
            With `tracked_schema`: the elements of the streams that were heard from `BacktestRequest.begin_us` on, in
            that order. No second is in two tables. Those from before the span only tell where objects were when it
            began.

        Yields
        ------
        PlayedBatch
            In the order of time. Batches without tuples are among them, so that the caller can look at the clock.
        """
        end_us = self.asked.span[1]
        with BacktestServers(self.asked.space, self._layers) as servers:
            yield from self._played(servers, tables)
            if not self.stopped:
                yield from self._ticks(servers, end_us // US * US)
                self.clock_us = max(self.clock_us, end_us)
                yield from self._rest(servers)

    def _played(self, servers: BacktestServers, tables: Iterable[pa.Table]) -> Iterator[PlayedBatch]:
        begin_us, end_us = self.asked.span
        known, begun = no_elements(self.asked.space), False
        for table in tables:
            heard_us = table["heard_us"].to_numpy()
            early, late = np.searchsorted(heard_us, [begin_us, end_us], "left")
            if early:
                known = _newest([known, table.slice(0, early)])
            if late > early and not begun:
                begun = True
                yield self._begin(servers, known)
            if late > early:
                yield from self._seconds(servers, table.slice(early, late - early))
            if self.stopped:
                return
        if not begun:
            yield self._begin(servers, known)

    def _begin(self, servers: BacktestServers, known: pa.Table) -> PlayedBatch:
        """Let the servers know where objects are, then register the queries; return what is so at the beginning."""
        asked, tick = self.asked, {"op": "tick", "now_us": self.asked.span[0]}
        streams = [{"op": "stream", "stream": name, "ttl_s": asked.ttl_s.get(name)} for name in asked.streams]
        layers = [{"op": "layer", "layer": name, "version": version} for name, version in asked.layers.items()]
        servers.run(self._nearby.of(known).combine_chunks(), [tick, *streams, *layers])
        control = [
            {"op": "register", "query": number, "revision": 1, "plan": dict(plan)}
            for number, plan in sorted(asked.plans.items())
        ]
        return PlayedBatch(asked.span[0], net(servers.run(no_elements(asked.space), control)))

    def _seconds(self, servers: BacktestServers, table: pa.Table) -> Iterator[PlayedBatch]:
        """Play elements of the span; each second ends with a tick of the clock."""
        self.elements += table.num_rows
        # What the clock makes due meanwhile, with the places of objects as they were then.
        table = self._nearby.of(table)
        if self._unchanged:
            yield from self._ticks(servers, int(table["heard_us"][0].as_py()) // US * US) if table.num_rows else ()
            table = self._unchanged.of(table, servers.registry)
        for second, elements, last in micro_batches(table):
            yield from self._ticks(servers, second * US, whole=True)
            if self._limited(elements.num_rows):
                return
            self.played += elements.num_rows
            yield self._batch(servers, elements, (second + 1) * US if last else None)

    def _ticks(self, servers: BacktestServers, until_us: int, whole: bool = False) -> Iterator[PlayedBatch]:
        """Set the clock to each second up to a time in which something is due; with `whole`, to that time, too."""
        while not self.stopped:
            second_us = max(-(-servers.due_us(self.clock_us) // US) * US, (self.clock_us // US + 1) * US)
            if whole and second_us > until_us > self.clock_us:
                second_us = until_us
            if second_us > until_us or self._limited(0):
                return
            yield self._batch(servers, no_elements(self.asked.space), second_us)

    def _rest(self, servers: BacktestServers) -> Iterator[PlayedBatch]:
        """Tell what the servers could not tell with what came before it: an alarm that ended as it began."""
        while servers.waits:
            yield self._batch(servers, no_elements(self.asked.space), self.clock_us)

    def _batch(self, servers: BacktestServers, elements: pa.Table, tick_us: int | None) -> PlayedBatch:
        control = [] if tick_us is None else [{"op": "tick", "now_us": tick_us}]
        rows = net(servers.run(elements, control))
        self.clock_us = tick_us or self.clock_us
        if self._unchanged and rows.num_rows and len(self._rules):
            alarms = np.isin(rows["query"].to_numpy(), self._rules) & (rows["sign"].to_numpy() == ENTERED)
            rows = self._unchanged.placed(rows, alarms, self.clock_us)
        return PlayedBatch(self.clock_us, rows)

    def _limited(self, more: int) -> bool:
        """Note that a limit is reached, if it is."""
        limits = self.asked.limits
        if self.played + more > limits.elements:
            self.stopped = gettext("after %(elements)s elements, the most that a back-test plays") % {
                "elements": thousands(limits.elements)
            }
        elif self._now_s() - self._began_s > limits.seconds:
            self.stopped = gettext("after %(seconds)g s, the longest that a back-test takes") % {
                "seconds": limits.seconds
            }
        return bool(self.stopped)


def _newest(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the newest element of each object, in the order of time."""
    table = pa.concat_tables(tables)
    key = table["key_hash"].to_numpy()
    order = np.argsort(key, kind="stable")
    last = order[np.r_[first_of_runs(key[order])[1:], np.ones(min(1, len(key)), dtype=bool)]]
    return table.take(pa.array(np.sort(last))).combine_chunks()
