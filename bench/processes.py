"""Memory and processor time of everything that one ``manage.py live`` started."""

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import psutil

# The program of a process, by a word in the command line of the process that leads its session.
PROGRAMS = {
    "redis-server": "redis",
    "streaming.engine": "engine",
    "streaming.gateway": "gateway",
    "uvicorn": "web",
    "worker": "worker",
    "beat": "beat",
    "live": "supervisor",
    "sessions.py": "supervisor",
}


def processes(home: Path) -> Iterator[psutil.Process]:
    """Yield every living process, at whatever depth, that was started with a state folder."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get("LOOKOUT_HOME") == str(home):
                yield process


def executors(parent: psutil.Process) -> list[psutil.Process]:
    """Return the executors of Spark among what a process has started, at whatever depth."""
    found = []
    for child in parent.children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has just ended
            if any("CoarseGrainedExecutorBackend" in word for word in child.cmdline()):
                found.append(child)
    return found


def alive(pid: int) -> bool:
    """Tell whether a process lives; one that has ended, but for which its parent has not waited yet, does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def program_of(process: psutil.Process) -> str:
    """Return the program to which a process belongs, a value of `PROGRAMS`; ``other`` for none."""
    leader = psutil.Process(os.getsid(process.pid))
    words = {Path(word).name for word in leader.cmdline()}
    return next((name for word, name in PROGRAMS.items() if word in words), "other")


def pss_mib(home: Path) -> dict[str, float]:
    """Return the proportional set size of each program, in MiB: memory that processes share counts once in the sum."""
    return _summed(home, lambda process: process.memory_full_info().pss / 2**20)


def cpu_s(home: Path) -> dict[str, float]:
    """Return the processor seconds of each program: of its living processes, and of those for which they waited."""
    return _summed(home, lambda process: sum(process.cpu_times()[:4]))


def _summed(home, figure):
    sums: dict[str, float] = defaultdict(float)
    for process in processes(home):
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            sums[program_of(process)] += figure(process)
    return dict(sums)
