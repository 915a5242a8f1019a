"""Run an engine for every space, as spaces are added and removed."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import redis

from streaming.keys import SPACES_KEY
from streaming.published import published_spaces
from streaming.spaces import EARTH, Space
from webapp.live.programs import Installation, engine_program, standby_program
from webapp.live.supervisor import Program, Supervisor

POLL_S = 1.0

Up = Callable[[Program], Awaitable[None]]


class Engines:
    """Starts and ends the engines of all spaces except the built-in one.

    Parameters
    ----------
    supervisor : Supervisor
    place : Installation
    up : async function of a Program
        Starts a program; returns once it is ready.
    """

    def __init__(self, supervisor: Supervisor, place: Installation, up: Up) -> None:
        self.supervisor, self.place, self.up = supervisor, place, up
        self._running: dict[Space, tuple[Program, Program, asyncio.Task]] = {}

    async def follow(self) -> None:
        """Keep the engines in line with the published spaces, forever."""
        while True:
            spaces = await asyncio.to_thread(_published, self.place.redis_url)
            if spaces is not None:
                await self.reconcile(spaces)
            await asyncio.sleep(POLL_S)

    async def reconcile(self, spaces: Mapping[str, Space]) -> None:
        """Start missing engines, and end those of spaces that are gone or have changed."""
        wanted = set(spaces.values()) - {EARTH}
        for space in [space for space in self._running if space not in wanted]:
            engine, standby, rising = self._running.pop(space)
            rising.cancel()
            # End the standby first, so that it does not take over.
            await self.supervisor.end(standby)
            await self.supervisor.end(engine)
        for space in sorted(wanted - set(self._running), key=lambda space: space.name):
            engine, standby = engine_program(self.place, space), standby_program(space)
            rising = asyncio.create_task(self._rise(engine, standby), name=f"start of {engine.name}")
            self._running[space] = engine, standby, rising

    async def _rise(self, engine: Program, standby: Program) -> None:
        await self.up(engine)
        if self.place.standby:
            self.supervisor.keep(standby)


def _published(url: str) -> dict[str, Space] | None:
    """Return the published spaces by name; None if Redis does not answer or has no spaces yet."""
    try:
        with redis.Redis.from_url(url, socket_timeout=2) as client:
            return published_spaces(client) if client.hexists(SPACES_KEY, EARTH.name) else None
    except redis.RedisError:  # Redis loads its data or restarts
        return None
