"""The assembler of rules: it follows in which answers objects are, and tells when their alarms begin and end.

A rule and an object that is in an answer that the rule names have an *entry*, a row of a table: the answers as bits,
and where the two are in time. A micro-batch looks only at the entries that something concerns: an object entered or
left an answer, a time has come, or a schedule began or ended. So its cost follows what changes, and not the number of
rules, objects or entries. Rules are looked at when the clock is, once a second, and the changes of the micro-batches
since then one after the other.

A rule about whole answers has one entry, whose bits tell which of its terms hold (`rule_counts`).

When an object entered or left an answer, regions say (`Watched`). An alarm begins at the time at which its
condition has held for long enough, even if that is told a little later. If the condition ceased to hold meanwhile, the
end is told next: no alarm is lost because much came at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
import pyarrow as pa

from streaming.operators.rules import Rules
from streaming.operators.runs import find, first_of_runs
from streaming.results import (
    CANCELLED,
    EDITED,
    ENTERED,
    FAILED,
    LEFT,
    MOVED,
    REGISTERED,
    SNAPSHOT,
    result_schema,
)
from streaming.servers.answers.in_turn import in_turn
from streaming.servers.answers.members import Answers
from streaming.servers.answers.names import names_of
from streaming.servers.answers.tuples import Results
from streaming.servers.assembler.all_regions import AllRegions
from streaming.servers.assembler.rows import alarm_rows
from streaming.servers.assembler.rule_clocks import ALARM, HOLDING, IDLE, WHOLE, told_clocks
from streaming.servers.assembler.rule_counts import Counts, terms_at_first, terms_turned
from streaming.servers.control.border import LeftOut
from streaming.servers.control.step import ControlStep
from streaming.servers.region.watched import Watched, whole_second
from streaming.servers.sorted_runs import Column, SortedRuns
from streaming.spaces import Space

NEVER_US = np.iinfo(np.int64).max
# So long reports may be on their way. What is due is looked at so much later, since a report that was heard before it
# was due may still change that.
UNDERWAY_US = 500_000

ENTRY: Mapping[str, Column] = {
    # The rule, the object, the answers it is in as bits (see `Rules.naming`), and the phase.
    **{name: np.empty(0, dtype=np.int64) for name in ("rule", "object", "bits", "phase")},
    # Whether the condition holds, when to look at the entry again, and until when there is no other alarm.
    **{name: np.empty(0, dtype=np.int64) for name in ("holds", "due_us", "rearmed_us")},
    # When the condition of an entry that is not idle began to hold; with a rate, when the alarm began.
    "since_us": np.empty(0, dtype=np.int64),
}
# Of rules with a rate: when the condition began to hold, a row for each time.
BEGINNING: Mapping[str, Column] = {name: np.empty(0, dtype=np.int64) for name in ("rule", "time_us")}
# Of answers with pairs: with how many partners an object is in it.
PARTNERS: Mapping[str, Column] = {name: np.empty(0, dtype=np.int64) for name in ("query", "count")}


@dataclass(frozen=True)
class RuleState:
    """What the assembler knows of rules.

    Parameters
    ----------
    entries : SortedRuns
        With the columns of `ENTRY`, by `names_of` rule and object.
    beginnings : SortedRuns
        With the columns of `BEGINNING`, by `names_of` rule and object.
    partners : SortedRuns
        With the columns of `PARTNERS`, by `names_of` query and object.
    over : pyarrow.Table
        Result tuples that could not be told with those before them, since these have no order; to be told next.
    lasting : pyarrow.Table
        The result tuples with which alarms by a rate began that last: their objects may be gone when they end.
    counts : Counts
        How many objects the answers have that rules about whole answers name.
    now_us : int
        The engine's clock.
    off : ndarray of int64
        The rules that did not count, by their schedules, ascending.
    left_out : mapping of int to LeftOut
        The rules that the assembler leaves out.
    """

    entries: SortedRuns
    beginnings: SortedRuns
    partners: SortedRuns
    over: pa.Table
    lasting: pa.Table
    counts: Counts = field(default_factory=Counts)
    now_us: int = 0
    off: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    left_out: Mapping[int, LeftOut] = field(default_factory=dict)

    @classmethod
    def empty(cls, space: Space, following: int = 0) -> "RuleState":
        """Return the state without rules; the number of the first run of each table is `following`."""
        entries, beginnings, partners = (SortedRuns(like, following=following) for like in (ENTRY, BEGINNING, PARTNERS))
        none = result_schema(space).empty_table()
        return cls(entries, beginnings, partners, none, none)


def step(
    was: RuleState, told: Sequence[Watched], control: ControlStep, all_regions: AllRegions
) -> tuple[RuleState, Results]:
    """Follow the answers that rules watch through a micro-batch; tell the alarms that begin and end.

    Parameters
    ----------
    was : RuleState
    told : sequence of Watched
        By all regions, and by the other parts of the assembler.
    control : ControlStep
    all_regions : AllRegions

    Returns
    -------
    state : RuleState
    results : Results
        ``+`` when an alarm begins, and ``-`` when it ends, with the times of that.
    """
    return _Step(was, control, all_regions).run(told)


@dataclass(frozen=True)
class _Changes:
    """Objects that entered or left answers, by micro-batch: a row for each of these three.

    Parameters
    ----------
    query, key, batch, time_us : ndarray of int64, shape (K,)
    count : ndarray of int64, shape (K,)
        How many pairs more, or less; where there are no pairs, 1 for an entry and -1 for an exit.
    paired : ndarray of bool, shape (K,)
    """

    query: np.ndarray
    key: np.ndarray
    batch: np.ndarray
    time_us: np.ndarray
    count: np.ndarray
    paired: np.ndarray

    @classmethod
    def of(cls, rows: pa.Table, since_us: int = 0) -> "_Changes":
        """Return the changes that tuples of answers tell, none of them before a time; handoffs cancel out."""
        names = ("query", "key_hash", "batch", "time_us", "sign", "partner_hash")
        query, key, batch, time_us, sign, partner = (rows[name].to_numpy() for name in names)
        time_us, sign = np.maximum(whole_second(time_us), since_us), sign.astype(np.int64)
        if not len(query):
            return cls(query, key, batch, time_us, sign, partner != 0)
        name = names_of(query, key)
        order = np.lexsort((batch, name))
        query, key, batch = query[order], key[order], batch[order]
        start = np.flatnonzero(first_of_runs(name[order]) | first_of_runs(batch))
        count, latest_us = np.add.reduceat(sign[order], start), np.maximum.reduceat(time_us[order], start)
        paired = np.logical_or.reduceat(partner[order] != 0, start)
        return cls(query[start], key[start], batch[start], latest_us, count, paired)

    def take(self, rows: np.ndarray) -> "_Changes":
        """Return the changes at positions, or where a mask is true."""
        return _Changes(*(getattr(self, one.name)[rows] for one in fields(self)))

    def of_queries(self, queries: np.ndarray) -> "_Changes":
        """Return only the changes of some queries, ascending."""
        return self.take(find(queries, self.query)[1])


@dataclass
class _Entries:
    """Entries, each once, ordered by their names, and the times at which something happened to them.

    Parameters
    ----------
    name : ndarray of int64, shape (K,)
    columns : dict of str to ndarray of int64, shape (K,)
    time_us : ndarray of int64, shape (K,)
    until_us : ndarray of int64, shape (K,)
        Up to when nothing else happened.
    """

    name: np.ndarray
    columns: dict[str, np.ndarray]
    time_us: np.ndarray
    until_us: np.ndarray

    def __getitem__(self, column: str) -> np.ndarray:
        return self.columns[column]

    def at(self, rows: np.ndarray) -> "_Entries":
        """Return a copy of some entries."""
        columns = {what: column[rows] for what, column in self.columns.items()}
        return _Entries(self.name[rows], columns, self.time_us[rows], self.until_us[rows])

    def put(self, rows: np.ndarray, others: "_Entries") -> None:
        """Take over the columns of entries that `at` returned."""
        for what, column in others.columns.items():
            self.columns[what][rows] = column


def due_by(clock_us: int) -> int:
    """Return up to when it is decided what is due, in microseconds, given the clock: a whole second."""
    return whole_second(clock_us - UNDERWAY_US)


class _Step:
    """One micro-batch."""

    def __init__(self, was: RuleState, control: ControlStep, all_regions: AllRegions) -> None:
        self._was, self._control, self._all = was, control, all_regions
        self._rules: Rules = control.after.rules
        self._space, self._clock_us = control.after.space, control.now_us
        self._now_us = due_by(control.now_us)
        self._staying = self._rules.ids
        if control.before.rules is not self._rules or len(control.applied.changed):
            changed = find(control.applied.changed, self._rules.ids)[1]
            self._staying = self._rules.ids[find(control.before.rules.ids, self._rules.ids)[1] & ~changed]
        self._new = self._rules.ids[~find(self._staying, self._rules.ids)[1]]
        self._tuples: list[tuple[np.ndarray, ...]] = []

    def run(self, told: Sequence[Watched]) -> tuple[RuleState, Results]:
        """Run it."""
        self._end_rules()
        changes = _Changes.of(pa.concat_tables([one.changes for one in told]))
        # Who is in an answer when it is watched first is so from now on, however old the newest report is.
        since_us = whole_second(self._was.now_us or self._clock_us)
        whole = _Changes.of(pa.concat_tables([one.snapshots for one in told]), since_us)
        members, partners = self._members(changes, whole)
        counts, turned = self._counted(members, whole)
        entries = self._moved_on(members, whole, turned)
        table = self._put(entries)
        new = self._rows()
        rows, over = in_turn(pa.concat_tables([self._was.over, new]))
        tables = table.settled(), self._beginnings.settled(), partners.settled()
        off = self._rules.off(self._now_us)
        state = RuleState(*tables, over, self._lasting(new, table), counts, self._clock_us, off)
        counters = {"results": rows.num_rows, "entries": len(table)}
        clocks = told_clocks(self._control, (tables[0], tables[1]), counts, self._now_us)
        return state, Results(rows, self._snapshots(table), counters, clocks=clocks)

    def _end_rules(self):
        """Remove the entries of rules that have ended or have another plan, and tell the ends of their alarms."""
        self._entries, self._beginnings = self._was.entries, self._was.beginnings
        control = self._control
        if len(self._staying) == len(control.before.rules) and not len(control.applied.forgotten):
            return
        part, row = self._entries.select(lambda run: ~find(self._staying, run.columns["rule"])[1])
        ended = self._entries.take(part, row)
        alarm = (ended["phase"] == ALARM) & find(control.before.rules.ids, ended["rule"])[1]
        rule, key = ended["rule"][alarm], ended["object"][alarm]
        reason = np.full(len(rule), EDITED)
        reason[~find(self._rules.ids, rule)[1]] = CANCELLED
        reason[np.isin(rule, control.applied.failed)] = FAILED
        # What is known of whole answers is what has been decided.
        self._tell(rule, key, LEFT, reason, np.where(key == WHOLE, self._now_us, whole_second(self._clock_us)))
        self._entries = self._entries.without(np.sort(self._entries.keys(part, row)), newest=False)
        part, row = self._beginnings.select(lambda run: ~find(self._staying, run.columns["rule"])[1])
        names = np.unique(self._beginnings.keys(part, row))
        self._beginnings = self._beginnings.without(names, newest=False)

    def _members(self, changes, whole):
        """Return the changes of objects in answers, however many partners they have there, and how many that is."""
        before, after = self._control.before.watched, self._control.after.watched
        known, new, table = after, _NO_NAMES, self._was.partners
        if before is not after:
            known, new = np.intersect1d(before, after), np.setdiff1d(after, before)
        if len(known) < len(before):
            part, row = table.select(lambda run: ~find(known, run.columns["query"])[1])
            table = table.without(np.sort(table.keys(part, row)), newest=False)
        changes = changes.of_queries(known)
        paired, alone = changes.take(changes.paired), changes.take(~changes.paired & (changes.count != 0))
        turned, table = _with_partners(paired, table)
        first = whole.of_queries(new)
        first = first.take(first.paired)
        names = names_of(first.query, first.key)
        order = np.argsort(names, kind="stable")
        columns = {"query": first.query[order], "count": first.count[order]}
        return [turned, alone], table.put(names[order], columns, _NO_NAMES, len(order))

    def _counted(self, members, whole):
        """Return how many objects answers have, and which terms of rules about whole answers turn by that."""
        was, rules = self._was.counts, self._rules
        known = np.intersect1d(was.query, rules.counted)
        first = whole.query[find(np.setdiff1d(rules.counted, known), whole.query)[1]]
        changes = [some.of_queries(known) for some in members]
        rows = [np.column_stack([some.query, some.time_us, some.count]) for some in changes]
        counts, changes, before = was.begun(rules.counted, first).changed(rows, self._clock_us).decided(self._now_us)
        return counts, [
            self._of_whole(terms_turned(rules, changes, before), self._staying),
            self._of_whole(terms_at_first(rules, self._new, counts, self._now_us), self._new),
        ]

    def _of_whole(self, turned, rules):
        """Return the terms of some rules that turn, like `_named`: each second is looked at by itself."""
        turned = turned.take(find(rules, turned.rule)[1])
        key = np.full(len(turned.rule), WHOLE)
        name = names_of(turned.rule, key)
        return name, turned.rule, key, turned.bit, turned.holds, turned.time_us, turned.time_us

    def _moved_on(self, members, whole, turned):
        """Return the entries that something concerns, as they are now: changes, times that have come, schedules.

        The changes of an entry in different micro-batches are looked at one after the other.
        """
        parts = [*turned, *(self._named(some, self._staying) for some in members)]
        if len(self._new):
            parts.append(self._named(replace(whole, count=np.ones_like(whole.count)), self._new))
        name, rule, key, bits, entered, time_us, batch = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((batch, name))
        ordered = name[order]
        start = np.flatnonzero(first_of_runs(ordered) | first_of_runs(batch[order]))
        first = order[start]
        more, less = (np.where(entered == sign, bits, 0)[order] for sign in (1, -1))
        if len(start):
            more, less = (np.bitwise_or.reduceat(some, start) for some in (more, less))
            time_us = np.maximum.reduceat(time_us[order], start)
        entries = self._found(name[first], rule[first], key[first])
        place = np.searchsorted(entries.name, name[first])
        # The first change of each entry, then the second of those that have one, and so on.
        turn = np.arange(len(place)) - np.searchsorted(place, place, "left")
        last = np.r_[place[1:] != place[:-1], np.ones(min(1, len(place)), dtype=bool)]
        until_us = np.where(last, self._now_us, np.r_[time_us[1:], time_us[:1]])
        alone = np.ones(len(entries.name), dtype=bool)
        alone[place] = False
        self._move(entries, np.flatnonzero(alone))
        for number in range(int(turn.max(initial=-1)) + 1):
            mine = np.flatnonzero(turn == number)
            rows = place[mine]
            entries["bits"][rows] = (entries["bits"][rows] | more[mine]) & ~less[mine]
            entries.time_us[rows], entries.until_us[rows] = time_us[mine], until_us[mine]
            self._move(entries, rows)
        return entries

    def _named(self, changes, rules):
        """Return changes for each of some rules that name the query."""
        of, place, bit = self._rules.naming(changes.query)
        rule = self._rules.ids[place]
        if rules is not self._rules.ids:
            mine = find(rules, rule)[1]
            of, rule, bit = of[mine], rule[mine], bit[mine]
        key = changes.key[of]
        return names_of(rule, key), rule, key, bit, changes.count[of], changes.time_us[of], changes.batch[of]

    def _found(self, names, rules, keys):
        """Return the entries of some rules and objects, also new ones, and those that are due."""
        every = np.union1d(names, self._due())
        part, row = self._entries.find(every)
        known = part >= 0
        columns = {what: np.zeros(len(every), dtype=np.int64) for what in ENTRY}
        for what, column in self._entries.take(part[known], row[known]).items():
            columns[what][known] = column
        place = np.searchsorted(every, names)
        columns["rule"][place], columns["object"][place] = rules, keys
        now_us = np.full(len(every), self._now_us)
        return _Entries(every, columns, now_us, now_us.copy())

    def _due(self):
        """Return the names of the entries whose time has come, or whose rule begins or ceases to count."""
        off, turned = self._rules.off(self._now_us), _NO_NAMES
        if not np.array_equal(off, self._was.off):
            turned = np.intersect1d(np.setxor1d(off, self._was.off), self._staying)
        now_us = self._now_us

        def concerned(run):
            due = run.columns["due_us"] <= now_us
            return due | find(turned, run.columns["rule"])[1] if len(turned) else due

        return np.sort(self._entries.keys(*self._entries.select(concerned))) if len(self._entries) else _NO_NAMES

    def _move(self, entries, rows):
        """Move the entries at `rows` on in time."""
        if len(rows):
            some = entries.at(rows)
            self._move_on(some)
            entries.put(rows, some)

    def _move_on(self, entries):
        """Move entries on in time, and tell the alarms that begin and end."""
        rules, until_us, time_us = self._rules, entries.until_us, entries.time_us
        place, _ = rules.place_of(entries["rule"])
        on = rules.on(self._now_us)[place]
        holds, lasts = (of(place, entries["bits"]) & on for of in (rules.begins, rules.lasts))
        rated = rules.within_us[place] > 0
        was, phase = entries["phase"].copy(), entries["phase"]
        self._move_rated(entries, np.flatnonzero(rated), place, holds, on)
        plain = ~rated
        begins = plain & (was == IDLE) & holds
        due_us = np.maximum(time_us + rules.for_us[place], entries["rearmed_us"])
        entries["due_us"][begins], phase[begins] = due_us[begins], HOLDING
        entries["since_us"][begins] = time_us[begins]
        # What has no duration is told at once, also while the clock is a little behind the reports.
        at_once = begins & (due_us <= time_us)
        fires = plain & (phase == HOLDING) & holds & ((entries["due_us"] <= until_us) | at_once)
        lapses = plain & (was == HOLDING) & ~holds
        # The condition held for long enough before it ceased to: the alarm begins, and ends at once unless it lasts.
        short = lapses & (entries["due_us"] <= time_us)
        fires |= short & lasts
        short, lapses = short & ~lasts, lapses & ~fires
        ends = plain & (was == ALARM) & ~lasts
        # While an alarm lasts, `rearmed_us` is its beginning, before which it does not end although a report came late.
        ended_us = np.where(was == ALARM, np.maximum(time_us, entries["rearmed_us"]), time_us)
        self._tell_entries(entries, fires | short, ENTERED, entries["due_us"])
        self._tell_entries(entries, ends | short, LEFT, ended_us)
        entries["rearmed_us"][fires] = entries["due_us"][fires]
        entries["rearmed_us"][ends | short] = (ended_us + rules.rearm_us[place])[ends | short]
        phase[fires], phase[lapses | ends] = ALARM, IDLE
        entries["due_us"][fires] = NEVER_US
        rests = plain & (phase == IDLE)
        entries["due_us"][rests] = entries["rearmed_us"][rests]
        entries["holds"][:] = holds

    def _move_rated(self, entries, rows, place, holds, on):
        """Move the entries of rules with a rate on: what was due before something happened comes first, then that."""
        place, on, time_us = place[rows], on[rows], entries.time_us[rows]
        while len(due := np.flatnonzero(entries["due_us"][rows] <= time_us)):
            at_us = entries["due_us"][rows[due]]
            self._rate(entries, rows[due], place[due], on[due], at_us, np.empty(0, dtype=np.int64))
        begins = np.flatnonzero(holds[rows] & (entries["holds"][rows] == 0))
        self._rate(entries, rows, place, on, time_us, begins)

    def _rate(self, entries, rows, place, on, at_us, begins):
        """Tell the alarms by a rate that begin and end at a time, at which the conditions of some begin to hold."""
        if not len(rows):
            return
        rules, name, phase = self._rules, entries.name[rows], entries["phase"][rows]
        within_us, more_than, rearmed_us = (
            rules.within_us[place],
            rules.more_than[place],
            entries["rearmed_us"][rows],
        )
        part, row = self._beginnings.rows(name)
        of = np.searchsorted(name, self._beginnings.keys(part, row))
        of, times = np.r_[of, begins], np.r_[self._beginnings.take(part, row)["time_us"], at_us[begins]]
        recent = times + within_us[of] > at_us[of]
        of, times = of[recent], times[recent]
        order = np.lexsort((times, of))
        of, times = of[order], times[order]
        stop = np.searchsorted(of, np.arange(len(rows)), "right")
        count = stop - np.searchsorted(of, np.arange(len(rows)), "left")
        columns = {"rule": entries["rule"][rows][of], "time_us": times}
        known = self._beginnings.find(name)[0] >= 0
        none, difference = name[known & (count == 0)], int((count > 0).sum()) - int(known.sum())
        self._beginnings = self._beginnings.put(name[of], columns, none, difference)
        often = (count > more_than) & on
        newest_us, deciding_us = at_us.copy(), np.zeros(len(rows), dtype=np.int64)
        newest_us[count > 0] = times[stop[count > 0] - 1]
        deciding_us[often] = times[stop[often] - 1 - more_than[often]]
        armed = rearmed_us <= np.maximum(at_us, newest_us)
        fires, lasts = (phase != ALARM) & often & armed, (phase == ALARM) & often
        ends = (phase == ALARM) & ~often
        ended_us = np.minimum(entries["due_us"][rows], at_us)
        self._tell(entries["rule"][rows][ends], entries["object"][rows][ends], LEFT, MOVED, ended_us[ends])
        entries["since_us"][rows[fires]] = newest_us[fires]
        self._tell(entries["rule"][rows][fires], entries["object"][rows][fires], ENTERED, MOVED, newest_us[fires])
        entries["rearmed_us"][rows[ends]] = (ended_us + rules.rearm_us[place])[ends]
        entries["phase"][rows] = np.where(fires | lasts, ALARM, IDLE)
        # The alarm ends when the beginning that decided is too old; other times are forgotten then.
        due_us = np.where(often, deciding_us, newest_us) + within_us
        due_us[(count == 0) & ~often] = NEVER_US
        waits = often & ~(fires | lasts)
        due_us[waits] = np.minimum(due_us, entries["rearmed_us"][rows])[waits]
        entries["due_us"][rows] = due_us

    def _put(self, entries):
        """Return the table with the entries as they are now; those that say nothing any more are removed."""
        rearmed = entries["rearmed_us"] <= self._now_us
        place = self._rules.place_of(entries["rule"])[0]
        rated = self._rules.within_us[place] > 0
        counted = rated & (entries["due_us"] != NEVER_US)
        empty = (entries["bits"] == 0) & (entries["phase"] == IDLE) & rearmed & ~counted & ~self._rules.whole[place]
        # An idle entry is looked at again only for being removed.
        done = ~empty & ~counted & (entries["phase"] == IDLE) & (rearmed | (entries["bits"] != 0))
        entries["due_us"][done] = NEVER_US
        known = self._entries.find(entries.name)[0] >= 0
        difference = int((~empty & ~known).sum()) - int((empty & known).sum())
        columns = {what: column[~empty] for what, column in entries.columns.items()}
        return self._entries.put(entries.name[~empty], columns, entries.name[empty & known], difference)

    def _tell_entries(self, entries, chosen, sign, time_us):
        rule, reason = entries["rule"][chosen], MOVED
        if sign == ENTERED and len(self._control.applied.changed):
            begun = find(self._control.applied.changed, rule)[1]
            before = find(self._control.before.rules.ids, rule)[1]
            reason = np.where(begun, np.where(before, EDITED, REGISTERED), MOVED)
        self._tell(rule, entries["object"][chosen], sign, reason, time_us[chosen])

    def _tell(self, rule, key, sign, reason, time_us):
        if len(rule):
            self._tuples.append((rule, key, np.full(len(rule), sign), np.broadcast_to(reason, len(rule)), time_us))

    def _rows(self):
        """Return the alarms as result tuples in their order, with their objects as they are now."""
        none = result_schema(self._space).empty_table()
        if not self._tuples:
            return none
        rule, key, sign, reason, time_us = (np.concatenate(column) for column in zip(*self._tuples, strict=True))
        table, known = self._objects(key)
        told = {"query": rule, "sign": sign.astype(np.int8), "reason": reason.astype(np.int8), "time_us": time_us}
        return _with_columns(table, {name: column[known] for name, column in told.items()})

    def _objects(self, key):
        """Return tuples with objects as they are now, or as they were told last, and which of them (K,) are known."""
        unique, place = np.unique(key, return_inverse=True)
        zeros = np.zeros(len(unique), dtype=np.int64)
        whole = alarm_rows(unique[unique == WHOLE], self._space)
        table = pa.concat_tables([self._all.rows(Answers(unique, zeros, zeros), zeros), self._was.lasting, whole])
        key_hash = table["key_hash"].to_numpy()
        order = np.argsort(key_hash, kind="stable")
        at, known = (found[place] for found in find(key_hash[order], unique))
        return table.take(pa.array(order[at[known]])), known

    def _lasting(self, new, table):
        """Return the tuples of the alarms by a rate that last, given what is new and the entries."""
        place, rated = self._rules.place_of(new["query"].to_numpy())
        rated[rated] = self._rules.within_us[place[rated]] > 0
        begun = new.filter(pa.array(rated & (new["sign"].to_numpy() == ENTERED)))
        rows = pa.concat_tables([self._was.lasting, begun])
        names, of = np.unique(names_of(rows["query"].to_numpy(), rows["key_hash"].to_numpy()), return_inverse=True)
        part, row = table.find(names)
        lasts = part >= 0
        lasts[lasts] = table.take(part[lasts], row[lasts], ("phase",))["phase"] == ALARM
        return rows.filter(pa.array(lasts[of]))

    def _snapshots(self, table):
        """Return the whole answers of the rules whose snapshots were asked for."""
        asked = np.unique(np.array(self._control.applied.snapshots, dtype=np.int64))
        asked = asked[find(self._rules.ids, asked)[1]]
        if not len(asked):
            return result_schema(self._space).empty_table()
        part, row = table.select(lambda run: (run.columns["phase"] == ALARM) & find(asked, run.columns["rule"])[1])
        found = table.take(part, row)
        objects, known = self._objects(found["object"])
        count = int(known.sum())
        told = {"sign": np.full(count, ENTERED, dtype=np.int8), "reason": np.full(count, SNAPSHOT, dtype=np.int8)}
        return _with_columns(objects, told | {"query": found["rule"][known]})


_NO_NAMES = np.empty(0, dtype=np.int64)


def _with_columns(table, columns):
    """Return result tuples with other values in some columns."""
    for name, column in columns.items():
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), pa.array(column))
    return table


def _with_partners(changes, table):
    """Return when objects got their first partner or lost their last one, and the table with how many they have."""
    name = names_of(changes.query, changes.key)  # ordered, and by batch
    start = np.flatnonzero(first_of_runs(name))
    part, row = table.find(name[start])
    were = np.zeros(len(start), dtype=np.int64)
    were[part >= 0] = table.take(part[part >= 0], row[part >= 0], ("count",))["count"]
    of = np.cumsum(first_of_runs(name)) - 1
    summed = np.cumsum(changes.count)
    now = were[of] + summed - (summed - changes.count)[start][of]
    turned = replace(changes, count=np.where(now > 0, 1, -1)).take((now > 0) != (now - changes.count > 0))
    last = np.r_[start[1:], len(name)][: len(start)] - 1
    are = now[last]
    gone, difference = name[last][(are <= 0) & (were > 0)], int((are > 0).sum()) - int((were > 0).sum())
    columns = {"query": changes.query[last][are > 0], "count": are[are > 0]}
    return turned, table.put(name[last][are > 0], columns, gone, difference)
