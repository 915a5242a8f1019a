"""Process sessions: each program leads its own session, so all processes that it started can be found and ended.

Run as a script, this module is the guardian: it ends the sessions of a supervisor that died without ending them
(``kill -9``). It reads numbers from standard input, one per line: the session of each program that starts, written by
the program itself (see `guarded`), and the same number negated once the program has ended. The input ends when the
supervisor is gone, for whatever reason.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator

import psutil

GRACE_S = 8.0


def members(session: int) -> Iterator[psutil.Process]:
    """Yield the living processes of a session, also those whose parent has ended."""
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except (ProcessLookupError, PermissionError, psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def kill(session: int) -> None:
    """Kill every process of a session, also those that start meanwhile."""
    while alive := list(members(session)):
        for process in alive:
            tell(process.pid, signal.SIGKILL)
        psutil.wait_procs(alive, timeout=1)


def tell(pid: int, what: signal.Signals) -> None:
    """Send a signal to a process; ignore a process that is gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, what)


def guarded(pipe: int) -> Callable[[], None]:
    """Return what a process does before it becomes a program: tell the guardian its session, which it leads.

    The supervisor could be killed before it tells this itself. The new process holds the pipe open until it is a
    program, so the guardian hears of it before its input ends.

    Parameters
    ----------
    pipe : int
        The file descriptor of the guardian's standard input.

    Returns
    -------
    callable
        For ``preexec_fn`` of `subprocess.Popen`, beside ``start_new_session=True``.
    """

    def tell_guardian() -> None:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # A program must start also where the guardian is dead.
        with contextlib.suppress(BrokenPipeError):
            os.write(pipe, b"%d\n" % os.getpid())
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)

    return tell_guardian


def guard(lines: Iterable[str], grace_s: float = GRACE_S) -> None:
    """Read lines until their end, then end the sessions that are still open; kill the rest after `grace_s` seconds."""
    left: set[int] = set()
    for number in map(int, lines):
        left = left - {-number} if number < 0 else left | {number}
    for session in left:
        tell(session, signal.SIGTERM)
    deadline_s = time.monotonic() + grace_s
    while any(any(members(session)) for session in left) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    for session in left:
        kill(session)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # It must end after the supervisor, not before.
    guard(sys.stdin)
