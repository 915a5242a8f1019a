"""Values that occur many times, kept once and numbered."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Numbered:
    """A column of values, of which each distinct value is kept once.

    Parameters
    ----------
    values : tuple
        The distinct values; hashable.
    number : ndarray of int64, shape (N,)
        The position in `values` of the value of each row.

    Examples
    --------
    >>> column = Numbered.of(["a", "b", "a"])
    >>> column.values, column.number.tolist()
    (('a', 'b'), [0, 1, 0])
    """

    values: tuple[Any, ...]
    number: np.ndarray

    @classmethod
    def of(cls, column: Sequence[Hashable]) -> "Numbered":
        """Return a column, given the value of each row."""
        numbers: dict[Hashable, int] = {}
        number = np.array([numbers.setdefault(value, len(numbers)) for value in column], dtype=np.int64)
        return cls(tuple(numbers), number)

    def used(self) -> tuple["Numbered", np.ndarray]:
        """Return the column without the values that no row has, and the former position of each value (int64)."""
        used, number = np.unique(self.number, return_inverse=True)
        if len(used) == len(self.values):
            return self, used
        return Numbered(tuple(self.values[position] for position in used.tolist()), number), used

    def take(self, rows: np.ndarray) -> "Numbered":
        """Return the rows at positions; all values are kept."""
        return Numbered(self.values, self.number[rows])

    @classmethod
    def together(cls, parts: Sequence["Numbered"]) -> tuple["Numbered", np.ndarray]:
        """Return the rows of all parts, one part after the other.

        Returns
        -------
        column : Numbered
        source : ndarray of int64
            The position of each of its values among the values of all parts, one part after the other.
        """
        numbers: dict[Hashable, int] = {}
        columns, sources, offset = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)], 0
        for part in parts:
            known = len(numbers)
            number = np.array([numbers.setdefault(value, len(numbers)) for value in part.values], dtype=np.int64)
            new = np.flatnonzero(number >= known)
            sources.append(offset + new[np.unique(number[new], return_index=True)[1]])
            columns.append(number[part.number])
            offset += len(part.values)
        return cls(tuple(numbers), np.concatenate(columns)), np.concatenate(sources)
