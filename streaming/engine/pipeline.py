"""The Structured Streaming query of a space: its micro-batches are intervals, and their tasks are the servers."""

import secrets
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import orjson
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming.engine.cuts import Point, beginning
from streaming.engine.interval import INTERVAL_S, STOPPING
from streaming.engine.resume import state_files_of
from streaming.engine.source import LogSource
from streaming.engine.store import Store
from streaming.errors import LookoutError
from streaming.settings import EngineSettings
from streaming.spaces import space_text

# The settings that the tasks need.
OPTIONS = (
    "redis_url",
    "log_url",
    "state_dir",
    "state_uri",
    "layers_dir",
    "history_dir",
    "partitions",
    "regions",
    "padding",
    "padding_size",
    "batch_ms",
    "log_format",
    "trace_ratio",
    "max_blocks",
)
STOP_S = 3.0
# How long an engine waits for the cores of a cluster.
CORES_S = 60.0


def start_query(
    spark: SparkSession,
    settings: EngineSettings,
    point: Point | None = None,
    interval_s: float = INTERVAL_S,
    tasks: int | None = None,
) -> StreamingQuery:
    """Start the streaming query of a space.

    Parameters
    ----------
    spark : SparkSession
    settings : EngineSettings
    point : Point, optional
        From where `resume` has found that the engine continues; by default, from the first entry of the logs.
    interval_s : float, optional
        How long an interval lasts, in seconds.
    tasks : int, optional
        How many tasks an interval has; by default, as many as `task_count` finds.
    """
    point = point or beginning(settings.partitions)
    files = state_files_of(settings.state_dir, settings.state_uri, settings.space.name)
    options = {name: str(getattr(settings, name)) for name in OPTIONS} | {
        "start": secrets.token_hex(4),
        "space": space_text(settings.space),
        "epoch": Store(Path(settings.state_dir), settings.space, files=files).epoch(),
        "tasks": str(tasks or task_count(spark, settings)),
        "interval_s": str(interval_s),
        "point": orjson.dumps([point.batch, point.positions]).decode(),
    }
    spark.dataSource.register(LogSource)
    batches = spark.readStream.format("lookout").options(**options).load()
    # Spark numbers the intervals of each start from 0. The manifests and the log of cuts say what was before.
    checkpoint = Path(settings.state_dir) / "checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    (Path(settings.state_dir) / STOPPING).unlink(missing_ok=True)
    writer = batches.writeStream.format("noop").queryName(settings.space.name)
    return writer.option("checkpointLocation", str(checkpoint)).start()


class NoCores(LookoutError):
    """A cluster has no core for an engine."""


@lru_cache(maxsize=8)
def task_count(spark: SparkSession, settings: EngineSettings) -> int:
    """Return how many tasks an interval has, which all run at the same time: each needs a core of its own.

    On a cluster, wait until it has given the engine a core for each partition, or until `CORES_S` have passed.

    Raises
    ------
    NoCores
        If the cluster has given it none.
    """
    if not settings.on_cluster:
        return min(settings.partitions, spark.sparkContext.defaultParallelism)
    deadline_s = time.monotonic() + CORES_S
    while (cores := _cores(spark)) < settings.partitions and time.monotonic() < deadline_s:
        time.sleep(0.1)
    if not cores:
        raise NoCores(f"the cluster {settings.master} must have a free core for each task; got none in {CORES_S:g} s")
    return min(settings.partitions, cores)


def _cores(spark: SparkSession) -> int:
    """Return how many cores a cluster has given to this program."""
    return spark.sparkContext._jsc.sc().schedulerBackend().totalCoreCount()


def stop_query(query: StreamingQuery, settings: EngineSettings) -> None:
    """Stop a query when its interval has ended, or after `STOP_S` at the latest: then batches have to run again."""
    (Path(settings.state_dir) / STOPPING).touch()
    deadline_s = time.monotonic() + STOP_S
    while query.status["isDataAvailable"] and time.monotonic() < deadline_s:
        time.sleep(0.01)
    query.stop()


def warm_up(spark: SparkSession) -> threading.Thread:
    """Start Spark's Python workers while the driver plans the query.

    Returns
    -------
    threading.Thread
        Ends with the warm-up. If the warm-up fails, the first interval waits for its workers; nothing else happens.
    """
    tasks = spark.sparkContext.defaultParallelism
    job = spark.range(0, tasks, 1, tasks).mapInArrow(_same, "id long")
    thread = threading.Thread(target=job.count, name="warm up", daemon=True)
    thread.start()
    return thread


def _same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches unchanged; a worker has to import this module to find this function."""
    yield from batches
