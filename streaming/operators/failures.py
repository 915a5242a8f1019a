"""By query: filters that failed, reports that were not used, what the evaluation cost, and if there was no room."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np

from streaming.operators.allowance import FOUND, PairAllowance
from streaming.operators.asked import Asked, Owners, refused_unseen, too_many
from streaming.operators.runs import find

V = TypeVar("V")
# Why reports were not used: they came too late, or their objects would have been too fast.
LATE, DOUBTED = "late", "doubted"


class Unused(NamedTuple):
    """Reports that a query did not use, all of one kind: the newest reason, and how many reports they are."""

    reason: str
    reports: int


# By query and kind.
UnusedReports = dict[tuple[int, str], Unused]


class Failures:
    """Collects, while elements are matched, the first failure of each query, what it cost, and if it asks for too much.

    Queries that are evaluated together share the measured time in proportion to the work that each one causes: the
    number of candidates that are compared for it.

    Parameters
    ----------
    allowance : PairAllowance, optional
        Of the step; by default there is no limit.

    Attributes
    ----------
    errors : dict of int to str
        What failed first and why, by query.
    unused : dict of (int, str) to Unused
        The reports that were not used, by query and kind: `LATE` or `DOUBTED`.
    asked : list of Asked
        What queries asked to look at.
    cut : set of int
        The queries whose evaluation ended early, as there was no more room, so that what they ask for is not known.
    alone : dict of int to float
        What queries ask for that alone ask for more than there is room for.
    refused : dict of int to str
        Why queries were not evaluated for which the step had no room.

    Examples
    --------
    >>> failures = Failures()
    >>> failures.note(np.array([7, 7, 9]), "the filter good failed: KeyError: 'name'")
    >>> failures.note(np.array([9]), None)
    >>> failures.errors[9]
    "the filter good failed: KeyError: 'name'"
    >>> failures.share(np.array([2, 2, 0, 2]), 1.0)
    >>> failures.seconds
    {0: 0.25, 2: 0.75}
    """

    def __init__(self, allowance: PairAllowance | None = None) -> None:
        self.allowance = allowance or PairAllowance()
        self.errors: dict[int, str] = {}
        self.unused: UnusedReports = {}
        self.refused: dict[int, str] = {}
        self.asked: list[Asked] = []
        self.cut: set[int] = set()
        self.alone: dict[int, float] = {}
        self._spent: list[tuple[np.ndarray, np.ndarray]] = []

    def part(self) -> "Failures":
        """Return an empty collection of the same step, to be added later."""
        return Failures(self.allowance)

    def note(self, queries: np.ndarray, error: str | None) -> None:
        """Note that a filter failed for queries.

        Parameters
        ----------
        queries : ndarray of int64
            May repeat. A query that failed before keeps its first error.
        error : str or None
            None if nothing failed: then this does nothing.
        """
        if error is not None:
            for query in np.unique(queries).tolist():
                self.errors.setdefault(query, error)

    def leave(self, queries: np.ndarray, kind: str, reason: str, reports: int) -> None:
        """Note that queries, of shape (Q,), did not use some reports."""
        self.unused |= dict.fromkeys(((query, kind) for query in queries.tolist()), Unused(reason, reports))

    def ask(self, asked: Asked) -> bool:
        """Count pairs before queries look at them; return whether the step has room for them.

        If not, nothing more is to be looked at, but all that would be is counted, by this or by `miss`: `settled` then
        finds for whom there is no room. What the step returns is not used.
        """
        self.asked.append(asked)
        return self.allowance.take(float(asked.pairs.sum()))

    def looking(self, queries: np.ndarray) -> Callable[[np.ndarray, np.ndarray], bool]:
        """Return what counts pieces of the pairs of queries that are evaluated together; see `lines.Look`."""
        return lambda pairs, count: self.ask(Asked.jointly(queries, float(count.sum())))

    def find(self, queries: np.ndarray, pairs: int) -> bool:
        """Count pairs that were found for queries which are evaluated together; return whether there was room."""
        self.asked.append(Asked.jointly(queries, FOUND * pairs))
        return self.allowance.find(pairs)

    def miss(self, queries: np.ndarray, pairs: int) -> None:
        """Count pairs that queries which are evaluated together would look at if there was room."""
        self.asked.append(Asked.jointly(queries, self.allowance.expected(pairs)))

    def goes_on(self, queries: np.ndarray, took: float, looked_at: int, rest: int) -> bool:
        """Tell whether queries that are evaluated together look at more pairs; see `PairAllowance.exceeded`.

        If they alone ask for more than there is room for, they are refused, and no others.
        """
        asked = self.allowance.exceeded(took, looked_at, rest)
        if asked is not None:
            self.alone |= dict.fromkeys(queries.tolist(), asked)
        return asked is None and self.allowance.has_room

    def while_there_is_room(self, queries: Iterable[tuple[int, V]]) -> Iterator[tuple[int, V]]:
        """Yield queries, each with what belongs to it, as long as the step has room; those that are left are cut."""
        for query, its in queries:
            if self.allowance.has_room:
                yield query, its
            else:
                self.cut.add(query)

    def settled(self, owners: Owners) -> dict[int, str]:
        """Refuse queries if there was no room for what all asked for; return why queries are refused, by query.

        If some alone ask for too much, it is not known what the others ask for.
        """
        if self.alone:
            self.refused |= {query: too_many(asked, self.allowance.most) for query, asked in self.alone.items()}
        elif not self.allowance.has_room:
            self.refused |= Asked.all_of(self.asked).refused(self.allowance.most, owners)
        if self.refused:
            self.refused |= refused_unseen(self.cut - self.refused.keys(), self.refused.keys(), owners)
        return self.refused

    def keep(self, queries: np.ndarray, owners: Owners) -> None:
        """Refuse queries if the step has no room for what all keep.

        Parameters
        ----------
        queries : ndarray of int64, shape (P,)
            The query of each pair that is kept.
        owners : callable
        """
        if len(queries) > self.allowance.kept:
            self.refused |= Asked.apart(queries, np.full(len(queries), FOUND)).refused(self.allowance.most, owners)

    def share(self, queries: np.ndarray, seconds: float, among: np.ndarray | None = None) -> None:
        """Share a cost among queries.

        Parameters
        ----------
        queries : ndarray of int64
            The positions of queries, or their numbers if `among` is given. A query has a share for each time it occurs.
        seconds : float
            What the queries cost together.
        among : ndarray of int64, optional
            The numbers of known queries, ascending. The shares of other queries are dropped.
        """
        if not len(queries):
            return
        each = seconds / len(queries)
        if among is not None:
            position, known = find(among, queries)
            queries = position[known]
        if not len(queries):
            return
        known, work = _counted(queries)
        self.charge(known if among is None else among[known], each * work)

    def charge(self, queries: np.ndarray, seconds: np.ndarray) -> None:
        """Add costs to queries: `queries` has the shape (Q,) and may repeat, `seconds` is float64 of shape (Q,)."""
        self._spent.append((queries, seconds))

    def add(self, others: "Failures", numbers: np.ndarray) -> None:
        """Add the failures and costs of `others`, which are by position; `numbers` has the number for each position."""
        for position, error in others.errors.items():
            self.errors.setdefault(int(numbers[position]), error)
        self.asked += [asked.numbered(numbers) for asked in others.asked]
        self.cut.update(int(numbers[position]) for position in others.cut)
        self.alone |= {int(numbers[position]): asked for position, asked in others.alone.items()}
        for queries, seconds in others._spent:
            self.charge(numbers[queries], seconds)

    @property
    def seconds(self) -> dict[int, float]:
        """What each query cost, in seconds, by query."""
        queries, seconds = self.costs()
        return dict(zip(queries.tolist(), seconds.tolist(), strict=True))

    def costs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the queries that were charged, int64, ascending, and the seconds of each, float64."""
        spent = [(np.empty(0, dtype=np.int64), np.empty(0)), *self._spent]
        queries, seconds = (np.concatenate(parts) for parts in zip(*spent, strict=True))
        queries, place = np.unique(queries, return_inverse=True)
        return queries, np.bincount(place, weights=seconds, minlength=len(queries))


def _counted(queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct queries, ascending, and how often each occurs; the cost follows the fewer of both."""
    if queries.max() > 4 * len(queries):
        return np.unique(queries, return_counts=True)
    work = np.bincount(queries)
    known = np.flatnonzero(work)
    return known, work[known]
