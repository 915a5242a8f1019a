"""Run the first micro-batches of an engine before anybody waits for them."""

import secrets
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession
from redis import Redis

from streaming.engine.pipeline import start_query
from streaming.logs import Log
from streaming.settings import EngineSettings

BATCHES = 5


def rehearse(spark: SparkSession, settings: EngineSettings, client: Redis) -> None:
    """Evaluate a few micro-batches in a temporary space, then remove its state and logs.

    Afterwards Java has loaded the classes that a micro-batch needs, and compiled a part of them. Without a rehearsal,
    the first batch of an engine takes about 3 s longer.

    Parameters
    ----------
    spark : SparkSession
    settings : EngineSettings
        The engine's; the rehearsal uses them with another space and state folder.
    client : redis.Redis
        The Redis with the logs.
    """
    space = replace(settings.space, name=f"rehearsal-{secrets.token_hex(8)}")
    log = Log(client, space.name, settings.partitions)
    with TemporaryDirectory(prefix="lookout-") as folder:
        query = start_query(spark, replace(settings, space=space, state_dir=Path(folder), state_uri=""))
        try:
            for _ in range(BATCHES):
                log.send("tick", now_us=time.time_ns() // 1000)
                query.processAllAvailable()
        finally:
            query.stop()
            log.clear()
