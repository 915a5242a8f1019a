"""The servers of an engine, one of each, in the memory of this process: the very ones that answer live queries."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from streaming.engine.batch import Saving, home_step, region_task
from streaming.engine.layout import Layout
from streaming.engine.store import Store
from streaming.engine.ways import WAYS
from streaming.history.writer import HistoryWriter
from streaming.results import Fragment
from streaming.servers.control.entries import Entry
from streaming.servers.control.registry import Registry
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
        """Whether something waits that the next tick tells."""
        return any(way.waits(self._store, self.batch, self.registry) for way in WAYS)

    def due_us(self, now_us: int) -> int:
        """Return before which time a batch without elements tells nothing, given the clock; `NEVER_US` if never."""
        region, registry = self._store.region(0, self.batch), self.registry
        of_ways = (way.due_us(self._store, self.batch, registry, now_us) for way in WAYS)
        return min(region.deadlines.next_us(region.objects.table, registry), *of_ways)
