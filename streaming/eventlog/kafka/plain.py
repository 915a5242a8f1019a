"""Appends without a stamp: a producer that all threads of a process share."""

import contextlib
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import cast

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streaming.eventlog.kafka.patience import PAUSE_S, patiently
from streaming.eventlog.kafka.records import Headers, Record


class PlainProducer:
    """A producer for records outside transactions.

    Some errors end a producer of the client library: for instance, if a broker has lost entries, it refuses the next
    ones. Then a new producer takes its place, and whoever waits for records of the old one is told that they failed.

    Parameters
    ----------
    make : function
        Returns a producer of the client library.
    patience_s : float
        How long a record waits for room, in seconds.
    """

    def __init__(self, make: Callable[[], Producer], patience_s: float) -> None:
        self._make, self._patience_s = make, patience_s
        self._producer = make()
        self._ended = threading.Event()
        threading.Thread(target=self._deliver, name="kafka deliveries", daemon=True).start()

    def end(self) -> None:
        """Let go of the producer, once the library has answered its last call."""
        self._ended.set()

    def produce(self, records: Iterable[tuple[str, Headers]]) -> list[int]:
        """Append records to topics; return their offsets once all are stored.

        Raises
        ------
        KafkaException
            If one is not stored in time; others may be.
        """
        awaited = [self._enqueue(topic, headers) for topic, headers in records]
        return [future.result() for future in awaited]

    def _enqueue(self, topic: str, headers: Headers) -> Future[int]:
        """Give a record to the producer. What it does not take was not sent, so it may be given again."""
        future: Future[int] = Future()

        def attempt(_: float) -> None:
            try:
                self._producer.produce(topic, partition=0, headers=list(headers), on_delivery=_settling(future))
            except BufferError as error:
                raise KafkaException(KafkaError(KafkaError._QUEUE_FULL)) from error

        patiently(self._patience_s, attempt)
        return future

    def _deliver(self) -> None:
        while not self._ended.is_set():
            try:
                self._producer.poll(1.0)
            except KafkaException:
                self._replace()

    def _replace(self) -> None:
        """Begin a new producer, and let all records of the old one fail that are not stored."""
        ended, self._producer = self._producer, self._make()
        while len(ended):
            with contextlib.suppress(KafkaException):
                ended.purge()
                ended.poll(PAUSE_S)


def _settling(future: Future[int]) -> Callable[[KafkaError | None, Message], None]:
    def settle(error: KafkaError | None, message: Message) -> None:
        if error is None:
            future.set_result(cast(Record, message).offset())
        else:
            future.set_exception(KafkaException(error))

    return settle
