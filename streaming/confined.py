"""What a process may take that works for one user: so much memory, and the processor time that answers leave.

``python -m streaming.confined <niceness> <module> ...`` runs a module that gives way from its first moment on: to load
its libraries takes a second or more of processor time. Where a program has a fork server, it starts so within a tenth.
"""

import atexit
import contextlib
import os
import re
import resource
import runpy
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from streaming.errors import LookoutError
from streaming.forkserver import ForkServer
from streaming.own_folder import own_folder

# What somebody waits for has a third of the usual weight; what tells how far it is, a tenth.
WAITED_FOR, IN_BACKGROUND = 5, 10
GROUP = Path("/proc/self/autogroup")
# Linux takes the priority of a session from ordinary users ten times a second at most, all of them together.
_TRIES, _PAUSE_S = 20, 0.15
# What most work of users needs. Readers of layers import theirs later, once they cannot reach the network any more.
PRELOADED = (
    "streaming.children",
    "streaming.replay.__main__",
    "streaming.backtest.__main__",
    "streaming.history.answers",
)
# Libraries that start threads, or reserve a gibibyte of memory, do so as they are imported.
_LIBRARIES = {"OMP_NUM_THREADS": "1", "MIMALLOC_ARENA_RESERVE": "64MiB"}
# What libraries say when they get no memory: for an array, a decompressed column, a library, or the stack of a thread.
_NO_MEMORY = re.compile(
    "out of memory|enough memory|allocat|bad_alloc|malloc|zero-fill|map segment|new thread|thread pool"
    "|temporarily unavailable",
    re.IGNORECASE,
)
_python = sys.executable


def fork_from_here(root: Path) -> None:
    """Start the modules of `command` by a fork server of this process, from now on until it ends.

    Parameters
    ----------
    root : Path
        Its socket and its program are in a folder in this one.
    """
    global _python
    held = contextlib.ExitStack()
    folder = held.enter_context(own_folder(root))
    _python = str(held.enter_context(ForkServer(folder, PRELOADED, **_LIBRARIES)).python)
    atexit.register(held.close)


def command(niceness: int, module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module which gives way; it needs the folder of the project."""
    return [_python, "-m", "streaming.confined", str(niceness), module, *arguments]


def confine(memory_bytes: int) -> None:
    """Let this process have only so much memory.

    Memory that files back does not count. A limit on addresses does not serve: Arrow and GDAL reserve more than they
    use.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """Raise MemoryError for what is raised for want of memory: libraries raise errors of many classes then."""
    try:
        yield
    except (MemoryError, LookoutError):
        raise
    except BaseException as error:  # those of polars are no Exception
        if _NO_MEMORY.search(str(error)):
            raise MemoryError from error
        raise


def give_way(niceness: int) -> None:
    """Lower the priority of this process and of what it starts, in a session of its own.

    Linux divides time among sessions first (``sched_autogroup_enabled``, sched(7)), then within each by the priority of
    its processes. Where it does not, the priority of the process is all there is.
    """
    if os.getsid(0) != os.getpid():
        os.setsid()
    os.nice(niceness)
    for _ in range(_TRIES):
        try:
            GROUP.write_text(str(niceness))
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        except OSError:
            return
        else:
            return


def main() -> None:
    """Give way, and run the module that the arguments name, with those that follow."""
    niceness, module = int(sys.argv[1]), sys.argv[2]
    give_way(niceness)
    sys.argv = sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
