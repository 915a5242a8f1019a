"""Connections to Redis that survive a restart of Redis, and what they read."""

from collections.abc import Sequence
from typing import cast

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

# After a restart the embedded Redis reads its files first; it answers again within a second or two.
_PAUSE_S = 0.1
_TRIES = 300
# Longer than any blocking read: a read that times out early would be tried again for ever.
_TIMEOUT_S = 30


def patient_client(url: str) -> redis.Redis:
    """Return a connection that repeats a command for about 30 s while Redis restarts.

    A command whose reply is lost may run twice. For the engine's entries this does no harm: readers drop repeated
    fragments.

    Parameters
    ----------
    url : str

    Returns
    -------
    redis.Redis
    """
    return redis.Redis.from_url(url, socket_timeout=_TIMEOUT_S, retry=Retry(ConstantBackoff(_PAUSE_S), _TRIES))


# The types of redis-py allow for clients that decode what they read. No client of Lookout does.


def read_hash(client: redis.Redis, key: str) -> dict[bytes, bytes]:
    """Return the values of a hash by field; empty if there is no such key."""
    return cast(dict[bytes, bytes], client.hgetall(key))


def read_field(client: redis.Redis, key: str, field: str) -> bytes | None:
    """Return the value of a field of a hash; None if it has no such field."""
    return cast(bytes | None, client.hget(key, field))


def read_set(client: redis.Redis, key: str) -> set[bytes]:
    """Return the members of a set; none if there is no such key."""
    return cast(set[bytes], client.smembers(key))


def read_fields(client: redis.Redis, key: str, fields: Sequence[str]) -> list[bytes | None]:
    """Return the values of some fields of a hash; None for those it does not have."""
    return cast(list[bytes | None], client.hmget(key, list(fields)))


def read_list(client: redis.Redis, key: str, most: int) -> list[bytes]:
    """Return the first values of a list, at most `most`."""
    return cast(list[bytes], client.lrange(key, 0, most - 1))
