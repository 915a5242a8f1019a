"""Requests for snapshots: one for all that wait for the same answer, and a bounded number under way at once."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from streaming.results import VIEW_NUMBERS
from webapp.hub.engine_link import EngineLink

# The engine evaluates all snapshots that it is asked for in one batch. More than this would hold up the batch.
MOST_UNDER_WAY = 500
# A request that has brought nothing for this long makes room for another one: the engine may not know the query.
UNDER_WAY_S = 2.0
LONGEST_PATIENCE_S = 30.0


@dataclass(frozen=True)
class _Request:
    """A request: when it was sent, by `time.monotonic` in seconds, and after how many seconds it is sent again."""

    sent: float
    patience_s: float = UNDER_WAY_S

    @property
    def due(self) -> float:
        return self.sent + self.patience_s


class SnapshotRequests:
    """Asks the engine for snapshots, and asks again until they come.

    Views are asked for at once, since somebody has just moved a map. Saved queries wait for room in the order in which
    they are asked for; those that are asked for again wait behind them.

    Parameters
    ----------
    link : EngineLink
    wanted : function of a query
        Returns whether anybody still waits for a snapshot of the query.
    most : int
        How many requests for saved queries may be under way.
    """

    def __init__(self, link: EngineLink, wanted: Callable[[int], bool], most: int = MOST_UNDER_WAY) -> None:
        self.link, self.wanted, self.most = link, wanted, most
        # The queries that wait for room, with the patience of their next request; and the requests that were sent.
        self._queued: dict[int, float] = {}
        self._sent: dict[int, _Request] = {}
        self._under_way: dict[int, float] = {}  # when each was sent, the oldest first

    def ask(self, queries: Iterable[int], again: bool = False) -> None:
        """Ask for snapshots that are not under way; with `again` also for the others, whose requests were ignored."""
        for query in queries:
            if again:
                self._forget(query)
            if query not in self._sent:
                self._queued.setdefault(query, UNDER_WAY_S)
                if query >= VIEW_NUMBERS:
                    self._send(query)
        self.send()

    def put_off(self, query: int) -> None:
        """Ask for a snapshot later, as if it had been asked for now."""
        self._queued.pop(query, None)
        self._sent[query] = _Request(time.monotonic())

    def settle(self, queries: Iterable[int]) -> None:
        """Forget the requests for snapshots that have come, and send others in their place."""
        for query in queries:
            self._queued.pop(query, None)
            self._forget(query)
        self.send()

    def remind(self) -> None:
        """Ask again for snapshots that are overdue; wait twice as long for the next time."""
        now = time.monotonic()
        for query, request in [(query, request) for query, request in self._sent.items() if now > request.due]:
            self._forget(query)
            if self.wanted(query):
                self._queued[query] = min(2 * request.patience_s, LONGEST_PATIENCE_S)
        self.send()

    def send(self) -> None:
        """Send the requests for which there is room."""
        now = time.monotonic()
        while self._under_way and now - next(iter(self._under_way.values())) > UNDER_WAY_S:
            del self._under_way[next(iter(self._under_way))]
        while self._queued and len(self._under_way) < self.most:
            self._send(next(iter(self._queued)))

    def _send(self, query: int) -> None:
        patience_s, now = self._queued.pop(query), time.monotonic()
        if self.wanted(query):
            self._sent[query] = _Request(now, patience_s)
            if query < VIEW_NUMBERS:
                self._under_way[query] = now
            self.link.ask_snapshot(query)

    def _forget(self, query: int) -> None:
        self._sent.pop(query, None)
        self._under_way.pop(query, None)
