"""The gateway's part for one space: its logs, the writer of its blocks, and its clock."""

import asyncio
import contextlib

import orjson
import redis

from streaming.gateway.config import GatewayConfig
from streaming.gateway.writer import BlockWriter
from streaming.logs import Log, write_report
from streaming.spaces import Space

_TICKS_UNPROCESSED = 10
# With more unprocessed ticks, send one only at this interval.
_SLOW_TICK_US = 5_000_000
# How many of the newest control entries are searched for ticks.
_ENTRIES_SEARCHED = 64


class Intake:
    """Writes to the logs of one space, so that a slow or stopped engine holds up no other space.

    Parameters
    ----------
    space : Space
    client : redis.Redis
    config : GatewayConfig

    Attributes
    ----------
    log : Log
    writer : BlockWriter
    """

    def __init__(self, space: Space, client: redis.Redis, config: GatewayConfig) -> None:
        self.space = space
        self.log = Log(client, space.name, config.partitions, url=config.log_url)
        self.writer = BlockWriter(self.log, config)
        self._writing: asyncio.Task | None = None

    def start(self) -> None:
        """Start the task that writes blocks."""
        self._writing = asyncio.create_task(self.writer.run(), name=f"writer of {self.space.name}")

    async def stop(self) -> None:
        """Stop the task that writes blocks."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)

    def check(self) -> None:
        """Raise the error that ended the writer, if it has ended before it was stopped: only a bug ends it."""
        if self._writing is not None and self._writing.done():
            self._writing.result()

    def live(self, now_us: int) -> None:
        """Write the gateway's sign of life and how full Redis is; send a tick that advances the space's clock.

        While the engine is down, ticks are sent rarely, since they only make the log longer. They must not stop: an
        engine trims the entries that it has taken only once more have come.
        """
        report = {"at_us": now_us, "memory": round(100 * self.log.fullness.share())}
        write_report(self.log.client, self.log.names.gateway, report)
        newest = self.log.event_log.read_back(self.log.names.control, limit=_ENTRIES_SEARCHED)
        entries = (orjson.loads(entry.fields[b"entry"]) for entry in newest)
        ticks_us = [entry["now_us"] for entry in entries if entry["op"] == "tick"]
        if len(ticks_us) <= _TICKS_UNPROCESSED or now_us >= ticks_us[0] + _SLOW_TICK_US:
            with contextlib.suppress(redis.exceptions.OutOfMemoryError):  # the next one says the same
                self.log.send("tick", now_us=now_us)
