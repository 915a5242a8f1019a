"""Password hashing: it is slow on purpose, so one background thread does it, one password at a time."""

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.utils.translation import gettext

# More log-ins than this at once are a flood: further ones are refused at once instead of waiting for minutes.
MOST_WAITING = 32
NICENESS = 5


class TooManyAtOnce(Exception):
    """Too many passwords already wait to be hashed."""


def _yield_to_others() -> None:
    """Lower this thread's priority below the threads that serve connections, if the system supports that."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


_hashing = ThreadPoolExecutor(1, "passwords", _yield_to_others)
_waiting = threading.BoundedSemaphore(MOST_WAITING)


class PatientHasher(PBKDF2PasswordHasher):
    """Django's PBKDF2 hasher, run in one thread of low priority."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Return the hash, as Django's hasher does.

        Raises
        ------
        TooManyAtOnce
            When `MOST_WAITING` passwords wait already.
        """
        if not _waiting.acquire(blocking=False):
            raise TooManyAtOnce(
                gettext("at most %(most_waiting)s passwords may be checked at once; got one more")
                % {"most_waiting": MOST_WAITING}
            )
        try:
            return _hashing.submit(super().encode, password, salt, iterations).result()
        finally:
            _waiting.release()
