"""The hashing of passwords: slow on purpose, so it is done beside everything else, one at a time."""

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor

from django.contrib.auth.hashers import PBKDF2PasswordHasher

# More than these at once are a flood: whoever comes then is told so, instead of waiting for minutes.
MOST_WAITING = 32
NICENESS = 5


class TooManyAtOnce(Exception):
    """More passwords wait to be hashed than are hashed in good time."""


def _yield_to_others():
    """Give way to the threads that serve connections, where the system has priorities of threads."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


_hashing = ThreadPoolExecutor(1, "passwords", _yield_to_others)
_waiting = threading.BoundedSemaphore(MOST_WAITING)


class PatientHasher(PBKDF2PasswordHasher):
    """Django's hasher, whose work one thread of low priority does."""

    def encode(self, password, salt, iterations=None):
        """Return the hash, as Django's hasher does.

        Raises
        ------
        TooManyAtOnce
            When `MOST_WAITING` passwords wait already.
        """
        if not _waiting.acquire(blocking=False):
            raise TooManyAtOnce(f"at most {MOST_WAITING} passwords may be checked at once; got one more")
        try:
            return _hashing.submit(super().encode, password, salt, iterations).result()
        finally:
            _waiting.release()
