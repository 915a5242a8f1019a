"""Start all programs, inform the user, and run until the end."""

import asyncio
import signal
from collections.abc import Callable

from streaming.spaces import EARTH
from webapp.live.programs import (
    Installation,
    engine_programs,
    prepare,
    redis_program,
    standby_program,
    wait_for_redis,
    web_programs,
)
from webapp.live.spaces import Engines
from webapp.live.supervisor import Program, Supervisor


async def run(supervisor: Supervisor, start: Callable, say: Callable[[str], None]) -> None:
    """Run until SIGINT, SIGTERM or SIGHUP; a second signal kills programs that have not ended yet.

    Parameters
    ----------
    supervisor : Supervisor
    start : async function of a Supervisor
        Starts the programs; it may return at once, later, or never.
    say : function of str
        Shows the user a line.
    """
    stop = asyncio.Event()

    def end() -> None:
        if stop.is_set():
            supervisor.hurry()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, end)
    async with supervisor:
        waiting = asyncio.create_task(stop.wait())
        starting = asyncio.create_task(start(supervisor))
        await asyncio.wait([waiting, starting], return_when=asyncio.FIRST_COMPLETED)
        if not stop.is_set():
            await _unwrapped(starting)
            await waiting
        say("ending ...")
        starting.cancel()
        await asyncio.wait([starting])


async def _unwrapped(starting: asyncio.Task[None]) -> None:
    """Await the start; raise the first error itself, not in an exception group."""
    try:
        await starting
    except ExceptionGroup as failed:
        error = failed
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        raise error from None


async def start_all(supervisor: Supervisor, place: Installation, embedded: bool, say: Callable[[str], None]) -> None:
    """Start Redis, then engine and gateway and, at the same time, the web; show the login link once pages respond.

    Then keep starting and ending the engines of the other spaces, as spaces are added and removed.
    """
    if embedded:
        await _up(supervisor, redis_program(place), say)
    else:
        await supervisor.run(wait_for_redis())
    async with asyncio.TaskGroup() as group:
        for program in engine_programs(place):
            group.create_task(_up(supervisor, program, say))
        group.create_task(_start_web(supervisor, place, say))
    say("everything is up; Ctrl-C stops it")
    if place.standby:
        supervisor.keep(standby_program(EARTH))
    await Engines(supervisor, place, lambda program: _up(supervisor, program, say)).follow()


async def _start_web(supervisor: Supervisor, place: Installation, say: Callable[[str], None]) -> None:
    """Bring the database and the page's files up to date, then start the programs that use them."""
    say("database and pages ...")
    link = await _prepared(supervisor, place)
    async with asyncio.TaskGroup() as group:
        web, *_ = (group.create_task(_up(supervisor, program, say)) for program in web_programs(place))
        await web
        say(link)


async def _up(supervisor: Supervisor, program: Program, say: Callable[[str], None]) -> None:
    """Keep a program running and return once it is ready."""
    clock = asyncio.get_running_loop().time
    started_s = clock()
    supervisor.keep(program)
    await supervisor.ready(program)
    say(f"{program.name} is ready after {clock() - started_s:.1f} s" if program.ready else f"{program.name} is started")


async def _prepared(supervisor: Supervisor, place: Installation) -> str:
    """Prepare what the web programs need; return a line with the link that logs the first user in."""
    link = supervisor.logs / "login_link"
    try:
        await supervisor.run(prepare(place, link))
        return link.read_text()
    finally:
        link.unlink(missing_ok=True)  # The link is a secret, so it must not stay.
