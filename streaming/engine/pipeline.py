"""The Structured Streaming query of a space: logs, home stage, shuffle by region, region stage, result log."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming.engine.batch import RegionInput, region_task
from streaming.engine.source import LogSource, batch_number, client_of, layout_of
from streaming.logs import Log
from streaming.settings import EngineSettings
from streaming.spaces import space_text


def start_query(spark: SparkSession, settings: EngineSettings) -> StreamingQuery:
    """Start the streaming query of a space; it continues from the state on disk."""
    options = {
        "redis_url": settings.redis_url,
        "state_dir": str(settings.state_dir),
        "layers_dir": str(settings.layers_dir),
        "history_dir": str(settings.history_dir),
        "space": space_text(settings.space),
        "partitions": str(settings.partitions),
        "regions": str(settings.regions),
        "max_blocks": str(settings.max_blocks),
    }
    _layout(settings)().store.epoch()
    spark.dataSource.register(LogSource)
    inputs = spark.readStream.format("lookout").options(**options).load()
    # Regions are assigned to the tasks in turn. A hash would put some tasks' regions into one task.
    placed = inputs.repartitionById(settings.shuffle_partitions, "region")
    published = placed.mapInArrow(region_stage(settings), "regions long")
    checkpoint = Path(settings.state_dir) / "checkpoint"
    writer = published.writeStream.format("noop").queryName(settings.space.name)
    return writer.option("checkpointLocation", str(checkpoint)).start()


def warm_up(spark: SparkSession) -> threading.Thread:
    """Start Spark's Python workers while the driver plans the query.

    Returns
    -------
    threading.Thread
        Ends with the warm-up. If the warm-up fails, the first micro-batch waits for its workers; nothing else happens.
    """
    tasks = spark.sparkContext.defaultParallelism
    job = spark.range(0, tasks, 1, tasks).mapInArrow(_same, "id long")
    thread = threading.Thread(target=job.count, name="warm up", daemon=True)
    thread.start()
    return thread


def _same(batches):
    """Yield the batches unchanged; a worker has to import this module to find this function."""
    yield from batches


def region_stage(settings: EngineSettings) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of the region stage's tasks: it runs regional servers and publishes their fragments."""
    url, name, partitions, layout_here = settings.redis_url, settings.space.name, settings.partitions, _layout(settings)

    def run(batches):
        inputs = defaultdict(list)
        for batch in batches:
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                inputs[row[0]].append(RegionInput(*row))
        layout = layout_here()
        fragments = []
        for number in sorted(inputs):
            fragments += region_task(layout, number, batch_number(), inputs[number])
        # All at once: nobody can use the fragment of one region before those of the others.
        Log(client_of(url), name, partitions).publish(fragments)
        yield pa.RecordBatch.from_arrays([pa.array([len(inputs)])], ["regions"])

    return run


def _layout(settings):
    """Return a function without parameters that returns the layout of the process that calls it."""
    folders = str(settings.state_dir), str(settings.layers_dir), str(settings.history_dir)
    return partial(layout_of, *folders, space_text(settings.space), settings.partitions, settings.regions)
