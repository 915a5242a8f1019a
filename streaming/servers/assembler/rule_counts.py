"""How many objects the answers have that rules about whole answers name, second by second.

A change of a count is decided once its second is over, and reports of that second are no longer on their way. So the
count of a second does not depend on how the reports were cut into micro-batches. Only changes are kept until then, one
row for each query and second: the cost follows what changes, and not the size of the answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streaming.operators.rules import MICROSECONDS, Rules
from streaming.operators.runs import find, first_of_runs

# What is reported for later than this after the clock counts then.
AHEAD_US = 2 * MICROSECONDS
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Counts:
    """How many objects answers have.

    Parameters
    ----------
    query : ndarray of int64, shape (Q,)
        Ascending.
    count : ndarray of int64, shape (Q,)
    waiting : ndarray of int64, shape (K, 3)
        Changes that are not decided: the query, the time in microseconds, and how many objects more; by these.
    """

    query: np.ndarray = field(default_factory=lambda: _NONE)
    count: np.ndarray = field(default_factory=lambda: _NONE)
    waiting: np.ndarray = field(default_factory=lambda: _NONE.reshape(0, 3))

    def document(self) -> dict[str, Any]:
        """Return the counts as a JSON object."""
        return {name: getattr(self, name).tolist() for name in ("query", "count", "waiting")}

    @classmethod
    def of(cls, document: dict[str, Any]) -> "Counts":
        """Return the counts that a JSON object describes; the inverse of `document`."""
        query, count, waiting = (np.array(document[name], dtype=np.int64) for name in ("query", "count", "waiting"))
        return cls(query, count, waiting.reshape(-1, 3))

    def among(self, queries: np.ndarray) -> np.ndarray:
        """Return the counts of queries (K,), 0 for those that are not counted."""
        place, known = find(self.query, queries)
        count = np.zeros(len(queries), dtype=np.int64)
        count[known] = self.count[place[known]]
        return count

    def begun(self, queries: np.ndarray, members: np.ndarray) -> "Counts":
        """Return the counts of exactly some queries.

        Parameters
        ----------
        queries : ndarray of int64, shape (Q,)
            Ascending.
        members : ndarray of int64
            For each object in the answer of a query that is counted first, this query.
        """
        new = ~find(self.query, queries)[1]
        count = self.among(queries)
        members = np.sort(members)
        first = np.searchsorted(members, queries, "right") - np.searchsorted(members, queries, "left")
        count[new] = first[new]
        return Counts(queries, count, self.waiting[find(queries, self.waiting[:, 0])[1]])

    def changed(self, changes: Sequence[np.ndarray], clock_us: int) -> "Counts":
        """Return the counts with more changes that wait, each like `waiting`; of queries that are not counted, none."""
        rows = np.concatenate([self.waiting, *changes])
        rows = rows[find(self.query, rows[:, 0])[1]]
        rows[:, 1] = np.minimum(rows[:, 1], clock_us // MICROSECONDS * MICROSECONDS + AHEAD_US)
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        start = np.flatnonzero(first_of_runs(rows[:, 0]) | first_of_runs(rows[:, 1]))
        if len(start):
            rows = np.column_stack([rows[start, :2], np.add.reduceat(rows[:, 2], start)])
        return Counts(self.query, self.count, rows[rows[:, 2] != 0])

    def decided(self, now_us: int) -> tuple["Counts", np.ndarray, np.ndarray]:
        """Return the counts with the changes before a time, and these.

        Returns
        -------
        counts : Counts
        changes : ndarray of int64, shape (K, 3)
            Like `waiting`.
        before : ndarray of int64, shape (K,)
            The count before each change.
        """
        over = self.waiting[:, 1] < now_us
        rows = self.waiting[over]
        first = first_of_runs(rows[:, 0])
        summed = np.cumsum(rows[:, 2])
        of = np.cumsum(first) - 1
        base = (summed - rows[:, 2])[first][of]
        before = self.among(rows[:, 0]) + summed - rows[:, 2] - base
        count = self.count.copy()
        np.add.at(count, find(self.query, rows[:, 0])[0], rows[:, 2])
        return Counts(self.query, count, self.waiting[~over]), rows, before


@dataclass(frozen=True)
class Turned:
    """Terms of rules about whole answers that begin or cease to hold: a row for each.

    Parameters
    ----------
    rule : ndarray of int64, shape (K,)
        The numbers of the rules.
    bit : ndarray of int64, shape (K,)
        The bit of the term; 0 for a rule that begins.
    holds : ndarray of int64, shape (K,)
        1 or -1.
    time_us : ndarray of int64, shape (K,)
    """

    rule: np.ndarray
    bit: np.ndarray
    holds: np.ndarray
    time_us: np.ndarray

    def take(self, mask: np.ndarray) -> "Turned":
        """Return only the rows where a mask is true."""
        return Turned(self.rule[mask], self.bit[mask], self.holds[mask], self.time_us[mask])


def terms_turned(rules: Rules, changes: np.ndarray, before: np.ndarray) -> Turned:
    """Return the terms that begin or cease to hold, given what `Counts.decided` returns."""
    of, rule, bit, (were, are) = rules.counting(changes[:, 0], (before, before + changes[:, 2]))
    turned = were != are
    holds = np.where(are, 1, -1)[turned]
    return Turned(rules.ids[rule[turned]], bit[turned], holds, changes[of[turned], 1])


def terms_at_first(rules: Rules, new: np.ndarray, counts: Counts, since_us: int) -> Turned:
    """Return the terms that hold of rules that begin, with a row for each of these rules.

    Parameters
    ----------
    rules : Rules
    new : ndarray of int64
        The numbers of the rules that begin, ascending.
    counts : Counts
    since_us : int
    """
    _, rule, bit, (holds,) = rules.counting(counts.query, (counts.count,))
    rule = rules.ids[rule]
    mine = holds & find(new, rule)[1]
    whole = rules.ids[rules.whole]
    begun = whole[find(new, whole)[1]]
    rule, bit = np.r_[begun, rule[mine]], np.r_[np.zeros(len(begun), dtype=np.int64), bit[mine]]
    return Turned(rule, bit, np.ones(len(rule), dtype=np.int64), np.full(len(rule), since_us))
