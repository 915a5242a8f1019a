"""Evaluate the continuous queries of one space, from the first batch to the last."""

import contextlib
import functools
import logging
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

import redis
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from redis.backoff import NoBackoff
from redis.retry import Retry

from streaming.engine.claim import claim
from streaming.engine.class_archive import ClassArchive
from streaming.engine.driving import JoinWatch
from streaming.engine.lease import Lease
from streaming.engine.pipeline import NoCores, start_query, stop_query, task_count, warm_up
from streaming.engine.rehearsal import rehearse
from streaming.engine.report import forget, report, report_standby, report_state
from streaming.engine.resume import resume, state_files_of
from streaming.engine.scaling import RegionWatch
from streaming.engine.slots import end_processes
from streaming.engine.store import Store
from streaming.engine.watchdog import Endless, StepWatch, settle
from streaming.logs import Log
from streaming.redis_client import patient_client
from streaming.settings import EngineSettings
from streaming.state.errors import LostState, OtherSettings

logger = logging.getLogger("lookout.engine")

Watch = RegionWatch | JoinWatch | StepWatch
REPORT_EVERY_S = 1.0
# By then Java has loaded the classes that it needs, and the user who started Lookout has something to see.
ARCHIVE_AFTER_S = 60.0


def run(spark: SparkSession, settings: EngineSettings, archive: ClassArchive, lease: Lease) -> int:
    """Stand by until the lease is free, then evaluate until a signal stops the engine; return the exit code.

    Parameters
    ----------
    spark : SparkSession
    settings : EngineSettings
    archive : ClassArchive
        The archive for the Java on which Spark runs; if it is missing, it is made while the engine evaluates.
    lease : Lease
        The lease of the space.

    Returns
    -------
    int
        0 after a signal or the end of the query, 1 if Java is gone, the state cannot be used, or a batch does not end.
    """
    client = _redis(settings.redis_url)
    log = Log(client, settings.space.name, settings.partitions, url=settings.log_url)
    # py4j logs every connection that ends, with a traceback.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    gateway: Any = spark.sparkContext._gateway
    java: subprocess.Popen = gateway.proc
    try:
        if not lease.take():
            if settings.on_cluster:  # its machines may share no folder for a rehearsal
                warm_up(spark)
            else:
                rehearse(spark, settings, log.client)
            _stand_by(settings, java, lease)
        lease.sign(java.pid)
        return _evaluate(spark, settings, log, archive)
    except Endless as error:
        logger.error("%s; the next engine finds out why", error)
        java.kill()  # first, so that Spark starts no other processes in place of these
        end_processes(settings.state_dir)
        return 1
    except (Py4JNetworkError, ConnectionRefusedError):
        logger.error("the Java machine has gone")
        return 1


def _stand_by(settings: EngineSettings, java: subprocess.Popen, lease: Lease) -> None:
    """Wait for the lease; raise `Py4JNetworkError` if Java ends meanwhile."""
    # A report must not wait for Redis, since the lease may become free at any time.
    client = redis.Redis.from_url(settings.redis_url, socket_timeout=REPORT_EVERY_S, retry=Retry(NoBackoff(), 0))
    log = Log(client, settings.space.name, settings.partitions, url=settings.log_url)
    logger.info("standing by")
    while not lease.take(REPORT_EVERY_S):
        if java.poll() is not None:
            raise Py4JNetworkError
        with contextlib.suppress(redis.RedisError):
            report_standby(log)
    logger.info("the other engine has gone: this one evaluates")


def _evaluate(spark: SparkSession, settings: EngineSettings, log: Log, archive: ClassArchive) -> int:
    space = settings.space
    forget(log)
    files = state_files_of(settings.state_dir, settings.state_uri, space.name)
    try:
        if reason := claim(settings.state_dir, space, log, files):
            logger.warning("the former state of space %s is removed: %s", space.name, reason)
        resumed = resume(settings, log)
        settle(settings, files, log, resumed.point.batch)
        tasks = task_count(spark, settings)
    except (LostState, OtherSettings, NoCores) as error:
        logger.error("state: %s", error)
        report_state(log, refused=str(error))
        return 1
    report_state(log, broken="; ".join(resumed.problems))
    epoch = Store(settings.state_dir, space, files=files).epoch()
    steps = StepWatch(settings.state_dir, files, epoch, settings.step_s)
    warm_up(spark)
    query = start_query(spark, settings, resumed.point, tasks=tasks)
    # Until here, a signal ends the process at once, since no batch has to be finished.
    stopping: list[bool] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.append(True))
    logger.info("space %s: %d partitions, %d regions", space.name, settings.partitions, settings.regions)
    tell = functools.partial(report, log, epoch)
    watches: list[Watch] = [steps, RegionWatch(settings, log, tasks), JoinWatch(log)]
    _follow(spark, query, settings, tell, watches, archive, stopping)
    return 0


def _follow(
    spark: SparkSession,
    query: StreamingQuery,
    settings: EngineSettings,
    tell: Callable[[], None],
    watches: Sequence[Watch],
    archive: ClassArchive,
    stopping: list[bool],
) -> None:
    """Report once a second, and let the watches look, until the query ends or a signal arrives, then stop the query."""
    jvm: Any = spark.sparkContext._jvm
    quiet_s = time.monotonic() + ARCHIVE_AFTER_S
    while query.isActive and not stopping:
        tell()
        for watch in watches:
            watch.look(time.monotonic())
        if time.monotonic() > quiet_s:
            archive.make(lambda: jvm.java.lang.System.getProperty("java.class.path"))
        # This returns at once when the query ends.
        query.awaitTermination(REPORT_EVERY_S)  # type: ignore[arg-type]  # it takes fractions of a second, too
    if query.isActive:
        stop_query(query, settings)


def _redis(url: str) -> redis.Redis:
    """Return a connection to Redis as soon as Redis answers."""
    client = patient_client(url)
    while True:
        try:
            client.ping()
            return client
        except (redis.ConnectionError, redis.TimeoutError):
            time.sleep(0.2)
