"""What is told through Redis: at once, or as soon as Redis answers again.

The database is the truth. Whoever changed it does not wait for Redis, and does not fail without it: what could not be
told waits in this process, and `webapp.tasks.reconcile` tells it should the process end before.
"""

import atexit
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from celery import Task

from webapp.redis import NOT_NOW

logger = logging.getLogger(__name__)

RETRY_S = 0.2


class Teller:
    """Tells things in the order in which it is asked to; a thread of its own tells those that have to wait.

    Examples
    --------
    >>> Teller().tell("the time", lambda: print("noon"))
    noon
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, Callable[[], Any]] = {}

    @property
    def waiting(self) -> int:
        """How many things wait to be told."""
        return len(self._waiting)

    def tell(self, about: str, word: Callable[[], Any]) -> None:
        """Tell something now, or later where Redis does not answer or something else waits already.

        Parameters
        ----------
        about : str
            What is told of. Of several words about the same that wait, only the last is told.
        word : function
            Tells it. It may be called again where Redis failed in the midst of it.
        """
        if self._queued(about, word):
            return
        try:
            word()
        except NOT_NOW as error:
            logger.warning("Redis does not answer (%s); %s is told as soon as it does", error, about)
            self._queue(about, word)

    def give_up(self) -> None:
        """Say in the log what the end of this process leaves untold."""
        if self._waiting:
            words = "the process ends before Redis answered; the next reconciliation tells of: %s"
            logger.warning(words, "; ".join(self._waiting))

    def _queued(self, about, word):
        """Queue a word if others wait; return whether it was."""
        with self._lock:
            if self._waiting:
                self._put(about, word)
            return bool(self._waiting)

    def _queue(self, about, word):
        with self._lock:
            begins = not self._waiting
            self._put(about, word)
        if begins:
            threading.Thread(target=self._catch_up, name="teller", daemon=True).start()

    def _put(self, about, word):
        self._waiting.pop(about, None)
        self._waiting[about] = word

    def _catch_up(self):
        """Tell what waits, until nothing does."""
        told = 0
        while True:
            with self._lock:
                if not self._waiting:
                    logger.info("Redis answers; %d things that waited for it are told", told)
                    return
                about, word = next(iter(self._waiting.items()))
            try:
                word()
                told += 1
            except NOT_NOW:
                time.sleep(RETRY_S)
                continue
            except Exception:  # an error of ours, which must not keep the others from being told
                logger.exception("%s cannot be told", about)
            with self._lock:
                if self._waiting.get(about) is word:
                    del self._waiting[about]


TELLER = Teller()
tell = TELLER.tell
atexit.register(TELLER.give_up)


def tell_task(task: Task, *arguments: Any) -> None:
    """Send a task to the workers, now or as soon as Redis answers again."""
    tell(f"{task.name}{arguments}", lambda: task.apply_async(arguments, retry=False))
