"""A lock on a file. The kernel releases it when its holder ends, even if it is killed."""

import fcntl
from typing import IO


def try_lock(file: IO) -> bool:
    """Lock an open file, unless somebody else has locked it; return whether this process has the lock now.

    The lock ends when the file is closed here, and in all processes that have inherited it.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
