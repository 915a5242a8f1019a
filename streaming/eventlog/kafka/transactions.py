"""Appends that take effect once: a transaction of Kafka for each, which also appends the producer's stamp.

Each producer of a log has a transactional id. Whoever begins to use the id ends what others have begun under it, and
can then read the producer's newest stamp: nobody can append another one before the reader does (KIP-98, KIP-360).
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import cast

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streaming.eventlog.kafka.connection import STAMPS_CONFIG, Connection
from streaming.eventlog.kafka.patience import PAUSE_S, patiently
from streaming.eventlog.kafka.records import Headers, Record, headers_of, size_of, values_of
from streaming.eventlog.protocol import BoundedEntry, Stamp

Append = tuple[Stamp, Sequence[BoundedEntry]]
# The log that keeps a producer's stamps, and the name of the producer.
Key = tuple[str, str]


class StampedProducer:
    """A producer of a log, under its transactional id. Whoever uses it holds its lock.

    Parameters
    ----------
    connection : Connection
    log : str
        The log that keeps the producer's stamps.
    name : str
    """

    def __init__(self, connection: Connection, log: str, name: str) -> None:
        self._connection, self._log, self._name = connection, log, name
        self._producer: Producer | None = None
        self._open = False
        self._appended: dict[str, int] = {}
        self._failed: KafkaError | None = None
        self._newest: tuple[str, int] | None = None
        self.lock = threading.RLock()

    def append(self, stamp: Stamp, entries: Sequence[BoundedEntry]) -> bool:
        """Append entries in a transaction that `commit` ends, unless the stamp is known; return whether they were."""
        topics = self._connection.topics
        if self._newest and self._newest[0] == stamp.epoch and self._newest[1] >= stamp.number:
            return False
        if not self._open:
            self._begun.begin_transaction()
            self._open = True
        for entry in entries:
            if not self._connection.exists(topics.marks(entry.log)):
                self._mark_old(entry.log)
        contents = [(topics.of(entry.log), headers_of(entry.fields)) for entry in entries]
        offsets: dict[int, int] = {}
        for number, (topic, headers) in enumerate(contents):
            self._connection.ensure(topic)
            self._produce(topic, headers, note=partial(offsets.__setitem__, number))
        self._await_stored()
        for number, entry in enumerate(entries):
            self._mark(entry.log, offsets[number], contents[number][1])
        told = [("epoch", stamp.epoch.encode()), ("number", str(stamp.number).encode())]
        self._produce(topics.stamps(self._log), told, key=self._name.encode())
        self._newest = stamp.epoch, stamp.number
        return True

    def commit(self) -> None:
        """Commit what was appended, whole."""
        if not self._open:
            return
        self._await_stored()
        deadline_s = time.monotonic() + self._connection.patience_s
        while self._open:
            try:
                self._begun.commit_transaction(self._connection.patience_s)
                self._open = False
                self._note()
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline_s:
                    raise

    @property
    def _begun(self) -> Producer:
        assert self._producer is not None  # whoever appends calls `begin` first
        return self._producer

    def _note(self) -> None:
        committed = self._connection.committed
        for topic, offset in self._appended.items():
            committed[topic] = max(offset, committed.get(topic, -1))

    def forget(self) -> None:
        """Close the producer: what is not committed is dropped, and the next append reads the newest stamp."""
        self._producer, self._open, self._newest, self._failed = None, False, None, None
        self._appended.clear()

    def begin(self) -> None:
        """Take the transactional id, and read the newest stamp, unless this was done.

        A stamp can be read once the transactions that began before it have ended. So whoever uses several producers
        begins all of them before it appends anything.
        """
        if self._producer is not None:
            return
        topics, connection = self._connection.topics, self._connection
        stamps = topics.stamps(self._log)
        connection.ensure(stamps, STAMPS_CONFIG)
        producer = connection.producer(f"{topics.of(self._log)}/{self._name}")
        producer.init_transactions(connection.patience_s)
        connection.await_committed(stamps)
        for message in connection.read(stamps, 0):
            if message.key() == self._name.encode():
                told = values_of(message)
                self._newest = told["epoch"].decode(), int(told["number"])
        self._producer = producer

    def _mark_old(self, log: str) -> None:
        """Mark the entries that a log got before it was bounded."""
        old = self._connection.read(self._connection.topics.of(log), 0)
        self._connection.ensure(self._connection.topics.marks(log))
        for message in old:
            self._mark(log, message.offset(), message.headers() or ())

    def _mark(self, log: str, offset: int, headers: Headers) -> None:
        told = [("at", str(offset).encode()), ("bytes", str(size_of(headers)).encode())]
        self._produce(self._connection.topics.marks(log), told)

    def _produce(
        self, topic: str, headers: Headers, key: bytes | None = None, note: Callable[[int], None] | None = None
    ) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._failed = error
                return
            offset = cast(Record, message).offset()
            self._appended[topic] = offset
            if note is not None:
                note(offset)

        deadline_s = time.monotonic() + self._connection.patience_s
        while True:
            try:
                self._begun.produce(topic, partition=0, key=key, headers=list(headers), on_delivery=delivered)
                return
            except BufferError as error:
                if time.monotonic() > deadline_s:
                    raise KafkaException(KafkaError(KafkaError._QUEUE_FULL)) from error
            self._begun.poll(PAUSE_S)

    def _await_stored(self) -> None:
        """Wait until all records are stored that were given to the producer.

        It polls: where the producer is ended by an error, its `flush` and `commit_transaction` raise what is no
        `KafkaException` if they also have to tell of records.
        """
        deadline_s = time.monotonic() + self._connection.patience_s
        while len(self._begun):
            self._begun.poll(PAUSE_S)
            if time.monotonic() > deadline_s:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if self._failed is not None:
            raise KafkaException(self._failed)


class Transactions:
    """The stamped producers of a process.

    Parameters
    ----------
    connection : Connection
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._producers: dict[Key, StampedProducer] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(8, "kafka commits")

    def append(self, appends: Sequence[Append]) -> list[bool]:
        """Do several appends in their order, and return for each whether its entries were appended.

        Each producer has one transaction for all of its appends. A producer whose transaction fails because another
        process uses its id begins anew.
        """
        done: dict[int, bool] = {}

        def attempt(_: float) -> None:
            left = [number for number in range(len(appends)) if number not in done]
            if error := self._attempt(appends, left, done):
                raise error

        patiently(self._connection.patience_s, attempt)
        return [done[number] for number in range(len(appends))]

    def forget(self, log: str) -> None:
        """Forget the stamps of a log, which has been deleted."""
        with self._lock:
            mine = [producer for (name, _), producer in self._producers.items() if name == log]
        for producer in mine:
            with producer.lock:
                producer.forget()

    def _of(self, stamp: Stamp, entries: Sequence[BoundedEntry]) -> tuple[Key, StampedProducer]:
        key = entries[0].log, stamp.producer
        with self._lock:
            return key, self._producers.setdefault(key, StampedProducer(self._connection, *key))

    def _attempt(
        self, appends: Sequence[Append], numbers: Sequence[int], done: dict[int, bool]
    ) -> KafkaException | None:
        """Try the appends with some numbers; note the results of those that are committed; return an error if any."""
        used: dict[Key, StampedProducer] = {}
        with ExitStack() as locks:
            for key, producer in sorted((self._of(*appends[number]) for number in numbers), key=lambda some: some[0]):
                if key not in used:
                    used[key] = producer
                    locks.enter_context(producer.lock)
            # Of an error that is none of Kafka's, nothing must be committed later.
            failed: Mapping[Key, KafkaException | None] = dict.fromkeys(used)
            try:
                results, failed = self._append(appends, numbers, used)
            finally:
                for key in failed:
                    used[key].forget()
        for key, told in results.items():
            if key not in failed:
                done.update(told)
        return next(iter(failed.values()), None)

    def _append(
        self, appends: Sequence[Append], numbers: Sequence[int], used: Mapping[Key, StampedProducer]
    ) -> tuple[dict[Key, dict[int, bool]], dict[Key, KafkaException]]:
        """Append with producers; return by key what was appended, and the errors of those that failed."""
        results: dict[Key, dict[int, bool]] = {}
        failed = {key: error for key, some in used.items() if (error := _error_of(some.begin))}
        for number in numbers:
            key, producer = self._of(*appends[number])
            if key not in failed:
                try:
                    results.setdefault(key, {})[number] = producer.append(*appends[number])
                except KafkaException as error:
                    failed[key] = error
        return results, failed | self._commit({key: some for key, some in used.items() if key not in failed})

    def _commit(self, producers: Mapping[Key, StampedProducer]) -> dict[Key, KafkaException]:
        """Commit the transactions of producers, all at the same time; return the errors by key."""
        if len(producers) == 1:
            return {key: error for key, producer in producers.items() if (error := _error_of(producer.commit))}
        errors = {key: self._pool.submit(_error_of, producer.commit) for key, producer in producers.items()}
        return {key: error for key, future in errors.items() if (error := future.result())}


def _error_of(commit: Callable[[], None]) -> KafkaException | None:
    try:
        commit()
    except KafkaException as error:
        return error
    return None
