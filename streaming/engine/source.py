"""The Spark source that reads the logs and, in the same task, runs the home servers.

A task gets a span of one ingest partition and of the control log, and yields the inputs of the regions. So only these
inputs pass through Java; the blocks never do.
"""

import gc
from collections.abc import Iterator
from dataclasses import astuple
from functools import lru_cache
from itertools import count
from pathlib import Path

import orjson
import pyarrow as pa
import redis
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from streaming.engine.batch import TABLES, IngestBlock, Layout, home_task
from streaming.engine.store import Store
from streaming.eventlog import FIRST, EventLog, RedisEventLog, next_ends
from streaming.history.writer import HistoryWriter
from streaming.logs import LogNames
from streaming.redis_client import patient_client
from streaming.spaces import parse_space

REGION_INPUT = ", ".join(["region int", *(f"{name} binary" for name in ("head", *TABLES))])
_SCHEMA = pa.schema([("region", pa.int32()), *((name, pa.binary()) for name in ("head", *TABLES))])
CONTROL = "control"
# Control entries are small: this many are parsed and applied within a second.
MOST_CONTROL_ENTRIES = 10_000
# The limit for `ReadAllAvailable`; no log has this many entries.
ALL_ENTRIES = 2**53
# Without this wait, Spark would ask for new entries a hundred times a second. Stopping a query may take this long.
NEW_ENTRY_WAIT_S = 0.1
# By then, a worker has imported all modules that its tasks use, some of them late.
_TASKS_OF_IMPORTS = 20
_tasks = count()


def layout_of(root: str, layers: str, history: str, space: str, partitions: int, regions: int) -> Layout:
    """Return this process's layout of an engine; its store keeps the newest states in memory between tasks.

    Parameters
    ----------
    root, layers, history : str
        The folders of the state, of the layers and of the stored elements.
    space : str
        The JSON text of the engine's space.
    partitions, regions : int
        The number of ingest partitions, and of regions.
    """
    # Spark collects garbage after every task. This takes 40 ms if the collector scans all modules, and no time if they
    # are frozen.
    if next(_tasks) < _TASKS_OF_IMPORTS:
        gc.freeze()
    return _layout_of(root, layers, history, space, partitions, regions)


@lru_cache(maxsize=8)
def _layout_of(root, layers, history, space, partitions, regions):
    known = parse_space(space)
    store = Store(Path(root), known, Path(layers), Path(history))
    return Layout(store, partitions, regions, HistoryWriter(Path(history), known))


@lru_cache(maxsize=8)
def client_of(url: str) -> redis.Redis:
    """Return this process's connection to Redis."""
    return patient_client(url)


def event_log_of(url: str) -> EventLog:
    """Return the logs, over this process's connection."""
    return RedisEventLog(client_of(url))


def batch_number() -> int:
    """Return the number of the micro-batch that the current Spark task belongs to."""
    return int(TaskContext.get().getLocalProperty("streaming.sql.batchId"))


class LogSource(DataSource):
    """The Spark data source ``lookout``; its options are the engine's settings."""

    @classmethod
    def name(cls) -> str:
        """Return the name under which Spark knows the source."""
        return "lookout"

    def schema(self) -> str:
        """Return the columns of `batch.RegionInput`."""
        return REGION_INPUT

    def streamReader(self, schema) -> DataSourceStreamReader:
        """Return the reader that Spark asks for offsets and spans."""
        return LogReader(dict(self.options))


class LogSpan(InputPartition):
    """The entries of one ingest partition and of the control log, after the offset `start`, up to the offset `end`."""

    def __init__(self, partition: int, start: dict, end: dict) -> None:
        self.partition, self.start, self.end = partition, start, end


class LogReader(DataSourceStreamReader):
    """Plans micro-batches over the logs. An offset is the id of the last entry read, for each log."""

    def __init__(self, options: dict) -> None:
        self.url = options["redis_url"]
        self.folders = options["state_dir"], options["layers_dir"], options["history_dir"]
        self.space = options["space"]
        self.names = LogNames(parse_space(self.space).name)
        self.partitions_count, self.regions = int(options["partitions"]), int(options["regions"])
        self.max_blocks = int(options["max_blocks"])

    def _logs(self):
        return {CONTROL: self.names.control, **{str(p): self.names.ingest(p) for p in range(self.partitions_count)}}

    def initialOffset(self) -> dict:
        """Return the offset before the first entry."""
        return dict.fromkeys(self._logs(), FIRST)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return how many blocks a micro-batch takes from each ingest partition at most."""
        return ReadMaxRows(self.max_blocks)

    def latestOffset(self, start: dict, limit: ReadLimit) -> dict:
        """Return the offset up to which the next micro-batch reads; wait a little if no log has a new entry."""
        everything, logs = isinstance(limit, ReadAllAvailable), self._logs()
        most = {key: ALL_ENTRIES if everything else self._most(name) for name, key in logs.items()}
        after = {key: start[name] for name, key in logs.items()}
        ends = next_ends(event_log_of(self.url), after, most, NEW_ENTRY_WAIT_S)
        return {name: ends[key] for name, key in logs.items()}

    def _most(self, name):
        return MOST_CONTROL_ENTRIES if name == CONTROL else self.max_blocks

    def partitions(self, start: dict, end: dict) -> list[LogSpan]:
        """Return a span for each ingest partition."""
        return [LogSpan(partition, start, end) for partition in range(self.partitions_count)]

    def read(self, span: LogSpan) -> Iterator[pa.RecordBatch]:
        """Run one home server on its span; yield its inputs for the regions, a row each."""
        layout = layout_of(*self.folders, self.space, self.partitions_count, self.regions)
        control = [orjson.loads(fields[b"entry"]) for fields in self._entries(CONTROL, span)]
        blocks = (
            IngestBlock(fields[b"stream"].decode(), int(fields[b"heard_us"]), fields[b"block"])
            for fields in self._entries(str(span.partition), span)
        )
        inputs = home_task(layout, span.partition, batch_number(), blocks, control)
        columns = zip(*map(astuple, inputs), strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
        )

    def _entries(self, name, span):
        entries = event_log_of(self.url).read(self._logs()[name], span.start[name], span.end[name])
        return [entry.fields for entry in entries]

    def commit(self, end: dict) -> None:
        """Remove the entries that Spark has committed from the logs."""
        event_log_of(self.url).trim({key: end[name] for name, key in self._logs().items()})
