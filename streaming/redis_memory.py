"""How full Redis is: producers hold back before it is full, and the engine waits while it is.

Redis refuses a write while it has more than ``maxmemory``, unless the write takes no room. It refuses a transaction as
a whole, and a script at its first write that takes room. So whoever repeats what was refused does nothing twice.
"""

import logging
from collections.abc import Callable, Mapping
from time import monotonic
from time import sleep as pause
from typing import Any, NamedTuple, TypeVar

import redis

logger = logging.getLogger(__name__)

# Up to here, recordings and live feeds may fill Redis. The rest is for what the engine writes about their elements, and
# for replies that wait to be read.
WAITING_SHARE, LIVE_SHARE = 0.5, 0.6
FRESH_S = 0.1
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5
WARN_EVERY_S = 60.0
# What Redis 6 says of a script, without naming the kind of error.
_REFUSED_IN_SCRIPT = "-OOM command not allowed"
_MB = 1_000_000
_warned_s = -WARN_EVERY_S

Result = TypeVar("Result")


class Pressure(NamedTuple):
    """What tells a producer to hold back.

    Parameters
    ----------
    backlog : float
        Blocks in the longest partition of the ingest log that the engine has not read.
    memory : float
        How full Redis is; see `share_of`.
    """

    backlog: float
    memory: float


class Fullness:
    """How full Redis is, asked once in `FRESH_S` at most.

    Parameters
    ----------
    client : redis.Redis
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client, self._asked_s, self._share = client, -FRESH_S, 0.0

    def share(self) -> float:
        """Return how full Redis is; see `share_of`."""
        if monotonic() - self._asked_s >= FRESH_S:
            self._share = share_of(self._client.info("memory"))
            self._asked_s = monotonic()
        return self._share


def share_of(memory: Mapping[str, Any]) -> float:
    """Return the part of its memory that Redis uses, given its ``INFO memory``; 1 or more if it is full.

    Without ``maxmemory``, that is a part of the memory of the machine.

    Examples
    --------
    >>> share_of({"used_memory": 70, "mem_not_counted_for_evict": 10, "maxmemory": 80})
    0.75
    >>> share_of({"used_memory": 60, "maxmemory": 0, "total_system_memory": 120})
    0.5
    """
    used, limit = _use(memory)
    return used / limit if limit else 0.0


def _use(memory: Mapping[str, Any]) -> tuple[int, int]:
    """Return the bytes that Redis compares with its limit, and the limit; 0 if it is not known."""
    # The buffer of the append-only file, for instance, is not compared.
    used = memory["used_memory"] - memory.get("mem_not_counted_for_evict", 0)
    return used, memory["maxmemory"] or memory.get("total_system_memory", 0)


def is_full(error: redis.RedisError) -> bool:
    """Return whether an error says that Redis refused a write because it is full."""
    return isinstance(error, redis.exceptions.OutOfMemoryError) or _REFUSED_IN_SCRIPT in str(error)


def when_there_is_room(client: redis.Redis, write: Callable[[], Result]) -> Result:
    """Write, and return the result; while Redis is full, wait and write again.

    Parameters
    ----------
    client : redis.Redis
    write : function
        Writes everything or nothing, or what may be written again.
    """
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return write()
        except redis.ResponseError as error:
            if not is_full(error):
                raise
        _warn(client)
        pause(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _warn(client: redis.Redis) -> None:
    """Log that Redis is full, and what to do about it; not more often than every `WARN_EVERY_S`."""
    global _warned_s
    if monotonic() - _warned_s < WARN_EVERY_S:
        return
    _warned_s = monotonic()
    used, limit = _use(client.info("memory"))
    words = (
        "Redis is full (%d of %d MB), and the engine waits for room: raise maxmemory, or remove keys of other programs"
    )
    logger.warning(words, used // _MB, limit // _MB)
