"""Which of two encounters that mirror each other is told, in the join of a stream with itself.

Two objects may satisfy a query both ways, each as the element and the other as its partner, at different times: one of
them passes the filter of elements for an hour, the other for a minute. So each way has encounters of its own. At any
time, at most one of the two ways is told: the one that was the first to have lasted long enough, and if both had at the
same time, the one in which the key of the element comes before that of its partner. If it ends, and the other goes on,
the other is told from then on.
"""

from typing import NamedTuple

import numpy as np

from streaming.operators.runs import place_in_runs
from streaming.operators.watermarks import LONG_AGO_US


class MirroredEncounters(NamedTuple):
    """Encounters of queries that tell one of two, as arrays of shape (P,).

    Parameters
    ----------
    query, key_hash, partner_hash : ndarray of int64
    is_first : ndarray of bool
        Whether the element's key comes before the partner's.
    due_us : ndarray of int64
        When the encounter has lasted long enough.
    until_us : ndarray of int64
        When it ends; `OPEN_US` if it goes on.
    told : ndarray of bool
        Whether its beginning was told before.
    watermark_us : ndarray of int64
        Up to which event time the query knows all; each encounter is due by then.
    """

    query: np.ndarray
    key_hash: np.ndarray
    partner_hash: np.ndarray
    is_first: np.ndarray
    due_us: np.ndarray
    until_us: np.ndarray
    told: np.ndarray
    watermark_us: np.ndarray

    def may_be_told(self) -> tuple[np.ndarray, np.ndarray]:
        """Tell which encounters may be told by now, and which never will be, since the other way outlasts them.

        Returns
        -------
        may, never : ndarray of bool, shape (P,)
            An encounter that is neither waits for the end of the other way.
        """
        hashes = self.key_hash, self.partner_hash
        names = np.stack([self.query, np.minimum(*hashes), np.maximum(*hashes)])
        pair = np.unique(names, axis=1, return_inverse=True)[1].reshape(-1)
        way = (self.key_hash > self.partner_hash).astype(np.int64)
        order = np.lexsort((~self.is_first, self.due_us, pair))
        rank = place_in_runs(pair[order])
        may, never = self.told.copy(), np.zeros(len(pair), dtype=bool)
        ends_us = np.full((names.shape[1], 2), LONG_AGO_US)
        for turn in range(rank.max(initial=-1) + 1):  # nearly always one or two: the encounters of a pair in a batch
            mine = order[rank == turn]
            other_us, until_us = ends_us[pair[mine], 1 - way[mine]], self.until_us[mine]
            outlasts, watermark_us = until_us > other_us, self.watermark_us[mine]
            never[mine] = ~outlasts & ~may[mine] & (until_us < watermark_us)
            may[mine] |= outlasts & (other_us < watermark_us)
            told = mine[may[mine]]
            ends_us[pair[told], way[told]] = np.maximum(ends_us[pair[told], way[told]], self.until_us[told])
        return may, never
