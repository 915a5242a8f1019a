"""Requests for snapshots: one for all that wait for the same answer, and so many at once that nobody waits for others.

References
----------
V. Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988: what is under way is bounded by what came back before.
"""

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from streaming.results import VIEW_NUMBERS
from webapp.hub.engine_link import EngineLink

# The engine evaluates all snapshots that it is asked for in one batch. More than this would hold up the batch.
MOST_UNDER_WAY = 500
# The snapshots that one user has under way have at most so many rows, and those of all users, as long as each has one:
# who else is told something waits for them, too.
ROWS_UNDER_WAY, ROWS_OF_ALL = 20_000, 50_000
# While batches come late, all these are halved with each of them, down to a part; else this part of them is added back.
# What the engine is told waits behind the requests: also that a query that holds it up is paused.
LATE_S, LEAST_PART = 0.25, 1 / 16
# Whoever comes to a late engine has this part nevertheless, for so many rows in so many seconds: a page is filled soon.
PROMISED_PART, PROMISED_ROWS, PROMISED_S = 1 / 2, 100_000, 60.0
# So many rows has a snapshot for a user for whom none has come yet: a few are asked for, and tell how large they are.
USUAL_ROWS = 5_000
# A request that has brought nothing for this long makes room for another one: the engine may not know the query.
UNDER_WAY_S = 2.0
LONGEST_PATIENCE_S = 30.0


class _Line(NamedTuple):
    """Where requests wait for room: those of a user for views, or for saved queries."""

    owner: Hashable
    views: bool


@dataclass
class _Had:
    """What came for a line: how many rows a snapshot has, on average, and how many rows of its promise are used."""

    usual: int = USUAL_ROWS
    used: float = 0.0
    at: float = 0.0

    def add(self, counts: Collection[int]) -> None:
        """Count snapshots that have come, by their numbers of rows."""
        self.used, self.at = self.used_now() + sum(counts), time.monotonic()
        self.usual = sum(counts) // len(counts)

    def used_now(self) -> float:
        """Return how many rows of the promise are used; with time they are promised again."""
        return max(0.0, self.used - (time.monotonic() - self.at) * PROMISED_ROWS / PROMISED_S)


@dataclass(frozen=True)
class _Request:
    """A request: when it was sent, by `time.monotonic` in seconds, and after how many seconds it is sent again.

    Until its snapshot comes, it takes the room of as many rows as are expected.
    """

    line: _Line
    sent: float
    rows: int
    patience_s: float = UNDER_WAY_S

    @property
    def due(self) -> float:
        return self.sent + self.patience_s


class SnapshotRequests:
    """Asks the engine for snapshots, and asks again until they come.

    The requests of a user wait until there is room, in the order in which they are asked for; those that are asked for
    again wait behind them. Users take turns. Views do not wait for saved queries, since somebody has just moved a map.

    Parameters
    ----------
    link : EngineLink
    owner_of : function of a query
        Returns the user who waits for a snapshot of the query; None if nobody does any more.
    most : int
        How many requests for saved queries may be under way.
    """

    def __init__(self, link: EngineLink, owner_of: Callable[[int], Hashable], most: int = MOST_UNDER_WAY) -> None:
        self.link, self.owner_of, self.most = link, owner_of, most
        # The queries that wait for room, with the patience of their next request, and where each of them waits.
        self._lines: dict[_Line, dict[int, float]] = {}
        self._line_of: dict[int, _Line] = {}
        # The requests that were sent, and those of them that take room, the oldest first.
        self._sent: dict[int, _Request] = {}
        self._under_way: dict[int, _Request] = {}
        self._rows: Counter[_Line] = Counter()
        self._all_rows = self._saved = 0
        self._had: dict[_Line, _Had] = {}
        self._part = 1.0  # of what may be under way

    def ask(self, queries: Iterable[int], again: bool = False) -> None:
        """Ask for snapshots that are not under way; with `again` also for the others, whose requests were ignored."""
        for query in queries:
            if again:
                self._forget(query)
            if query not in self._sent and query not in self._line_of:
                self._queue(query, UNDER_WAY_S)
        self.send()

    def put_off(self, query: int) -> None:
        """Ask for a snapshot later, as if it had been asked for now."""
        self._unqueue(query)
        self._sent[query] = _Request(self._line(query), time.monotonic(), 0)

    def pace(self, lag_s: float) -> None:
        """Ask for less at once while batches come late, and for more again once they do not.

        Parameters
        ----------
        lag_s : float
            How old the newest element of a batch was when the batch was read.
        """
        self._part = max(self._part / 2, LEAST_PART) if lag_s > LATE_S else min(self._part + LEAST_PART, 1.0)

    def settle(self, came: Mapping[int, int]) -> None:
        """Forget the requests for snapshots that have come, each with so many rows, and send others in their place."""
        rows = defaultdict(list)
        for query, count in came.items():
            self._unqueue(query)
            if request := self._forget(query):
                rows[request.line].append(count)
        for line, counts in rows.items():
            self._had.setdefault(line, _Had()).add(counts)
        self.send()

    def remind(self) -> None:
        """Ask again for snapshots that are overdue; wait twice as long for the next time."""
        now = time.monotonic()
        for query, request in [(query, request) for query, request in self._sent.items() if now > request.due]:
            self._forget(query)
            self._queue(query, min(2 * request.patience_s, LONGEST_PATIENCE_S))
        self.send()

    def send(self) -> None:
        """Send the requests for which there is room, one of each line in turn."""
        now = time.monotonic()
        while self._under_way and now - next(iter(self._under_way.values())).sent > UNDER_WAY_S:
            self._make_room(next(iter(self._under_way)))
        turns = deque(self._lines)
        while turns:
            line = turns.popleft()
            if line in self._lines and self._has_room(line):
                self._send(next(iter(self._lines[line])), line)
                turns.append(line)

    def _has_room(self, line: _Line) -> bool:
        had = self._had.get(line)
        part = self._part if had and had.used_now() >= PROMISED_ROWS else max(self._part, PROMISED_PART)
        if not line.views and self._saved >= part * self.most:
            return False
        rows, more = self._rows[line], self._expected(line)
        under_way, of_all = part * ROWS_UNDER_WAY, part * ROWS_OF_ALL
        return not rows or (rows + more <= under_way and self._all_rows + more <= of_all)

    def _expected(self, line: _Line) -> int:
        had = self._had.get(line)
        return max(1, had.usual) if had else USUAL_ROWS

    def _line(self, query: int) -> _Line:
        return _Line(self.owner_of(query), query >= VIEW_NUMBERS)

    def _queue(self, query: int, patience_s: float) -> None:
        line = self._line(query)
        if line.owner is not None:
            self._line_of[query] = line
            self._lines.setdefault(line, {})[query] = patience_s

    def _unqueue(self, query: int) -> float:
        """Take a query out of its line, if it waits in one; return the patience of its next request."""
        line = self._line_of.pop(query, None)
        if line is None:
            return UNDER_WAY_S
        patience_s = self._lines[line].pop(query)
        if not self._lines[line]:
            del self._lines[line]
        return patience_s

    def _send(self, query: int, line: _Line) -> None:
        patience_s = self._unqueue(query)
        if self.owner_of(query) is None:
            return
        request = _Request(line, time.monotonic(), self._expected(line), patience_s)
        self._sent[query] = self._under_way[query] = request
        self._rows[line] += request.rows
        self._all_rows += request.rows
        self._saved += not line.views
        self.link.ask_snapshot(query)

    def _forget(self, query: int) -> _Request | None:
        self._make_room(query)
        return self._sent.pop(query, None)

    def _make_room(self, query: int) -> None:
        """Give the room of a request to others."""
        if request := self._under_way.pop(query, None):
            self._rows[request.line] -= request.rows
            self._all_rows -= request.rows
            self._saved -= not request.line.views
