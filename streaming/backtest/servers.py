"""The servers of an engine, one of each, in the memory of this process: the very ones that answer live queries."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from streaming.engine.batch import Saving, home_step, region_task
from streaming.engine.layout import Layout
from streaming.engine.store import Store
from streaming.history.writer import HistoryWriter
from streaming.operators.schedules import NEVER_US
from streaming.results import Fragment
from streaming.servers.control.entries import Entry
from streaming.servers.control.registry import Registry
from streaming.servers.ways.rules.assembler import DECIDED_AFTER_US, due_by
from streaming.servers.ways.rules.silences import due_us
from streaming.servers.ways.rules.state import RuleState
from streaming.servers.ways.rules.way import RULES
from streaming.servers.ways.stream_joins.way import STATE as STREAM_JOIN
from streaming.spaces import Space
from streaming.state.memory import MemoryVersions


class BacktestServers:
    """A home server, a regional server and the assembler, with a clock that the caller sets.

    Use it in a ``with`` block: its folder, which has copies of joined layers, is removed at the end.

    Parameters
    ----------
    space : Space
    layers, history : Path, optional
        The folders of the layers and of the stored elements; see `Store`.
    """

    def __init__(self, space: Space, layers: Path | None = None, history: Path | None = None) -> None:
        # Not a `TemporaryDirectory`: one that is found unused before the generator that would have ended it, warns.
        self._folder = root = Path(tempfile.mkdtemp(prefix="lookout-backtest-"))
        self._store = Store(root, space, layers, history, versions=MemoryVersions)
        self._layout = Layout(self._store, 1, HistoryWriter(root / "none", space))
        self.batch = 0

    def __enter__(self) -> "BacktestServers":
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder)

    @property
    def registry(self) -> Registry:
        """The registry after the newest batch."""
        return self._store.registry(self.batch)

    def run(self, elements: pa.Table, control: Sequence[Entry]) -> list[Fragment]:
        """Run a micro-batch; return what the servers tell.

        Parameters
        ----------
        elements : pyarrow.Table
            With `tracked_schema`, in one piece, in the order in which they were heard.
        control : sequence of mapping
            Control entries; see `logs.control_entry`.
        """
        saving, control = Saving(self.batch - 1), list(control)
        inputs = home_step(self._layout, 0, self.batch, elements, control, saving)
        fragments = region_task(self._layout, 0, self.batch, inputs, control, saving)
        self.batch += 1
        return fragments

    @property
    def waits(self) -> bool:
        """Whether rules have tuples that are told at the next tick, since those before them had no order."""
        return bool(len(self.registry.rules)) and self._store.before(RULES, self.batch).over.num_rows > 0

    def due_us(self, now_us: int) -> int:
        """Return before which time a batch without elements tells nothing, given the clock; `NEVER_US` if never.

        Objects fall silent, pairs pass their closest points, rules have waited for long enough, their schedules begin
        and end.
        """
        region = self._store.region(0, self.batch)
        found, rules = [region.deadlines.next_us(region.objects.table, self.registry)], self.registry.rules
        if self.registry.reach:
            dues = self._store.before(f"{STREAM_JOIN}/0", self.batch).dues
            found += dues.due_us.min(initial=NEVER_US, keepdims=True).tolist()
        if len(rules):
            state = self._store.before(RULES, self.batch)
            if self.waits:
                return now_us + 1
            due = state.entries.take(*state.entries.select(lambda run: run.columns["due_us"] < NEVER_US), ("due_us",))
            waits = [
                rules.schedules.until_us(due_by(now_us)),
                *state.numbers.waiting_us.tolist(),
                *due["due_us"].tolist(),
                *self._silent_us(state),
            ]
            found += [min(time_us, NEVER_US - DECIDED_AFTER_US) + DECIDED_AFTER_US for time_us in waits]
        return min(found)

    def _silent_us(self, state: RuleState) -> list[int]:
        """Return when objects, and streams, may be silent for as long as rules ask."""
        rules, found = self.registry.rules, []
        if rules.silences:
            some = state.entries.select(lambda run: due_us(rules, state.feeds, run.columns) < NEVER_US)
            found = due_us(rules, state.feeds, state.entries.take(*some)).tolist()
            silent_us = dict(zip(rules.ids.tolist(), rules.silent_us.tolist(), strict=True))
            found += [feed.newest_us + silent_us[rule] for rule, feed in state.feeds.items() if not feed.silent]
        return found
