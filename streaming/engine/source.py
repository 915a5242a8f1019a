"""The Spark source of an engine: it plans intervals, and its tasks run them."""

import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import count
from pathlib import Path

import orjson
import pyarrow as pa
import redis
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

from streaming.engine.cuts import CUTS, CutLog, Point, logs_read
from streaming.engine.exchange import TaskPlace
from streaming.engine.housekeeping import Housekeeping
from streaming.engine.interval import STOPPING, BatchPace, Interval
from streaming.engine.layout import Layout
from streaming.engine.quarantine import read_quarantine
from streaming.engine.resume import state_files_of
from streaming.engine.slots import Slot
from streaming.engine.store import Store
from streaming.history.writer import HistoryWriter
from streaming.log_format import set_up
from streaming.logs import Log
from streaming.operators.padding import Padding
from streaming.redis_client import patient_client
from streaming.spaces import parse_space
from streaming.trace_opening import open_traces

# How often Spark is told that it has to wait while the engine stops.
_STOP_WAIT_S = 0.1
# By then, a worker has imported all modules that its tasks use, some of them late.
_TASKS_OF_IMPORTS = 20
_tasks = count()


def layout_of(
    start: str, root: str, uri: str, layers: str, history: str, space: str, shape: tuple[int, int], padding: Padding
) -> Layout:
    """Return this process's layout of an engine; its store keeps the newest states in memory between tasks.

    Parameters
    ----------
    start : str
        Names the start of the query. What this process knows of the files of an earlier one may be wrong: states that
        were not whole were removed in between.
    root, uri, layers, history : str
        The folder of the state, the URI where the states are instead if it is not empty, and the folders of the layers
        and of the stored elements.
    space : str
        The JSON text of the engine's space.
    shape : tuple of int
        The number of ingest partitions, and of the regions of a new state.
    padding : Padding
        Which pages of layers regions keep in memory.
    """
    # Spark collects garbage after every task. This takes 40 ms if the collector scans all modules, and no time if they
    # are frozen.
    if next(_tasks) < _TASKS_OF_IMPORTS:
        gc.freeze()
    return _layout_of(start, root, uri, layers, history, space, shape, padding)


@lru_cache(maxsize=8)
def _layout_of(
    start: str, root: str, uri: str, layers: str, history: str, space: str, shape: tuple[int, int], padding: Padding
) -> Layout:
    known, (partitions, regions) = parse_space(space), shape
    files = state_files_of(root, uri, known.name)
    store = Store(Path(root), known, Path(layers), Path(history), files, regions, padding)
    writer = HistoryWriter(Path(history), known, ThreadPoolExecutor(1, "merge"))
    return Layout(store, partitions, writer, read_quarantine(store.files), Slot(Path(root)))


@lru_cache(maxsize=8)
def client_of(url: str) -> redis.Redis:
    """Return this process's connection to Redis."""
    return patient_client(url)


class LogSource(DataSource):
    """The Spark data source ``lookout``; its options are the engine's settings."""

    @classmethod
    def name(cls) -> str:
        """Return the name under which Spark knows the source."""
        return "lookout"

    def schema(self) -> str:
        """Return the column of what a task yields: the number of batches that it ran."""
        return "batches long"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader that Spark asks for intervals."""
        return IntervalReader(dict(self.options))


class IntervalTask(InputPartition):
    """A task of an interval: its servers, and where it begins."""

    def __init__(self, place: TaskPlace, point: Point) -> None:
        self.place, self.point = place, point


class IntervalReader(DataSourceStreamReader):
    """Plans intervals, and runs their tasks. An offset is the number of intervals since the engine's start."""

    def __init__(self, options: dict) -> None:
        self.url, self.log_url = options["redis_url"], options["log_url"]
        self.folders = options["state_dir"], options["state_uri"], options["layers_dir"], options["history_dir"]
        self.space = options["space"]
        self.partitions_count, self.regions = int(options["partitions"]), int(options["regions"])
        self.padding = Padding(options["padding"], float(options["padding_size"]))
        self.tasks = int(options["tasks"])
        self.pace = BatchPace(int(options["batch_ms"]) / 1000, int(options["max_blocks"]), float(options["interval_s"]))
        self.start, self.epoch = options["start"], options["epoch"]
        self.log_format = options.get("log_format", "text")
        self.trace_ratio = float(options.get("trace_ratio", 0))
        self._points = {0: Point(*orjson.loads(options["point"]))}
        self._housekeeping: Housekeeping | None = None

    def _log(self) -> Log:
        name = parse_space(self.space).name
        if self.log_format == "json":  # this process is one of Spark's, which begin without any set-up of logs
            set_up(self.log_format, "engine", name)
        return Log(client_of(self.url), name, self.partitions_count, patient=True, url=self.log_url)

    def initialOffset(self) -> dict:
        """Return the offset before the first interval."""
        return {"intervals": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that Spark passes on to `latestOffset`; the tasks limit themselves."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict, limit: ReadLimit) -> dict:
        """Return the offset after the next interval, which waits for entries; none begins while the engine stops."""
        if (Path(self.folders[0]) / STOPPING).exists():
            time.sleep(_STOP_WAIT_S)
            return start
        return {"intervals": start["intervals"] + 1}

    def _cuts(self, log: Log) -> CutLog:
        return CutLog(log.event_log, log.names.cuts, self.epoch)

    def _point(self, intervals: int) -> Point:
        """Return the point after as many intervals, which have ended."""
        if intervals not in self._points:
            before = self._points[intervals - 1]
            cuts = self._cuts(self._log()).after(before.positions[CUTS])
            end = next(cut for cut in cuts if cut.closes and cut.batch > before.batch)
            self._points = {intervals - 1: before, intervals: Point(end.batch, end.positions)}
        return self._points[intervals]

    def partitions(self, start: dict, end: dict) -> list[IntervalTask]:
        """Return the tasks of an interval; from the first one on, a thread keeps the logs short and the state tidy."""
        if self._housekeeping is None:
            log = self._log()
            root, uri, _, history = self.folders
            keys, space = logs_read(log.names, self.partitions_count) | {CUTS: log.names.cuts}, log.names.space
            self._housekeeping = Housekeeping(state_files_of(root, uri, space), log, keys, Path(history) / space)
            self._housekeeping.start()
        places = (TaskPlace(task, self.tasks, self.partitions_count) for task in range(self.tasks))
        return [IntervalTask(place, self._point(start["intervals"])) for place in places]

    # Spark hands over what `partitions` has returned.
    def read(self, task: IntervalTask) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """Run a task's part of an interval; yield the number of batches."""
        layout = layout_of(self.start, *self.folders, self.space, (self.partitions_count, self.regions), self.padding)
        # Here, since the thread that sends spans must run in the process of the task.
        traces = open_traces(self.trace_ratio, "engine", parse_space(self.space).name)
        batches = Interval(layout, self._log(), task.place, task.point, self.pace, traces).run()
        yield pa.RecordBatch.from_arrays([pa.array([batches])], ["batches"])
