"""Rules of one space, compiled: their conditions, times and schedules as columns."""

import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from streaming.kinds.rule.conditions import MOST_QUERIES
from streaming.kinds.rule.plan import RulePlan
from streaming.operators.runs import expand, find

MICROSECONDS = 1_000_000


class Rules:
    """An immutable set of rules.

    Parameters
    ----------
    plans : mapping of int to RulePlan
        By query, ascending.

    Attributes
    ----------
    ids : ndarray of int64, shape (R,)
        The numbers of the rules, ascending. The other arrays and methods refer to positions in it.
    for_us, rearm_us : ndarray of int64, shape (R,)
        In whole seconds, rounded up: so it does not matter when in a second the clock is set.
    more_than, within_us : ndarray of int64, shape (R,)
        The rate; 0 without one.
    whole : ndarray of bool, shape (R,)
        Which rules are about whole answers, and not about objects.
    """

    def __init__(self, plans: Mapping[int, RulePlan]) -> None:
        self.ids = np.array(list(plans), dtype=np.int64)
        rules = list(plans.values())
        self.for_us, self.rearm_us = (
            np.array([_whole_seconds_us(getattr(rule, name)) for rule in rules], dtype=np.int64)
            for name in ("for_s", "rearm_s")
        )
        rates = [
            (rule.rate.more_than, _whole_seconds_us(rule.rate.within_s)) if rule.rate else (0, 0) for rule in rules
        ]
        self.more_than, self.within_us = np.array(rates, dtype=np.int64).reshape(-1, 2).T
        tables = [rule.tables for rule in rules] or [(np.zeros(1 << MOST_QUERIES, dtype=bool),) * 2]
        self._begins, self._lasts = np.stack([begins for begins, _ in tables]), np.stack([lasts for _, lasts in tables])
        named = [
            (term.query, place, bit, *_limits(term))
            for place, rule in enumerate(rules)
            for bit, term in enumerate(rule.terms)
        ]
        self.whole = np.array([rule.whole for rule in rules], dtype=bool)
        self._objects, self._counts = (
            _Terms([row for row in named if self.whole[row[1]] == whole]) for whole in (False, True)
        )
        self._schedules = {place: rule.schedule for place, rule in enumerate(rules) if rule.schedule}
        self._known_at: tuple[int, int, tuple[np.ndarray, np.ndarray]] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @functools.cached_property
    def queries(self) -> np.ndarray:
        """The numbers of the queries that the rules name, int64, ascending, each once."""
        return np.union1d(self._objects.query, self._counts.query)

    @functools.cached_property
    def counted(self) -> np.ndarray:
        """The numbers of the queries whose objects are counted, int64, ascending, each once."""
        return np.unique(self._counts.query)

    def naming(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return which rules about objects name queries (K,).

        Returns
        -------
        of, rule, bit : ndarray of int64
            The position in `queries`, the position of the rule, and the bit of the query there.
        """
        of, row = self._objects.naming(queries)
        return of, self._objects.rule[row], self._objects.bit[row]

    def counting(
        self, queries: np.ndarray, counts: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
        """Return which terms of rules about whole answers hold.

        Parameters
        ----------
        queries : ndarray of int64, shape (K,)
        counts : sequence of ndarray of int64, each of shape (K,)
            How many objects the answers have, at several times.

        Returns
        -------
        of, rule, bit : ndarray of int64
            The position in `queries`, the position of the rule, and the bit of the term there.
        holds : tuple of ndarray of bool
            Whether the term holds, at each of the times.
        """
        terms = self._counts
        of, row = terms.naming(queries)
        holds = tuple((terms.above[row] < count[of]) & (count[of] < terms.below[row]) for count in counts)
        return of, terms.rule[row], terms.bit[row], holds

    def begins(self, rule: np.ndarray, bits: np.ndarray) -> np.ndarray:
        """Tell whether the condition of rules (K,) holds, given in which answers an object is, as bits: bool."""
        return self._begins[rule, bits]

    def lasts(self, rule: np.ndarray, bits: np.ndarray) -> np.ndarray:
        """Tell whether an alarm of rules (K,) lasts; see `begins`."""
        return self._lasts[rule, bits]

    def on(self, now_us: int) -> np.ndarray:
        """Tell which rules count now, by their schedules: bool of shape (R,)."""
        return self._at(now_us)[0]

    def off(self, now_us: int) -> np.ndarray:
        """Return the numbers of the rules that do not count now, int64, ascending."""
        return self._at(now_us)[1]

    def until_us(self, now_us: int) -> int:
        """Return until when the same rules count as now, in microseconds since 1970 UTC; int64's maximum if always."""
        return self._at(now_us)[2]

    def _at(self, now_us):
        """Return what `on`, `off` and `until_us` do; it is kept until a schedule begins or ends."""
        if self._known_at is None or not self._known_at[0] <= now_us < self._known_at[1]:
            on, until_us = np.ones(len(self.ids), dtype=bool), np.iinfo(np.int64).max
            for place, schedule in self._schedules.items():
                on[place], bound_us = schedule.at(now_us)
                until_us = min(until_us, bound_us)
            self._known_at = now_us, until_us, (on, self.ids[~on])
        return *self._known_at[2], self._known_at[1]

    def place_of(self, rules: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of rules, given their numbers (K,), and which there are."""
        return find(self.ids, rules)


class _Terms:
    """The terms of rules, ordered by the queries that they name."""

    def __init__(self, rows):
        rows = sorted(rows)
        self.query, self.rule, bit = np.array([row[:3] for row in rows], dtype=np.int64).reshape(-1, 3).T
        self.bit = np.int64(1) << bit
        self.above, self.below = np.array([row[3:] for row in rows], dtype=np.float64).reshape(-1, 2).T

    def naming(self, queries):
        """Return which terms name queries: the positions in `queries`, and those of the terms."""
        start = np.searchsorted(self.query, queries, "left")
        return expand(start, np.searchsorted(self.query, queries, "right") - start)


def _limits(term):
    """Return the bounds between which the count of a term is, both excluded."""
    return -math.inf if term.above is None else term.above, math.inf if term.below is None else term.below


def _whole_seconds_us(seconds):
    """Return seconds, rounded up to whole ones, in microseconds."""
    return math.ceil(seconds) * MICROSECONDS
