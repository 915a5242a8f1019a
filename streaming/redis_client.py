"""Connections to Redis that survive a restart of Redis."""

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
