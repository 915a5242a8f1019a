"""What queries ask to look at in a step, and which of them are refused if that is more than there is room for."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from streaming.language import gettext_noop, thousands
from streaming.operators.fair_shares import beyond_share, fair_share
from streaming.operators.runs import first_of_runs

TOO_MANY = gettext_noop(
    "it would compare or tell about %(asked)s pairs in a batch; there is room for %(most)s, of which its user or "
    "team may have %(share)s now; make its distance or its area smaller, or its filters narrower"
)
UNSEEN = gettext_noop(
    "there was no room in a batch to look at it, since its user or team has queries that compare or tell too many "
    "pairs; make their distances or their areas smaller, or their filters narrower"
)
# The owner of all queries that were registered without one.
NOBODY = 0
# Takes the numbers of queries, (Q,). Returns positions among them and the owners whom they count for, (P,) each; what
# counts for several owners is there several times.
Owners = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Asked:
    """What queries ask to look at.

    Parameters
    ----------
    query : ndarray of int64, shape (A,)
        A query may repeat.
    together : ndarray of int64, shape (A,)
        The lowest of the queries that are evaluated together with this one. They are refused together, since to refuse
        some of them would save nothing.
    pairs : ndarray of float64, shape (A,)
        How many pairs.
    """

    query: np.ndarray
    together: np.ndarray
    pairs: np.ndarray

    @classmethod
    def apart(cls, queries: np.ndarray, pairs: np.ndarray) -> "Asked":
        """Return what queries ask for that are evaluated each by itself; they may repeat."""
        known, place = np.unique(queries, return_inverse=True)
        return cls(known, known, np.bincount(place, weights=pairs, minlength=len(known)))

    @classmethod
    def jointly(cls, queries: np.ndarray, pairs: float) -> "Asked":
        """Return what queries ask for together."""
        each = np.zeros(len(queries))
        each[:1] = pairs
        return cls(queries, np.sort(queries)[:1].repeat(len(queries)), each)

    @classmethod
    def all_of(cls, parts: "Sequence[Asked]") -> "Asked":
        """Return what all parts ask for; needs at least one part."""
        return cls(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in ("query", "together", "pairs"))
        )

    def numbered(self, numbers: np.ndarray) -> "Asked":
        """Return the same, given the number for each position that stands for a query here; numbers ascend."""
        return Asked(numbers[self.query], numbers[self.together], self.pairs)

    def refused(self, room: float, owners: Owners) -> dict[int, str]:
        """Return why queries are refused, by query, so that there is room for the others; see `beyond_share`.

        Some are, since whoever asks this had no room: what a step found then must not be used.
        """
        queries, place = np.unique(self.query, return_inverse=True)
        least = queries.copy()
        np.minimum.at(least, place, self.together)
        number, item = np.unique(least, return_inverse=True)
        pairs = np.bincount(item[place], weights=self.pairs, minlength=len(number))
        owner = _payers(pairs, item, _owned(queries, owners))
        out = beyond_share(pairs, owner, number, min(room, pairs.sum() - 1))
        share = fair_share(np.bincount(np.unique(owner, return_inverse=True)[1], weights=pairs), room)
        why = {place: too_many(pairs[place], room, share) for place in np.flatnonzero(out).tolist()}
        return {query: why[of] for query, of in zip(queries.tolist(), item.tolist(), strict=True) if of in why}


def too_many(asked: float, room: float, share: float = np.inf) -> str:
    """Return why a query is refused that asks for so many pairs; `share` is what its owner may have now."""
    figures = {"asked": asked, "most": room, "share": min(share, room)}
    return TOO_MANY % {name: thousands(int(figure)) for name, figure in figures.items()}


def refused_unseen(cut: Collection[int], refused: Collection[int], owners: Owners) -> dict[int, str]:
    """Return why queries are refused whose owners all ask for too much already, by query.

    What they would look at themselves is not known. To find out would take a step for each of them.

    Parameters
    ----------
    cut : collection of int
        The queries.
    refused : collection of int
        The queries that are refused since they ask for too much.
    owners : callable
    """
    greedy = _owned(np.array(sorted(refused), dtype=np.int64), owners)[1]
    queries = np.array(sorted(cut), dtype=np.int64)
    of, owner = _owned(queries, owners)
    modest = np.unique(of[~np.isin(owner, greedy)])
    return dict.fromkeys(np.delete(queries, modest).tolist(), UNSEEN)


def _owned(queries: np.ndarray, owners: Owners) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of queries and their owners; see `Owners`. A query without an owner counts for `NOBODY`."""
    of, owner = owners(queries)
    unknown = np.setdiff1d(np.arange(len(queries)), of)
    return np.r_[of, unknown], np.r_[owner, np.full(len(unknown), NOBODY)]


def _payers(pairs: np.ndarray, item: np.ndarray, owned: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return whom each item counts for: of its owners the one who asks for least. So nobody loses by others' queries.

    Parameters
    ----------
    pairs : ndarray of float64, shape (I,)
        How many pairs each item has.
    item : ndarray of int64, shape (Q,)
        The item of each query.
    owned : tuple of ndarray of int64
        Positions of queries and their owners; see `Owners`.
    """
    of, owner = np.unique(np.stack([item[owned[0]], owned[1]]), axis=1)
    demand = np.bincount(np.unique(owner, return_inverse=True)[1], weights=pairs[of])
    demand = demand[np.unique(owner, return_inverse=True)[1]]
    order = np.lexsort((owner, demand, of))
    return owner[order][first_of_runs(of[order])]
