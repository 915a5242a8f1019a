"""What all connections are told now and then: how the engine and the streams are."""

import time
from typing import TYPE_CHECKING

import orjson

from streaming.logs import HEALTH_KEY

if TYPE_CHECKING:
    from webapp.hub.hub import Hub

STREAMS_EVERY = 3
# An engine whose report is older than this is taken for dead.
SILENT_AFTER_US = 5_000_000
HEALTH_SHOWN = ("state", "error", "elements", "malformed", "merged", "last_us", "elements_per_s")


class Reports:
    """Reads the reports of engine and gateway from Redis, and tells them to the connections."""

    def __init__(self, hub: "Hub") -> None:
        self.hub = hub
        self._told = 0

    async def publish(self) -> None:
        """Tell the engine's status, and every third time the streams'."""
        engine = await self.hub.redis.hgetall(self.hub.names.engine)
        self._tell("engine.status", engine_status(engine, time.time_ns() // 1000))
        if self._told % STREAMS_EVERY == 0:
            self._tell("stream.status", stream_status(await self.hub.redis.hgetall(HEALTH_KEY)))
        self._told += 1

    def _tell(self, kind, message):
        self.hub.broadcast(kind, orjson.dumps({"type": kind, **message}).decode())


def engine_status(report: dict[bytes, bytes], now_us: int) -> dict:
    """Return what clients are told of the engine, given its own report."""

    def number(name):
        return float(report.get(name, b"nan"))

    silent_us = now_us - number(b"heartbeat_us")
    return {
        "batch": int(report[b"batch"]) if b"batch" in report else None,
        "lag_ms": _known(number(b"lag_ms")),
        "alive": silent_us < SILENT_AFTER_US,
        "elements_per_s": _known(number(b"elements_per_s")),
    }


def stream_status(health: dict[bytes, bytes]) -> dict:
    """Return what clients are told of the streams, given the gateway's counters."""
    streams = {name.decode(): orjson.loads(counters) for name, counters in health.items()}
    return {"streams": {name: {k: c[k] for k in HEALTH_SHOWN if k in c} for name, c in streams.items()}}


def _known(number):
    return number if number == number else None
