"""An engine for every space that there is, while all runs."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import redis

from streaming.logs import SPACES_KEY, published_spaces
from streaming.spaces import EARTH, Space
from webapp.live.programs import Installation, engine_program, standby_program
from webapp.live.supervisor import Program, Supervisor

POLL_S = 1.0

Up = Callable[[Program], Awaitable[None]]


class Engines:
    """Starts and ends the engines of the spaces that were added to the built-in one.

    Parameters
    ----------
    supervisor : Supervisor
    place : Installation
    up : async function of a Program
        Starts one, and tells when it is ready.
    """

    def __init__(self, supervisor: Supervisor, place: Installation, up: Up) -> None:
        self.supervisor, self.place, self.up = supervisor, place, up
        self._running: dict[Space, tuple[Program, Program, asyncio.Task]] = {}

    async def follow(self) -> None:
        """Make the engines those of the published spaces, for ever."""
        while True:
            spaces = await asyncio.to_thread(_published, self.place.redis_url)
            if spaces is not None:
                await self.reconcile(spaces)
            await asyncio.sleep(POLL_S)

    async def reconcile(self, spaces: Mapping[str, Space]) -> None:
        """Start the engines that are missing, and end those of spaces that are gone or no longer what they were."""
        wanted = set(spaces.values()) - {EARTH}
        for space in [space for space in self._running if space not in wanted]:
            engine, standby, rising = self._running.pop(space)
            rising.cancel()
            # The engine last: there must be none to take over from it.
            await self.supervisor.end(standby)
            await self.supervisor.end(engine)
        for space in sorted(wanted - set(self._running), key=lambda space: space.name):
            engine, standby = engine_program(self.place, space), standby_program(space)
            rising = asyncio.create_task(self._rise(engine, standby), name=f"start of {engine.name}")
            self._running[space] = engine, standby, rising

    async def _rise(self, engine, standby):
        await self.up(engine)
        if self.place.standby:
            self.supervisor.keep(standby)


def _published(url):
    """Return the published spaces by name; None where Redis does not answer, or has not been told of any."""
    try:
        with redis.Redis.from_url(url, socket_timeout=2) as client:
            return published_spaces(client) if client.hexists(SPACES_KEY, EARTH.name) else None
    except redis.RedisError:  # loading, or starting again
        return None
