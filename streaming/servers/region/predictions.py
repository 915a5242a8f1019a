"""The boxes about the ways of the objects of a region, found without measuring each way again."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from streaming.operators.closest import ways_of
from streaming.operators.elements import Elements
from streaming.operators.runs import find

_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Ways:
    """The boxes about the ways of objects. They follow from the objects, so no file keeps them.

    Parameters
    ----------
    key : ndarray of int64, shape (N,)
        The hashes of the objects, ascending.
    boxes : dict of float to ndarray of float64, shape (N, 2n)
        By how many seconds the ways are long: see `closest.ways_of`.
    """

    key: np.ndarray = field(default_factory=lambda: _NONE)
    boxes: dict[float, np.ndarray] = field(default_factory=dict)

    def without(self, keys: np.ndarray) -> "Ways":
        """Return those of objects that are not among `keys`, which are ascending and distinct."""
        keep = ~find(keys, self.key)[1]
        return Ways(self.key[keep], {ahead_s: boxes[keep] for ahead_s, boxes in self.boxes.items()})

    def of(self, key: np.ndarray, elements: Elements, horizons_s: Iterable[float]) -> "Ways":
        """Return the ways of elements (N,), whose keys are ascending; only those that are not known are measured."""
        place, known = find(self.key, key)
        found: dict[float, np.ndarray] = {}
        for ahead_s in horizons_s:
            rows = np.flatnonzero(~known) if ahead_s in self.boxes else np.arange(len(key))
            found[ahead_s] = np.empty_like(elements.bounds)
            if len(rows) < len(key):
                found[ahead_s][known] = self.boxes[ahead_s][place[known]]
            found[ahead_s][rows] = ways_of(elements, rows, ahead_s)
        return Ways(key, found)

    def known_to(self, elements: Elements) -> Elements:
        """Return elements, in the order of these ways, that know them."""

        def known(rows: np.ndarray, ahead_s: float) -> np.ndarray:
            boxes = self.boxes.get(ahead_s)
            return ways_of(elements, rows, ahead_s) if boxes is None else boxes[rows]

        return replace(elements, known_ways=known)
