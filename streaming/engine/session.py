"""Spark in this process: its settings, its Java, its Python."""

import os
from pathlib import Path

from pyspark.sql import SparkSession

from streaming.settings import EngineSettings

# The driver runs much code a few times a second: planning, not number crunching. The second compiler and the parallel
# collector take more of the cores from the workers than they give (150 ms of Java a micro-batch with them, 98 without).
_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
# Spark renames through Hadoop's local file system; the default manager would start a process for each file's rights.
_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def start_session(settings: EngineSettings, java: Path, python: Path, java_options: str = "") -> SparkSession:
    """Start Spark in this process.

    Parameters
    ----------
    settings : EngineSettings
    java : Path
        The JAVA_HOME of the Java to start.
    python : Path
        What Spark starts as its Python.
    java_options : str
        For Java, beside those that every session has; see `ClassArchive.options`.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = str(python)
    os.environ["JAVA_HOME"] = str(java)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    spark = (
        SparkSession.builder.master(settings.master)
        .appName(f"lookout {settings.space.name}")
        .config("spark.driver.memory", settings.driver_memory)
        .config("spark.driver.extraJavaOptions", f"{_JAVA_OPTIONS} {java_options}")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.hadoop.fs.permissions.umask-mode", "077")  # Hadoop has an umask of its own
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.shuffle.partitions", str(settings.shuffle_partitions))
        .config("spark.sql.streaming.checkpointFileManagerClass", _CHECKPOINTING)
        .config("spark.sql.streaming.minBatchesToRetain", "10")
        .config("spark.sql.streaming.metricsEnabled", "false")
        # Over TCP a batch waits 40 ms in each stage for a delayed acknowledgement.
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.shuffle.compress", "false")
        .config("spark.shuffle.spill.compress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark
