"""Judge the pairs of joins in pieces, of which the first is a sample: it tells if there is no room for all.

References
----------
PLACE* (2007), section 3: whatever a query asks for, it may not hold the others up.
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from streaming.operators.allowance import FOUND, SAMPLE, SURE
from streaming.operators.asked import Asked
from streaming.operators.candidates import JoinCandidates, KnownPairs
from streaming.operators.failures import Failures
from streaming.operators.meetings import Meetings

# Takes the rows of elements and of partners, (P,) each, the failures, and when it was asked.
Judge = Callable[[np.ndarray, np.ndarray, Failures, float], Meetings]


class Judging:
    """Finds those of some pairs that satisfy joins which are judged together, in pieces, as far as there is room.

    Parameters
    ----------
    pairs : JoinCandidates or KnownPairs
        Pairs of elements that may satisfy the joins.
    judge : callable
        Returns those that do; see `Judge`.
    queries : ndarray of int64, shape (G,)
        The joins.
    work : int
        As how many pairs one counts.
    failures : Failures
        Of which this counts a part.

    Attributes
    ----------
    failed : Failures
        That part, by positions in `queries`.
    found : list of Meetings
        What has been found so far.
    """

    def __init__(
        self, pairs: JoinCandidates | KnownPairs, judge: Judge, queries: np.ndarray, work: int, failures: Failures
    ) -> None:
        self.pairs, self.queries, self.failed = pairs, queries, failures.part()
        self.found: list[Meetings] = []
        self._judge, self._work, self._joins = judge, work, np.arange(len(queries))
        self._pieces, self._left, self._took = pairs.pieces(SAMPLE // work), pairs.most, 0.0

    @property
    def may_be_too_many(self) -> bool:
        """Whether there is no room for all pairs if all of them are found."""
        return self.pairs.most * (self._work + FOUND) > SURE * self.failed.allowance.most

    def go_on(self) -> bool:
        """Judge the next piece; return whether there are more, and room for them."""
        failed, joins, began = self.failed, self._joins, perf_counter()
        if (piece := next(self._pieces, None)) is None:
            return False
        row, partner, looked_at = piece
        room, self._left = failed.allowance.left, self._left - looked_at
        if len(row) and failed.ask(Asked.jointly(joins, self._work * len(row))):
            self.found.append(self._judge(row, partner, failed, began))
            failed.find(joins, len(self.found[-1].row))
        self._took += room - failed.allowance.left
        return failed.goes_on(joins, self._took, self.pairs.most - self._left, self._left)

    def finish(self) -> None:
        """Judge all that are left if there is room, or count them."""
        while self.failed.allowance.has_room and self.go_on():
            pass
        if not self.failed.allowance.has_room:
            self.failed.miss(self._joins, self._work * self._left)
