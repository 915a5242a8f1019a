"""Clients of the Redis server, and the errors that they raise while it is not available."""

from functools import lru_cache
from typing import Any

import redis
import redis.asyncio
from django.conf import settings
from kombu.exceptions import OperationalError

from streaming.eventlog import EventLog, open_log
from streaming.logs import Log
from streaming.redis_client import patient_client

# Temporary errors: Redis does not answer, still loads its files, or has no memory left. The last one is Celery's error
# for a Redis that does not answer.
NOT_NOW = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.ReadOnlyError,
    OperationalError,
)


def _options() -> dict[str, Any]:
    timeout_s = settings.REDIS_TIMEOUT_S
    return {"socket_connect_timeout": timeout_s, "socket_timeout": timeout_s, "health_check_interval": 30}


@lru_cache(maxsize=4)
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, **_options())


_patient = lru_cache(maxsize=4)(patient_client)


def client() -> redis.Redis:
    """Return this process's client for callers that must not wait for Redis. Threads may share it."""
    return _client(settings.REDIS_URL)


def waiting_client() -> redis.Redis:
    """Return this process's client for tasks, which wait while Redis restarts. Threads may share it."""
    return _patient(settings.REDIS_URL)


def async_client() -> redis.asyncio.Redis:
    """Return a new client for the running event loop; the caller must close it."""
    return redis.asyncio.Redis.from_url(settings.REDIS_URL, **_options())


def log(space: str) -> Log:
    """Return the logs of a space."""
    return Log(client(), space, settings.PARTITIONS, url=settings.LOG_URL)


def event_log(client: redis.Redis) -> EventLog:
    """Return the logs: in Redis, over a client, or in Kafka."""
    return open_log(client, settings.LOG_URL)
