"""Pairs of elements that may satisfy a join, made in pieces."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streaming.operators.allowance import pieces
from streaming.operators.boxes import in_plane, turns
from streaming.operators.features import IndexedBoxes
from streaming.operators.neighbours import may_meet
from streaming.spaces import Space


class JoinCandidates:
    """Pairs that may satisfy some joins, made in pieces.

    Parameters
    ----------
    rows, partners : ndarray of int64, shapes (K,) and (M,)
        The positions of elements and of their possible partners.
    reach, others : ndarray of float64, shapes (K, 2n) and (M, 2n)
        The boxes of both; a pair may satisfy the joins if they meet.
    """

    def __init__(
        self, rows: np.ndarray, reach: np.ndarray, partners: np.ndarray, others: np.ndarray, space: Space
    ) -> None:
        self._rows, self._reach, self._partners = rows, reach, partners
        self._index = IndexedBoxes(others, space)

    @functools.cached_property
    def _counts(self) -> np.ndarray:
        return self._index.counts(self._reach)

    @property
    def most(self) -> int:
        """How many pairs there are, at most."""
        return int(self._counts.sum())

    def pieces(self, sample: int) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
        """Yield the positions of elements and of partners, (P,) each, and each pair once; and how many `most` counts.

        Parameters
        ----------
        sample : int
            How many pairs the first piece has, at most.
        """
        for piece in pieces(self._counts, first=sample):
            at, other = self._index.meeting(self._reach[piece])
            yield self._rows[piece][at], self._partners[other], int(self._counts[piece].sum())


@dataclass(frozen=True)
class KnownPairs:
    """Pairs that are known already, in one piece; see `JoinCandidates`.

    Parameters
    ----------
    row, partner : ndarray of int64, shape (P,)
    """

    row: np.ndarray
    partner: np.ndarray

    @property
    def most(self) -> int:
        """How many pairs there are."""
        return len(self.row)

    def pieces(self, sample: int) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
        """Yield the pairs, and how many there are; they are not sampled."""
        yield self.row, self.partner, len(self.row)


def that_may_meet(boxes: np.ndarray, others: np.ndarray, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Tell which boxes (N, 2n), and which of some others (M, 2n), may meet a box of the other side."""
    boxes, others = in_plane(boxes, space), in_plane(others, space)
    low, high = others[:, :2].min(0), others[:, 2:].max(0)
    chosen = np.zeros(len(boxes), dtype=bool), np.zeros(len(others), dtype=bool)
    for turn in turns(space):
        moved = boxes + np.tile(turn, 2)
        close = np.flatnonzero((moved[:, :2] <= high).all(1) & (moved[:, 2:] >= low).all(1))
        moved = moved[close]
        if len(moved) > len(others):
            near = may_meet(moved, others)
            chosen[0][close[near]] = True
            # Boxes that are excluded on one side need not be compared on the other.
            chosen[1][may_meet(others, moved[near])] = True
        else:
            chosen[0][close] = True
            chosen[1][may_meet(others, moved)] = True
    return chosen
