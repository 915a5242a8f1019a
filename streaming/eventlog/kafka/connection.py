"""What one process keeps open to Kafka: a producer, consumers that are used again, and the topics that it knows."""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from streaming.eventlog.kafka.patience import patiently
from streaming.eventlog.kafka.plain import PlainProducer
from streaming.eventlog.kafka.records import Record, TopicNames

# A block or a fragment may be megabytes. Brokers refuse requests of more than 100 MB.
_MOST_BYTES = 90_000_000
# A broker keeps a request for entries that do not exist yet for as long; until then no other log can be asked for.
READ_WAIT_MS = 5
POLL_WAIT_MS = 100
# A transaction is committed before its records can be read: the broker marks each topic a moment later.
_VISIBLE_S = 0.001
_QUIET: dict[str, str | int | float | bool] = {"log_level": 2}
# Topics are trimmed by whoever uses the log, never by age.
LOG_CONFIG = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "segment.bytes": str(2 * _MOST_BYTES),
    "max.message.bytes": str(_MOST_BYTES),
    "message.timestamp.type": "LogAppendTime",
}
STAMPS_CONFIG = LOG_CONFIG | {"cleanup.policy": "compact,delete", "segment.bytes": str(1 << 20)}
_UNKNOWN = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


class Connection:
    """A process's connection to Kafka. Threads may share it, but not processes.

    Parameters
    ----------
    servers : str
        Addresses of brokers, with commas between.
    prefix : str
        How the names of all topics begin.
    patience_s : float
        How long to wait for a broker that does not answer, in seconds.
    """

    def __init__(self, servers: str, prefix: str, patience_s: float) -> None:
        self.topics, self.patience_s = TopicNames(prefix), patience_s
        self.polling = 0
        # The last offset of this process in each topic that it has appended to in transactions.
        self.committed: dict[str, int] = {}
        self._base = {"bootstrap.servers": servers, "reconnect.backoff.max.ms": 500, **_QUIET}
        self._topics: set[str] = set()
        self._free: dict[Any, list[Any]] = defaultdict(list)
        self._lock = threading.Lock()
        self._plain = PlainProducer(self.producer, patience_s)
        self.produce = self._plain.produce

    def end(self) -> None:
        """End what is kept open; each client of the library has threads and some ten descriptors."""
        self._plain.end()
        with self._lock:
            self._free.clear()

    def producer(self, transactional_id: str | None = None) -> Producer:
        """Return a new producer: one for transactions if it is given an id."""
        config = self._base | {
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 0,
            "message.max.bytes": _MOST_BYTES,
        }
        if transactional_id is None:
            return Producer(config | {"message.timeout.ms": int(1000 * self.patience_s)})
        # If a process is stopped amid a transaction, readers wait for its end.
        return Producer(config | {"transactional.id": transactional_id, "transaction.timeout.ms": 10_000})

    def consumer(self, wait_ms: int) -> Consumer:
        """Return a new consumer that reads what is committed, and that a broker lets wait for so long."""
        return Consumer(
            self._base
            | {
                "group.id": "lookout",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.partition.eof": wait_ms == READ_WAIT_MS,
                "fetch.wait.max.ms": wait_ms,
                "fetch.message.max.bytes": 8 << 20,
                "fetch.queue.backoff.ms": 1,
                "topic.metadata.refresh.fast.interval.ms": 50,
            }
        )

    @contextmanager
    def lent(self, key: Any, make: Callable[[], Any]) -> Iterator[Any]:
        """Lend something that is kept under a key, or make it. It is kept again unless an error is raised."""
        with self._lock:
            thing = self._free[key].pop() if self._free[key] else None
        thing = make() if thing is None else thing
        yield thing
        with self._lock:
            self._free[key].append(thing)

    def _ask(self, make: Callable[[], Any], call: Callable[[Any, float], Any]) -> Any:
        """Return what a call of a client returns; if it fails, call another client, until the patience is over.

        What a client knows of brokers may be old for minutes after one has come back, so one that failed is dropped.
        """

        def attempt(left_s: float) -> Any:
            with self.lent(make, make) as client:
                return call(client, left_s)

        return patiently(self.patience_s, attempt)

    def _admin(self) -> AdminClient:
        return AdminClient(self._base)

    def _reader(self) -> Consumer:
        return self.consumer(READ_WAIT_MS)

    def ensure(self, topic: str, config: Mapping[str, str] = LOG_CONFIG) -> None:
        """Create a topic unless it exists."""
        if topic in self._topics:
            return
        new = NewTopic(topic, num_partitions=1, replication_factor=-1, config=dict(config))

        def create(admin: AdminClient, left_s: float) -> None:
            try:
                admin.create_topics([new], request_timeout=left_s)[topic].result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

        self._ask(self._admin, create)
        self._topics.add(topic)

    def exists(self, topic: str) -> bool:
        """Return whether a topic exists. Topics are never deleted."""
        if topic not in self._topics:
            self._topics |= set(self._ask(self._admin, lambda admin, left_s: admin.list_topics(timeout=left_s).topics))
        return topic in self._topics

    def ends(self, topic: str) -> tuple[int, int]:
        """Return the first offset of a topic, and the offset behind the last committed record.

        Raises
        ------
        KafkaException
            If a broker does not answer in time, or does not show in time what this process has committed.
        """
        if not self.exists(topic):
            return 0, 0

        def watermarks(consumer: Consumer, left_s: float) -> tuple[int, int]:
            deadline_s = time.monotonic() + left_s
            first = _offset(consumer, topic, OFFSET_BEGINNING, left_s)
            while (end := _offset(consumer, topic, OFFSET_END, left_s)) <= self.committed.get(topic, -1):
                if time.monotonic() > deadline_s:
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
                time.sleep(_VISIBLE_S)
            return first, end

        return self._ask(self._reader, watermarks)

    def await_committed(self, topic: str) -> None:
        """Let the next reader of a topic wait until what has been appended by now is committed or dropped."""

        def newest(admin: AdminClient, left_s: float) -> int:
            asked = admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.latest()}, request_timeout=left_s)
            return next(iter(asked.values())).result().offset - 1

        self.committed[topic] = max(self._ask(self._admin, newest), self.committed.get(topic, -1))

    def read(self, topic: str, start: int, stop: int | None = None, limit: int | None = None) -> list[Record]:
        """Return the committed records from an offset on, up to another one or to the present end, the oldest first."""
        first, end = self.ends(topic)
        start, stop = max(start, first), end if stop is None else min(stop, end)
        limit = stop - start if limit is None else min(limit, stop - start)
        if limit <= 0:
            return []

        def records(consumer: Consumer, left_s: float) -> list[Record]:
            consumer.assign([TopicPartition(topic, 0, start)])
            found = _until(consumer, (start, stop), limit, left_s)
            consumer.unassign()
            return found

        return self._ask(self._reader, records)

    def trim(self, ends: Mapping[str, int | None]) -> None:
        """Remove the records of topics before an offset, or all records."""
        before = [TopicPartition(topic, 0, OFFSET_END if end is None else end) for topic, end in ends.items()]

        def remove(admin: AdminClient, left_s: float) -> None:
            for future in admin.delete_records(before, request_timeout=left_s).values():
                future.result()

        if before:
            self._ask(self._admin, remove)


_connections: dict[tuple[str, str, float, int], Connection] = {}
_connecting = threading.Lock()


def connection_of(servers: str, prefix: str, patience_s: float) -> Connection:
    """Return the connection of this process: one that was made before a fork does not work after it."""
    key = servers, prefix, patience_s, os.getpid()
    with _connecting:
        if key not in _connections:
            _connections[key] = Connection(*key[:3])
        return _connections[key]


def end_all() -> None:
    """End all connections of this process."""
    with _connecting:
        ended = list(_connections.values())
        _connections.clear()
    for connection in ended:
        connection.end()


def _offset(consumer: Consumer, topic: str, of: int, left_s: float) -> int:
    """Return where a topic begins or ends, by a request of its own.

    The client library's `get_watermark_offsets` sends two. If the first of them fails, it may tell of a topic with
    records that it is empty.
    """
    (told,) = consumer.offsets_for_times([TopicPartition(topic, 0, of)], timeout=left_s)
    if told.error is not None:
        raise KafkaException(told.error)
    return told.offset


def _until(consumer: Consumer, span: tuple[int, int], limit: int, left_s: float) -> list[Record]:
    """Return what a consumer reads of a span of offsets until it has read enough, or the end."""
    (start, stop), deadline_s = span, time.monotonic() + left_s
    found: list[Record] = []
    while True:
        first = consumer.poll(0.1)
        some = [] if first is None else [first, *consumer.consume(max(1, min(limit, 500)), 0)]
        for message in cast(list[Record], some):
            if (error := message.error()) is None:
                if message.offset() >= stop:
                    return found
                if message.offset() >= start:
                    found.append(message)
                if len(found) == limit or message.offset() == stop - 1:
                    return found
            elif error.code() == KafkaError._PARTITION_EOF:
                # A broker that has come back may not have all of its records ready at first.
                if message.offset() >= stop:
                    return found
            elif error.code() not in _UNKNOWN:
                raise KafkaException(error)
        if time.monotonic() > deadline_s:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
