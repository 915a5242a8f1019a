"""The lease: the right to evaluate a space. One engine has it, another may stand by.

The lease is a lock on a file, so the kernel releases it when its holder ends, even if it is killed. The processes in
which Spark runs the tasks share the lock. So it is free only when no process is left that writes state. On a cluster
they do not share it. There, what is left of an earlier engine is ignored: its cuts and fragments are stamped, and its
states are in no manifest.
"""

import contextlib
import json
import time
from pathlib import Path

import psutil

from streaming.file_lock import try_lock

POLL_S = 0.05
# Two readings of the start time of one process may differ by less than this, since the clock may be set in between.
CLOCK_S = 5.0


class Lease:
    """The lease of one space; leaving the context gives it back.

    Parameters
    ----------
    path : Path
        The file to lock; created if missing. It lies outside of the state folder, whose content may be removed while
        engines run.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path, self._file = path, path.open("a")

    def __enter__(self) -> "Lease":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def fileno(self) -> int:
        """Return the file descriptor; a process that inherits it holds the lease as well."""
        return self._file.fileno()

    def take(self, timeout_s: float = 0.0) -> bool:
        """Take the lease if it becomes free within `timeout_s` seconds; return whether this process has it now."""
        deadline_s = time.monotonic() + timeout_s
        while not try_lock(self._file):
            if time.monotonic() >= deadline_s:
                return False
            time.sleep(POLL_S)
        return True

    def sign(self, java: int) -> None:
        """Record the Java process of this engine in the lease; first kill that of the previous engine if it still runs.

        Parameters
        ----------
        java : int
            The process id.
        """
        while before := signed(self._path):
            before.kill()
            time.sleep(POLL_S)
        self._file.truncate(0)
        self._file.write(json.dumps([java, psutil.Process(java).create_time()]))
        self._file.flush()


def signed(path: Path) -> psutil.Process | None:
    """Return the Java process of the engine that signed a lease last, or None if it does not run any more."""
    # A file that nobody has signed, or that a power cut has damaged, names no process.
    with contextlib.suppress(FileNotFoundError, ValueError, psutil.NoSuchProcess):
        pid, started = json.loads(path.read_bytes())
        process = psutil.Process(pid)
        # Another process may have the same id by now.
        if abs(process.create_time() - started) < CLOCK_S and process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None
