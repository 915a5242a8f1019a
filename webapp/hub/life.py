"""The results of one life of Redis. A client that holds an answer of another life gets a snapshot.

After a power cut, Redis may lack the newest batches, which clients have seen: then other batches have their numbers.
The same is true after a backup was restored. So the epoch that clients are told ends with the name of the life.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import redis.asyncio

from streaming.eventlog import Entry
from streaming.keys import LIFE_KEY

EPOCH = b"epoch"


class ResultsOfLife:
    """An event log for asyncio that tells of results, in whose epochs the life of Redis is named.

    Parameters
    ----------
    event_log : AsyncRedisEventLog or AsyncKafkaEventLog
    client : redis.asyncio.Redis
        Its Redis is one that ``manage.py live`` starts, or one whose life has no name.
    """

    def __init__(self, event_log: Any, client: redis.asyncio.Redis) -> None:
        self._event_log, self._client = event_log, client
        self._suffix: bytes | None = None

    async def append_all(self, entries: Iterable[tuple[str, Any]]) -> list[str]:
        """Append entries to logs; see `EventLog`."""
        return await self._event_log.append_all(entries)

    async def poll(self, after: Mapping[str, str], limit: int, wait_s: float) -> dict[str, list[Entry]]:
        """Return the results behind positions; see `EventLog`."""
        found = await self._event_log.poll(after, limit, wait_s)
        return {log: await self._named(entries) for log, entries in found.items()}

    async def read_back(self, log: str, before: str | None = None, limit: int | None = None) -> list[Entry]:
        """Return the results before a position, the newest first; see `EventLog`."""
        return await self._named(await self._event_log.read_back(log, before, limit))

    async def _named(self, entries: list[Entry]) -> list[Entry]:
        if self._suffix is None:
            life = cast(bytes | None, await self._client.get(LIFE_KEY))
            self._suffix = b"." + life if life else b""
        for entry in entries:
            entry.fields[EPOCH] += self._suffix
        return entries
