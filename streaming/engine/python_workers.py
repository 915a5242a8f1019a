"""What Spark's Python processes import and how they use memory and cores."""

import os
from pathlib import Path

from streaming.forkserver import ForkServer

# The modules that Spark's Python processes run or import.
PRELOADED = (
    "pyspark.worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "streaming.engine.pipeline",
    "streaming.compiled_json",
    "streaming.sketch.compiled_groups",
)
# The tasks use every core already. The delays are in milliseconds: each batch uses the memory of the one before again.
# The allocators of Arrow and of Polars would return it to the kernel, which would clear it each time.
WORKER_ENVIRONMENT = {
    "POLARS_MAX_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MIMALLOC_PURGE_DELAY": "2000",
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:2000,muzzy_decay_ms:2000",
}


def fork_server(folder: Path, *kept: int) -> ForkServer:
    """Return a fork server whose program Spark gets as its Python; see `ForkServer`."""
    # Java inherits these variables, and passes them on to the forked processes.
    for name, value in WORKER_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    return ForkServer(folder, PRELOADED, *kept)
