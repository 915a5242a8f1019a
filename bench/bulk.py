"""What it costs a process to register many ranges at once, and how long its longest batch takes: CPU time.

Without Spark and without Redis: one process runs two home servers and two regional servers, as a task of an interval
does. Run it with ``python -m bench.bulk``, perhaps followed by numbers of queries.
"""

import gc
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import orjson

from bench.registry import Load
from streaming.elements import partition_of, point_elements, to_ipc
from streaming.engine.admission import MOST_ENTRIES, Sample, admitted, most_next
from streaming.engine.batch import IngestBlock, Saving, home_task, region_task, save
from streaming.engine.interval import SAVE_EVERY_S
from streaming.engine.layout import Layout
from streaming.engine.store import Store
from streaming.history import HistoryWriter
from streaming.logs import fragment_fields
from streaming.servers.control.entries import ControlEntries
from streaming.servers.control.registry import Registry
from streaming.spaces import EARTH

QUERIES = (1_000, 10_000, 100_000)
OBJECTS, UPDATES, SERVERS = 50_000, 1_000, 2


class Worker:
    """A worker process: `SERVERS` home servers and as many regional servers."""

    def __init__(self, root: Path, objects: int) -> None:
        self.layout = Layout(Store(root, EARTH, regions=SERVERS), SERVERS, HistoryWriter(root / "history", EARTH))
        self._rng, self.objects = np.random.default_rng(1), objects
        self.batch, self._saved, self._saved_s, self._most = 0, -1, 0.0, MOST_ENTRIES
        self.run([], objects)

    def _blocks(self, count):
        """Return a block for each partition: the first objects, at random places."""
        places = self._rng.uniform([-180, -90], [180, 90], (count, 2))
        keys = [f"ship {number}" for number in range(count)]
        table = point_elements("ships", keys, np.full(count, self.batch), places, [{}] * count)
        of = partition_of(table["key_hash"].to_numpy(), SERVERS)
        return [[IngestBlock("ships", self.batch, to_ipc(table.filter(of == number)))] for number in range(SERVERS)]

    def run(self, texts: list[bytes], updates: int = UPDATES) -> tuple[int, float]:
        """Run a batch on the texts of control entries; return how many it has read, and the CPU time."""
        layout, batch, blocks = self.layout, self.batch, self._blocks(updates)
        began = time.process_time()
        entries = ControlEntries([orjson.loads(text) for text in texts[: self._most]], EARTH)
        if len(entries):
            sample = layout.known.sample or Sample.none(EARTH)
            count = admitted(entries, layout.store.registry(batch), sample, self.objects)
            entries, self._most = entries.first(count), most_next(count)
        inputs: list[list] = [[] for _ in range(SERVERS)]
        for number in range(SERVERS):
            for sent in home_task(layout, number, batch, blocks[number], entries):
                inputs[sent.region].append(sent)
        fragments = [part for n in range(SERVERS) for part in region_task(layout, n, batch, inputs[n], entries)]
        for fragment in fragments:
            fragment_fields(fragment)
        self._saved_s += time.process_time() - began
        if self._saved_s > SAVE_EVERY_S:
            save(layout, batch, range(SERVERS), range(SERVERS), Saving(self._saved))
            self._saved, self._saved_s = batch, 0.0
        self.batch += 1
        return len(entries), time.process_time() - began


def registered(texts: list[bytes]) -> float:
    """Return the CPU time to parse, check and index queries, as many in a batch as may be, without objects."""
    load, registry, began = Load(len(texts)), Registry(EARTH), time.process_time()
    for first in range(0, len(texts), MOST_ENTRIES):
        entries = [orjson.loads(text) for text in texts[first : first + MOST_ENTRIES]]
        registry, _ = registry.apply(entries)
        registry.queries.match(load.few, registry.features)
    return time.process_time() - began


def row(queries: int, objects: int = OBJECTS) -> list[str]:
    """Return the cells of a row of the table."""
    load = Load(queries)
    texts = [orjson.dumps(load.register(query)) for query in range(queries)]
    with tempfile.TemporaryDirectory() as root:
        worker = Worker(Path(root), objects)
        alone = [worker.run([])[1] for _ in range(20)]
        spent, read = [], 0
        while read < queries:
            count, seconds = worker.run(texts[read:])
            read += count
            spent.append(seconds)
        after = [worker.run([])[1] for _ in range(20)]
    milliseconds = (1000 * np.median(alone), 1000 * np.median(spent), 1000 * max(spent), 1000 * np.median(after))
    seconds = registered(texts), sum(spent)
    return [
        f"{queries:,}",
        *(f"{value:.2f}" for value in seconds),
        str(len(spent)),
        *(f"{value:.0f}" for value in milliseconds),
    ]


def main() -> None:
    """Print a row for each number of queries."""
    heads = ["queries", "registry alone, s", "CPU s", "batches"]
    heads += ["batch before, ms", "median meanwhile, ms", "longest, ms", "batch after, ms"]
    print("| " + " | ".join(heads) + " |")
    gc.freeze()
    for queries in map(int, sys.argv[1:]) if len(sys.argv) > 1 else QUERIES:
        print("| " + " | ".join(row(queries)) + " |", flush=True)


if __name__ == "__main__":
    main()
