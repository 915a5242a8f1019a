"""A watchdog in the worker: it says that the worker lives, and ends a worker that no longer takes tasks.

The thread of Celery that takes tasks may hang, or lose a connection that it never opens again. Then tasks wait for
ever, and no task can say so. This thread of its own can: it looks at the queue, and at whether the worker takes tasks.
What counts is the number of looks, not the time: while the process or the whole machine stood still, so did the worker.
"""

import logging
import os
import threading
import time
from collections.abc import Callable

from celery.worker.state import reserved_requests

from streaming.keys import WORKER_KEY
from streaming.logs import write_report
from streaming.redis_memory import share_of
from webapp.bus.redis import NOT_NOW, client

logger = logging.getLogger(__name__)

LOOK_S = 1.0
# Celery pauses for up to 30 s before it tries again to connect to a Redis that was away for long.
END_AFTER_S = 40.0


class WorkerWatch:
    """Looks after the worker of this process, in a thread.

    Parameters
    ----------
    queue : str
        The key of the tasks that wait.
    threads : int
        How many tasks the worker runs at once.
    end : function
        Ends the process at once.
    """

    def __init__(self, queue: str, threads: int, end: Callable[[], object] = lambda: os._exit(1)) -> None:
        self._queue, self._threads, self._end = queue, threads, end
        # For how many looks tasks have waited and none was taken; and for how many of them threads were free.
        self._untaken = self._idle = 0
        self._ended = threading.Event()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="worker-watch", daemon=True).start()

    def stop(self, **_: object) -> None:
        """Look no more: a worker that ends takes no tasks."""
        self._ended.set()

    def note_taken(self, **_: object) -> None:
        """Note that the worker takes tasks."""
        self._untaken = self._idle = 0

    def look(self) -> None:
        """Report that the worker lives, and for how long tasks have waited in vain; end it if it is stuck."""
        connection = client()
        # A full Redis gives no task away.
        waits = bool(connection.llen(self._queue)) and share_of(connection.info("memory")) < 1
        self._untaken = self._untaken + 1 if waits else 0
        self._idle = self._idle + 1 if waits and len(reserved_requests) < self._threads else 0
        report = {"at_us": time.time_ns() // 1000, "untaken_s": round(self._untaken * LOOK_S)}
        write_report(connection, WORKER_KEY, report)
        if self._idle * LOOK_S >= END_AFTER_S and not self._ended.is_set():
            logger.error(
                "tasks have waited for %g s, threads are free, and the worker has taken none: it ends, so that its "
                "supervisor starts it again",
                self._idle * LOOK_S,
            )
            self._end()

    def _run(self) -> None:
        while not self._ended.wait(LOOK_S):
            try:
                self.look()
            except NOT_NOW:  # nobody knows what waits
                self.note_taken()
            except Exception:  # such as a Redis whose disk is full: the watch goes on
                self.note_taken()
                logger.exception("cannot look at the tasks that wait")
