"""Bring all programs up, tell the user, and wait for the end."""

import asyncio
import signal
from collections.abc import Callable, Sequence

from webapp.live.programs import MANAGE, PYTHON, Place, programs, redis_program, steps
from webapp.live.supervisor import Program, StepFailed, Supervisor


async def run(supervisor: Supervisor, start: Callable, say: Callable[[str], None]) -> None:
    """Run until SIGINT, SIGTERM or SIGHUP; a second one kills what takes its time to end.

    Parameters
    ----------
    supervisor : Supervisor
    start : async function of a Supervisor
        Starts the programs; may return at once or later.
    say : function of str
    """
    stop = asyncio.Event()

    def end():
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
            await starting  # raises what it failed of
            await waiting
        say("ending ...")
        starting.cancel()
        await asyncio.wait([starting])


async def start_all(supervisor: Supervisor, place: Place, embedded: bool, say: Callable[[str], None]) -> None:
    """Start Redis, then bring the database up to date, then start the rest; print the login link once pages answer."""
    if embedded:
        await _keep_until_ready(supervisor, redis_program(place), say)
    for step in steps():
        say(f"{step.name} ...")
        await supervisor.run(step)
    await _start_together(supervisor, programs(place), say, link=lambda: _login_link(supervisor, say))
    say("everything is up; Ctrl-C stops it")


async def _start_together(supervisor, kept: Sequence[Program], say, link) -> None:
    """Start programs at once; print the login link as soon as the web server answers."""
    async with asyncio.TaskGroup() as group:
        for program in kept:
            task = group.create_task(_keep_until_ready(supervisor, program, say))
            if program.name == "web":
                group.create_task(_after(task, link))


async def _after(task, then):
    await task
    await then()


async def _keep_until_ready(supervisor, program, say):
    clock = asyncio.get_running_loop().time
    started_s = clock()
    supervisor.keep(program)
    await supervisor.ready(program)
    say(f"{program.name} is ready after {clock() - started_s:.1f} s" if program.ready else f"{program.name} is started")


async def _login_link(supervisor, say):
    """Print the link with which the first user logs in."""
    command = Program("login_link", (PYTHON, MANAGE, "create_login_link"))
    log = supervisor.logs / f"{command.name}.log"
    log.unlink(missing_ok=True)  # A link is a key: it stays in no log.
    try:
        await supervisor.run(command)
        say(log.read_text().strip())
    except StepFailed as error:
        say(f"no login link: {error}")
    finally:
        log.unlink(missing_ok=True)
