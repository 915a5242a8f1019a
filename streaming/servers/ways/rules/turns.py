"""What happens to the entries of rules, in the order in which it counts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streaming.operators.rules import Rules
from streaming.operators.runs import expand, find, first_of_runs, last_of_runs, running_maximum
from streaming.servers.answers.names import names_of
from streaming.servers.sorted_runs import SortedRuns

# Bits of entries that turn: the names of the entries, their rules and objects, the bits, whether they are set (1) or
# cleared (-1), the times, and the turns, as `MembershipChanges.turn` or seconds, which come one after the other.
Turning = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
# The names of entries, their rules and objects, the bits that are set and those that are cleared, and the times.
Changes = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class EntryChanges:
    """Puts what happens to entries in order: changes of answers, and schedules that begin or end.

    Parameters
    ----------
    rules : Rules
    entries : SortedRuns
        With the columns of `rule_entries.ENTRY`.
    staying : ndarray of int64
        The rules that were there before with the same plan, ascending.
    decided_us : tuple of int
        Before when it was decided what is due, and before when it is.
    """

    rules: Rules
    entries: SortedRuns
    staying: np.ndarray
    decided_us: tuple[int, int]

    def ordered(self, parts: Sequence[Turning]) -> Changes:
        """Return what happens to entries, ordered by name and time; nothing is earlier than what happened before.

        Where a schedule begins or ends, no bit changes.
        """
        name, rule, key, bits, entered, time_us, turn = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((turn, name))
        start = np.flatnonzero(first_of_runs(name[order]) | first_of_runs(turn[order]))
        more, less = (np.where(entered == sign, bits, 0)[order] for sign in (1, -1))
        if len(start):
            more, less = (np.bitwise_or.reduceat(some, start) for some in (more, less))
            time_us = np.maximum.reduceat(time_us[order], start)
        first = order[start]
        name = name[first]
        time_us = running_maximum(name, np.maximum(time_us, self._moved_us(name)))
        changed = name, rule[first], key[first], more, less, time_us
        both = [np.concatenate(columns) for columns in zip(self._turning(parts, name, time_us), changed, strict=True)]
        name, rule, key, more, less, time_us = both
        order = np.lexsort((time_us, name))
        return name[order], rule[order], key[order], more[order], less[order], time_us[order]

    def all_of(self, rules: np.ndarray, parts: Sequence[Turning]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the names, the rules and the objects of all entries of some rules, also of new ones in `parts`."""
        part, row = self.entries.select(lambda run: find(rules, run.columns["rule"])[1])
        known = self.entries.take(part, row, ("rule", "object"))
        rule, key = (
            np.concatenate([known[name], *(some[of] for some in parts)]) for name, of in (("rule", 1), ("object", 2))
        )
        mine = find(rules, rule)[1]
        name = names_of(rule[mine], key[mine])
        first = np.unique(name, return_index=True)[1]
        return name[first], rule[mine][first], key[mine][first]

    def _turning(self, parts: Sequence[Turning], changed: np.ndarray, changed_us: np.ndarray) -> Changes:
        """Return where schedules of entries begin or end, up to when it is decided, or to the last of their changes."""
        before_us, now_us = self.decided_us
        schedules, ids = self.rules.schedules, self.rules.ids
        place, time_us = schedules.turns(before_us, max(now_us, int(changed_us.max(initial=0)) + 1))
        stays = find(self.staying, ids[place])[1]
        turning, time_us = ids[place[stays]], time_us[stays]
        name, rule, key = self.all_of(np.unique(turning), parts) if len(turning) else (changed[:0],) * 3
        start = np.searchsorted(turning, rule, "left")
        entry, turn = expand(start, np.searchsorted(turning, rule, "right") - start)
        name, time_us = name[entry], time_us[turn]
        last = last_of_runs(changed)
        at, known = find(changed[last], name)
        last_us = np.zeros(len(name), dtype=np.int64)
        last_us[known] = changed_us[last[at[known]]]
        mine = ((time_us < now_us) | (time_us <= last_us)) & (time_us > self._moved_us(name))
        none = np.zeros(int(mine.sum()), dtype=np.int64)
        return name[mine], rule[entry][mine], key[entry][mine], none, none, time_us[mine]

    def _moved_us(self, names: np.ndarray) -> np.ndarray:
        """Return when entries (K,) were moved last; 0 if never."""
        every, place = np.unique(names, return_inverse=True)
        moved_us = np.zeros(len(every), dtype=np.int64)
        part, row = self.entries.find(every)
        known = part >= 0
        moved_us[known] = self.entries.take(part[known], row[known], ("moved_us",))["moved_us"]
        return moved_us[place]
