"""What an engine reports of its regions: their loads, and the changes of the region map."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import redis

from streaming.keys import PARTITIONERS_KEY, LogNames
from streaming.operators.region_map import RegionMap
from streaming.redis_client import read_fields, read_list

KEPT = 200
# A full Redis refuses a script only if its first write takes room.
_KEEP = """
redis.call('LREM', KEYS[1], 1, '')
redis.call('LPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], 0, ARGV[2])
"""


@dataclass(frozen=True)
class Load:
    """What a region has done since its task began, and how many objects it has.

    Parameters
    ----------
    elements : int
        Elements that came.
    cpu_s : float
        Processor time, in seconds.
    objects : int
    elements_per_s : float
        Elements that came lately, per second.
    cores : float
        Processor time that it took lately, in seconds per second.
    at_us : int
        When this was reported, in microseconds since 1970 UTC. An engine without elements does not report.
    """

    elements: int
    cpu_s: float
    objects: int
    elements_per_s: float = 0.0
    cores: float = 0.0
    at_us: int = 0


def loads_of(told: Mapping[str, Sequence[float]], known: RegionMap) -> list[Load] | None:
    """Return the loads of a map's regions from what `Log.regions` returns, None while some are of another map."""
    loads = []
    for region in range(known.regions):
        number, *load = told.get(f"load:{region}", (-1, 0, 0.0, 0))
        if number != known.number:
            return None
        loads.append(Load(*load))  # type: ignore[arg-type]
    return loads


def changes_of(entries: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return kept changes: ``at_us``, when each was noticed, and ``map``, the document of the map."""
    return [orjson.loads(entry) for entry in entries]


class RegionChanges:
    """The newest changes of the region map of a space.

    Parameters
    ----------
    client : redis.Redis
        With ``decode_responses=False``.
    space : str
        The name of the space.
    """

    def __init__(self, client: redis.Redis, space: str) -> None:
        self._client, self._space, self._name = client, space, LogNames(space).region_changes

    def keep(self, known: RegionMap) -> None:
        """Keep a map that is in force now, unless the newest kept one is the same."""
        document = known.document()
        newest = self.newest(1)
        if newest and newest[0]["map"] == document:
            return
        entry = orjson.dumps({"at_us": time.time_ns() // 1000, "map": document})
        self._client.eval(_KEEP, 1, self._name, entry, KEPT - 1)

    def newest(self, most: int = KEPT) -> list[dict[str, Any]]:
        """Return the newest changes, the newest one first; see `changes_of`."""
        return changes_of(read_list(self._client, self._name, most))

    def partitioner(self) -> str:
        """Return the name of what is to cut the regions of the space, empty if the engine's setting decides."""
        (name,) = read_fields(self._client, PARTITIONERS_KEY, [self._space])
        return (name or b"").decode()
