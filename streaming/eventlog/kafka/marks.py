"""Where the entries of a bounded log are, and how many bytes each has: so its bound is kept without reading it.

Transactions leave records of their own between the entries, so offsets do not count the entries of a bounded log. Each
transaction therefore appends a *mark* for each of its entries to a second topic. Marks are small, so every process that
needs the size of a log reads all of them once, and then the new ones.
"""

import threading
from collections.abc import Sequence
from typing import NamedTuple

from streaming.eventlog.kafka.connection import Connection
from streaming.eventlog.kafka.records import values_of
from streaming.eventlog.protocol import Bound


class LogMark(NamedTuple):
    """An entry of a bounded log: its offset, its size, when it was appended, and the offset of the mark itself."""

    at: int
    size: int
    ms: int
    own: int


class Marks:
    """The marks of a log's entries.

    Parameters
    ----------
    connection : Connection
    log : str
    """

    def __init__(self, connection: Connection, log: str) -> None:
        self._connection = connection
        self._log, self._topic = connection.topics.of(log), connection.topics.marks(log)
        self._marks: dict[int, LogMark] = {}
        self._read, self._lock = 0, threading.Lock()

    def held(self) -> list[LogMark]:
        """Return the marks of all entries that are in the log now, the oldest first."""
        with self._lock:
            return self._held()

    def _held(self) -> list[LogMark]:
        for message in self._connection.read(self._topic, self._read):
            told = values_of(message)
            at = int(told["at"])
            self._marks[at] = LogMark(at, int(told["bytes"]), message.timestamp()[1], message.offset())
            self._read = message.offset() + 1
        first, end = self._connection.ends(self._log)
        self._marks = {at: mark for at, mark in self._marks.items() if at >= first}
        # An entry whose mark can be read may be behind another transaction that has not ended.
        return sorted(mark for mark in self._marks.values() if mark.at < end)

    def keep(self, bound: Bound | None) -> None:
        """Remove the oldest entries of the log that are beyond a bound, and the marks of all that are removed."""
        with self._lock:
            held = self._held()
            kept = held if bound is None else _within(held, bound)
            ends: dict[str, int | None] = {}
            if len(kept) < len(held):
                ends[self._log] = kept[0].at
            if kept:
                ends[self._topic] = min(mark.own for mark in self._marks.values() if mark.at >= kept[0].at)
            self._connection.trim(ends)


def _within(held: Sequence[LogMark], bound: Bound) -> Sequence[LogMark]:
    """Return the newest marks that a bound allows; at least one."""
    first, total = 0, sum(mark.size for mark in held)
    while first < len(held) - 1:
        too_old = held[first].ms < held[-1].ms - bound.most_ms
        if not too_old and (len(held) - first <= bound.least_entries or total <= bound.most_bytes):
            break
        total -= held[first].size
        first += 1
    return held[first:]
