"""Start programs, restart those that die, and end them in order."""

import asyncio
import contextlib
import os
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from webapp.live import sessions
from webapp.live.rotation import rotate

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 30.0
# A program that lived this long was healthy, so its next death starts again with the shortest pause. Two engines that
# fail alternately, each when it takes over, live for less.
STEADY_S = 60.0
POLL_S = 0.2
ROTATION_S = 10.0


@dataclass(frozen=True)
class Program:
    """A program to keep running, or to run once.

    Parameters
    ----------
    name : str
    command : sequence of str
    ready : async function, optional
        Returns whether the program is ready. Without it, a program is ready as soon as it is started.
    stop_s : float
        Seconds between SIGTERM and SIGKILL.
    end_turn : int
        Programs end in ascending order of their turns; those with the same turn end together.
    variables : tuple of (str, str)
        Additional variables of the environment, for this program only.
    """

    name: str
    command: Sequence[str | Path]
    ready: Callable[[], Awaitable[bool]] | None = None
    stop_s: float = 4.0
    end_turn: int = 0
    variables: tuple[tuple[str, str], ...] = ()


def next_pause_s(pause_s: float, lived_s: float) -> float:
    """Return the pause in seconds before the next start: doubled after each early death, up to `LONGEST_PAUSE_S`.

    Examples
    --------
    >>> next_pause_s(0.5, lived_s=1), next_pause_s(30, lived_s=1), next_pause_s(30, lived_s=60)
    (1.0, 30.0, 0.1)
    """
    return FIRST_PAUSE_S if lived_s >= STEADY_S else min(2.0 * pause_s, LONGEST_PAUSE_S)


class StepFailed(Exception):
    """A program that had to run once failed."""


@dataclass
class Supervisor:
    """Keeps programs running. It is an asynchronous context manager that ends them, turn by turn.

    Parameters
    ----------
    logs : Path
        Folder of the log files, one per program.
    environment : mapping of str to str
        Environment of the programs.
    say : function of str
        Shows the user a line.
    folder : Path
        Working directory of the programs.
    lock : int, optional
        File descriptor of a lock to hold until every program has ended, even if this process is killed.
    """

    logs: Path
    environment: Mapping[str, str]
    say: Callable[[str], None]
    folder: Path
    lock: int | None = None
    _tasks: dict[Program, asyncio.Task] = field(default_factory=dict)

    async def __aenter__(self) -> "Supervisor":
        self.logs.mkdir(parents=True, exist_ok=True)
        self._guardian = subprocess.Popen(
            [sys.executable, "-P", sessions.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[] if self.lock is None else [self.lock],
        )
        self._rotation = asyncio.create_task(self._rotate())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._rotation.cancel()
        for turn in sorted({program.end_turn for program in self._tasks}):
            ending = {task: program.name for program, task in self._tasks.items() if program.end_turn == turn}
            for task in ending:
                task.cancel()
            await asyncio.wait(ending)
            self.say(f"{', '.join(ending.values())} ended")
        assert self._guardian.stdin is not None  # it is a pipe
        with contextlib.suppress(BrokenPipeError):
            self._guardian.stdin.close()
        await asyncio.to_thread(self._guardian.wait)

    async def run(self, program: Program) -> None:
        """Run a program once.

        Raises
        ------
        StepFailed
            When it fails; the message ends with the last lines of its log.
        """
        process = await self._start(program)
        try:
            code = await process.wait()
        finally:
            await self._end(process, program.stop_s)
        if code:
            last = "\n".join(self._log(program).read_text(errors="replace").splitlines()[-15:])
            raise StepFailed(f"{program.name} failed ({_reason(code)}); the end of {self._log(program)}:\n{last}")

    def keep(self, program: Program) -> None:
        """Start a program, and restart it each time it ends."""
        self._tasks[program] = asyncio.create_task(self._keep(program), name=program.name)

    async def end(self, program: Program) -> None:
        """End a program that is kept running, if it is one."""
        if program not in self._tasks:
            return
        task = self._tasks[program]
        task.cancel()
        await asyncio.wait([task])
        del self._tasks[program]
        self.say(f"{program.name} ended")

    async def ready(self, program: Program) -> None:
        """Wait until a program is ready."""
        while program.ready and not await program.ready():
            await asyncio.sleep(POLL_S)

    def hurry(self) -> None:
        """Kill the programs that are being ended instead of waiting for them."""
        for task in self._tasks.values():
            task.cancel()

    async def _keep(self, program: Program) -> None:
        clock = asyncio.get_running_loop().time
        pause_s = FIRST_PAUSE_S / 2
        while True:
            started_s = clock()
            try:
                process = await self._start(program)
            except OSError as error:
                reason = str(error)
            else:
                try:
                    reason = _reason(await process.wait())
                finally:
                    await self._end(process, program.stop_s)
            pause_s = next_pause_s(pause_s, clock() - started_s)
            self.say(f"{program.name} stopped unexpectedly ({reason}); it starts again in {pause_s:g} s; see its log")
            await asyncio.sleep(pause_s)

    async def _start(self, program: Program) -> Process:
        with self._log(program).open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *map(str, program.command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**self.environment, **dict(program.variables)},
                start_new_session=True,
                preexec_fn=sessions.guarded(self._pipe),
            )

    async def _end(self, process: Process, stop_s: float) -> None:
        """End a program and all processes that it started; kill them at once if cancelled while waiting."""
        try:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), stop_s)
        finally:
            await asyncio.to_thread(sessions.kill, process.pid)
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipe, b"%d\n" % -process.pid)

    @property
    def _pipe(self) -> int:
        assert self._guardian.stdin is not None  # it is a pipe
        return self._guardian.stdin.fileno()

    def _log(self, program: Program) -> Path:
        return self.logs / f"{program.name}.log"

    async def _rotate(self) -> None:
        while True:
            for log in self.logs.glob("*.log"):
                await asyncio.to_thread(rotate, log)
            await asyncio.sleep(ROTATION_S)


def _reason(code: int) -> str:
    """Return an exit code of asyncio in words."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"
