"""The logs on Kafka. A log is a topic with one partition, and a position is an offset.

What Redis keeps in memory, Kafka keeps on disk. Entries that are appended without a stamp follow each other without
gaps, so offsets count them. Stamped entries are appended in transactions (`streaming.eventlog.kafka.transactions`), and
marks count them (`streaming.eventlog.kafka.marks`).
"""

import asyncio
import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

from confluent_kafka import KafkaException, TopicPartition

from streaming.eventlog.kafka.connection import POLL_WAIT_MS, Connection, connection_of, end_all
from streaming.eventlog.kafka.marks import Marks
from streaming.eventlog.kafka.patience import asking
from streaming.eventlog.kafka.records import Record, entry_of, headers_of, offset_of, position_of
from streaming.eventlog.kafka.transactions import Transactions
from streaming.eventlog.protocol import FIRST, NONE_AHEAD, NONE_PASSED, Bound, BoundedEntry, Entry, Fields, Stamp

logger = logging.getLogger(__name__)

PATIENCE_S = 30.0
_READ_BACK_AT_LEAST = 8


class KafkaEventLog:
    """An `EventLog` on Kafka. Threads may share it; after a fork, the child connects anew.

    If a broker does not answer, a call waits for it, and then raises `redis.ConnectionError`. Then entries that were
    appended without a stamp may be in the log or not, and of entries for several logs some may be: as with a reply of
    Redis that was lost.

    Parameters
    ----------
    servers : str
        Addresses of brokers, ``host:port`` with commas between.
    prefix : str, optional
        How the names of all topics begin.
    patience_s : float, optional
        How long to wait for a broker, in seconds.
    """

    def __init__(self, servers: str, prefix: str = "", patience_s: float = PATIENCE_S) -> None:
        self._place = servers, prefix, patience_s

    @property
    def _shared(self) -> "_Shared":
        return _shared(connection_of(*self._place))

    @asking
    def append(self, log: str, fields: Fields) -> str:
        """Append an entry to a log, and return its position."""
        return self.append_all([(log, fields)])[0]

    @asking
    def append_all(self, entries: Iterable[tuple[str, Fields]]) -> list[str]:
        """Append entries to logs in one round trip, in their order; return their positions."""
        entries, connection = list(entries), self._shared.connection
        for log, _ in entries:
            connection.ensure(connection.topics.of(log))
        offsets = connection.produce((connection.topics.of(log), headers_of(fields)) for log, fields in entries)
        return [position_of(offset + 1) for offset in offsets]

    def append_once(self, stamp: Stamp, entries: Sequence[BoundedEntry]) -> bool:
        """Append all entries, or none of them if the producer has appended this number or a later one of the epoch."""
        return self.append_once_all([(stamp, entries)])[0]

    @asking
    def append_once_all(self, appends: Iterable[tuple[Stamp, Sequence[BoundedEntry]]]) -> list[bool]:
        """Do several `append_once`, in their order; return what each returns."""
        appends, shared = list(appends), self._shared
        told = shared.transactions.append(appends) if appends else []
        for (_, entries), appended in zip(appends, told, strict=True):
            for entry in entries if appended else ():
                shared.keep(entry.log, entry.bound)
        return told

    @asking
    def read(
        self,
        log: str,
        after: str = FIRST,
        upto: str | None = None,
        limit: int | None = None,
        only: Sequence[str] | None = None,
    ) -> list[Entry]:
        """Return entries of a log, the oldest first."""
        stop = None if upto is None else offset_of(upto)
        found = self._shared.settled(log).read(self._shared.connection.topics.of(log), offset_of(after), stop, limit)
        return [entry_of(message, only) for message in found]

    @asking
    def read_back(self, log: str, before: str | None = None, limit: int | None = None) -> list[Entry]:
        """Return the entries before a position, or the newest entries, at most `limit`; the newest first."""
        connection = self._shared.settled(log)
        topic = connection.topics.of(log)
        first, end = connection.ends(topic)
        stop = end if before is None else min(end, offset_of(before) - 1)
        span = stop - first if limit is None else 2 * limit + _READ_BACK_AT_LEAST
        # The records of transactions are no entries: where there are too few entries, look further back.
        while True:
            start = max(first, stop - span)
            found = connection.read(topic, start, stop)
            if start == first or (limit is not None and len(found) >= limit):
                return [entry_of(message) for message in found[::-1][:limit]]
            span *= 4

    @asking
    def poll(self, after: Mapping[str, str], limit: int, wait_s: float) -> dict[str, list[Entry]]:
        """Return the entries behind positions; if there are none, wait for the first one."""
        shared = self._shared
        starts = {log: max(offset_of(position), shared.trimmed.get(log, 0)) for log, position in after.items()}
        for log in after:
            shared.settled(log).ensure(shared.connection.topics.of(log))
        connection = shared.connection
        with connection.lent(frozenset(after), lambda: _Poller(connection)) as poller:
            return poller.take(starts, limit, max(0.001, wait_s))

    def sync(self) -> None:
        """Do nothing: brokers acknowledge an append when it is as durable as their operator wants it (``acks=all``)."""

    def polling(self) -> int:
        """Return how many threads of this process wait for entries in `poll`."""
        return self._shared.connection.polling

    @asking
    def ends(
        self,
        after: Mapping[str, str],
        most: Mapping[str, int],
        passed: Mapping[str, int] = NONE_PASSED,
        ahead: Mapping[str, str] = NONE_AHEAD,
    ) -> dict[str, str]:
        """Return how far each log can be read; no entry is transferred. The log must not be a bounded one."""
        connection = self._shared.connection
        found = {}
        for log, position in after.items():
            first, end = connection.ends(connection.topics.of(log))
            start = max(offset_of(position), first)
            known = offset_of(ahead.get(log, FIRST))
            if end - start > most[log]:
                end = known if known > start else start + most[log]
            found[log] = position_of(end) if end > start else position
        return found

    def newest(self, log: str) -> str:
        """Return the position of a log's newest entry; `FIRST` if the log is empty."""
        return next((entry.position for entry in self.read_back(log, limit=1)), FIRST)

    @asking
    def trim(self, behind: Mapping[str, str]) -> None:
        """Remove the entries of logs up to and including a position, by log."""
        shared, ends = self._shared, {log: offset_of(position) for log, position in behind.items()}
        ends = {
            log: end for log, end in ends.items() if end and shared.connection.exists(shared.connection.topics.of(log))
        }
        shared.connection.trim({shared.connection.topics.of(log): end for log, end in ends.items()})
        for log, end in ends.items():
            shared.trimmed[log] = max(end, shared.trimmed.get(log, 0))
            if shared.connection.exists(shared.connection.topics.marks(log)):
                shared.keep(log, None)

    @asking
    def length(self, log: str) -> int:
        """Return the number of entries in a log."""
        connection = self._shared.settled(log)
        if connection.exists(connection.topics.marks(log)):
            return len(self._shared.marks(log).held())
        first, end = connection.ends(connection.topics.of(log))
        return end - first

    @asking
    def size(self, log: str) -> int:
        """Return the size of a bounded log in bytes."""
        if not self._shared.settled(log).exists(self._shared.connection.topics.marks(log)):
            return 0
        return sum(mark.size for mark in self._shared.marks(log).held())

    @asking
    def delete(self, logs: Iterable[str]) -> None:
        """Delete logs with all that is known of them. Their topics stay, empty, so that positions go on rising."""
        logs, shared = list(logs), self._shared
        names = shared.connection.topics
        topics = [topic for log in logs for topic in (names.of(log), names.marks(log), names.stamps(log))]
        for log in logs:
            shared.settled(log)
        shared.connection.trim({topic: None for topic in topics if shared.connection.exists(topic)})
        for log in logs:
            shared.transactions.forget(log)


class AsyncKafkaEventLog:
    """An `EventLog` on Kafka for asyncio: the methods return awaitables, and run in threads.

    Parameters
    ----------
    event_log : KafkaEventLog
    """

    def __init__(self, event_log: KafkaEventLog) -> None:
        self._event_log = event_log

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._event_log, name)
        return lambda *arguments, **options: asyncio.to_thread(method, *arguments, **options)


class _Poller:
    """A consumer that has read some logs up to some offsets, and knows what it has read but not given yet."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._consumer = connection, connection.consumer(POLL_WAIT_MS)
        self._given: dict[str, int] = {}
        self._read: dict[str, deque[Record]] = {}
        self._logs: dict[str, str] = {}

    def take(self, starts: Mapping[str, int], limit: int, wait_s: float) -> dict[str, list[Entry]]:
        """Return the entries of logs from offsets on, at most `limit` of each; wait for the first one."""
        if self._given != starts:
            found = self._move(starts, limit)
            if found:
                return found
        deadline_s = time.monotonic() + wait_s
        self._keep(cast(list[Record], self._consumer.consume(500, 0)))
        self._connection.polling += 1
        while not any(self._read.values()) and (left_s := deadline_s - time.monotonic()) > 0:
            if (message := self._consumer.poll(left_s)) is not None:
                self._keep(cast(list[Record], [message, *self._consumer.consume(500, 0)]))
        self._connection.polling -= 1
        return {log: self._give(log, limit) for log, read in self._read.items() if read}

    def _move(self, starts: Mapping[str, int], limit: int) -> dict[str, list[Entry]]:
        """Begin at other offsets, behind those entries that are there already; return these."""
        self._logs = {self._connection.topics.of(log): log for log in starts}
        self._read, self._given, found = {log: deque() for log in starts}, dict(starts), {}
        for topic, log in self._logs.items():
            if there := self._connection.read(topic, starts[log], limit=limit):
                self._read[log].extend(there)
                found[log] = self._give(log, limit)
        self._consumer.assign([TopicPartition(topic, 0, self._given[log]) for topic, log in self._logs.items()])
        return found

    def _keep(self, messages: Iterable[Record]) -> None:
        for message in messages:
            if message.error() is None:
                log = self._logs[message.topic()]
                if message.offset() >= self._given[log]:
                    self._read[log].append(message)

    def _give(self, log: str, limit: int) -> list[Entry]:
        read = self._read[log]
        entries = [entry_of(read.popleft()) for _ in range(min(limit, len(read)))]
        self._given[log] = offset_of(entries[-1].position)
        return entries


class _Shared:
    """What all event logs of a process share over one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.transactions = connection, Transactions(connection)
        self.trimmed: dict[str, int] = {}
        self._marks: dict[str, Marks] = {}
        self._keeping: dict[str, Future[None]] = {}
        self._pool = ThreadPoolExecutor(1, "kafka bounds")
        self._wanted: dict[str, Bound | None] = defaultdict(lambda: None)
        self._lock = threading.Lock()

    def marks(self, log: str) -> Marks:
        """Return the marks of a bounded log."""
        with self._lock:
            return self._marks.setdefault(log, Marks(self.connection, log))

    def keep(self, log: str, bound: Bound | None) -> None:
        """Remove what is beyond a bound, soon: who appends need not wait for that."""
        with self._lock:
            self._wanted[log] = bound or self._wanted[log]
            waiting = self._keeping.get(log)
            if waiting is None or waiting.running() or waiting.done():
                self._keeping[log] = self._pool.submit(self._keep, log)

    def _keep(self, log: str) -> None:
        try:
            self.marks(log).keep(self._wanted[log])
        except KafkaException as error:  # the next append tries again
            logger.warning("%s is longer than it should be: %s", log, error.args[0])

    def settled(self, log: str) -> Connection:
        """Return the connection, once the bound of a log is kept."""
        if (keeping := self._keeping.get(log)) is not None:
            keeping.result()
        return self.connection


_lock = threading.Lock()
_all_shared: dict[Connection, _Shared] = {}


def _shared(connection: Connection) -> _Shared:
    with _lock:
        if connection not in _all_shared:
            _all_shared[connection] = _Shared(connection)
        return _all_shared[connection]


def end_connections() -> None:
    """End the connections of this process to Kafka. Logs that are used again connect anew."""
    with _lock:
        _all_shared.clear()
    end_all()
