"""A hub's link to the engine of its space: its names, its connection to Redis, and the control log."""

import asyncio
from collections.abc import Callable, Hashable
from typing import Any

from redis.asyncio.client import Pipeline

from streaming.logs import LogNames, control_entry
from streaming.spaces import Space
from webapp.liveness import web_id
from webapp.redis import async_client

Command = Callable[[Pipeline], Any]


class EngineLink:
    """Open between `open` and `close`. What it is given to send waits for Redis; nobody else does.

    Parameters
    ----------
    space : Space

    Attributes
    ----------
    id : str
        Of the hub: a name that no other has.
    names : LogNames
    redis : redis.asyncio.Redis
        While it is open.
    """

    def __init__(self, space: Space) -> None:
        self.id = web_id(space.name)
        self.space = space
        self.names = LogNames(space.name)

    def open(self) -> None:
        """Connect to Redis, in the running event loop, under a new name: what the last one left is retired."""
        self.id = web_id(self.space.name)
        self.redis = async_client()
        self._waiting: dict[Hashable, tuple[Command, ...]] = {}
        self._filled = asyncio.Event()

    async def close(self) -> None:
        """End the connection."""
        await self.redis.aclose()

    def send(self, about: Hashable, *commands: Command) -> None:
        """Send commands after those sent before, in place of those about the same that still wait.

        They may be sent again where the reply to them was lost; entries of the control log bear that.
        """
        self._waiting.pop(about, None)
        self._waiting[about] = commands
        self._filled.set()

    def entry(self, op: str, **entry: Any) -> Command:
        """Return the command that appends an entry to the control log (see `control_entry`)."""
        return lambda pipeline: pipeline.xadd(self.names.control, control_entry(op, **entry))

    def ask_snapshot(self, query: int) -> None:
        """Ask the engine for the whole answer of a query."""
        self.send(("snapshot", query), self.entry("snapshot", query=query))

    async def flush(self) -> None:
        """Have Redis carry out what waits; what it did not confirm goes on waiting."""
        words = dict(self._waiting)
        if words:
            async with self.redis.pipeline(transaction=False) as pipeline:
                for command in (command for commands in words.values() for command in commands):
                    command(pipeline)
                await pipeline.execute()
        for about, commands in words.items():
            if self._waiting.get(about) is commands:
                del self._waiting[about]

    async def flush_next(self) -> None:
        """Wait for something to send, and send it."""
        await self._filled.wait()
        await self.flush()
        if not self._waiting:
            self._filled.clear()
