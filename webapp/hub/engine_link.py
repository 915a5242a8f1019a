"""A hub's link to the engine of its space: its Redis connection, the names of its logs, and the control log."""

import asyncio
from collections.abc import Callable, Hashable
from typing import Any

from redis.asyncio.client import Pipeline

from streaming.eventlog import AsyncRedisEventLog, queue_append
from streaming.logs import LogNames, control_entry
from streaming.spaces import Space
from webapp.liveness import web_id
from webapp.redis import async_client

Command = Callable[[Pipeline], Any]


class EngineLink:
    """Sends commands to Redis. Commands wait while Redis does not answer; their senders do not.

    It can be used between `open` and `close`.

    Parameters
    ----------
    space : Space

    Attributes
    ----------
    id : str
        Unique name of the hub; each `open` makes a new one.
    names : LogNames
        Keys of the space's logs.
    redis : redis.asyncio.Redis
        The connection, while the link is open.
    event_log : AsyncRedisEventLog
        The logs, over the same connection.
    """

    def __init__(self, space: Space) -> None:
        self.id = web_id(space.name)
        self.space = space
        self.names = LogNames(space.name)

    def open(self) -> None:
        """Connect to Redis in the running event loop, under a new id: the views of the former id are retired."""
        self.id = web_id(self.space.name)
        self.redis = async_client()
        self.event_log = AsyncRedisEventLog(self.redis)
        self._waiting: dict[Hashable, tuple[Command, ...]] = {}
        self._filled = asyncio.Event()

    async def close(self) -> None:
        """Close the connection."""
        await self.redis.aclose()

    def send(self, about: Hashable, *commands: Command) -> None:
        """Queue commands behind the waiting ones; they replace waiting commands with the same `about`.

        Commands are sent again if the reply to them was lost. That is safe: the engine accepts repeated entries of the
        control log.

        Parameters
        ----------
        about : hashable
            What the commands are about, such as ``("snapshot", query)``.
        *commands : function of a Pipeline
            Each adds one command to the pipeline.
        """
        self._waiting.pop(about, None)
        self._waiting[about] = commands
        self._filled.set()

    def entry(self, op: str, **entry: Any) -> Command:
        """Return the command that appends an entry to the control log (see `control_entry`)."""
        return lambda pipeline: queue_append(pipeline, self.names.control, control_entry(op, **entry))

    def ask_snapshot(self, query: int) -> None:
        """Ask the engine for the whole answer of a query."""
        self.send(("snapshot", query), self.entry("snapshot", query=query))

    async def flush(self) -> None:
        """Send the waiting commands to Redis; those that it does not confirm keep waiting."""
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
        """Wait until there are commands to send, then send them."""
        await self._filled.wait()
        await self.flush()
        if not self._waiting:
            self._filled.clear()
