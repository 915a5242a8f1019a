"""Judge the pairs of joins in pieces, of which the first is a sample: it tells if there is no room for all.

References
----------
PLACE* (2007), section 3: whatever a query asks for, it may not hold the others up.
"""

from time import perf_counter
from typing import Protocol

import numpy as np

from streaming.operators.allowance import FOUND, SAMPLE, SURE
from streaming.operators.asked import Asked
from streaming.operators.candidates import JoinCandidates, KnownPairs
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.meetings import Meetings


class JoinedAlike(Protocol):
    """Joins that are judged together; one pair counts as `work` pairs."""

    queries: np.ndarray
    work: int

    def judged(
        self,
        elements: Elements,
        key_hash: np.ndarray,
        row: np.ndarray,
        partner: np.ndarray,
        failures: Failures,
        began: float,
    ) -> Meetings:
        """Return those of some pairs that satisfy the joins."""
        ...


class Judging:
    """Finds those of some pairs that satisfy the joins of a group, in pieces, as far as there is room for them.

    Parameters
    ----------
    group : JoinedAlike
    pairs : JoinCandidates or KnownPairs
        Pairs of elements that may satisfy the joins.
    elements : Elements
    key_hash : ndarray of int64, shape (N,)
        The hash of each element's key.
    failed : Failures
        Of the group alone, by positions in it. Counts what is looked at.

    Attributes
    ----------
    found : list of Meetings
        What has been found so far.
    """

    def __init__(
        self,
        group: JoinedAlike,
        pairs: JoinCandidates | KnownPairs,
        elements: Elements,
        key_hash: np.ndarray,
        failed: Failures,
    ) -> None:
        self.group, self.pairs, self.failed = group, pairs, failed
        self.found: list[Meetings] = []
        self._elements, self._key_hash = elements, key_hash
        self._pieces, self._left, self._took = pairs.pieces(SAMPLE // group.work), pairs.most, 0.0

    @property
    def may_be_too_many(self) -> bool:
        """Whether there is no room for all pairs if all of them are found."""
        return self.pairs.most * (self.group.work + FOUND) > SURE * self.failed.allowance.most

    def go_on(self) -> bool:
        """Judge the next piece; return whether there are more, and room for them."""
        group, failed, began = self.group, self.failed, perf_counter()
        if (piece := next(self._pieces, None)) is None:
            return False
        row, partner, looked_at = piece
        room, joins, self._left = failed.allowance.left, np.arange(len(group.queries)), self._left - looked_at
        if len(row) and failed.ask(Asked.jointly(joins, group.work * len(row))):
            self.found.append(group.judged(self._elements, self._key_hash, row, partner, failed, began))
            failed.find(joins, len(self.found[-1].row))
        self._took += room - failed.allowance.left
        return failed.goes_on(joins, self._took, self.pairs.most - self._left, self._left)

    def finish(self) -> None:
        """Judge all that are left if there is room, or count them."""
        while self.failed.allowance.has_room and self.go_on():
            pass
        if not self.failed.allowance.has_room:
            self.failed.miss(np.arange(len(self.group.queries)), self.group.work * self._left)
