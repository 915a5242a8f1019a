"""Clients of the one Redis server."""

from functools import lru_cache

import redis
import redis.asyncio
from django.conf import settings

from streaming.logs import Log


def _options():
    return {"socket_connect_timeout": 5, "socket_timeout": settings.REDIS_TIMEOUT_S, "health_check_interval": 30}


@lru_cache(maxsize=4)
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, **_options())


def client() -> redis.Redis:
    """Return this process's client; it is safe to share among threads."""
    return _client(settings.REDIS_URL)


def async_client() -> redis.asyncio.Redis:
    """Return a new client for the running event loop; whoever asks for it closes it."""
    return redis.asyncio.Redis.from_url(settings.REDIS_URL, **_options())


def log(space: str) -> Log:
    """Return the logs of a space."""
    return Log(client(), space, settings.PARTITIONS)
