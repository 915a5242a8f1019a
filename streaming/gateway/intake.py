"""What the gateway has of one space: its logs, the writer of its blocks, and its clock."""

import asyncio

import orjson
import redis

from streaming.gateway.config import GatewayConfig
from streaming.gateway.writer import BlockWriter
from streaming.logs import Log
from streaming.spaces import Space

_TICKS_UNPROCESSED = 10
# Beyond so many, a tick only so often.
_SLOW_TICK_US = 5_000_000
# The newest control entries that are searched for ticks.
_ENTRIES_SEARCHED = 64


class Intake:
    """Writes to the logs of one space: an engine that is slow, or away, holds up no other space.

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
        self.log = Log(client, space.name, config.partitions)
        self.writer = BlockWriter(self.log, config)
        self._writing: asyncio.Task | None = None

    def start(self) -> None:
        """Begin to write blocks."""
        self._writing = asyncio.create_task(self.writer.run(), name=f"writer of {self.space.name}")

    async def stop(self) -> None:
        """Write no more."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)

    def check(self) -> None:
        """Raise what ended the writer, if it has ended: an error of ours."""
        if self._writing is not None and self._writing.done():
            self._writing.result()

    def live(self, now_us: int) -> None:
        """Give a sign of life, and advance the space's clock.

        The clock goes slowly if the engine is down: more ticks would only make the log longer. Not to tick at all would
        be too little: what an engine has taken it trims from the log once more has come.
        """
        newest = self.log.client.xrevrange(self.log.names.control, count=_ENTRIES_SEARCHED)
        entries = (orjson.loads(fields[b"entry"]) for _, fields in newest)
        ticks_us = [entry["now_us"] for entry in entries if entry["op"] == "tick"]
        if len(ticks_us) <= _TICKS_UNPROCESSED or now_us >= ticks_us[0] + _SLOW_TICK_US:
            self.log.send("tick", now_us=now_us)
        self.log.client.hset(self.log.names.gateway, "at_us", now_us)
