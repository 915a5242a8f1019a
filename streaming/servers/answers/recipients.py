"""To whom answers are told: queries with equal plans share one answer.

A tuple of an answer that several queries share is evaluated, kept and written once, under the number of the answer; who
assembles the fragments fans it out to those queries of which somebody wants to hear.
"""

from dataclasses import dataclass, replace

import numpy as np

from streaming.operators.runs import expand, find
from streaming.servers.answers.members import Answers


@dataclass(frozen=True)
class Recipients:
    """To whom answers are told.

    Parameters
    ----------
    answer, name : ndarray of int64, shape (N,)
        Answers, ascending, and under which number their tuples are told: that of a query, or the answer's own.
    shared : dict of int to tuple of int
        The queries of each answer that is told under its own number.
    """

    answer: np.ndarray
    name: np.ndarray
    shared: dict[int, tuple[int, ...]]

    @classmethod
    def of(cls, ids: np.ndarray, answer_of: np.ndarray, apart: np.ndarray) -> "Recipients":
        """Return the recipients of queries.

        Parameters
        ----------
        ids, answer_of : ndarray of int64, shape (Q,)
            Queries and their answers.
        apart : ndarray of int64
            Queries that are told by themselves, since they do not hold what the others hold that share their answer.
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
        """Return members of answers under the numbers under which they are told."""
        start = np.searchsorted(self.answer, answers.query, "left")
        count = np.searchsorted(self.answer, answers.query, "right") - start
        if (count == 1).all():
            return replace(answers, query=self.name[start])
        row, position = expand(start, count)
        return replace(answers.take(row), query=self.name[position])

    def answers_of(self, names: np.ndarray) -> np.ndarray:
        """Return the answers that are told under some numbers; 0 where none is."""
        order = np.argsort(self.name, kind="stable")
        place, known = find(self.name[order], names)
        answers = np.zeros(len(names), dtype=np.int64)
        answers[known] = self.answer[order[place[known]]]
        return answers

    def names_of(self, answers: np.ndarray) -> np.ndarray:
        """Return all numbers under which some answers are told."""
        return self.name[np.isin(self.answer, answers)]

    def shared_in(self, names: np.ndarray) -> tuple[dict[int, tuple[int, ...]], int]:
        """Return the queries of the shared answers among numbers, and how many tuples the numbers stand for."""
        if not self.shared:
            return {}, len(names)
        occurring, count = np.unique(names, return_counts=True)
        shared = {name: self.shared[name] for name in occurring.tolist() if name in self.shared}
        sizes = [len(shared.get(name, (name,))) for name in occurring.tolist()]
        return shared, int(np.dot(count, sizes))
