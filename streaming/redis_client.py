"""Connections to Redis that outlive its restart."""

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

# The embedded Redis is back within a second or two; it reads its files first.
_PAUSE_S = 0.1
_TRIES = 300
# Longer than any blocking read: one that is given up in the midst would be tried again, for ever.
_TIMEOUT_S = 30


def patient_client(url: str) -> redis.Redis:
    """Return a connection that tries a command again, for about 30 s, while Redis restarts.

    A command whose reply was lost may run twice. The engine's entries bear it: readers drop repeated fragments.

    Parameters
    ----------
    url : str

    Returns
    -------
    redis.Redis
    """
    return redis.Redis.from_url(url, socket_timeout=_TIMEOUT_S, retry=Retry(ConstantBackoff(_PAUSE_S), _TRIES))
