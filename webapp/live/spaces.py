"""An engine for every space that there is, while all runs."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import redis

from streaming.logs import SPACES_KEY, published_spaces
from streaming.spaces import EARTH, Space
from webapp.live.programs import Place, engine_program, standby_program
from webapp.live.supervisor import Program, Supervisor

POLL_S = 1.0

Up = Callable[[Program], Awaitable[None]]


class Engines:
    """Starts and ends the engines of the spaces that were added to the built-in one.

    Parameters
    ----------
    supervisor : Supervisor
    place : Place
    up : async function of a Program
        Starts one, and tells when it is ready.
    """

    def __init__(self, supervisor: Supervisor, place: Place, up: Up) -> None:
        self.supervisor, self.place, self.up = supervisor, place, up
        self._rising: dict[Space, asyncio.Task] = {}
        self._programs: dict[Space, tuple[Program, Program]] = {}

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
        for space in [space for space in self._rising if space not in wanted]:
            self._rising.pop(space).cancel()
            # The engine last: there must be none to take over from it.
            for program in reversed(self._programs.pop(space)):
                await self.supervisor.end(program)
        for space in sorted(wanted - set(self._rising), key=lambda space: space.name):
            self._programs[space] = engine_program(self.place, space), standby_program(space)
            rise = self._rise(*self._programs[space])
            self._rising[space] = asyncio.create_task(rise, name=f"start of {space.name}")

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
