"""Rows that a question finds: in order, and cut to a number of rows and of bytes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.history.rows import row_schema
from streaming.spaces import Space

BY_KEY, BY_TIME = ("key", "time_us"), ("time_us", "key")
# What is collected is sorted and cut once it has so many times what its limits allow, and this many rows at least.
SORTED_ROWS, SORTED_TIMES = 65_536, 4


@dataclass(frozen=True)
class FoundRows:
    """The answer to a question.

    Parameters
    ----------
    rows : pyarrow.Table
        With `rows.row_schema`, for a join with `joined_schema`. Ordered by key, then time.
    truncated : bool
        Whether there are more rows than the limits allow.
    """

    rows: pa.Table
    truncated: bool


@dataclass(frozen=True)
class RowLimits:
    """How much a question may find.

    Parameters
    ----------
    rows, bytes : int, optional
        None for any number. An answer has one row at least, however large it is.
    """

    rows: int | None = None
    bytes: int | None = None

    def fitting(self, size: np.ndarray) -> int:
        """Return how many of the first rows fit, given their sizes in bytes (N,)."""
        fitting = len(size) if self.rows is None else min(len(size), self.rows)
        if self.bytes is not None:
            fitting = min(fitting, max(1, int(np.searchsorted(np.cumsum(size), self.bytes, "right"))))
        return fitting


@dataclass
class Sizes:
    """How many rows there are, and how many bytes they have."""

    rows: int = 0
    bytes: int = 0

    def take(self, size: np.ndarray) -> None:
        """Count rows with sizes in bytes (N,)."""
        self.rows, self.bytes = self.rows + len(size), self.bytes + int(size.sum())

    def exceed(self, limits: RowLimits) -> bool:
        """Tell whether there is more than limits allow."""
        most_rows, most_bytes = limits.rows, limits.bytes
        return (most_rows is not None and self.rows > most_rows) or (most_bytes is not None and self.bytes > most_bytes)


def row_bytes(rows: pa.Table) -> np.ndarray:
    """Return how many bytes the texts and geometries of each row have, int64 of shape (N,)."""
    size = np.zeros(rows.num_rows, dtype=np.int64)
    for name in rows.column_names:
        if name.endswith(("key", "geometry", "properties")):
            size += pc.fill_null(pc.binary_length(rows[name]), 0).to_numpy()
    return size


class Collected:
    """Collects the first rows in an order, or the last, up to limits, and whether there were more.

    Parameters
    ----------
    space : Space
    limits : RowLimits
    order : sequence of str
        `BY_KEY` or `BY_TIME`.
    last : bool
        Whether the last rows are kept.
    """

    def __init__(self, space: Space, limits: RowLimits, order: Sequence[str] = BY_KEY, last: bool = False) -> None:
        self._limits, self._order, self._last = limits, order, last
        self._none = row_schema(space).empty_table()
        self._sorted_at = RowLimits(
            None if limits.rows is None else max(SORTED_TIMES * limits.rows, SORTED_ROWS),
            None if limits.bytes is None else SORTED_TIMES * limits.bytes,
        )
        self.begin()

    def begin(self) -> None:
        """Forget all rows, to begin again."""
        self._tables, self._sizes, self._more = [self._none], Sizes(), False

    def take(self, rows: pa.Table) -> None:
        """Add rows; drop those beyond the limits now and then, to save memory."""
        self._add(rows)
        if self._sizes.exceed(self._sorted_at):
            found = self.found()
            self.begin()
            self._add(found.rows)
            self._more = found.truncated

    def _add(self, rows: pa.Table) -> None:
        self._tables.append(rows)
        self._sizes.take(row_bytes(rows))

    def found(self) -> FoundRows:
        """Return the collected rows, in order and cut to the limits."""
        found = cut(self._tables, self._limits, self._order, self._last)
        return replace(found, truncated=found.truncated or self._more)


def cut(tables: Sequence[pa.Table], limits: RowLimits, order: Sequence[str] = BY_KEY, last: bool = False) -> FoundRows:
    """Return rows in order, cut to limits: the first ones, or the last."""
    rows = pa.concat_tables(tables)
    rows = rows.sort_by([(name, "ascending") for name in order])
    size = row_bytes(rows)
    fitting = limits.fitting(size[::-1] if last else size)
    return FoundRows(rows.slice(rows.num_rows - fitting if last else 0, fitting), fitting < rows.num_rows)
