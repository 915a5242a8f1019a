"""Members of answers."""

from dataclasses import dataclass, fields

import numpy as np

from streaming.operators.spatial_join import Pairs
from streaming.results import ENTERED, MOVED


@dataclass(frozen=True)
class Answers:
    """Members of answers: object, query and partner, each int64 of shape (P,), and what to report of each.

    `key` is the `key_hash` of the object; `partner` is that of the partner, or 0. `query` is the number of an answer,
    or the number under which the answer is reported. `sign`, `reason` and `distance` are arrays of the same length, or
    one value for all.
    """

    key: np.ndarray
    query: np.ndarray
    partner: np.ndarray
    distance: np.ndarray | float = np.nan
    sign: np.ndarray | int = ENTERED
    reason: np.ndarray | int = MOVED

    @classmethod
    def of(cls, pairs: Pairs, keys: np.ndarray) -> "Answers":
        """Return pairs of elements and answers as members of answers, given the keys of the rows."""
        return cls(keys[pairs.row], pairs.query, pairs.partner, pairs.distance)

    @property
    def signs(self) -> np.ndarray:
        """The sign of each member, int8 of shape (P,)."""
        return np.broadcast_to(self.sign, len(self.key))

    def take(self, rows: np.ndarray | slice) -> "Answers":
        """Return the members at `rows`: positions, a mask or a slice."""
        columns = (getattr(self, field.name) for field in fields(self))
        return Answers(*(column[rows] if isinstance(column, np.ndarray) else column for column in columns))

    def joined(self, others: "Answers") -> "Answers":
        """Return these members and others, ordered by key, with the default sign and reason.

        The distances of both must be arrays.
        """
        columns = ("key", "query", "partner", "distance")
        both = Answers(*(np.concatenate([getattr(self, name), getattr(others, name)]) for name in columns))
        return both.take(np.argsort(both.key, kind="stable"))
