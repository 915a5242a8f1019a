"""A watchdog in the worker: it says that the worker lives, and for how long tasks have waited in vain.

The thread of Celery that takes tasks may hang, or lose a connection that it never opens again. Then tasks wait for
ever, and no task can say so. This thread of its own can: it looks at the queue, and at whether the worker takes tasks.
What counts is the number of looks, not the time: while the process or the whole machine stood still, so did the worker.
"""

import threading
import time

from streaming.keys import WORKER_KEY
from streaming.logs import write_report
from streaming.redis_memory import share_of
from webapp.redis import NOT_NOW, client

LOOK_S = 1.0


class WorkerWatch:
    """Looks after the worker of this process, in a thread.

    Parameters
    ----------
    queue : str
        The key of the tasks that wait.
    """

    def __init__(self, queue: str) -> None:
        self._queue = queue
        # For how many looks tasks have waited and none was taken.
        self._untaken = 0
        self._ended = threading.Event()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="worker-watch", daemon=True).start()

    def stop(self, **_: object) -> None:
        """Look no more: a worker that ends takes no tasks."""
        self._ended.set()

    def note_taken(self, **_: object) -> None:
        """Note that the worker takes tasks."""
        self._untaken = 0

    def look(self) -> None:
        """Report that the worker lives, and for how long tasks have waited in vain."""
        connection = client()
        # A full Redis gives no task away.
        waits = bool(connection.llen(self._queue)) and share_of(connection.info("memory")) < 1
        self._untaken = self._untaken + 1 if waits else 0
        report = {"at_us": time.time_ns() // 1000, "untaken_s": round(self._untaken * LOOK_S)}
        write_report(connection, WORKER_KEY, report)

    def _run(self) -> None:
        while not self._ended.wait(LOOK_S):
            try:
                self.look()
            except NOT_NOW:  # nobody knows what waits
                self.note_taken()
