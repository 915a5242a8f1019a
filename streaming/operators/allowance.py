"""How many pairs the queries of a step may look at together: a limit that no plan can pass.

A batch that runs again must do the same as before, so pairs are counted, and not time.

References
----------
PLACE* (2007), section 3: whatever a query asks for, it may not hold the others up.
"""

from collections.abc import Iterator
from copy import copy

import numpy as np

# The steps of all regions may look at so many pairs together; and at so many more for each element that has come, since
# what comes after an outage is more, and is to be answered, too; or for each object that they know, which are all
# compared when a query begins.
MOST, EACH, KNOWN = 400_000, 200, 60
# In place of `MOST` for steps in which no query begins that compares all that is known: they compare only elements that
# have come, with what waits for them, and so need about as much in each batch.
RUNNING = 100_000
# A pair that is found is told and kept. That costs as much as to look at so many.
FOUND = 10
# Whatever is found, to look into an index once costs as much as so many.
A_LOOK = 300
# So many pairs are looked at at once, at most about: their columns take some tens of megabytes.
PIECE = 1 << 17
# The first pairs that a query looks at are a sample of this size. If it predicts more than `SURE` times the room, the
# query asks for too much, whatever the others ask for; the step ends, so that a refusal costs little.
SAMPLE, SURE = 1 << 13, 1.5


class PairAllowance:
    """Counts how many pairs a step may still look at.

    Parameters
    ----------
    elements : int, optional
        How many elements have come that the step compares; without it, there is no limit.
    known : int, optional
        How many objects it knows that it compares. Copies of those of other regions do not count.
    regions : int, optional
        How many regions take such a step, with the same queries.
    begins : bool, optional
        Whether queries may begin with the step that then compare all that is known.

    Attributes
    ----------
    left : float
        May be below 0, by what was looked at last.

    Examples
    --------
    >>> allowance = PairAllowance(0)
    >>> allowance.take(MOST), allowance.take(1)
    (True, False)
    """

    def __init__(self, elements: int | None = None, known: int = 0, regions: int = 1, begins: bool = True) -> None:
        most = MOST if begins else RUNNING
        room = np.inf if elements is None else most / regions + EACH * elements + KNOWN * known
        self.most = self.left = room
        self._looked, self._found = 0.0, 0

    def with_known(self, known: int) -> "PairAllowance":
        """Return the allowance of another step, which knows so many objects more."""
        other = copy(self)
        other.most = other.left = self.most + KNOWN * known
        return other

    def take(self, pairs: float) -> bool:
        """Count pairs before they are looked at; return whether there is room for them."""
        self.left -= pairs
        self._looked += pairs
        return self.has_room

    def find(self, pairs: int) -> bool:
        """Count pairs that were found; return whether there was room for them."""
        self.left -= FOUND * pairs
        self._found += pairs
        return self.has_room

    def exceeded(self, took: float, looked_at: int, rest: int) -> float | None:
        """Return what pairs would take together, if that is surely more than the step has room for.

        Parameters
        ----------
        took : float
            What those took that were looked at.
        looked_at, rest : int
            How many these are, and how many are left. The rest is taken to cost as much each.
        """
        if not looked_at or took * rest <= SURE * self.most * looked_at:
            return None
        return took * (looked_at + rest) / looked_at

    def expected(self, pairs: int) -> int:
        """Return what pairs would count, looked at and found, if as many of them were found as of those so far."""
        return int(pairs * (1 + FOUND * min(1.0, self._found / max(1.0, self._looked))))

    @property
    def has_room(self) -> bool:
        """Whether there was room for all pairs so far."""
        return self.left >= 0

    @property
    def kept(self) -> float:
        """How many pairs all answers together may have."""
        return self.most / FOUND


def pieces(counts: np.ndarray, most: int = PIECE, first: int | None = None) -> Iterator[slice]:
    """Cut rows into pieces with at most so many pairs together; a row that has more is a piece of its own.

    Parameters
    ----------
    counts : ndarray of int64, shape (N,)
        How many pairs each row has, at most.
    most : int
    first : int, optional
        How many pairs the first piece has at most; by default `most`.

    Examples
    --------
    >>> [(piece.start, piece.stop) for piece in pieces(np.array([3, 3, 9, 1]), 6)]
    [(0, 2), (2, 3), (3, 4)]
    """
    reached, start = np.cumsum(counts), 0
    while start < len(counts):
        before, many = (reached[start - 1], most) if start else (0, first or most)
        stop = max(start + 1, int(np.searchsorted(reached, before + many, "right")))
        yield slice(start, stop)
        start = stop
