"""Start Spark in this process, with its settings, its Java and its Python."""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from streaming.engine.local_files import write_without_processes
from streaming.engine.python_workers import WORKER_ENVIRONMENT
from streaming.engine.shipping import ARCHIVE, packed
from streaming.settings import EngineSettings

# The driver plans a few times a second and computes little. The second compiler and the parallel collector take more
# processor time from the workers than they save: a micro-batch takes 150 ms of Java with them, 98 ms without.
_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
# This manager writes and renames through the file system of `local_files`. The default one would start a process for
# each file to set its permissions.
_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def start_session(settings: EngineSettings, java: Path, python: Path, java_options: str = "") -> SparkSession:
    """Start Spark in this process.

    Parameters
    ----------
    settings : EngineSettings
    java : Path
        The JAVA_HOME of the Java to start.
    python : Path
        The program that Spark starts as its Python on this machine.
    java_options : str
        More options for Java, beside those of every session; see `ClassArchive.options`.
    """
    if settings.on_cluster:  # the fork server is a process of this machine
        python = Path(settings.executor_python or sys.executable)
        cluster: dict[str, bool | float | int | str | None] = {
            "spark.executorEnv.PYTHONPATH": ARCHIVE,
            "spark.python.daemon.module": "streaming.engine.spark_daemon",
        }
    else:
        cluster = {}
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = str(python)
    os.environ["JAVA_HOME"] = str(java)
    os.environ["SPARK_LOCAL_IP"] = settings.driver_host
    spark = (
        SparkSession.builder.master(settings.master)
        .appName(f"lookout {settings.space.name}")
        .config("spark.driver.memory", settings.driver_memory)
        .config("spark.driver.extraJavaOptions", f"{_JAVA_OPTIONS} {java_options}")
        .config("spark.driver.host", settings.driver_host)
        .config("spark.driver.bindAddress", settings.driver_host)
        .config("spark.executor.memory", settings.executor_memory)
        .config(map={f"spark.executorEnv.{name}": value for name, value in WORKER_ENVIRONMENT.items()})
        .config(map=cluster)
        # An interval has a task for each partition at most. The other cores of a cluster are for other engines.
        .config("spark.cores.max", str(settings.partitions))
        .config("spark.speculation", "false")
        .config("spark.hadoop.fs.permissions.umask-mode", "077")  # Hadoop does not use the umask of the process
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.streaming.checkpointFileManagerClass", _CHECKPOINTING)
        .config("spark.sql.streaming.minBatchesToRetain", "10")
        .config("spark.sql.streaming.metricsEnabled", "false")
        # Over TCP, a batch waits 40 ms in each stage for a delayed acknowledgement.
        .config("spark.python.unix.domain.socket.enabled", "true")
        # A batch has a few rows, so code that is generated for each task costs more than it saves.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    if settings.on_cluster:
        spark.sparkContext.addPyFile(str(packed(settings.home / "spark" / settings.space.name)))
    write_without_processes(spark)
    return spark
