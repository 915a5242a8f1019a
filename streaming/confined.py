"""What a process may take that works for one user: so much memory, and the processor time that answers leave.

``python -m streaming.confined <niceness> <module> ...`` runs a module that gives way from its first moment on: to load
its libraries takes a second or more of processor time.
"""

import os
import resource
import runpy
import sys
import time
from pathlib import Path

# What somebody waits for has a third of the usual weight; what tells how far it is, a tenth.
WAITED_FOR, IN_BACKGROUND = 5, 10
GROUP = Path("/proc/self/autogroup")
# Linux takes the priority of a session from ordinary users ten times a second at most, all of them together.
_TRIES, _PAUSE_S = 20, 0.15


def command(niceness: int, module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module which gives way; it needs the folder of the project."""
    return [sys.executable, "-m", "streaming.confined", str(niceness), module, *arguments]


def confine(memory_bytes: int) -> None:
    """Let this process have only so much memory.

    Memory that files back does not count. A limit on addresses does not serve: Arrow and GDAL reserve more than they
    use.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))


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
