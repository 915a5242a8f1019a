"""Silence, for rules about it: which objects have not reported for long enough, and which streams.

Silence is counted by the clock of the stream. It goes with the engine's clock, but stands still while nobody has
reported for a while (`silences.stands_still_us`). So not every object is silent because its feed or the engine was
down. A stream that is silent as a whole is told by itself, in place of its objects.

The assembler looks up when objects were heard, and only for those that may have been silent for long enough. The
silences that a report has ended are told by home servers.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from streaming.elements import key_hashes, stream_number
from streaming.operators.rules import LOST, MEMBER, SILENT, Rules
from streaming.operators.runs import find
from streaming.operators.schedules import NEVER_US
from streaming.servers.answers.names import names_of
from streaming.servers.sorted_runs import SortedRuns
from streaming.servers.ways.rules.changes import MembershipChanges, last_turn, turn_of
from streaming.servers.ways.rules.entries import WHOLE
from streaming.servers.ways.rules.home_silences import stands_still_us
from streaming.servers.ways.rules.turns import Turning

# Within the time for which an object must be silent, the clock of its stream can have stood still four times.
PAUSES_KEPT = 6
# When silences became long enough, by the names of entries, and when the objects had been heard; 0 if never.
_BEGUN = pl.Schema(dict.fromkeys(("name", "time_us", "heard_us"), pl.Int64))


@dataclass(frozen=True)
class SilentFeed:
    """When a rule about silence heard its stream.

    Parameters
    ----------
    begun_us : int
        When the rule began. No silence counts from before.
    newest_us : int
        When the stream was heard last, or `begun_us`.
    silent : bool
        Whether the stream has been silent for long enough since then.
    pauses : tuple of tuple of int
        From when to when the clock of the stream stood still lately, in the order of time.
    """

    begun_us: int
    newest_us: int
    silent: bool = False
    pauses: tuple[tuple[int, int], ...] = ()

    def document(self) -> list[Any]:
        """Return the feed as a JSON array."""
        return [self.begun_us, self.newest_us, self.silent, [list(pause) for pause in self.pauses]]

    @classmethod
    def of(cls, document: Sequence[Any]) -> "SilentFeed":
        """Return the feed that a JSON array describes; the inverse of `document`."""
        begun_us, newest_us, silent, pauses = document
        return cls(begun_us, newest_us, silent, tuple((begin, end) for begin, end in pauses))

    def long_us(self, heard_us: np.ndarray, silent_us: int) -> np.ndarray:
        """Return when objects, given when they were heard, will have been silent for long enough, int64 of shape (K,).

        The clock is taken to go on after the newest report.
        """
        since_us = np.maximum(heard_us, self.begun_us)
        long_us = since_us + silent_us
        for begin, end in self.pauses:
            long_us = long_us + np.where((begin < long_us) & (end > since_us), end - begin, 0)
        return long_us

    def due_us(self, heard_us: np.ndarray, silent_us: int) -> np.ndarray:
        """Return the same as `long_us`; `NEVER_US` where the clock stands still before."""
        long_us = self.long_us(heard_us, silent_us)
        return np.where(long_us > self.newest_us + stands_still_us(silent_us), NEVER_US, long_us)

    def heard(
        self, spells: Sequence[tuple[int, int]], silent_us: int, now_us: int
    ) -> tuple["SilentFeed", list[tuple[int, int, int]]]:
        """Return the feed after spells in which its stream was heard, and when the stream fell silent, and spoke again.

        Returns
        -------
        feed : SilentFeed
        turns : list of tuple of int
            The sign, 1 or -1; when that was; and when the stream had been heard before.
        """
        newest_us, silent, pauses, turns = self.newest_us, self.silent, list(self.pauses), []
        still_us = stands_still_us(silent_us)
        for begin_us, end_us in sorted(spells):
            if not silent and begin_us - newest_us > silent_us:
                turns.append((1, newest_us + silent_us, newest_us))
                silent = True
            if begin_us - newest_us > still_us:
                pauses.append((newest_us + still_us, begin_us))
            if silent:
                turns.append((-1, max(begin_us, newest_us), newest_us))
                silent = False
            newest_us = max(newest_us, end_us)
        if not silent and newest_us + silent_us < now_us:
            turns.append((1, newest_us + silent_us, newest_us))
            silent = True
        return replace(self, newest_us=newest_us, silent=silent, pauses=tuple(pauses)), turns


Feeds = Mapping[int, SilentFeed]
# Returns something of objects, given their hashes.
LookUp = Callable[[np.ndarray], np.ndarray]


def due_us(rules: Rules, feeds: Feeds, entries: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return when entries are to be looked at because their objects may be silent, int64 of shape (K,).

    Parameters
    ----------
    rules : Rules
    feeds : mapping of int to SilentFeed
        By the numbers of rules.
    entries : mapping of str to ndarray of int64, shape (K,)
        The columns ``rule``, ``object``, ``bits`` and ``heard_us`` of `rule_entries.ENTRY`.
    """
    due = np.full(len(entries["rule"]), NEVER_US)
    waits = (entries["bits"] & (MEMBER | LOST) != 0) & (entries["bits"] & SILENT == 0) & (entries["object"] != WHOLE)
    for place in np.flatnonzero(rules.silent_us).tolist():
        feed = feeds.get(int(rules.ids[place]))
        mine = np.flatnonzero(waits & (entries["rule"] == rules.ids[place])) if feed else ()
        if feed and len(mine):
            due[mine] = feed.due_us(entries["heard_us"][mine], int(rules.silent_us[place]))
    return due


@dataclass
class SilenceTurns:
    """What silence turns in the entries of rules in a micro-batch.

    Parameters
    ----------
    rules : Rules
    feeds : mapping of int to SilentFeed
        As the micro-batch before left them.
    entries : SortedRuns
        With the columns of `rule_entries.ENTRY`, of the rules that stay.
    silences : polars.DataFrame
        With `watched.ENDED_SILENCES`.
    heard, gone : callable
        Return when objects were heard, 0 if that is not known in any region, and which are in no region any more.
    batch : int
    at_us, now_us : int
        When what begins in the micro-batch begins, and before when it is decided what is due.
    """

    rules: Rules
    feeds: Feeds
    entries: SortedRuns
    silences: pl.DataFrame
    heard: LookUp
    gone: LookUp
    batch: int
    at_us: int
    now_us: int

    def __post_init__(self) -> None:
        self.begun = pl.DataFrame(schema=_BEGUN)
        self._places = np.flatnonzero(self.rules.silent_us).tolist()
        self._now: dict[int, SilentFeed] = {}
        self._newest = np.empty((2, 0), dtype=np.int64)
        if len(self.silences):
            newest = self.silences.group_by("key_hash").agg(pl.col("to_us").max()).sort("key_hash")
            self._newest = newest.to_numpy().T
        self.lost: list[tuple[np.ndarray, np.ndarray]] = []
        self._left = np.empty(0, dtype=np.int64)

    def __bool__(self) -> bool:
        return bool(self._places)

    def of_streams(self, spells: pl.DataFrame, new: np.ndarray) -> list[Turning]:
        """Return what turns as whole streams are silent or heard again, given their spells and the rules that begin."""
        rows, begun = [], []
        for place in self._places:
            rule, silent_us = int(self.rules.ids[place]), int(self.rules.silent_us[place])
            if rule in new or rule not in self.feeds:
                feed = SilentFeed(self.at_us, self.at_us)
                rows.append((rule, MEMBER, 1, self.at_us))
            else:
                feed = self.feeds[rule]
            stream = stream_number(self.rules.plans[place].stream)
            mine = spells.filter(pl.col("stream") == stream).select("from_us", "to_us").rows()
            self._now[rule], turns = feed.heard(mine, silent_us, self.now_us)
            rows += [(rule, SILENT, sign, at_us) for sign, at_us, _ in turns]
            begun += [(rule, at_us, heard_us) for sign, at_us, heard_us in turns if sign > 0]
        rules, bits, sign, time_us = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        whole = np.full(len(rules), WHOLE)
        self._note(*np.array([(one, WHOLE, at, heard) for one, at, heard in begun], dtype=np.int64).reshape(-1, 4).T)
        return [(names_of(rules, whole), rules, whole, bits, sign, time_us, time_us)]

    def heard_us(self, keys: np.ndarray) -> np.ndarray:
        """Return when objects (K,) were heard last, as far as that is known; otherwise 0."""
        place, found = find(self._newest[0], keys)
        told_us = np.zeros(len(keys), dtype=np.int64)
        told_us[found] = self._newest[1][place[found]]
        return np.maximum(told_us, self.heard(keys))

    def of_members(self, changes: MembershipChanges, dropped: Collection[int]) -> list[Turning]:
        """Return which objects left an answer only because they were silent, and which are back.

        Parameters
        ----------
        changes : MembershipChanges
        dropped : collection of int
            The numbers of streams that have ended.
        """
        of, place, _ = self.rules.naming(changes.query)
        ended = np.array([stream_number(plan.stream) in dropped for plan in self.rules.plans])
        mine = np.flatnonzero((self.rules.silent_us[place] > 0) & ~ended[place])
        left = changes.count[of[mine]] < 0
        stays = ~left
        stays[left] = self.gone(changes.key[of[mine[left]]])
        mine, left = mine[stays], left[stays]
        of, rule = of[mine], self.rules.ids[place[mine]]
        key, sign = changes.key[of], np.where(left, 1, -1)
        bits = np.full(len(of), LOST)
        self.lost.append((rule[left], key[left]))
        name, time_us, turn = names_of(rule, key), changes.time_us[of], changes.turn[of]
        self._left = np.union1d(self._left, names_of(name[left], turn[left]))
        return [(name, rule, key, bits, sign, np.where(left, 0, time_us), turn)]

    def untimed(self, turned: Turning) -> Turning:
        """Return bits that turn without the times at which objects left answers only because they were silent.

        Such an object is missed before and after, and may have been silent for long enough before.
        """
        name, rule, key, bit, sign, time_us, turn = turned
        left = find(self._left, names_of(name, turn))[1]
        return name, rule, key, bit, sign, np.where(left, 0, time_us), turn

    def expected(self, new: np.ndarray) -> list[Turning]:
        """Return the objects that rules which begin expect, and that are in no region."""
        found = []
        for place in self._places:
            plan, rule = self.rules.plans[place], int(self.rules.ids[place])
            if rule in new and plan.when.expected:
                keys = np.unique(key_hashes(plan.stream, list(plan.when.expected)))
                keys = keys[self.gone(keys)]
                rules, ones = np.full(len(keys), rule), np.ones(len(keys), dtype=np.int64)
                turn, at_us = np.full(len(keys), last_turn(self.batch)), np.full(len(keys), self.at_us)
                found.append((names_of(rules, keys), rules, keys, ones * LOST, ones, at_us, turn))
                self.lost.append((rules, keys))
        return found

    def ended(self, names: np.ndarray) -> list[Turning]:
        """Return the silences that reports ended, of entries that are there or have some names (K,), ascending."""
        found: list[Turning] = []
        for place in self._places if len(self.silences) else ():
            rule = int(self.rules.ids[place])
            stream = stream_number(self.rules.plans[place].stream)
            mine = self.silences.filter(pl.col("stream") == stream)
            key, from_us, to_us, step, batch = (mine[name].to_numpy() for name in _ENDED)
            rules = np.full(len(key), rule)
            name = names_of(rules, key)
            known = find(names, name)[1] | self._there(name)
            name, rules, key, from_us, to_us = (one[known] for one in (name, rules, key, from_us, to_us))
            turn = turn_of(batch, step)[known]
            ones = np.ones(len(name), dtype=np.int64)
            # One that is behind the clock is gone again at once, and still missed.
            back = np.where(self.gone(key), SILENT, SILENT | LOST)
            found.append((name, rules, key, back, -ones, to_us, turn))
            long_us = self._now[rule].long_us(from_us, int(self.rules.silent_us[place]))
            long = (from_us > 0) & (long_us < to_us)
            found.append(self._begins(rules[long], key[long], long_us[long], turn[long] - 1, from_us[long]))
        return found

    def going_on(self) -> list[Turning]:
        """Return the silences that have become long enough, and go on."""
        part, row = self.entries.find(self.due())
        columns = self.entries.take(part, row, ("rule", "object", "bits", "heard_us"))
        key = columns["object"]
        columns["heard_us"] = np.maximum(columns["heard_us"], self.heard_us(key))
        time_us = due_us(self.rules, self._now, columns)
        long = time_us < self.now_us
        rule, key, time_us, heard_us = columns["rule"][long], key[long], time_us[long], columns["heard_us"][long]
        turn = np.full(len(rule), last_turn(self.batch) + 1)
        return [self._begins(rule, key, time_us, turn, heard_us)]

    def due(self) -> np.ndarray:
        """Return the names of the entries of objects that may have been silent for long enough, ascending."""
        if not self._places or not len(self.entries):
            return np.empty(0, dtype=np.int64)
        chosen = self.entries.select(lambda run: due_us(self.rules, self._now, run.columns) < self.now_us)
        return np.sort(self.entries.keys(*chosen))

    def heard_before(self, name: np.ndarray, time_us: np.ndarray) -> np.ndarray:
        """Return when the objects of entries (K,) that are silent from a time on had been heard."""
        asked = pl.DataFrame({"name": name, "time_us": time_us, "row": np.arange(len(name))}).sort("time_us")
        found = asked.join_asof(self.begun.sort("time_us"), on="time_us", by="name", check_sortedness=False)
        return found.sort("row")["heard_us"].fill_null(0).to_numpy()

    @property
    def after(self) -> dict[int, SilentFeed]:
        """The feeds as the micro-batch leaves them."""
        return {rule: replace(feed, pauses=feed.pauses[-PAUSES_KEPT:]) for rule, feed in self._now.items()}

    def _begins(
        self, rule: np.ndarray, key: np.ndarray, time_us: np.ndarray, turn: np.ndarray, heard_us: np.ndarray
    ) -> Turning:
        """Return silences (K,) that become long enough."""
        self._note(rule, key, time_us, heard_us)
        name, ones = names_of(rule, key), np.ones(len(rule), dtype=np.int64)
        return name, rule, key, ones * SILENT, ones, time_us, turn

    def _there(self, names: np.ndarray) -> np.ndarray:
        every, place = np.unique(names, return_inverse=True)
        return (self.entries.find(every)[0] >= 0)[place]

    def _note(self, rule: np.ndarray, key: np.ndarray, time_us: np.ndarray, heard_us: np.ndarray) -> None:
        if len(rule):
            columns = {"name": names_of(rule, key), "time_us": time_us, "heard_us": heard_us}
            self.begun = pl.concat([self.begun, pl.DataFrame(columns, _BEGUN)])


_ENDED = ("key_hash", "from_us", "to_us", "step", "batch")
