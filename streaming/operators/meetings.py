"""Pairs of elements that satisfy joins."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import pyarrow.compute as pc

from streaming.operators.elements import Elements
from streaming.operators.region_map import RegionMap
from streaming.spaces import Space


@dataclass(frozen=True)
class Meetings:
    """Pairs of elements that satisfy joins.

    Parameters
    ----------
    row, query, partner : ndarray of int64, shape (P,)
        The positions of the element, of the join, and of the partner; each triple once.
    distance : ndarray of float64, shape (P,)
        The distance of the two in a join by ``dwithin``; otherwise NaN.
    reach : ndarray of float64, shape (P, 2n)
        The transformed box of the element, enlarged by the distance of the join. It meets the box of the partner. In a
        prediction, it is the box about the way of the element.
    other : ndarray of float64, shape (P, 2n)
        The box of the partner, or in a prediction the box about its way.
    due_us : ndarray of float64, shape (P,)
        When a predicted pair is past its closest point, by the engine's clock; NaN for others. See `closest.due_us`.
    """

    row: np.ndarray
    query: np.ndarray
    partner: np.ndarray
    distance: np.ndarray
    reach: np.ndarray
    other: np.ndarray
    due_us: np.ndarray

    @classmethod
    def none(cls, space: Space) -> "Meetings":
        """Return no pairs."""
        row, query, partner = np.empty((3, 0), dtype=np.int64)
        none = np.empty((0, 2 * space.n))
        return cls(row, query, partner, np.empty(0), none, none, np.empty(0))

    @classmethod
    def together(cls, parts: Sequence["Meetings"]) -> "Meetings":
        """Return the pairs of all parts, one part after the other; needs at least one part."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def take(self, rows: np.ndarray) -> "Meetings":
        """Return the pairs at positions, or where a mask is true."""
        return Meetings(*(getattr(self, field.name)[rows] for field in fields(self)))

    def tellers(self, region_map: RegionMap) -> np.ndarray:
        """Return the region that reports each pair: the first region that both the reach and the partner's box meet.

        Every region that knows both elements computes the same result, and the region that reports the pair knows both.

        Parameters
        ----------
        region_map : RegionMap

        Returns
        -------
        ndarray of int64, shape (P,)
        """
        return (region_map.regions_of(self.reach) & region_map.regions_of(self.other)).argmax(1)


def is_first(elements: Elements, row: np.ndarray, partner: np.ndarray) -> np.ndarray:
    """Tell in which pairs of a stream with itself the element's key comes before the partner's, bool of shape (P,).

    Of two pairs, or encounters, that mirror each other, such a one is told. Keys are compared by their characters.
    """
    rows, place = np.unique(np.r_[row, partner], return_inverse=True)
    rank = pc.rank(elements.cold(rows)["key"], tiebreaker="dense").to_numpy()[place]
    return rank[: len(row)] < rank[len(row) :]
