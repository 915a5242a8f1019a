"""The regular status reports to all connections: state of the engines and of the streams."""

import time
from collections.abc import Callable
from typing import Any, cast

import orjson

from streaming.keys import HEALTH_KEY
from streaming.operators.region_map import RegionMap
from streaming.spaces import EARTH
from webapp.hub.assembly import Batch
from webapp.hub.engine_link import EngineLink

STREAMS_EVERY = 2
# An engine whose newest report is older than this counts as dead.
SILENT_AFTER_US = 5_000_000
# Status of an engine while Redis does not answer, so that its state is unknown.
UNKNOWN = {"batch": None, "backlog": None, "alive": None}
HEALTH_SHOWN = ("state", "error", "elements", "malformed", "merged", "stale", "last_us", "elements_per_s")


class Reports:
    """Reads the status that engine and gateway keep in Redis, and sends it to the connections.

    Parameters
    ----------
    link : EngineLink
    report, broadcast : function of a slot and a text
        Send a text to every connection. A newer text replaces an unsent one of the same slot. `report` may wait for
        another message.
    rescale : function of a RegionMap
        Called when another region map is in force.
    drive : function of a list
        Called with the rows that the engine reports of joins over event time (`logs.regions_of`) when they change.

    Attributes
    ----------
    lag_ms : int or None
        Age in milliseconds of the newest element of the newest batch with elements, when that batch arrived.
    newest_us : int or None
        When the newest element of all batches was received, in microseconds since 1970 UTC.
    elements : int
        Number of elements that the engine read since the last report.
    """

    def __init__(
        self,
        link: EngineLink,
        report: Callable[[str, str], None],
        broadcast: Callable[[str, str], None],
        rescale: Callable[[RegionMap], None],
        drive: Callable[[list[list[Any]]], None],
    ) -> None:
        self.link, self.report, self.broadcast, self.rescale = link, report, broadcast, rescale
        self._drive, self._map, self._joins = drive, b"", b""
        self._alive: bool | None = None
        self.lag_ms: int | None = None
        self.newest_us: int | None = None
        self.elements = 0
        self._told = 0
        self._since_us = time.time_ns() // 1000

    def observe(self, batch: Batch) -> None:
        """Count the elements of a batch and measure its lag."""
        self.elements += batch.elements
        if batch.newest_us:
            self.lag_ms = round((time.time_ns() // 1000 - batch.newest_us) / 1000)
            self.newest_us = max(self.newest_us or 0, batch.newest_us)

    async def publish(self) -> None:
        """Broadcast the engine's status. The hub of earth also broadcasts that of all streams, every other time."""
        now_us = time.time_ns() // 1000
        seconds, self._since_us = (now_us - self._since_us) / 1e6, now_us
        elements, self.elements = self.elements, 0
        rate = round(elements / seconds, 1) if seconds else 0.0
        space = self.link.space.name
        status: dict[str, Any] = {"space": space, **UNKNOWN}
        try:
            report = await self._hash(self.link.names.engine)
            status |= engine_status(report, now_us)
            if (document := report.get(b"map", b"")) and document != self._map:
                self._map = document
                self.rescale(RegionMap.of(self.link.space, orjson.loads(document)))
            if (rows := report.get(b"joins", b"")) and rows != self._joins:
                self._joins = rows
                self._drive(orjson.loads(rows))
        finally:  # always report: a client that hears nothing for some seconds assumes that the connection is lost
            status |= {"lag_ms": self.lag_ms, "newest_us": self.newest_us, "elements_per_s": rate}
            self._tell(f"engine.status {space}", "engine.status", status, at_once=status["alive"] != self._alive)
            self._alive = status["alive"]
        if space == EARTH.name and self._told % STREAMS_EVERY == 0:
            self._tell("stream.status", "stream.status", stream_status(await self._hash(HEALTH_KEY)))
        self._told += 1

    async def _hash(self, key: str) -> dict[bytes, bytes]:
        return cast("dict[bytes, bytes]", await self.link.redis.hgetall(key))

    def _tell(self, slot: str, kind: str, message: dict[str, Any], at_once: bool = False) -> None:
        tell = self.broadcast if at_once else self.report
        tell(slot, orjson.dumps({"type": kind, **message}).decode())


def engine_status(report: dict[bytes, bytes], now_us: int) -> dict:
    """Return the engine's status for clients, given the report that the engine keeps in Redis.

    Examples
    --------
    >>> engine_status({b"at_us": b"1000000", b"batch": b"7", b"backlog": b"2"}, now_us=2_000_000)
    {'batch': 7, 'backlog': 2, 'alive': True}
    """
    batch, backlog = report.get(b"batch"), report.get(b"backlog")
    return {
        "batch": None if batch is None else int(batch),
        "backlog": None if backlog is None else int(backlog),
        "alive": lives(report, b"at_us", now_us),
    }


def lives(report: dict[bytes, bytes], name: bytes, now_us: int) -> bool:
    """Return whether a time field of a report, in microseconds since 1970 UTC, is younger than `SILENT_AFTER_US`."""
    return now_us - int(report.get(name, 0)) < SILENT_AFTER_US


def stream_status(health: dict[bytes, bytes]) -> dict:
    """Return the streams' status for clients, given the gateway's counters by stream name."""
    streams = {name.decode(): orjson.loads(counters) for name, counters in health.items()}
    return {"streams": {name: {k: c[k] for k in HEALTH_SHOWN if k in c} for name, c in streams.items()}}
