"""The assembler of rules: it follows in which answers objects are, and tells when their alarms begin and end.

A rule and an object that is in an answer that the rule names have an *entry*, a row of a table: the answers as bits,
and where the two are in time. A micro-batch looks only at the entries that something concerns: an object entered or
left an answer, a time has come, or a schedule began or ended. So its cost follows what changes, and not the number of
rules, objects or entries. Rules are looked at when the clock is, once a second, and the changes of the micro-batches
since then one after the other.

A rule about whole answers has one entry, whose bits tell which of its terms hold (`rule_numbers`).

A rule about silence has an entry for each object that it would miss, and one for its whole stream (`rule_silences`).

A query that does not run says nothing. While it does not, the terms that name it are unknown, which other bits of the
entries tell. So all entries of a rule are looked at when a query that it names begins or ceases to run.

When an object entered or left an answer, regions say (`WatchedAnswers`). An alarm begins at the time at which its
condition has held for long enough, even if that is told a little later. If the condition ceased to hold meanwhile, the
end is told next: no alarm is lost because much came at once.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa

from streaming.operators.rules import COUNT, MICROSECONDS, SILENT, UNKNOWN_BIT, Rules
from streaming.operators.runs import find, place_in_runs
from streaming.operators.schedules import NEVER_US
from streaming.results import CANCELLED, EDITED, FAILED, LEFT
from streaming.servers.answers.in_turn import in_turn
from streaming.servers.answers.names import names_of
from streaming.servers.answers.tuples import Results
from streaming.servers.control.step import ControlStep
from streaming.servers.region.all_regions import AllRegions
from streaming.servers.sorted_runs import SortedRuns
from streaming.servers.ways.rules.alarms import Alarms
from streaming.servers.ways.rules.changes import MembershipChanges, last_turn, members_of
from streaming.servers.ways.rules.clocks import told_clocks
from streaming.servers.ways.rules.entries import (
    ALARM,
    ENTRY,
    IDLE,
    WHOLE,
    Movement,
    RuleEntries,
)
from streaming.servers.ways.rules.numbers import (
    STOPPED,
    News,
    Numbers,
    Turned,
    in_order,
    mode_of,
    terms_at_first,
    terms_turned,
)
from streaming.servers.ways.rules.silences import SilenceTurns
from streaming.servers.ways.rules.state import RuleState
from streaming.servers.ways.rules.stepping import stepped
from streaming.servers.ways.rules.turns import EntryChanges, Turning
from streaming.servers.ways.rules.watched import UNDERWAY_US, WatchedAnswers

# What is due before a time is told once the clock is so much later.
DECIDED_AFTER_US = 2 * UNDERWAY_US + 1
_TRUE_BITS = (1 << UNKNOWN_BIT) - 1
_NO_NAMES = np.empty(0, dtype=np.int64)


def step(
    was: RuleState, told: Sequence[WatchedAnswers], control: ControlStep, all_regions: AllRegions, batch: int
) -> tuple[RuleState, Results]:
    """Follow the answers that rules watch through a micro-batch; tell the alarms that begin and end.

    Parameters
    ----------
    was : RuleState
    told : sequence of WatchedAnswers
        By all regions, and by the other parts of the assembler.
    control : ControlStep
    all_regions : AllRegions
    batch : int
        The number of the micro-batch.

    Returns
    -------
    state : RuleState
    results : Results
        ``+`` when an alarm begins, and ``-`` when it ends, with the times of that.
    """
    return _RuleStep(was, control, all_regions, batch).run(told)


def due_by(clock_us: int) -> int:
    """Return before when it is decided what is due, in microseconds, given up to when reports were heard.

    A report that is still on its way may have happened so much earlier; see `watched.reported_at`.
    """
    return clock_us - 2 * UNDERWAY_US


class _RuleStep:
    """One micro-batch."""

    def __init__(self, was: RuleState, control: ControlStep, all_regions: AllRegions, batch: int) -> None:
        self._was, self._control, self._all, self._batch = was, control, all_regions, batch
        self._rules: Rules = control.after.rules
        self._space, self._clock_us = control.after.space, control.now_us
        # What nobody does by a report happens at the clock before the micro-batch, as in `WatchedAnswers.of`.
        self._at_us = was.now_us or control.now_us
        self._now_us = was.decided_us
        self._staying = self._rules.ids
        if control.before.rules is not self._rules or len(control.applied.changed):
            changed = find(control.applied.changed, self._rules.ids)[1]
            self._staying = self._rules.ids[find(control.before.rules.ids, self._rules.ids)[1] & ~changed]
        self._new = self._rules.ids[~find(self._staying, self._rules.ids)[1]]
        self._stopped = self._lacking = _NO_NAMES

    def run(self, told: Sequence[WatchedAnswers]) -> tuple[RuleState, Results]:
        """Run it."""
        # The clock may be ahead of reports that wait in the log.
        heard_us = min(one.heard_us for one in told)
        self._now_us = max(self._now_us, due_by(min(self._clock_us, heard_us)))
        self._lacking = np.unique(np.concatenate([one.lacking for one in told]))
        queries = self._rules.queries
        runs = find(self._control.after.running.columns.query, queries)[1] & ~find(self._lacking, queries)[1]
        self._stopped = queries[~runs]
        self._alarms = Alarms(self._control, self._all, self._was.lasting, self._rules.naming_any(self._stopped))
        self._end_rules()
        changes = MembershipChanges.of(pa.concat_tables([one.changes for one in told]))
        changes = changes.by_steps(pl.concat([one.steps for one in told]), stepped(self._control))
        # Who is in an answer when it is watched first is so from now on, however old the newest report is.
        whole = MembershipChanges.of(pa.concat_tables([one.snapshots for one in told]), self._at_us)
        watched = self._control.before.watched, self._control.after.watched
        members, partners = members_of(changes, whole, watched, self._was.partners)
        numbers, turned = self._numbers(members, whole, pl.concat([one.measures for one in told]))
        movement = Movement(self._rules, self._beginnings, self._alarms.tell)
        silences = self._silences(told, members, turned)
        decided_us = self._was.decided_us or self._now_us, self._now_us
        self._changes = EntryChanges(self._rules, self._entries, self._staying, decided_us)
        table = self._put(self._moved_on(members, whole, turned, movement, silences))
        new = self._alarms.rows(numbers)
        rows, over = in_turn(pa.concat_tables([self._was.over, new]))
        tables = table.settled(), movement.beginnings.settled(), partners.settled()
        lasting = self._alarms.lasting(pa.concat_tables([new, self._alarms.lost(silences.lost)]), table)
        state = RuleState(*tables, over, lasting, numbers, silences.after, self._stopped, self._clock_us, self._now_us)
        counters = {"results": rows.num_rows, "entries": len(table)}
        clocks = told_clocks(self._control, (tables[0], tables[1]), numbers, self._now_us, silences.heard_us)
        return state, Results(rows, self._alarms.snapshots(table, over, lasting), counters, clocks=clocks)

    def _end_rules(self) -> None:
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
        time_us = np.where(key == WHOLE, self._now_us, self._clock_us)
        self._alarms.note(rule, key, LEFT, reason, time_us, np.zeros_like(time_us))
        self._entries = self._entries.without(np.sort(self._entries.keys(part, row)), newest=False)
        part, row = self._beginnings.select(lambda run: ~find(self._staying, run.columns["rule"])[1])
        names = np.unique(self._beginnings.keys(part, row))
        self._beginnings = self._beginnings.without(names, newest=False)

    def _numbers(
        self, members: Sequence[MembershipChanges], whole: MembershipChanges, measures: pl.DataFrame
    ) -> tuple[Numbers, list[Turning]]:
        """Return the numbers that rules look at, and the bits of rules about whole answers that turn by them."""
        rules, control = self._rules, self._control
        renewed = np.union1d(control.applied.changed, control.applied.cancelled)

        def at_clock(query: np.ndarray, batch: np.ndarray, time_us: np.ndarray) -> np.ndarray:
            return np.where((batch == self._batch) & find(renewed, query)[1], self._at_us, time_us)

        deltas = [
            np.column_stack([some.query, at_clock(some.query, some.batch, some.time_us), some.count])
            for some in members
        ]
        query, batch, time_us = (measures[name].to_numpy() for name in ("query", "batch", "time_us"))
        measures = measures.with_columns(time_us=pl.Series(at_clock(query, batch, time_us), dtype=pl.Int64))
        queries = np.unique(rules.numbers[:, 0]).tolist()
        modes = dict(zip(self._was.numbers.query.tolist(), self._was.numbers.told.tolist(), strict=True))
        if control.before is not control.after or not np.array_equal(self._stopped, self._was.stopped):
            stopped = set(self._stopped.tolist())
            modes = {one: STOPPED if one in stopped else mode_of(control.after.plan(one)) for one in queries}
        news = News(np.concatenate(deltas), in_order(measures), modes, renewed, (self._at_us, self._clock_us))
        was, counted = self._was.numbers, rules.counted
        known = was.keys[was.keys[:, 1] == COUNT, 0]
        first = whole.query[find(np.setdiff1d(counted, known), whole.query)[1]]
        news = replace(news, deltas=news.deltas[find(np.intersect1d(counted, known), news.deltas[:, 0])[1]])
        numbers, course = was.watching(rules, first, news).changed(news).decided(self._now_us)
        at_first = terms_at_first(rules, self._new, numbers, self._now_us // MICROSECONDS * MICROSECONDS)
        turned = terms_turned(rules, course)
        return numbers, [self._of_whole(turned, self._staying), self._of_whole(at_first, self._new)]

    def _silences(
        self, told: Sequence[WatchedAnswers], members: Sequence[MembershipChanges], turned: list[Turning]
    ) -> SilenceTurns:
        """Add the bits of rules about silence that turn to `turned`; return what is silent."""
        silences = SilenceTurns(
            self._rules,
            self._was.feeds,
            self._entries,
            pl.concat([one.silences for one in told]),
            lambda keys: self._all.column(keys, "heard_us"),
            self._all.gone,
            self._batch,
            max(self._at_us, self._was.decided_us),
            self._now_us,
        )
        if silences:
            turned += silences.of_streams(pl.concat([one.spells for one in told]), self._new)
            for some in members:
                turned += silences.of_members(some, self._control.applied.dropped)
            turned += silences.expected(self._new)
            named = [self._named(some, self._rules.ids)[0] for some in members]
            turned += silences.ended(np.unique(np.concatenate(named)))
            turned += silences.going_on()
        return silences

    def _of_whole(self, turned: Turned, rules: np.ndarray) -> Turning:
        """Return the bits of some rules that turn, like `_named`: each second is looked at by itself."""
        turned = turned.take(find(rules, turned.rule)[1])
        key = np.full(len(turned.rule), WHOLE)
        name = names_of(turned.rule, key)
        return name, turned.rule, key, turned.bit, turned.sign, turned.time_us, turned.time_us

    def _unknown(self, parts: Sequence[Turning]) -> list[Turning]:
        """Return the bits of unknown terms that turn in the entries of rules about objects, like `_named`.

        They are those of all entries of the rules, also of the new ones, which `parts` name.
        """
        before, after = self._rules.unknown(self._was.stopped), self._rules.unknown(self._stopped)
        turned = self._rules.ids[before != after]
        turned = turned[find(self._staying, turned)[1]]
        if not len(turned):
            return []
        name, rule, key = self._changes.all_of(turned, parts)
        place = self._rules.place_of(rule)[0]
        time_us = np.full(len(rule), self._at_us)
        turn = np.full(len(rule), last_turn(self._batch))
        begins, ends = after[place] & ~before[place], before[place] & ~after[place]
        # A query that failed may have failed in an earlier micro-batch: its answer says nothing from then on.
        failed = begins & self._rules.unknown(self._lacking)[place]
        both = ((begins & ~failed, 1, turn), (failed, 1, np.zeros_like(turn)), (ends, -1, turn))
        return [
            (name[some], rule[some], key[some], bits[some], np.full(int(some.sum()), sign), time_us[some], at[some])
            for bits, sign, at in both
            for some in [bits != 0]
        ]

    def _moved_on(
        self,
        members: Sequence[MembershipChanges],
        whole: MembershipChanges,
        turned: Sequence[Turning],
        movement: Movement,
        silences: SilenceTurns,
    ) -> RuleEntries:
        """Return the entries that something concerns, as they are now: changes, times that have come, schedules.

        The changes of an entry by different reports, or in different micro-batches, are looked at one after the other;
        none of them is earlier than the one before.
        """
        parts = [*turned, *(silences.untimed(self._named(some, self._staying)) for some in members)]
        if len(self._new):
            parts.append(self._named(replace(whole, count=np.ones_like(whole.count)), self._new))
        parts += self._unknown(parts)
        name, rule, key, more, less, time_us = self._changes.ordered(parts)
        entries = self._found(name, rule, key, silences.due())
        place = np.searchsorted(entries.name, name)
        # The first change of each entry, then the second of those that have one, and so on.
        turn = place_in_runs(place)
        last = np.r_[place[1:] != place[:-1], np.ones(min(1, len(place)), dtype=bool)]
        until_us = np.where(last, self._now_us, np.r_[time_us[1:], time_us[:1]])
        alone = np.ones(len(entries.name), dtype=bool)
        alone[place] = False
        movement.move(entries, np.flatnonzero(alone))
        for number in range(int(turn.max(initial=-1)) + 1):
            mine = np.flatnonzero(turn == number)
            rows = place[mine]
            entries["bits"][rows] = (entries["bits"][rows] | more[mine]) & ~less[mine]
            begun = (more[mine] & SILENT != 0) & (self._silent_us(entries["rule"][rows]) > 0)
            entries["heard_us"][rows[begun]] = silences.heard_before(name[mine][begun], time_us[mine][begun])
            entries.time_us[rows], entries.until_us[rows] = time_us[mine], until_us[mine]
            movement.move(entries, rows)
        silent = np.flatnonzero((self._silent_us(entries["rule"]) > 0) & (entries["object"] != WHOLE))
        heard_us = np.maximum(entries["heard_us"][silent], silences.heard_us(entries["object"][silent]))
        entries["heard_us"][silent] = heard_us
        return entries

    def _silent_us(self, rule: np.ndarray) -> np.ndarray:
        """Return for how long objects must be silent, given the numbers of rules (K,)."""
        return self._rules.silent_us[self._rules.place_of(rule)[0]]

    def _named(self, changes: MembershipChanges, rules: np.ndarray) -> Turning:
        """Return changes for each of some rules that name the query."""
        of, place, bit = self._rules.naming(changes.query)
        rule = self._rules.ids[place]
        if rules is not self._rules.ids:
            mine = find(rules, rule)[1]
            of, rule, bit = of[mine], rule[mine], bit[mine]
        key = changes.key[of]
        return names_of(rule, key), rule, key, bit, changes.count[of], changes.time_us[of], changes.turn[of]

    def _found(self, names: np.ndarray, rules: np.ndarray, keys: np.ndarray, more: np.ndarray) -> RuleEntries:
        """Return the entries of some rules and objects, also new ones, and those that are due, of which `more` are."""
        every = np.union1d(names, np.union1d(self._due(), more))
        part, row = self._entries.find(every)
        known = part >= 0
        columns = {what: np.zeros(len(every), dtype=np.int64) for what in ENTRY}
        # What is unknown to all entries of a rule is unknown to new ones.
        stopped = np.where(
            find(self._staying, rules)[1],
            *(self._rules.unknown(some)[self._rules.place_of(rules)[0]] for some in (self._was.stopped, self._stopped)),
        )
        columns["bits"][np.searchsorted(every, names)] = stopped
        for what, column in self._entries.take(part[known], row[known]).items():
            columns[what][known] = column
        place = np.searchsorted(every, names)
        columns["rule"][place], columns["object"][place] = rules, keys
        now_us = np.full(len(every), self._now_us)
        return RuleEntries(every, columns, now_us, now_us.copy())

    def _due(self) -> np.ndarray:
        """Return the names of the entries whose time has come."""
        if not len(self._entries):
            return _NO_NAMES
        return np.sort(self._entries.keys(*self._entries.select(lambda run: run.columns["due_us"] <= self._now_us)))

    def _put(self, entries: RuleEntries) -> SortedRuns:
        """Return the table with the entries as they are now; those that say nothing any more are removed."""
        rearmed = entries["rearmed_us"] <= self._now_us
        place = self._rules.place_of(entries["rule"])[0]
        rated = self._rules.within_us[place] > 0
        counted = rated & (entries["due_us"] != NEVER_US)
        # That an object is silent says nothing of one that the rule would not miss.
        says = np.where(self._rules.silent_us[place] > 0, _TRUE_BITS & ~SILENT, _TRUE_BITS)
        empty = (
            (entries["bits"] & says == 0) & (entries["phase"] == IDLE) & rearmed & ~counted & ~self._rules.whole[place]
        )
        # An idle entry is looked at again only for being removed.
        done = ~empty & ~counted & (entries["phase"] == IDLE) & (rearmed | (entries["bits"] & _TRUE_BITS != 0))
        entries["due_us"][done] = NEVER_US
        known = self._entries.find(entries.name)[0] >= 0
        difference = int((~empty & ~known).sum()) - int((empty & known).sum())
        columns = {what: column[~empty] for what, column in entries.columns.items()}
        return self._entries.put(entries.name[~empty], columns, entries.name[empty & known], difference)
