"""Reads the ingest log ahead of the cuts, so that the next batch's blocks are here when the batch begins.

Under load, Redis takes as long to send a batch's blocks as the servers take to evaluate them. A thread of each task
therefore reads what follows the newest cut while the servers work. It also tells the coordinator how far it has read:
so the coordinator can cut there, and Redis need not look through blocks for the end of a batch.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping

from streaming.eventlog import Entry, EventLog

logger = logging.getLogger(__name__)

_WAIT_S = 1.0


class ReadAhead:
    """The entries that follow the newest cut in some logs.

    Parameters
    ----------
    event_log : EventLog
    logs : mapping of str to str
        The names of the logs, by the names that positions have for them.
    positions : mapping of str to str
        Behind which position to begin in each.
    most : int
        How many entries of each log to read ahead at most.
    report : callable
        Takes the position up to which each log is read, by the names of `logs`, whenever some were read.

    Attributes
    ----------
    most : int
        May be changed; it counts from when entries are taken.
    """

    def __init__(
        self,
        event_log: EventLog,
        logs: Mapping[str, str],
        positions: Mapping[str, str],
        most: int,
        report: Callable[[Mapping[str, str]], None],
    ) -> None:
        self._event_log, self._logs, self.most, self._report = event_log, dict(logs), most, report
        self._read: dict[str, deque[Entry]] = {name: deque() for name in logs}
        self._upto = {name: positions[name] for name in logs}
        self._changed, self._closed = threading.Condition(), False

    def start(self) -> None:
        """Begin to read, in a thread."""
        threading.Thread(target=self._run, name="read ahead", daemon=True).start()

    def close(self) -> None:
        """Read no more."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def taken(self, name: str, upto: str) -> list[Entry]:
        """Return the entries of a log that follow those that were taken before, up to the position of one of them."""
        with self._changed:
            read = self._read[name]
            entries: list[Entry] = []
            while read and (not entries or entries[-1].position != upto):
                entries.append(read.popleft())
            if not entries or entries[-1].position != upto:  # the thread has not come so far
                entries += self._event_log.read(self._logs[name], self._upto[name], upto)
                self._upto[name] = upto
            self._changed.notify()
        return entries

    def _run(self) -> None:
        try:
            while after := self._wanted():
                limit = min(self.most - len(self._read[name]) for name in after)
                found = self._event_log.poll({self._logs[name]: end for name, end in after.items()}, limit, _WAIT_S)
                self._keep({name: (end, found.get(self._logs[name], [])) for name, end in after.items()})
        except Exception as error:  # whatever it is: blocks are also read when they are taken
            logger.warning("the ingest log is not read ahead: %s: %s", type(error).__name__, error)

    def _wanted(self) -> dict[str, str]:
        """Return behind which position to read each log that there is room for; wait for room; empty if closed."""
        with self._changed:
            while not self._closed:
                some = {name: end for name, end in self._upto.items() if len(self._read[name]) < self.most}
                if some:
                    return some
                self._changed.wait()
            return {}

    def _keep(self, found: Mapping[str, tuple[str, list[Entry]]]) -> None:
        """Keep entries that follow a position, unless they were taken meanwhile; `found` has both, by name."""
        with self._changed:
            upto = {}
            for name, (after, entries) in found.items():
                if entries and self._upto[name] == after:
                    self._read[name].extend(entries)
                    self._upto[name] = upto[name] = entries[-1].position
        if upto:
            self._report(upto)
