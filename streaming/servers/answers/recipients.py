"""The recipients of answers: queries with equal plans share one answer.

A tuple of an answer that several queries share is evaluated, kept and written once, under the number of the answer.
Whoever nets the fragments fans it out to those of the queries that somebody watches.
"""

from dataclasses import dataclass, replace

import numpy as np

from streaming.operators.runs import expand, find
from streaming.servers.answers.members import Answers


@dataclass(frozen=True)
class Recipients:
    """The numbers under which answers are reported, and the queries that share them.

    Parameters
    ----------
    answer, name : ndarray of int64, shape (N,)
        Answers, ascending, and the number under which their tuples are reported: that of a query, or the answer's own.
        An answer with several such numbers occurs several times.
    shared : dict of int to tuple of int
        The queries of each answer that is reported under its own number.
    """

    answer: np.ndarray
    name: np.ndarray
    shared: dict[int, tuple[int, ...]]

    @classmethod
    def of(cls, ids: np.ndarray, answer_of: np.ndarray, apart: np.ndarray) -> "Recipients":
        """Group queries by their answers, and return the recipients.

        Parameters
        ----------
        ids, answer_of : ndarray of int64, shape (Q,)
            Queries and their answers.
        apart : ndarray of int64
            Queries to report under their own numbers, since their subscribers do not hold the same as those of the
            other queries that share the answer.
        """
        alone = np.isin(ids, apart)
        order = np.argsort(answer_of[~alone], kind="stable")
        queries = ids[~alone][order]
        answer, start, count = np.unique(answer_of[~alone][order], return_index=True, return_counts=True)
        several = np.flatnonzero(count > 1)
        shared = {
            number: tuple(queries[first : first + size].tolist())
            for number, first, size in zip(*(part[several].tolist() for part in (answer, start, count)), strict=True)
        }
        answers = np.r_[answer, answer_of[alone]]
        names = np.r_[np.where(count > 1, answer, queries[start]), ids[alone]]
        order = np.argsort(answers, kind="stable")
        return cls(answers[order], names[order], shared)

    def told(self, answers: Answers) -> Answers:
        """Return members of answers under the numbers of their recipients; with several numbers a member repeats."""
        start = np.searchsorted(self.answer, answers.query, "left")
        count = np.searchsorted(self.answer, answers.query, "right") - start
        if (count == 1).all():
            return replace(answers, query=self.name[start])
        row, position = expand(start, count)
        return replace(answers.take(row), query=self.name[position])

    def answers_of(self, names: np.ndarray) -> np.ndarray:
        """Return the answers that are reported under some numbers; 0 where there is none."""
        order = np.argsort(self.name, kind="stable")
        place, known = find(self.name[order], names)
        answers = np.zeros(len(names), dtype=np.int64)
        answers[known] = self.answer[order[place[known]]]
        return answers

    def names_of(self, answers: np.ndarray) -> np.ndarray:
        """Return all numbers under which some answers are reported."""
        return self.name[np.isin(self.answer, answers)]

    def shared_in(self, names: np.ndarray) -> tuple[dict[int, tuple[int, ...]], int]:
        """Return the queries of the shared answers among `names`, and the number of tuples after the fan-out."""
        if not self.shared:
            return {}, len(names)
        occurring, count = np.unique(names, return_counts=True)
        shared = {name: self.shared[name] for name in occurring.tolist() if name in self.shared}
        sizes = [len(shared.get(name, (name,))) for name in occurring.tolist()]
        return shared, int(np.dot(count, sizes))
