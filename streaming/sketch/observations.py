"""Observations: what a sketch takes of elements."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Observations:
    """N elements, of F features.

    Parameters
    ----------
    time_us : ndarray of int64, shape (N,)
        Microseconds since 1970 UTC.
    place : ndarray of float64, shape (2, N)
        Coordinates in the two dimensions that make the cells.
    values : ndarray of float64, shape (F, N)
        In the order of the settings' features; NaN where an element lacks a feature.
    """

    time_us: np.ndarray
    place: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.time_us)

    @property
    def nbytes(self) -> int:
        """The memory that the columns take."""
        return self.time_us.nbytes + self.place.nbytes + self.values.nbytes

    def take(self, rows: np.ndarray | slice) -> "Observations":
        """Return some of them, given their positions, a mask, or a slice."""
        return Observations(self.time_us[rows], self.place[:, rows], self.values[:, rows])

    def table(self) -> pa.Table:
        """Return the observations as a table."""
        columns = {"time_us": self.time_us, "place_0": self.place[0], "place_1": self.place[1]}
        columns |= {f"value_{feature}": column for feature, column in enumerate(self.values)}
        return pa.table({name: np.ascontiguousarray(column) for name, column in columns.items()})

    @classmethod
    def of_table(cls, table: pa.Table, features: int) -> "Observations":
        """Return the observations of a table; the inverse of `table`."""
        place = _rows(table, [f"place_{axis}" for axis in range(2)])
        values = _rows(table, [f"value_{feature}" for feature in range(features)])
        return cls(np.array(table["time_us"]), place, values)

    @classmethod
    def together(cls, parts: Sequence["Observations"]) -> "Observations":
        """Return the observations of several, one after the other; at least one part."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.time_us for part in parts]),
            np.concatenate([part.place for part in parts], axis=1),
            np.concatenate([part.values for part in parts], axis=1),
        )


def _rows(table: pa.Table, names: Sequence[str]) -> np.ndarray:
    """Return some columns of a table as the rows of one array; each is copied once, however many chunks it has."""
    rows = np.empty((len(names), table.num_rows))
    for row, name in zip(rows, names, strict=True):
        np.concatenate([chunk.to_numpy(zero_copy_only=False) for chunk in table[name].chunks] or [row[:0]], out=row)
    return rows
