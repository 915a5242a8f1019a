"""What Lookout needs of its logs. Any implementation must pass ``tests/eventlog/test_contract.py``."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

# The position before the first entry of every log.
FIRST = "0-0"
NONE_PASSED: Mapping[str, int] = {}
NONE_AHEAD: Mapping[str, str] = {}

Fields = Mapping[str, bytes | memoryview | str | int]


class Entry(NamedTuple):
    """An entry of a log.

    Parameters
    ----------
    position : str
        The position behind the entry; positions are compared by the log alone.
    fields : dict of bytes to bytes
    appended_ms : int
        When the log took the entry: wall-clock time of the log's server, in milliseconds.
    """

    position: str
    fields: dict[bytes, bytes]
    appended_ms: int


@dataclass(frozen=True)
class Bound:
    """How much of a log is kept. The oldest entries are removed when a new one is appended.

    Parameters
    ----------
    most_bytes : int
        Largest size of the log (see `EventLog.size`).
    most_ms : int
        Largest age of an entry, in milliseconds.
    least_entries : int
        At least this many of the newest entries are kept, however large they are, unless they are too old.
    """

    most_bytes: int
    most_ms: int
    least_entries: int = 1


class BoundedEntry(NamedTuple):
    """An entry to be appended to a log that is bounded."""

    log: str
    fields: Fields
    bound: Bound


class Stamp(NamedTuple):
    """Names one of the appends of a producer, so that a repeated append can be recognised.

    Parameters
    ----------
    producer : str
        Unique among the producers that append to the same log.
    epoch : str
        The numbers of a producer start again in a new epoch.
    number : int
        Rises from append to append within an epoch.
    """

    producer: str
    epoch: str
    number: int


class EventLog(Protocol):
    """Named logs of entries. The entries of a log have a total order, and a position behind each of them.

    While there is no room for them, entries are refused with an error, or a patient implementation waits. What was
    refused may be appended again.

    A log exists as soon as an entry is appended to it; a log that does not exist is an empty one. Several programs may
    use a log at the same time. Positions rise for ever, also across `trim`. An implementation for asyncio has the same
    methods, and they return awaitables.
    """

    def append(self, log: str, fields: Fields) -> str:
        """Append an entry to a log, and return its position."""

    def append_all(self, entries: Iterable[tuple[str, Fields]]) -> list[str]:
        """Append entries to logs in one round trip, in their order, all or none; return their positions."""

    def append_once(self, stamp: Stamp, entries: Sequence[BoundedEntry]) -> bool:
        """Append all entries, or none of them if the producer has appended this number or a later one of the epoch.

        Either all entries are appended, or none. The log of the first entry keeps the producer's newest stamp, so it
        must be the same for all appends of a producer. A bounded log must get its entries from this method alone.

        Returns
        -------
        bool
            Whether the entries were appended.

        References
        ----------
        This is what Kafka's idempotent and transactional producers do (KIP-98).
        """

    def append_once_all(self, appends: Iterable[tuple[Stamp, Sequence[BoundedEntry]]]) -> list[bool]:
        """Do several `append_once` in one round trip, in their order; return what each returns.

        Each is atomic, all together are not: if the connection breaks, the first ones may have taken effect.
        """

    def read(
        self,
        log: str,
        after: str = FIRST,
        upto: str | None = None,
        limit: int | None = None,
        only: Sequence[str] | None = None,
    ) -> list[Entry]:
        """Return entries of a log, the oldest first.

        Parameters
        ----------
        log : str
        after : str
            The position behind which reading starts.
        upto : str, optional
            The position of the last entry to return; by default the newest one.
        limit : int, optional
            How many entries to return at most.
        only : sequence of str, optional
            Names of the fields to return; by default all. The other fields are not transferred.
        """

    def read_back(self, log: str, before: str | None = None, limit: int | None = None) -> list[Entry]:
        """Return the entries before a position, or the newest entries, at most `limit`; the newest first.

        The entry of the position `before` itself is not among them.
        """

    def poll(self, after: Mapping[str, str], limit: int, wait_s: float) -> dict[str, list[Entry]]:
        """Return the entries behind positions; if there are none, wait for the first one.

        Parameters
        ----------
        after : mapping of str to str
            The position behind which reading starts, by log.
        limit : int
            How many entries of each log to return at most.
        wait_s : float
            How long to wait, in seconds; rounded to milliseconds, at least 1 ms.

        Returns
        -------
        dict of str to list of Entry
            The oldest first, by log; without the logs that have no new entries.
        """

    def ends(
        self,
        after: Mapping[str, str],
        most: Mapping[str, int],
        passed: Mapping[str, int] = NONE_PASSED,
        ahead: Mapping[str, str] = NONE_AHEAD,
    ) -> dict[str, str]:
        """Return how far each log can be read; no entry is transferred.

        Parameters
        ----------
        after : mapping of str to str
            The position behind which reading starts, by log.
        most : mapping of str to int
            How many entries may be read, by log; one that has more entries than this is read up to the last of them.
        passed : mapping of str to int
            How many entries a log has at least up to `after`, if this is known. Then these need not be counted.
        ahead : mapping of str to str
            A position that has at most `most` entries before it behind `after`, if one is known. A log that has more
            than that is read up to there, if the position is behind `after`. Then no entry is looked at.

        Returns
        -------
        dict of str to str
            The position of the last entry to read, by log; that of `after` if the log has nothing new.
        """

    def newest(self, log: str) -> str:
        """Return the position of a log's newest entry; `FIRST` if the log is empty."""

    def trim(self, behind: Mapping[str, str]) -> None:
        """Remove the entries of logs up to and including a position, by log."""

    def length(self, log: str) -> int:
        """Return the number of entries in a log."""

    def size(self, log: str) -> int:
        """Return the size of a bounded log in bytes: its field names and values, and a constant for each entry."""

    def delete(self, logs: Iterable[str]) -> None:
        """Delete logs with all that is known of them."""

    def sync(self) -> None:
        """Return once all entries of all logs that were appended before this call survive a power cut.

        One call is enough for many appends. Nobody may say that an entry is safe before it has returned.
        """


def next_ends(
    event_log: EventLog,
    after: Mapping[str, str],
    most: Mapping[str, int],
    wait_s: float,
    passed: Mapping[str, int] = NONE_PASSED,
    ahead: Mapping[str, str] = NONE_AHEAD,
) -> Mapping[str, str]:
    """Return how far each log can be read (see `EventLog.ends`); if no log has a new entry, wait for one.

    Parameters
    ----------
    event_log : EventLog
    after : mapping of str to str
        The position behind which reading starts, by log.
    most : mapping of str to int
        How many entries may be read, by log.
    wait_s : float
        How long to wait for an entry if no log has a new one, in seconds.
    passed, ahead : mapping
        See `EventLog.ends`.
    """
    found = event_log.ends(after, most, passed, ahead)
    if found == after and event_log.poll(after, 1, wait_s):
        found = event_log.ends(after, most, passed, ahead)
    return found
