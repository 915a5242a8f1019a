"""The numbers of answers: queries with equal plans share one, and an answer whose boxes move keeps its number.

Servers keep members under the number of their answer. When the boxes of a query move, as those of a map that is panned,
its answer keeps its number. So servers look only at the objects where the boxes differ, and need not touch the others.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from streaming.kinds.registry import moved
from streaming.servers.control.columns import Columns
from streaming.servers.control.registrations import Registration, answer_number

Put = dict[int, Registration | None]


@dataclass(frozen=True)
class AnswerNumbers:
    """The numbers of the answers of running queries, a pure function of the control log.

    Parameters
    ----------
    other : mapping of int to int
        By the number of a plan, that of its answer if it is another one, because the answer was once that of another
        plan. No two answers ever have the same number.
    """

    other: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, registrations: Iterable[Registration]) -> "AnswerNumbers":
        """Return the numbers that registrations tell."""
        return cls(
            {
                told.parsed.answer: told.own_answer
                for told in registrations
                if told.parsed and told.own_answer is not None
            }
        )

    def numbered(self, put: Put, before: Mapping[int, Registration], columns: Columns) -> tuple["AnswerNumbers", Put]:
        """Return the numbers after some registrations were put, and these registrations with their own numbers.

        Parameters
        ----------
        put : dict of int to Registration or None
            By query; None stands for one that was removed.
        before : mapping of int to Registration
            The registrations before.
        columns : Columns
            The queries that run before.
        """
        were = {query: was for query in put if (was := before.get(query)) is not None and was.parsed}
        if not self.other and not any(told and told.parsed for query, told in put.items() if query in were):
            return self, put
        change = _NumberChanges(dict(self.other), columns)
        for query, was in were.items():
            now = put[query]
            if now is None or now.parsed is not was.parsed:
                change.end(was)
        put = {query: told and change.numbered(told, were.get(query)) for query, told in put.items()}
        change.forget(were.values())
        return AnswerNumbers(change.other), put


class _NumberChanges:
    """The numbers while they change: first queries end, then others begin, then what has ended is forgotten."""

    def __init__(self, other: dict[int, int], columns: Columns) -> None:
        self.other, self._columns = other, columns
        self._taken = set(other.values())
        self._more: Counter[int] = Counter()

    def end(self, was: Registration) -> None:
        self._more[was.answer] -= 1

    def numbered(self, told: Registration, was: Registration | None) -> Registration:
        """Return a registration with the number of its answer."""
        if not told.parsed:
            return told
        if was and was.parsed is told.parsed:
            return told._replace(own_answer=was.own_answer)
        plan = told.parsed.answer
        number = self.other.get(plan, plan)
        if (plan not in self.other and plan in self._taken) or not self._runs(number):
            self._release(plan)
            number = was.answer if was and self._keeps(was, told) else self._free(plan, told.parsed.text)
            if number != plan:
                self.other[plan] = number
                self._taken.add(number)
        self._more[number] += 1
        return told._replace(own_answer=None if number == plan else number)

    def forget(self, were: Iterable[Registration]) -> None:
        """Release the numbers of answers that have ended."""
        for was in were:
            if was.parsed and self.other.get(was.parsed.answer) == was.answer and not self._runs(was.answer):
                self._release(was.parsed.answer)

    def _keeps(self, was: Registration, told: Registration) -> bool:
        """Tell whether an edited query takes its number along: nobody else has it, and only boxes differ."""
        alone = self._count(was.answer) == 1 and self._more[was.answer] == -1
        if not alone or not was.parsed or not told.parsed or moved(was.parsed.plan, told.parsed.plan) is None:
            return False
        self._release(was.parsed.answer)
        return True

    def _free(self, plan: int, text: bytes) -> int:
        """Return the number of a plan, or another one if an answer has taken it along."""
        number, tries = plan, 0
        while number in self._taken:
            tries += 1
            number = answer_number(b"%d %s" % (tries, text))
        return number

    def _release(self, plan: int) -> None:
        if plan in self.other:
            self._taken.discard(self.other.pop(plan))

    def _runs(self, number: int) -> bool:
        return self._count(number) + self._more[number] > 0

    def _count(self, number: int) -> int:
        """Return how many queries have an answer before the change."""
        first, last = (np.searchsorted(self._columns.ordered_answer, number, side) for side in ("left", "right"))
        return int(last - first)
