"""The members of answers that a region keeps: a table of sorted runs, by object.

All members with one object are replaced together, so a run says of an object in which answers it is from then on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from streaming.operators.runs import distinct, find
from streaming.servers.answers.members import Answers
from streaming.servers.sorted_runs import Run, SortedRuns

COLUMNS = ("answer", "partner")


@dataclass(frozen=True)
class MemberTable:
    """An immutable version of the members of answers.

    Parameters
    ----------
    table : SortedRuns
        By the `key_hash` of the object: the number of the answer, and in a join the `key_hash` of the partner
        (otherwise 0).
    """

    table: SortedRuns

    @classmethod
    def empty(cls, following: int = 0) -> "MemberTable":
        """Return no members."""
        return cls(SortedRuns(no_columns(), following=following))

    def of_objects(self, keys: np.ndarray) -> Answers:
        """Return the members with some objects, ordered by key; `keys` are ascending and distinct."""
        return self._taken(*self.table.rows(keys))

    def of_answers(self, answers: np.ndarray) -> Answers:
        """Return the members of some answers, ordered by key. This looks at every member."""
        if not len(answers):
            return self._taken(*np.empty((2, 0), dtype=np.int64))
        return self.select(lambda run: np.isin(run.columns["answer"], answers))

    def select(self, matching: Callable[[Run], np.ndarray]) -> Answers:
        """Return the members that `matching` chooses, ordered by key; see `SortedRuns.select`."""
        members = self._taken(*self.table.select(matching))
        return members.take(np.argsort(members.key, kind="stable"))

    def whole(self) -> Answers:
        """Return all members, ordered by key."""
        return self._taken(*self.table.whole())

    def replaced(self, old: Answers, new: Answers, changed: np.ndarray) -> "MemberTable":
        """Return a version with `new` in the place of `old`, which are all members with some objects.

        Parameters
        ----------
        old, new : Answers
            Ordered by key.
        changed : ndarray of int64
            The keys of the objects with which the members differ, ascending and distinct.
        """
        if not len(changed):
            return self
        new = new.take(find(changed, new.key)[1])
        here, were = find(new.key, changed)[1], find(old.key, changed)[1]
        gone, difference = changed[~here], int(here.sum()) - int(were.sum())
        columns = {"answer": new.query, "partner": new.partner}
        return MemberTable(self.table.put(new.key, columns, gone, difference))

    def joined(self, several: Sequence[Answers]) -> "MemberTable":
        """Return a version with the members, each ordered by key, of objects that have none here yet."""
        new = together(several)
        return self.replaced(new.take(np.empty(0, dtype=np.int64)), new, distinct(new.key))

    def without_objects(self, keys: np.ndarray) -> "MemberTable":
        """Return the members without those with some objects, whose keys are ascending and distinct."""
        known = keys[self.table.find(keys)[0] >= 0]
        return MemberTable(self.table.without(known, newest=False)) if len(known) else self

    def without(self, answers: np.ndarray) -> "MemberTable":
        """Return the members without those of some answers."""
        objects = distinct(self.of_answers(answers).key)
        if not len(objects):
            return self
        old = self.of_objects(objects)
        return self.replaced(old, old.take(~np.isin(old.query, answers)), objects)

    def settled(self) -> "MemberTable":
        """Return the same members, after the merges that are due."""
        return MemberTable(self.table.settled())

    def _taken(self, part: np.ndarray, row: np.ndarray) -> Answers:
        columns = self.table.take(part, row, COLUMNS)
        return Answers(self.table.keys(part, row), columns["answer"], columns["partner"])


def together(several: Sequence[Answers]) -> Answers:
    """Return several members of answers, at least one, each ordered by key, as one."""
    if len(several) == 1:
        return several[0]
    names = ("key", "query", "partner")
    both = Answers(*(np.concatenate([getattr(part, name) for part in several]) for name in names))
    return both.take(np.argsort(both.key, kind="stable"))


def no_columns() -> dict[str, np.ndarray]:
    """Return the columns of the members of answers, without rows."""
    return {name: np.empty(0, dtype=np.int64) for name in COLUMNS}
