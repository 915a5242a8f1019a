"""Where batches begin and end: decided once, and kept in a log, so that all tasks and every repetition agree.

The *coordinator*, which is the first task of an interval, decides up to where each batch reads the logs. The others
follow it, and so does whoever runs these batches again. A decision is in the log before anything that follows from it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from streaming.eventlog import FIRST, Bound, BoundedEntry, Entry, EventLog, Stamp
from streaming.keys import LogNames

# The position in the log of cuts, among the positions in the other logs.
CUTS = "cuts"
_PRODUCER = "coordinator"
# The log is trimmed behind the durable state. The bound is only for an engine whose state cannot be synced for a day.
_KEPT = Bound(most_bytes=256_000_000, most_ms=86_400_000)

Positions = Mapping[str, str]


@dataclass(frozen=True)
class Cut:
    """A decision of the coordinator: the end of a batch, or the end of an interval.

    Parameters
    ----------
    batch : int
        The batch that ends here, or the last one of the interval.
    positions : mapping of str to str
        The position in each log up to which the batch reads. Once read from the log of cuts, it has the position there
        as well.
    saved : bool
        Whether the tasks save their states as a part of the batch. An interval's last states are always saved.
    closes : bool
        Whether the interval ends here. Then this is no batch.
    """

    batch: int
    positions: Positions
    saved: bool = False
    closes: bool = False

    @property
    def number(self) -> int:
        """The number of the decision: even for the end of a batch, odd for that of an interval."""
        return 2 * self.batch + self.closes


class CutLog:
    """The log of the decisions of one epoch.

    Parameters
    ----------
    event_log : EventLog
    name : str
        The name of the log.
    epoch : str
    """

    def __init__(self, event_log: EventLog, name: str, epoch: str) -> None:
        self._event_log, self._name, self._epoch = event_log, name, epoch

    def append(self, cut: Cut) -> None:
        """Append a decision, unless this or a later one is known. Then another attempt was faster; read it."""
        document = {"epoch": self._epoch, "batch": cut.batch, "positions": cut.positions}
        document |= {"saved": cut.saved, "closes": cut.closes}
        entry = BoundedEntry(self._name, {"cut": orjson.dumps(document)}, _KEPT)
        self._event_log.append_once(Stamp(_PRODUCER, self._epoch, cut.number), [entry])

    def after(self, position: str) -> list[Cut]:
        """Return the decisions behind a position of the log, in their order."""
        return self._cuts(self._event_log.read(self._name, position))

    def wait(self, position: str, wait_s: float) -> list[Cut]:
        """Return the decisions behind a position; if there are none, wait for some."""
        return self._cuts(self._event_log.poll({self._name: position}, 100, wait_s).get(self._name, ()))

    def _cuts(self, entries: Iterable[Entry]) -> list[Cut]:
        documents = ((entry.position, orjson.loads(entry.fields[b"cut"])) for entry in entries)
        return [_cut(document, position) for position, document in documents if document["epoch"] == self._epoch]


def _cut(document: Mapping[str, Any], position: str) -> Cut:
    # Releases up to 0.5 had no log of definitions.
    positions = {DEFINITIONS: FIRST, **document["positions"], CUTS: position}
    return Cut(document["batch"], positions, document["saved"], document["closes"])


@dataclass(frozen=True)
class Point:
    """A point between two intervals, from which the next one continues.

    Parameters
    ----------
    batch : int
        The last batch before; -1 if there is none.
    positions : mapping of str to str
        Up to where the logs are read, and the log of cuts.
    """

    batch: int
    positions: Positions


def beginning(partitions: int) -> Point:
    """Return the point before the first entry of all logs."""
    return Point(-1, dict.fromkeys([CUTS, *log_names(partitions)], FIRST))


DEFINITIONS, CONTROL = "definitions", "control"


def log_names(partitions: int) -> list[str]:
    """Return the names that positions have for the logs that an engine reads, in the order in which ends are looked up.

    What a stream is comes before its elements. So the end of the log that has it is looked up after those of the
    partitions.
    """
    return [*map(str, range(partitions)), CONTROL, DEFINITIONS]


def logs_read(names: LogNames, partitions: int) -> dict[str, str]:
    """Return the logs that an engine reads, by the names that positions have for them; in the order of `log_names`."""
    logs = [*names.all_ingest(partitions), names.control, names.definitions]
    return dict(zip(log_names(partitions), logs, strict=True))
