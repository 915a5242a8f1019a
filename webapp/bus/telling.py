"""Send messages through Redis at once, or as soon as Redis answers again.

The database is the truth. A change of it does not wait for Redis and does not fail without Redis: unsent messages wait
in this process. If the process ends before they are sent, `webapp.tasks.reconcile` sends the changes.
"""

import atexit
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from celery import Task

from webapp.bus.redis import NOT_NOW

logger = logging.getLogger(__name__)

RETRY_S = 0.2


class Teller:
    """Sends messages in the order of the calls; messages that must wait for Redis are sent by a thread.

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
        """Number of messages that wait to be sent."""
        return len(self._waiting)

    def tell(self, about: str, word: Callable[[], Any]) -> None:
        """Send a message now, or later if Redis does not answer or other messages already wait.

        Parameters
        ----------
        about : str
            What the message is about. It replaces a waiting message about the same.
        word : function
            Sends the message. It is called again if Redis failed during the call.
        """
        if self._queued(about, word):
            return
        try:
            word()
        except NOT_NOW as error:
            logger.warning("Redis does not answer (%s); %s is told as soon as it does", error, about)
            self._queue(about, word)

    def give_up(self) -> None:
        """Log which messages are unsent when this process ends."""
        if self._waiting:
            words = "the process ends before Redis answered; the next reconciliation tells of: %s"
            logger.warning(words, "; ".join(self._waiting))

    def _queued(self, about: str, word: Callable[[], Any]) -> bool:
        """Queue a message if others wait; return whether it was queued."""
        with self._lock:
            if self._waiting:
                self._put(about, word)
            return bool(self._waiting)

    def _queue(self, about: str, word: Callable[[], Any]) -> None:
        with self._lock:
            begins = not self._waiting
            self._put(about, word)
        if begins:
            threading.Thread(target=self._catch_up, name="teller", daemon=True).start()

    def _put(self, about: str, word: Callable[[], Any]) -> None:
        self._waiting.pop(about, None)
        self._waiting[about] = word

    def _catch_up(self) -> None:
        """Send the waiting messages until none is left."""
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
            except Exception:  # our own bug, which must not block the other messages
                logger.exception("%s cannot be told", about)
            with self._lock:
                if self._waiting.get(about) is word:
                    del self._waiting[about]


TELLER = Teller()
tell = TELLER.tell
atexit.register(TELLER.give_up)


def tell_task(task: Task, *arguments: Any) -> None:
    """Send a Celery task to the workers, now or as soon as Redis answers again."""
    tell(f"{task.name}{arguments}", lambda: task.apply_async(arguments, retry=False))
