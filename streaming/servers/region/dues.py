"""When predicted pairs of a region are past their closest points, found without measuring each pair again."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from streaming.operators.runs import find
from streaming.servers.answers.changes import coded
from streaming.servers.answers.members import Answers

_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Dues:
    """When pairs are past their closest points. It follows from their objects, so no file keeps it.

    Parameters
    ----------
    pairs : Answers
        The pairs of predictions that the region reports.
    due_us : ndarray of float64, shape (P,)
        By the engine's clock, in microseconds; see `closest.due_us`.
    """

    pairs: Answers = field(default_factory=lambda: Answers(_NONE, _NONE, _NONE))
    due_us: np.ndarray = field(default_factory=lambda: np.empty(0))

    def of(self, pairs: Answers, measured: Callable[[Answers], np.ndarray]) -> "Dues":
        """Return when some pairs are past their closest points.

        Parameters
        ----------
        pairs : Answers
            Pairs that are known have the objects that they had.
        measured : callable
            Returns it for pairs that are not known, float64 of shape (P,).
        """
        pairs = replace(pairs, distance=np.nan)
        mine, known = coded(pairs, self.pairs)
        order = np.argsort(known, kind="stable")
        place, found = find(known[order], mine)
        due_us = np.empty(len(mine))
        due_us[found] = self.due_us[order[place[found]]]
        if not found.all():
            due_us[~found] = measured(pairs.take(~found))
        return Dues(pairs, due_us)

    def without(self, keys: np.ndarray) -> "Dues":
        """Return those of pairs of which neither object is among `keys`, which are ascending and distinct."""
        keep = ~(find(keys, self.pairs.key)[1] | find(keys, self.pairs.partner)[1])
        return Dues(self.pairs.take(keep), self.due_us[keep])
