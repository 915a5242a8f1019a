"""The recipients of answers: queries with equal plans share one answer.

A tuple of an answer that several queries share is evaluated, kept and written once, under the number of the answer.
Whoever nets the fragments fans it out to those of the queries that somebody watches.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from streaming.operators.runs import expand, find
from streaming.results import ANSWER_NUMBERS
from streaming.servers.answers.members import Answers
from streaming.servers.control.columns import Columns


@dataclass(frozen=True)
class Recipients:
    """The numbers under which answers are reported, and the queries that share them.

    An answer is reported under the number of its query. If several queries share it, it is reported under its own
    number, and under that of each query that is `apart`. Only what is asked for is looked up, so the recipients of all
    queries cost nothing to make.

    Parameters
    ----------
    columns : Columns
        The running queries.
    apart : ndarray of int64
        Queries to report under their own numbers, since their subscribers do not hold the same as those of the other
        queries that share the answer. Ascending.
    """

    columns: Columns
    apart: np.ndarray

    @functools.cached_property
    def _divided(self) -> tuple[np.ndarray, np.ndarray]:
        """The answers of queries that are apart, ascending; with several names repeated. And the names of each."""
        mine = self.columns.answers_of(self.apart)
        of, query = self.columns.queries_of(mine)
        alone = find(self.apart, query)[1]
        together = np.bincount(of[~alone], minlength=len(mine))
        single = ~alone & (together[of] == 1)
        several = np.flatnonzero(together > 1)
        answer = np.r_[mine[of[alone | single]], mine[several]]
        name = np.r_[query[alone | single], mine[several]]
        order = np.argsort(answer, kind="stable")
        return answer[order], name[order]

    def _named(self, answers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the names of answers (K,): for each name the position of its answer, ascending, and the name."""
        ordered, (divided, names) = self.columns.ordered_answer, self._divided
        start, known = find(ordered, answers)
        following = np.minimum(start + 1, len(ordered) - 1)
        shared = known & (start + 1 < len(ordered))
        shared[shared] = ordered[following[shared]] == answers[shared]
        name = np.where(shared, answers, 0)
        name[known & ~shared] = self.columns.ordered_query[start[known & ~shared]]
        if not len(divided):
            row = np.flatnonzero(known)
            return row, name[row]
        first = np.searchsorted(divided, answers, "left")
        count = np.searchsorted(divided, answers, "right") - first
        plain = np.flatnonzero(known & (count == 0))
        row, position = expand(first, count)
        order = np.argsort(rows := np.r_[plain, row], kind="stable")
        return rows[order], np.r_[name[plain], names[position]][order]

    def told(self, answers: Answers) -> Answers:
        """Return members of answers under the numbers of their recipients; with several numbers a member repeats."""
        row, name = self._named(answers.query)
        return replace(answers.take(row), query=name)

    def answers_of(self, names: np.ndarray) -> np.ndarray:
        """Return the answers that are reported under some numbers; 0 for a number that no query and no answer has."""
        answers = np.zeros(len(names), dtype=np.int64)
        place, known = find(self.columns.query, names)
        answers[known] = self.columns.answer[place[known]]
        shared = find(self.columns.ordered_answer, names)[1] & ~known
        answers[shared] = names[shared]
        return answers

    def names_of(self, answers: np.ndarray) -> np.ndarray:
        """Return all numbers under which some answers are reported."""
        return self._named(answers)[1]

    def shared_in(self, names: np.ndarray) -> tuple[dict[int, tuple[int, ...]], int]:
        """Return the queries of the shared answers among `names`, and the number of tuples after the fan-out."""
        own = names[names >= ANSWER_NUMBERS]
        if not len(own):
            return {}, len(names)
        occurring, count = np.unique(own, return_counts=True)
        of, query = self.columns.queries_of(occurring)
        keep = ~find(self.apart, query)[1]
        order = np.lexsort((query[keep], of[keep]))
        of, query = of[keep][order], query[keep][order]
        several = np.bincount(of, minlength=len(occurring))
        parts: Sequence[np.ndarray] = np.split(query, np.cumsum(several)[:-1])
        shared = {name: tuple(part.tolist()) for name, part in zip(occurring.tolist(), parts, strict=True) if len(part)}
        return shared, len(names) - len(own) + int(np.dot(count, np.maximum(several, 1)))
