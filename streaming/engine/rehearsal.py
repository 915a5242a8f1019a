"""Run the first intervals of an engine before anybody waits for them."""

import secrets
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession
from redis import Redis

from streaming.engine.pipeline import start_query, stop_query
from streaming.engine.store import Store
from streaming.logs import Log
from streaming.settings import EngineSettings

INTERVALS = 5


def rehearse(spark: SparkSession, settings: EngineSettings, client: Redis) -> None:
    """Run a few intervals of one micro-batch each in a temporary space, then remove its state and logs.

    Afterwards Java has loaded the classes that an interval needs, and compiled a part of them. Without a rehearsal, the
    first batch of an engine takes about 3 s longer, and so do changes of intervals.

    Parameters
    ----------
    spark : SparkSession
    settings : EngineSettings
        The engine's; the rehearsal uses them with another space and state folder, and with logs in Redis: they leave
        nothing behind.
    client : redis.Redis
        The Redis with the logs.
    """
    space = replace(settings.space, name=f"rehearsal-{secrets.token_hex(8)}")
    log = Log(client, space.name, settings.partitions, patient=True)
    with TemporaryDirectory(prefix="lookout-") as folder:
        other = replace(settings, space=space, state_dir=Path(folder), state_uri="", log_url="")
        query, epoch = start_query(spark, other, interval_s=0.0), Store(Path(folder), space).epoch()
        try:
            for batch in range(INTERVALS):
                log.send("tick", now_us=time.time_ns() // 1000)
                while log.newest_batch(epoch) < batch and query.isActive:
                    time.sleep(0.01)
        finally:
            stop_query(query, other)
            log.clear()
