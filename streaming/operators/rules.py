"""Rules of one space, compiled: their conditions, times and schedules as columns."""

import functools
import math
from collections.abc import Mapping

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
        named = [(query, place, bit) for place, rule in enumerate(rules) for bit, query in enumerate(rule.queries)]
        self._query, self._rule, self._bit = np.array(sorted(named), dtype=np.int64).reshape(-1, 3).T
        self._schedules = {place: rule.schedule for place, rule in enumerate(rules) if rule.schedule}
        self._known_at: tuple[int, int, tuple[np.ndarray, np.ndarray]] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @functools.cached_property
    def queries(self) -> np.ndarray:
        """The numbers of the queries that the rules name, int64, ascending, each once."""
        return np.unique(self._query)

    def naming(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return which rules name queries (K,): for each the position in `queries`, the rule's, and its bit there."""
        start = np.searchsorted(self._query, queries, "left")
        of, row = expand(start, np.searchsorted(self._query, queries, "right") - start)
        return of, self._rule[row], np.int64(1) << self._bit[row]

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


def _whole_seconds_us(seconds):
    """Return seconds, rounded up to whole ones, in microseconds."""
    return math.ceil(seconds) * MICROSECONDS
