"""The right to evaluate a space: one engine has it, another may stand by.

The lease is a lock on a file, so the kernel takes it back when its holder dies, in whichever way. The processes in
which Spark runs the tasks share the lock: it is free once nobody is left who writes state.
"""

import contextlib
import fcntl
import json
import time
from pathlib import Path

import psutil

POLL_S = 0.05
# The time at which a process began is known by a clock that may be set meanwhile.
CLOCK_S = 5.0


class Lease:
    """The lease of one space; a context that gives it back.

    Parameters
    ----------
    path : Path
        Made if it is not there. It lies outside of the state, which may be removed while engines run.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path, self._file = path, path.open("a")

    def __enter__(self) -> "Lease":
        return self

    def __exit__(self, *_) -> None:
        self._file.close()

    def fileno(self) -> int:
        """Return the file descriptor; whoever inherits it holds the lease as well."""
        return self._file.fileno()

    def take(self, timeout_s: float = 0.0) -> bool:
        """Take the lease, if it becomes free in time; return whether this process has it now."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if time.monotonic() >= deadline_s:
                    return False
            time.sleep(POLL_S)

    def sign(self, java: int) -> None:
        """Write down the Java of this engine, and kill the one of the engine before, should it have outlived that.

        Parameters
        ----------
        java : int
            The number of the process.
        """
        while before := signed(self._path):
            before.kill()
            time.sleep(POLL_S)
        self._file.truncate(0)
        self._file.write(json.dumps([java, psutil.Process(java).create_time()]))
        self._file.flush()


def signed(path: Path) -> psutil.Process | None:
    """Return the living Java of the engine that signed a lease last."""
    # A file that nobody has signed, or of which a power cut left something else, names no process.
    with contextlib.suppress(FileNotFoundError, ValueError, psutil.NoSuchProcess):
        pid, started = json.loads(path.read_bytes())
        process = psutil.Process(pid)
        # Its number may be another one's by now.
        if abs(process.create_time() - started) < CLOCK_S and process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None
