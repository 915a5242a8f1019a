"""Rules of one space, compiled: their conditions, times and schedules as columns."""

import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from streaming.elements import key_hashes, stream_number
from streaming.kinds.rule.conditions import MOST_QUERIES, TRUE, UNKNOWN, RuleCondition
from streaming.kinds.rule.plan import RulePlan
from streaming.operators.runs import expand, find
from streaming.operators.schedules import Schedules

MICROSECONDS = 1_000_000
# In place of the group of a number: it is how many objects an answer has, and not the value of a group.
COUNT = 0
# The terms of rules about silence, as bits: the object is in the answer; it has left it only because it was silent; it
# has been silent for long enough.
MEMBER, LOST, SILENT = 1, 2, 4
# The lower bits of an entry tell which terms are true, and the bits from this one on which are unknown.
UNKNOWN_BIT = MOST_QUERIES
_TERM_BITS = (1 << MOST_QUERIES) - 1
# By a set of bits: the number whose digits in base 3 are these bits.
_IN_BASE_3 = (
    (np.arange(1 << MOST_QUERIES)[:, None] >> np.arange(MOST_QUERIES) & 1) * 3 ** np.arange(MOST_QUERIES)
).sum(1)


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
    silent_us : ndarray of int64, shape (R,)
        For how long an object must be silent, 0 for rules that are not about that. These have `for_us` 0: an alarm
        begins when an object has been silent for long enough.
    more_than, within_us : ndarray of int64, shape (R,)
        The rate; 0 without one.
    plans : list of RulePlan, length R
    whole : ndarray of bool, shape (R,)
        Which rules are about whole answers, and not about objects.
    numbers : ndarray of int64, shape (N, 2)
        The numbers that rules about whole answers look at, each once, ascending: the query, and `COUNT`, or the hash of
        the group whose value it is.
    """

    def __init__(self, plans: Mapping[int, RulePlan]) -> None:
        self.ids = np.array(list(plans), dtype=np.int64)
        self.plans = rules = list(plans.values())
        self.for_us, self.rearm_us = (
            np.array([_us(getattr(rule, name)) for rule in rules], dtype=np.int64) for name in ("for_s", "rearm_s")
        )
        silent = np.array([rule.silent for rule in rules], dtype=bool)
        self.silent_us, self.for_us = np.where(silent, self.for_us, 0), np.where(silent, 0, self.for_us)
        rates = [(rule.rate.more_than, _us(rule.rate.within_s)) if rule.rate else (0, 0) for rule in rules]
        self.more_than, self.within_us = np.array(rates, dtype=np.int64).reshape(-1, 2).T
        tables = [rule.tables for rule in rules]
        sizes = np.array([len(begins) for begins, _ in tables], dtype=np.int64)
        self._first = np.cumsum(sizes) - sizes
        none = np.empty(0, dtype=np.int8)
        self._begins, self._lasts = (np.concatenate([none, *(two[of] for two in tables)]) for of in (0, 1))
        self.whole = np.array([rule.whole for rule in rules], dtype=bool)
        of_objects = [(rule, place) for place, rule in enumerate(rules) if not rule.whole]
        self._objects = _Terms(
            [(term.query, place, bit) for rule, place in of_objects for bit, term in enumerate(rule.terms)]
        )
        numbers = [
            (term, place, bit) for place, rule in enumerate(rules) if rule.whole for bit, term in enumerate(rule.terms)
        ]
        named = np.array([[term.query, number_of(term)] for term, _, _ in numbers], dtype=np.int64).reshape(-1, 2)
        self.numbers, number = np.unique(named, axis=0, return_inverse=True)
        rows = zip(number.reshape(-1).tolist(), numbers, strict=True)
        self._numbers = _Terms([(number, place, bit, *_limits(term)) for number, (term, place, bit) in rows])
        self.schedules = Schedules([rule.schedule for rule in rules])

    def __len__(self) -> int:
        return len(self.ids)

    @functools.cached_property
    def queries(self) -> np.ndarray:
        """The numbers of the queries that the rules name, int64, ascending, each once."""
        return np.union1d(self._objects.of, self.numbers[:, 0])

    @functools.cached_property
    def counted(self) -> np.ndarray:
        """The numbers of the queries whose objects are counted, int64, ascending, each once."""
        return np.unique(self.numbers[self.numbers[:, 1] == COUNT, 0])

    @functools.cached_property
    def valued(self) -> np.ndarray:
        """The numbers of the aggregates whose values are looked at, int64, ascending, each once."""
        return np.unique(self.numbers[self.numbers[:, 1] != COUNT, 0])

    def naming(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return which rules about objects name queries (K,).

        Returns
        -------
        of, rule, bit : ndarray of int64
            The position in `queries`, the position of the rule, and the bit of the query there.
        """
        of, row = self._objects.naming(queries)
        return of, self._objects.rule[row], self._objects.bit[row]

    def naming_number(
        self, numbers: np.ndarray, values: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
        """Return which terms of rules about whole answers hold.

        Parameters
        ----------
        numbers : ndarray of int64, shape (K,)
            Positions in `numbers`.
        values : sequence of ndarray of float64, each of shape (K,)
            What these are at several times; NaN where a number is not known.

        Returns
        -------
        of, rule, bit : ndarray of int64
            The position in `numbers` as they were given, the position of the rule, and the bit of the term there.
        bits : tuple of ndarray of int64
            At each of the times the bit if the term holds, the bit of an unknown term if it is unknown, otherwise 0.
        """
        terms = self._numbers
        of, row = terms.naming(numbers)
        bit, above, below = terms.bit[row], terms.above[row], terms.below[row]
        found = []
        for value in (values[of] for values in values):
            holds = (above < value) & (value < below)
            found.append(np.where(np.isnan(value), bit << UNKNOWN_BIT, np.where(holds, bit, 0)))
        return of, terms.rule[row], bit, tuple(found)

    @functools.cached_property
    def silences(self) -> Mapping[int, int]:
        """For how long objects of a stream must be silent at least, by the number of the stream, in microseconds."""
        least: dict[int, int] = {}
        for place in np.flatnonzero(self.silent_us).tolist():
            stream, silent_us = stream_number(self.plans[place].stream), int(self.silent_us[place])
            least[stream] = min(silent_us, least.get(stream, silent_us))
        return least

    def unknown(self, queries: np.ndarray) -> np.ndarray:
        """Return the bits of unknown terms of rules about objects, given which queries do not run: int64 (R,)."""
        _, rule, bit = self.naming(queries)
        bits = np.zeros(len(self.ids), dtype=np.int64)
        np.bitwise_or.at(bits, rule, bit << UNKNOWN_BIT)
        return bits

    def naming_any(self, queries: np.ndarray) -> np.ndarray:
        """Tell which rules name any of some queries, ascending: bool of shape (R,)."""
        number = np.flatnonzero(find(queries, self.numbers[:, 0])[1])
        named = np.zeros(len(self.ids), dtype=bool)
        for terms, of in ((self._objects, queries), (self._numbers, number)):
            named[terms.rule[terms.naming(of)[1]]] = True
        return named

    def begins(self, rule: np.ndarray, bits: np.ndarray) -> np.ndarray:
        """Tell whether the condition of rules (K,) holds, given which terms are true and unknown, as bits: bool."""
        return self._begins[self._place(rule, bits)] == TRUE

    def lasts(self, rule: np.ndarray, bits: np.ndarray) -> np.ndarray:
        """Tell whether an alarm of rules (K,) lasts; see `begins`."""
        return self._lasts[self._place(rule, bits)] == TRUE

    def may_last(self, rule: np.ndarray, bits: np.ndarray) -> np.ndarray:
        """Tell where it is unknown whether an alarm of rules (K,) lasts; see `begins`."""
        return self._lasts[self._place(rule, bits)] == UNKNOWN

    def _place(self, rule: np.ndarray, bits: np.ndarray) -> np.ndarray:
        """Return positions in the truth tables of all rules."""
        unknown = bits >> UNKNOWN_BIT & _TERM_BITS
        true = bits & _TERM_BITS & ~unknown
        return self._first[rule] + UNKNOWN * _IN_BASE_3[unknown] + TRUE * _IN_BASE_3[true]

    def place_of(self, rules: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of rules, given their numbers (K,), and which there are."""
        return find(self.ids, rules)


class _Terms:
    """The terms of rules, ordered by the queries, or by the numbers, that they name."""

    def __init__(self, rows: Sequence[tuple[int, int, int] | tuple[int, int, int, float, float]]) -> None:
        rows = sorted(rows)
        self.of, self.rule, bit = np.array([row[:3] for row in rows], dtype=np.int64).reshape(-1, 3).T
        self.bit = np.int64(1) << bit
        limits = [row[3:] for row in rows if row[3:]]
        self.above, self.below = np.array(limits, dtype=np.float64).reshape(-1, 2).T

    def naming(self, named: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which terms name queries, or numbers: the positions in `named`, and those of the terms."""
        start = np.searchsorted(self.of, named, "left")
        return expand(start, np.searchsorted(self.of, named, "right") - start)


def number_of(term: RuleCondition) -> int:
    """Return what stands beside the query of a term in `Rules.numbers`: `COUNT`, or the hash of a group.

    An aggregate without `group_by` has one group, the empty text.
    """
    return COUNT if term.operator == "count" else int(key_hashes("", [term.group or ""])[0])


def _limits(term: RuleCondition) -> tuple[float, float]:
    """Return the bounds between which the count of a term is, both excluded."""
    return -math.inf if term.above is None else term.above, math.inf if term.below is None else term.below


def _us(seconds: float) -> int:
    return round(seconds * MICROSECONDS)
