"""A hub's link to the engine of its space: its Redis connection, the names of its logs, and the control log."""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from redis.asyncio.client import Pipeline

from streaming.eventlog import Fields, open_async_log
from streaming.keys import LogNames
from streaming.logs import control_entry
from streaming.spaces import Space
from webapp.bus.liveness import web_id
from webapp.bus.redis import async_client
from webapp.hub.life import ResultsOfLife


@dataclass(frozen=True)
class ControlEntry:
    """A command that appends an entry to the control log."""

    fields: Fields


PipelineCommand = Callable[[Pipeline], Any]
Command = PipelineCommand | ControlEntry


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
    event_log : ResultsOfLife
        The logs; those in Redis over the same connection.
    """

    def __init__(self, space: Space) -> None:
        self.id = web_id(space.name)
        self.space = space
        self.names = LogNames(space.name)

    def open(self) -> None:
        """Connect to Redis in the running event loop, under a new id: the views of the former id are retired."""
        self.id = web_id(self.space.name)
        self.redis = async_client()
        self.event_log: Any = ResultsOfLife(open_async_log(self.redis, settings.LOG_URL), self.redis)
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
        *commands : ControlEntry or function of a Pipeline
            Each function adds one command to the pipeline. Those that precede a control entry take effect before it.
        """
        self._waiting.pop(about, None)
        self._waiting[about] = commands
        self._filled.set()

    def entry(self, op: str, **entry: Any) -> Command:
        """Return the command that appends an entry to the control log (see `control_entry`)."""
        return ControlEntry(control_entry(op, **entry))

    def ask_snapshot(self, query: int) -> None:
        """Ask the engine for the whole answer of a query."""
        self.send(("snapshot", query), self.entry("snapshot", query=query))

    async def flush(self) -> None:
        """Send the waiting commands to Redis; those that it does not confirm keep waiting."""
        words = dict(self._waiting)
        before, entries, behind = _in_order(words.values())
        await self._run(before)
        if entries:
            await self.event_log.append_all([(self.names.control, entry.fields) for entry in entries])
        await self._run(behind)
        for about, commands in words.items():
            if self._waiting.get(about) is commands:
                del self._waiting[about]

    async def _run(self, commands: Sequence[PipelineCommand]) -> None:
        if commands:
            async with self.redis.pipeline(transaction=False) as pipeline:
                for command in commands:
                    command(pipeline)
                await pipeline.execute()

    async def flush_next(self) -> None:
        """Wait until there are commands to send, then send them."""
        await self._filled.wait()
        await self.flush()
        if not self._waiting:
            self._filled.clear()


def _in_order(
    words: Iterable[tuple[Command, ...]],
) -> tuple[list[PipelineCommand], list[ControlEntry], list[PipelineCommand]]:
    """Return the commands for Redis that precede a control entry, all control entries, and the other commands."""
    before: list[PipelineCommand] = []
    entries: list[ControlEntry] = []
    behind: list[PipelineCommand] = []
    for commands in words:
        own = [place for place, command in enumerate(commands) if isinstance(command, ControlEntry)]
        first, last = (own[0], own[-1]) if own else (0, -1)
        before += [command for command in commands[:first] if not isinstance(command, ControlEntry)]
        entries += [command for command in commands if isinstance(command, ControlEntry)]
        behind += [command for command in commands[last + 1 :] if not isinstance(command, ControlEntry)]
    return before, entries, behind
