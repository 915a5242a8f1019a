"""Count what the engine did in a span of time, from the heads of the fragments in its result log."""

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import orjson
import redis

from streaming.eventlog import open_log
from streaming.keys import LogNames

POLL_S = 0.2


@dataclass(frozen=True)
class Work:
    """Elements taken, results published and batches a second, between the first and the last batch of a span."""

    elements_per_s: float
    results_per_s: float
    batches_per_s: float


class Follower(ABC):
    """Follows a result log in its own thread, as a context manager.

    Parameters
    ----------
    redis_url : str
    space : str
    log_url : str
        Where Kafka is, if the logs are there.
    """

    def __init__(self, redis_url: str, space: str = "earth", log_url: str = "") -> None:
        self._client, self._log = redis.Redis.from_url(redis_url), LogNames(space).results
        self._event_log = open_log(self._client, log_url)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()

    @abstractmethod
    def _follow(self):
        """Read the log until `_stop` is set."""


class Meter(Follower):
    """Counts what is published while it follows the log.

    Attributes
    ----------
    told : list of (time_ms, batch, counters)
        One for each fragment since the start, in the order of the log.
    """

    def __init__(self, redis_url: str, space: str = "earth", log_url: str = "") -> None:
        super().__init__(redis_url, space, log_url)
        self.told: list[tuple[int, int, dict]] = []

    def __enter__(self) -> Self:
        self._position = self._event_log.newest(self._log)
        return super().__enter__()

    def _follow(self):
        last = False
        while not last:
            last = self._stop.wait(POLL_S)
            for entry in self._event_log.read(self._log, self._position, only=("batch", "head")):
                self._position, counters = entry.position, orjson.loads(entry.fields[b"head"])["counters"]
                self.told.append((entry.appended_ms, int(entry.fields[b"batch"]), counters))

    @property
    def work(self) -> Work:
        """The work that has been counted so far."""
        return work_of(self.told)


def work_of(told: list[tuple[int, int, dict]]) -> Work:
    """Return the work between the first and the last fragment.

    Parameters
    ----------
    told : list of (time_ms, batch, counters)
        One for each fragment, in the order of the log.

    Examples
    --------
    >>> work_of([(0, 1, {"elements": 9}), (500, 2, {"elements": 5, "results": 2}), (1000, 3, {"elements": 5})])
    Work(elements_per_s=10.0, results_per_s=2.0, batches_per_s=2.0)
    """
    if len(told) < 2:
        return Work(0.0, 0.0, 0.0)
    seconds = (told[-1][0] - told[0][0]) / 1000 or 1.0
    counters = [counter for *_, counter in told[1:]]
    elements = sum(counter.get("elements", 0) for counter in counters)
    results = sum(counter.get("results", 0) for counter in counters)
    batches = len({batch for _, batch, _ in told[1:]})
    return Work(elements / seconds, results / seconds, batches / seconds)
