"""The numbers of whole answers that rules look at, second by second: how many objects they have, values of aggregates.

The numbers are looked at when a second is over, and the reports from before are no longer on their way. So they do not
depend on how the reports were cut into micro-batches. Of counts only the changes are kept until then. Of aggregates the
assembler knows each member with its value, so that the value at the end of each second can be computed.

The number of a query that does not run is not known, and an aggregate without a value has none. Both are NaN.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import polars as pl

from streaming.elements import key_hashes
from streaming.kinds.aggregate.plan import FUNCTIONS, Aggregate
from streaming.kinds.base import Plan
from streaming.operators.aggregates import MEMBERS, parts, valued
from streaming.operators.rules import COUNT, MICROSECONDS, Rules
from streaming.operators.runs import find
from streaming.servers.answers.names import names_of
from streaming.servers.ways.rules.watched import MEASURES

# What is reported for later than this after the clock counts then.
AHEAD_US = 2 * MICROSECONDS
# What a query is: it does not run; it runs; or it runs and is an aggregate with a function.
STOPPED, RUNS = 0, 1
_FIRST_FUNCTION = 2
# Without members, these functions have the value 0, and the others none.
_OF_NOTHING = ("count", "sum")
MEMBER = ["query", "key"]
_NONE = np.empty(0, dtype=np.int64)
T = TypeVar("T", int, np.ndarray)


def _rows() -> np.ndarray:
    return _NONE.reshape(0, 3)


def mode_of(plan: Plan) -> int:
    """Return what a query that runs is, given its plan: `RUNS`, or one for each function of aggregates."""
    aggregate: Aggregate | None = getattr(plan, "aggregate", None)
    return RUNS if aggregate is None else _FIRST_FUNCTION + FUNCTIONS.index(aggregate.function)


@dataclass(frozen=True)
class Course:
    """How numbers changed: a row for each number and second in which it did, in the order of time.

    Parameters
    ----------
    number : ndarray of int64, shape (K,)
        Positions in `Rules.numbers`.
    time_us : ndarray of int64, shape (K,)
    before, after : ndarray of float64, shape (K,)
        NaN where the number is not known.
    """

    number: np.ndarray
    time_us: np.ndarray
    before: np.ndarray
    after: np.ndarray


@dataclass(frozen=True)
class News:
    """What a micro-batch tells of numbers.

    Parameters
    ----------
    deltas : ndarray of int64, shape (K, 3)
        The query, the time in microseconds, and how many objects more its answer has.
    measures : polars.DataFrame
        With the columns `MEASURES`.
    modes : mapping of int to int
        What each query is that rules name; see `mode_of`.
    renewed : ndarray of int64
        The queries that have begun, were edited or ended in the micro-batch.
    clocks_us : tuple of int
        When that happened, the clock before the micro-batch; and the clock.
    """

    deltas: np.ndarray
    measures: pl.DataFrame
    modes: Mapping[int, int]
    renewed: np.ndarray
    clocks_us: tuple[int, int]


@dataclass(frozen=True)
class Numbers:
    """The numbers that rules look at, up to the second that is decided, and what is told of later seconds.

    Parameters
    ----------
    keys : ndarray of int64, shape (N, 2)
        As `Rules.numbers`.
    value : ndarray of float64, shape (N,)
        Counts, also of queries that do not run, and values of aggregates.
    query, mode, told : ndarray of int64, shape (Q,)
        The queries, ascending, what they were when it was decided, and what they are; see `mode_of`.
    deltas, turns : ndarray of int64, shape (K, 3)
        What waits: the query, the time in microseconds, and how many objects more, or what the query is from then on.
    measures : polars.DataFrame
        The changes of members of aggregates that wait, with the columns `MEASURES`.
    members : polars.DataFrame
        The members of aggregates, with the columns `MEMBERS`.
    """

    keys: np.ndarray = field(default_factory=lambda: _NONE.reshape(0, 2))
    value: np.ndarray = field(default_factory=lambda: np.empty(0))
    query: np.ndarray = field(default_factory=lambda: _NONE)
    mode: np.ndarray = field(default_factory=lambda: _NONE)
    told: np.ndarray = field(default_factory=lambda: _NONE)
    deltas: np.ndarray = field(default_factory=_rows)
    turns: np.ndarray = field(default_factory=_rows)
    measures: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=MEASURES))
    members: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=MEMBERS))

    def document(self) -> dict[str, Any]:
        """Return all but the tables as a JSON object."""
        value = [None if np.isnan(one) else one for one in self.value.tolist()]
        arrays = {name: getattr(self, name).tolist() for name in ("keys", "query", "mode", "told", "deltas", "turns")}
        return arrays | {"value": value}

    @classmethod
    def of(cls, document: Mapping[str, Any], measures: pl.DataFrame, members: pl.DataFrame) -> "Numbers":
        """Return the numbers that a JSON object and tables describe; the inverse of `document`."""
        query, mode, told = (np.array(document[name], dtype=np.int64) for name in ("query", "mode", "told"))
        deltas, turns = (np.array(document[name], dtype=np.int64).reshape(-1, 3) for name in ("deltas", "turns"))
        keys = np.array(document["keys"], dtype=np.int64).reshape(-1, 2)
        value = np.array(document["value"], dtype=np.float64)
        return cls(keys, value, query, mode, told, deltas, turns, measures, members)

    def known(self) -> np.ndarray:
        """Return the numbers, float64 of shape (N,); NaN where one is not known."""
        return _shown(self.keys, self.value, self.mode[np.searchsorted(self.query, self.keys[:, 0])])

    @property
    def waiting_us(self) -> np.ndarray:
        """The seconds of which something waits, in microseconds, int64."""
        return np.r_[self.deltas[:, 1], self.turns[:, 1], self.measures["time_us"].to_numpy()]

    def watching(self, rules: Rules, first: np.ndarray, news: News) -> "Numbers":
        """Return the numbers that rules look at now. Who is in an answer that is watched first is so from now on.

        Parameters
        ----------
        rules : Rules
        first : ndarray of int64
            For each object in the answer of a query that is counted first, this query.
        news : News
        """
        keys, query = rules.numbers, np.unique(rules.numbers[:, 0])
        known = find(self.query, query)[1]
        told = np.array([news.modes[one] for one in query.tolist()], dtype=np.int64)
        mode, were = told.copy(), told.copy()
        for column, old in ((mode, self.mode), (were, self.told)):
            column[known] = old[find(self.query, query[known])[0]]
        names, mine = names_of(self.keys[:, 0], self.keys[:, 1]), names_of(keys[:, 0], keys[:, 1])
        order = np.argsort(names, kind="stable")
        place, kept = find(names[order], mine)
        value, first = np.zeros(len(keys)), np.sort(first)
        value[kept] = self.value[order[place[kept]]]
        begins = ~kept & (keys[:, 1] == COUNT)
        last = np.searchsorted(first, keys[begins, 0], "right")
        value[begins] = last - np.searchsorted(first, keys[begins, 0], "left")
        deltas, turns = (rows[find(query, rows[:, 0])[1]] for rows in (self.deltas, self.turns))
        ours = pl.col("query").is_in(rules.valued.tolist())
        whole = news.measures.filter(ours & pl.col("whole"))
        members = _put(self.members.filter(ours), whole)
        numbers = Numbers(keys, value, query, mode, were, deltas, turns, self.measures.filter(ours), members)
        new = np.unique(keys[~kept & (keys[:, 1] != COUNT), 0])
        return replace(numbers, value=_valued(numbers.keys, value, new, query, mode, members))

    def changed(self, news: News) -> "Numbers":
        """Return the numbers with what a micro-batch tells, which waits until its second is decided."""
        at_us, clock_us = news.clocks_us
        latest_us = clock_us // MICROSECONDS * MICROSECONDS + AHEAD_US
        told = np.array([news.modes[one] for one in self.query.tolist()], dtype=np.int64)
        turns = np.flatnonzero((told != self.told) | np.isin(self.query, news.renewed))
        turned = np.column_stack([self.query[turns], np.full(len(turns), _looked_at(at_us)), told[turns]])
        deltas = np.concatenate([self.deltas, news.deltas])
        deltas = deltas[find(self.keys[self.keys[:, 1] == COUNT, 0], deltas[:, 0])[1]]
        deltas[:, 1] = np.minimum(_looked_at(deltas[:, 1]), latest_us)
        ours = pl.col("query").is_in(self.keys[self.keys[:, 1] != COUNT, 0].tolist())
        measures = pl.concat([self.measures, news.measures.filter(ours & ~pl.col("whole"))])
        time_us = pl.min_horizontal(-(-pl.col("time_us") // MICROSECONDS) * MICROSECONDS, pl.lit(latest_us))
        measures = measures.with_columns(time_us=time_us.cum_max().over(MEMBER))
        return replace(self, told=told, deltas=deltas, turns=np.concatenate([self.turns, turned]), measures=measures)

    def decided(self, now_us: int) -> tuple["Numbers", Course]:
        """Return the numbers as they were looked at before a time, and how they changed."""
        value, mode, members = self.value.copy(), self.mode.copy(), self.members
        of = np.searchsorted(self.query, self.keys[:, 0])
        counted = np.flatnonzero(self.keys[:, 1] == COUNT)
        course = [_no_course()]
        seconds = np.unique(self.waiting_us)
        for second in seconds[seconds < now_us].tolist():
            were = _shown(self.keys, value, mode[of])
            turns, deltas = (rows[rows[:, 1] == second] for rows in (self.turns, self.deltas))
            mode[np.searchsorted(self.query, turns[:, 0])] = turns[:, 2]
            np.add.at(value, counted[np.searchsorted(self.keys[counted, 0], deltas[:, 0])], deltas[:, 2])
            measures = self.measures.filter(pl.col("time_us") == second)
            members = _put(members, measures)
            touched = np.unique(np.r_[turns[:, 0], measures["query"].to_numpy()])
            value = _valued(self.keys, value, touched, self.query, mode, members)
            are = _shown(self.keys, value, mode[of])
            changed = np.flatnonzero((were != are) & ~(np.isnan(were) & np.isnan(are)))
            course.append(Course(changed, np.full(len(changed), second), were[changed], are[changed]))
        names = ("number", "time_us", "before", "after")
        together = Course(*(np.concatenate([getattr(one, name) for one in course]) for name in names))
        deltas, turns = (rows[rows[:, 1] >= now_us] for rows in (self.deltas, self.turns))
        measures = self.measures.filter(pl.col("time_us") >= now_us)
        rest = replace(self, deltas=deltas, turns=turns, measures=measures, members=members)
        return replace(rest, value=value, mode=mode), together


def in_order(measures: pl.DataFrame) -> pl.DataFrame:
    """Return changes of members in the order of the micro-batches, one for each member in each of them.

    An object that goes from one region to another leaves and enters in the same micro-batch: it stays.
    """
    if measures.is_empty():
        return measures
    rows = measures.sort("batch", "here", maintain_order=True)
    last = rows.group_by(*MEMBER, "batch", "whole", maintain_order=True)
    return last.agg(pl.col("value", "group", "here").last(), pl.col("time_us").max()).select(list(MEASURES))


def _no_course() -> Course:
    return Course(_NONE, _NONE, np.empty(0), np.empty(0))


def _shown(keys: np.ndarray, value: np.ndarray, mode: np.ndarray) -> np.ndarray:
    """Return the numbers that are known, given what their queries are."""
    return np.where(mode >= np.where(keys[:, 1] == COUNT, RUNS, _FIRST_FUNCTION), value, np.nan)


def _put(members: pl.DataFrame, measures: pl.DataFrame) -> pl.DataFrame:
    """Return the members of aggregates after some changes, in the order of these."""
    if measures.is_empty():
        return members
    last = measures.unique(MEMBER, keep="last", maintain_order=True)
    return pl.concat([members.join(last, on=MEMBER, how="anti"), last.filter("here").select(list(MEMBERS))])


def _valued(
    keys: np.ndarray, value: np.ndarray, touched: np.ndarray, query: np.ndarray, mode: np.ndarray, members: pl.DataFrame
) -> np.ndarray:
    """Return the numbers with the values of some aggregates computed again."""
    place, known = find(query, touched)
    touched, modes = touched[known], mode[place[known]]
    aggregate = modes >= _FIRST_FUNCTION
    if not aggregate.any():
        return value
    named = zip(touched[aggregate].tolist(), modes[aggregate].tolist(), strict=True)
    functions = {one: FUNCTIONS[of - _FIRST_FUNCTION] for one, of in named}
    mine = np.flatnonzero((keys[:, 1] != COUNT) & np.isin(keys[:, 0], list(functions)))
    some = parts(members.filter(pl.col("query").is_in(list(functions))))
    told = valued(some, {one: Aggregate(function) for one, function in functions.items()})
    names = names_of(told["query"].to_numpy(), key_hashes("", told["group"].to_list()) if len(told) else _NONE)
    order = np.argsort(names)
    at, found = find(names[order], names_of(keys[mine, 0], keys[mine, 1]))
    value = value.copy()
    value[mine] = [0.0 if functions[one] in _OF_NOTHING else np.nan for one in keys[mine, 0].tolist()]
    value[mine[found]] = told["value"].fill_null(np.nan).to_numpy()[order[at[found]]]
    return value


@dataclass(frozen=True)
class Turned:
    """Bits of rules about whole answers that are set or cleared, for terms that hold or are unknown: a row for each.

    Parameters
    ----------
    rule : ndarray of int64, shape (K,)
        The numbers of the rules.
    bit : ndarray of int64, shape (K,)
        0 for a rule that begins.
    sign : ndarray of int64, shape (K,)
        1 or -1.
    time_us : ndarray of int64, shape (K,)
    """

    rule: np.ndarray
    bit: np.ndarray
    sign: np.ndarray
    time_us: np.ndarray

    def take(self, mask: np.ndarray) -> "Turned":
        """Return only the rows where a mask is true."""
        return Turned(self.rule[mask], self.bit[mask], self.sign[mask], self.time_us[mask])


def terms_turned(rules: Rules, course: Course) -> Turned:
    """Return which terms begin or cease to hold, or to be unknown."""
    of, rule, _, (were, are) = rules.naming_number(course.number, (course.before, course.after))
    rule, time_us = rules.ids[rule], course.time_us[of]
    both = [(were & ~are, -1), (are & ~were, 1)]
    rows = [
        (rule[bit != 0], bit[bit != 0], np.full(int((bit != 0).sum()), sign), time_us[bit != 0]) for bit, sign in both
    ]
    return Turned(*(np.concatenate(column) for column in zip(*rows, strict=True)))


def _looked_at(time_us: T) -> T:
    """Return the end of the second in which something happens, in microseconds; a whole second is its own."""
    return -(-time_us // MICROSECONDS) * MICROSECONDS


def terms_at_first(rules: Rules, new: np.ndarray, numbers: Numbers, since_us: int) -> Turned:
    """Return the terms that hold, or are unknown, of rules that begin, with a row for each of these rules.

    Parameters
    ----------
    rules : Rules
    new : ndarray of int64
        The numbers of the rules that begin, ascending.
    numbers : Numbers
    since_us : int
    """
    _, rule, _, (bits,) = rules.naming_number(np.arange(len(numbers.keys)), (numbers.known(),))
    rule = rules.ids[rule]
    mine = (bits != 0) & find(new, rule)[1]
    whole = rules.ids[rules.whole]
    begun = whole[find(new, whole)[1]]
    rule, bit = np.r_[begun, rule[mine]], np.r_[np.zeros(len(begun), dtype=np.int64), bits[mine]]
    return Turned(rule, bit, np.ones(len(rule), dtype=np.int64), np.full(len(rule), since_us))
