"""Another number of home servers: the state of an engine that was written with other partitions is divided anew.

A gateway writes into each block for how many partitions its elements were divided. So first the home servers of before
read the blocks that were divided for them. Then the entries of all home servers are divided among the new ones. The
regions do not change, so nobody is told anything; clients get snapshots, since the numbers of batches have a gap.

References
----------
PLACE* (2007), section 3.1: an object's home server is found by hashing its identifier.
"""

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from streaming.elements import partition_of
from streaming.engine.batch import IngestBlock, Saving, home_task, region_task
from streaming.engine.cuts import beginning
from streaming.engine.layout import Layout
from streaming.engine.store import Store
from streaming.engine.ways import home_parts
from streaming.history import HistoryWriter
from streaming.logs import Log
from streaming.servers.home import COLUMNS, Home, no_columns
from streaming.servers.sorted_runs import SortedRuns
from streaming.settings import EngineSettings
from streaming.state.manifest import Manifest, read_manifest
from streaming.state.stores import StateStore

logger = logging.getLogger("lookout.engine")

# So many entries of each partition's log make a batch.
READ_AT_ONCE = 64


def repartitioned(settings: EngineSettings, log: Log, files: StateStore, manifest: Manifest) -> Manifest:
    """Return the manifest of a state for the partitions of the settings, made of one for other partitions.

    Parameters
    ----------
    settings : EngineSettings
    log : Log
    files : StateStore
        Where the state is.
    manifest : Manifest
        All batches that are published come before it.
    """
    was, now = manifest.shape.partitions, settings.partitions
    logger.info("space %s: %d partitions become %d", settings.space.name, was, now)
    folders = settings.layers_dir, settings.history_dir
    store = Store(Path(settings.state_dir), settings.space, *folders, files, settings.regions)
    layout = Layout(store, was, HistoryWriter(Path(settings.history_dir), settings.space))
    batch, unread = _drained(layout, log, manifest)
    attempt = store.attempt(batch + 1, "repartition", batch)
    for number, home in enumerate(divided([store.home(number, batch + 1) for number in range(was)], now)):
        attempt.save(f"home/{number}", home)
    before = read_manifest(files, batch)
    kept = {name: known for name, known in before.states.items() if not name.startswith("home/")}
    shared = {name: at for name, at in before.positions.items() if not name.isdigit()}
    positions = {**beginning(now).positions, **shared}
    positions |= {str(number): at for number, at in unread.items() if number < now}
    shape = replace(before.shape, partitions=now)
    later = Manifest(batch + 1, before.epoch, shape, {**kept, **attempt.receipt().states}, positions)
    later = replace(later, blocks=tuple(log.count_read(positions)))
    later.commit(files)
    if left := [log.names.ingest(number) for number in range(now, was)]:
        log.event_log.delete(left)
    return later


class _Reader:
    """Reads the blocks of one partition's log that were divided for some number of partitions.

    Attributes
    ----------
    read : str
        The position up to which the log is read.
    unread : str
        The position behind which blocks for other home servers may come.
    """

    def __init__(self, log: Log, number: int, partitions: int, after: str) -> None:
        self._log, self._name, self._partitions = log, log.names.ingest(number), partitions
        self.read = self.unread = after
        self._all_mine = True

    def next(self) -> list[IngestBlock] | None:
        """Return the next blocks; None at the end of the log."""
        entries = self._log.event_log.read(self._name, self.read, limit=READ_AT_ONCE)
        if not entries:
            return None
        blocks = [IngestBlock.of(entry.fields, self._partitions) for entry in entries]
        self._all_mine = self._all_mine and all(block.payload for block in blocks)
        self.read = entries[-1].position
        if self._all_mine:
            self.unread = self.read
        return blocks


def _drained(layout: Layout, log: Log, manifest: Manifest) -> tuple[int, Mapping[int, str]]:
    """Run batches, each of them saved, until no block for the partitions of a layout is left.

    Returns
    -------
    batch : int
        The last one.
    unread : mapping of int to str
        By partition, the position behind which blocks for other partitions may come.
    """
    batch, partitions = manifest.batch, range(layout.partitions)
    readers = [_Reader(log, number, layout.partitions, manifest.positions[str(number)]) for number in partitions]
    while any(found := [reader.next() for reader in readers]):
        saving = Saving(batch, {**manifest.positions, **{str(n): readers[n].read for n in partitions}})
        batch += 1
        inputs = defaultdict(list)
        for number, blocks in enumerate(found):
            for made in home_task(layout, number, batch, blocks or [], [], saving):
                inputs[made.region].append(made)
        log.publish([part for n in sorted(inputs) for part in region_task(layout, n, batch, inputs[n], [], saving)])
    return batch, {number: reader.unread for number, reader in enumerate(readers)}


def divided(homes: Sequence[Home], partitions: int) -> Iterator[Home]:
    """Yield the states of other home servers, which know the same objects.

    Parameters
    ----------
    homes : sequence of Home
    partitions : int
        How many home servers there will be.
    """
    rows = [home.entries.whole() for home in homes]
    key = np.concatenate([home.entries.keys(*whole) for home, whole in zip(homes, rows, strict=True)])
    taken = [home.entries.take(*whole) for home, whole in zip(homes, rows, strict=True)]
    order = np.argsort(key, kind="stable")
    columns = {name: np.concatenate([columns[name] for columns in taken])[order] for name in COLUMNS}
    key, of = key[order], partition_of(key[order], partitions)
    times = max(home.now_us for home in homes), min(home.forgotten_us for home in homes)
    parts = {}
    for part in home_parts():
        if states := [home.parts[part.name] for home in homes if part.name in home.parts]:
            parts[part.name] = part.divided(states, partitions)
    for number in range(partitions):
        # Runs that are stored already have smaller numbers.
        following = homes[number].entries.following if number < len(homes) else 0
        mine = of == number
        found = {name: column[mine] for name, column in columns.items()}
        empty = SortedRuns(no_columns(), following=following)
        entries = empty.put(key[mine], found, key[:0], int(mine.sum())).settled()
        yield Home(entries, *times, {name: those[number] for name, those in parts.items()})
