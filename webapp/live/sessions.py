"""Process sessions: each program leads its own, so whatever it started can be found and ended with it.

As a script it is the guardian: it ends the sessions of a supervisor that died without ending them (``kill -9``). It
reads from standard input, a number a line, the session of each program that starts, negative once it has ended; the end
of that input comes when the supervisor is gone in whichever way.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator

import psutil

GRACE_S = 8.0


def members(session: int) -> Iterator[psutil.Process]:
    """Yield the living processes of a session, wherever in the tree of processes they are by now."""
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except (ProcessLookupError, PermissionError, psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def kill(session: int) -> None:
    """Kill every process of a session, those too that are born meanwhile."""
    while alive := list(members(session)):
        for process in alive:
            tell(process.pid, signal.SIGKILL)
        psutil.wait_procs(alive, timeout=1)


def tell(pid: int, what: signal.Signals) -> None:
    """Send a signal to a process that may be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, what)


def guard(lines: Iterable[str], grace_s: float = GRACE_S) -> None:
    """Wait for the end of the lines, then end the sessions that they left open."""
    left = set()
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
        signal.signal(number, signal.SIG_IGN)  # It ends when the supervisor does, not before.
    guard(sys.stdin)
