"""The entries of rules, and how they move on in time: when alarms begin and end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from streaming.operators.rules import Rules
from streaming.operators.schedules import NEVER_US
from streaming.results import ENTERED, LEFT
from streaming.servers.sorted_runs import Column, SortedRuns

# Where an entry is: its condition does not hold; it holds, but not for long enough; its alarm lasts.
IDLE, HOLDING, ALARM = 0, 1, 2
# In place of the object of an entry, for rules about whole answers.
WHOLE = 0

ENTRY: Mapping[str, Column] = {
    # The rule, the object, which terms are true and which unknown, as bits (see `Rules.naming`), and the phase.
    **{name: np.empty(0, dtype=np.int64) for name in ("rule", "object", "bits", "phase")},
    # Whether the condition holds, when to look at the entry again, and until when there is no other alarm.
    **{name: np.empty(0, dtype=np.int64) for name in ("holds", "due_us", "rearmed_us")},
    # When the condition of an entry that is not idle began to hold; with a rate, when the alarm began. And when
    # something happened to the entry last.
    **{name: np.empty(0, dtype=np.int64) for name in ("since_us", "moved_us")},
    # With silence, when the object was heard, as far as that was looked up; 0 if never.
    "heard_us": np.empty(0, dtype=np.int64),
}
# Of rules with a rate: when the condition began to hold, a row for each time.
BEGINNING: Mapping[str, Column] = {name: np.empty(0, dtype=np.int64) for name in ("rule", "time_us")}


@dataclass
class RuleEntries:
    """Entries, each once, ordered by their names, and the times at which something happened to them.

    Parameters
    ----------
    name : ndarray of int64, shape (K,)
    columns : dict of str to ndarray of int64, shape (K,)
    time_us : ndarray of int64, shape (K,)
    until_us : ndarray of int64, shape (K,)
        Before when nothing else happened.
    """

    name: np.ndarray
    columns: dict[str, np.ndarray]
    time_us: np.ndarray
    until_us: np.ndarray

    def __getitem__(self, column: str) -> np.ndarray:
        return self.columns[column]

    def at(self, rows: np.ndarray) -> "RuleEntries":
        """Return a copy of some entries."""
        columns = {what: column[rows] for what, column in self.columns.items()}
        return RuleEntries(self.name[rows], columns, self.time_us[rows], self.until_us[rows])

    def put(self, rows: np.ndarray, others: "RuleEntries") -> None:
        """Take over the columns of entries that `at` returned."""
        for what, column in others.columns.items():
            self.columns[what][rows] = column


class Tell(Protocol):
    """Takes alarms that begin or end."""

    def __call__(self, entries: RuleEntries, sign: int, time_us: np.ndarray, unknown: np.ndarray | None = None) -> None:
        """Take them: their entries, the sign, the times, and where it is unknown whether they would last."""


class Movement:
    """Moves entries on in time.

    Parameters
    ----------
    rules : Rules
    beginnings : SortedRuns
        With the columns of `BEGINNING`.
    tell : Tell

    Attributes
    ----------
    beginnings : SortedRuns
        As they are after what was moved.
    """

    def __init__(self, rules: Rules, beginnings: SortedRuns, tell: Tell) -> None:
        self._rules, self.beginnings, self._tell = rules, beginnings, tell

    def move(self, entries: RuleEntries, rows: np.ndarray) -> None:
        """Move the entries at `rows` on in time."""
        if len(rows):
            some = entries.at(rows)
            self._move_on(some)
            entries.put(rows, some)

    def _move_on(self, entries: RuleEntries) -> None:
        """Move entries on in time, and tell the alarms that begin and end."""
        rules, until_us, time_us = self._rules, entries.until_us, entries.time_us
        place, _ = rules.place_of(entries["rule"])
        on = rules.schedules.on(place, time_us)
        holds, lasts = (of(place, entries["bits"]) & on for of in (rules.begins, rules.lasts))
        rated = rules.within_us[place] > 0
        was, phase = entries["phase"].copy(), entries["phase"]
        self._move_rated(entries, np.flatnonzero(rated), place, holds)
        plain = ~rated
        begins = plain & (was == IDLE) & holds
        due_us = np.maximum(time_us + rules.for_us[place], entries["rearmed_us"])
        entries["due_us"][begins], phase[begins] = due_us[begins], HOLDING
        entries["since_us"][begins] = time_us[begins]
        # What has no duration is told at once. Otherwise the condition must still hold when the alarm begins.
        at_once = begins & (due_us <= time_us)
        fires = plain & (phase == HOLDING) & holds & ((entries["due_us"] < until_us) | at_once)
        lapses = plain & (was == HOLDING) & ~holds
        # The condition held for long enough before it ceased to: the alarm begins, and ends now unless it lasts.
        short = lapses & (entries["due_us"] < time_us)
        fires |= short & lasts
        short, lapses = short & ~lasts, lapses & ~fires
        ends = plain & (was == ALARM) & ~lasts
        # While an alarm lasts, `rearmed_us` is its beginning, before which it does not end although a report came late.
        ended_us = np.where(was == ALARM, np.maximum(time_us, entries["rearmed_us"]), time_us)
        begun, ended = fires | short, ends | short
        self._tell(entries.at(begun), ENTERED, entries["due_us"][begun])
        unknown = rules.may_last(place, entries["bits"]) & on
        self._tell(entries.at(ended), LEFT, ended_us[ended], unknown[ended])
        entries["rearmed_us"][fires] = entries["due_us"][fires]
        entries["rearmed_us"][ends | short] = (ended_us + rules.rearm_us[place])[ends | short]
        phase[fires], phase[lapses | ends] = ALARM, IDLE
        entries["due_us"][fires] = NEVER_US
        rests = plain & (phase == IDLE)
        entries["due_us"][rests] = entries["rearmed_us"][rests]
        entries["holds"][:], entries["moved_us"][:] = holds, time_us

    def _move_rated(self, entries: RuleEntries, rows: np.ndarray, place: np.ndarray, holds: np.ndarray) -> None:
        """Move the entries of rules with a rate on: what was due before something happened comes first, then that."""
        place, time_us = place[rows], entries.time_us[rows]
        while len(due := np.flatnonzero(entries["due_us"][rows] <= time_us)):
            at_us = entries["due_us"][rows[due]]
            self._rate(entries, rows[due], place[due], at_us, np.empty(0, dtype=np.int64))
        begins = np.flatnonzero(holds[rows] & (entries["holds"][rows] == 0))
        self._rate(entries, rows, place, time_us, begins)

    def _rate(
        self,
        entries: RuleEntries,
        rows: np.ndarray,
        place: np.ndarray,
        at_us: np.ndarray,
        begins: np.ndarray,
    ) -> None:
        """Tell the alarms by a rate that begin and end at a time, at which the conditions of some begin to hold."""
        if not len(rows):
            return
        rules, name, phase = self._rules, entries.name[rows], entries["phase"][rows]
        within_us, more_than, rearmed_us = (
            rules.within_us[place],
            rules.more_than[place],
            entries["rearmed_us"][rows],
        )
        part, row = self.beginnings.rows(name)
        of = np.searchsorted(name, self.beginnings.keys(part, row))
        of, times = np.r_[of, begins], np.r_[self.beginnings.take(part, row)["time_us"], at_us[begins]]
        recent = times + within_us[of] > at_us[of]
        of, times = of[recent], times[recent]
        order = np.lexsort((times, of))
        of, times = of[order], times[order]
        stop = np.searchsorted(of, np.arange(len(rows)), "right")
        count = stop - np.searchsorted(of, np.arange(len(rows)), "left")
        columns = {"rule": entries["rule"][rows][of], "time_us": times}
        known = self.beginnings.find(name)[0] >= 0
        none, difference = name[known & (count == 0)], int((count > 0).sum()) - int(known.sum())
        self.beginnings = self.beginnings.put(name[of], columns, none, difference)
        often = (count > more_than) & rules.schedules.on(place, at_us)
        newest_us, deciding_us = at_us.copy(), np.zeros(len(rows), dtype=np.int64)
        newest_us[count > 0] = times[stop[count > 0] - 1]
        deciding_us[often] = times[stop[often] - 1 - more_than[often]]
        armed = rearmed_us <= np.maximum(at_us, newest_us)
        fires, lasts = (phase != ALARM) & often & armed, (phase == ALARM) & often
        ends = (phase == ALARM) & ~often
        ended_us = np.minimum(entries["due_us"][rows], at_us)
        self._tell(entries.at(rows[ends]), LEFT, ended_us[ends])
        entries["since_us"][rows[fires]] = newest_us[fires]
        self._tell(entries.at(rows[fires]), ENTERED, newest_us[fires])
        entries["rearmed_us"][rows[ends]] = (ended_us + rules.rearm_us[place])[ends]
        entries["phase"][rows] = np.where(fires | lasts, ALARM, IDLE)
        # The alarm ends when the beginning that decided is too old; other times are forgotten then.
        due_us = np.where(often, deciding_us, newest_us) + within_us
        due_us[(count == 0) & ~often] = NEVER_US
        waits = often & ~(fires | lasts)
        due_us[waits] = np.minimum(due_us, entries["rearmed_us"][rows])[waits]
        entries["due_us"][rows] = due_us
