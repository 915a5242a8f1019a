"""Entries as records of Kafka: a topic with one partition for each log, and a header for each field."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from confluent_kafka import KafkaError

from streaming.eventlog.protocol import Entry, Fields

# What an entry costs beside the names and values of its fields, in bytes; about. The same as with Redis.
_ENTRY_BYTES = 64

Headers = Sequence[tuple[str, bytes | None]]


class Record(Protocol):
    """A `confluent_kafka.Message` of a broker: only one that a program makes itself may lack a topic or an offset."""

    def topic(self) -> str:
        """Return the topic."""

    def offset(self) -> int:
        """Return the offset."""

    def key(self) -> bytes | None:
        """Return the key."""

    def headers(self) -> Headers | None:
        """Return the headers."""

    def timestamp(self) -> tuple[int, int]:
        """Return the kind of its time, and the time in milliseconds since 1970 UTC."""

    def error(self) -> KafkaError | None:
        """Return why it is no record, if it is none."""


@dataclass(frozen=True)
class TopicNames:
    """The names of the topics of logs.

    Parameters
    ----------
    prefix : str
        How all names begin, so that several Lookouts can use the same brokers; may be empty.
    """

    prefix: str = ""

    def of(self, log: str) -> str:
        """Return the topic of a log: colons become dots, other characters that Kafka refuses become numbers.

        Different logs have different topics, also for Kafka's metrics, which write dots as underscores.

        Examples
        --------
        >>> TopicNames().of("lookout:my_space:ingest:0")
        'lookout.my_5f_space.ingest.0'
        """
        name = f"{self.prefix}:{log}" if self.prefix else log
        return re.sub(r"[^A-Za-z0-9:-]", lambda found: f"_{ord(found[0]):x}_", name).replace(":", ".")

    def marks(self, log: str) -> str:
        """Return the topic that says where the entries of a bounded log are, and how many bytes each has."""
        return f"{self.of(log)}.marks"

    def stamps(self, log: str) -> str:
        """Return the topic that keeps the newest stamp of each producer of a log."""
        return f"{self.of(log)}.stamps"


def headers_of(fields: Fields) -> Headers:
    """Return the headers of the record that holds an entry."""
    return [(name, _bytes(value)) for name, value in fields.items()]


def size_of(headers: Headers) -> int:
    """Return the size of an entry in bytes, from its headers."""
    return _ENTRY_BYTES + sum(len(name.encode()) + len(value or b"") for name, value in headers)


def values_of(message: Record) -> dict[str, bytes]:
    """Return the values of the headers of a record, by name; the client library returns none for an empty one."""
    return {name: value or b"" for name, value in message.headers() or ()}


def entry_of(message: Record, only: Sequence[str] | None = None) -> Entry:
    """Return the entry in a record. The position behind a record is the next offset."""
    fields = {name.encode(): value or b"" for name, value in message.headers() or () if only is None or name in only}
    return Entry(position_of(message.offset() + 1), fields, message.timestamp()[1])


def position_of(offset: int) -> str:
    """Return the position before the record at an offset.

    Examples
    --------
    >>> position_of(0)  # that of an empty log: `streaming.eventlog.FIRST`
    '0-0'
    """
    return f"{offset}-0"


def offset_of(position: str) -> int:
    """Return the offset of the first record behind a position; the inverse of `position_of`."""
    return int(position.partition("-")[0])


def _bytes(value: bytes | memoryview | str | int) -> bytes:
    return value if isinstance(value, bytes) else bytes(value) if isinstance(value, memoryview) else str(value).encode()
