"""Elements as operators see them: hot columns are arrays, the other columns are read on demand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array
from streaming.property_columns import number_columns
from streaming.udf.base import COLUMNS


@dataclass(frozen=True)
class Elements:
    """Elements to be matched with queries.

    Parameters
    ----------
    stream : ndarray of int64, shape (N,)
        `elements.stream_number` of each element's stream.
    bounds : ndarray of float64, shape (N, 2n)
    cold : callable
        Given rows (int64, shape (K,)), returns a table with their key, geometry (WKB or null) and properties (JSON).
    has_geometries : bool
        Whether any element may have a geometry of its own.
    time_us, heard_us : ndarray of int64, shape (N,), optional
        The event time of each element, and when it was heard; only predictions need them.
    known_numbers : callable, optional
        Does what `numbers` does, if some properties have been read before.
    known_ways : callable, optional
        Given rows (K,) and for how many seconds, returns what `closest.ways_of` does, if it has been found before.
    """

    stream: np.ndarray
    bounds: np.ndarray
    cold: Callable[[np.ndarray], pa.Table]
    has_geometries: bool = True
    time_us: np.ndarray | None = None
    heard_us: np.ndarray | None = None
    known_numbers: Callable[[np.ndarray, Sequence[str]], np.ndarray] | None = None
    known_ways: Callable[[np.ndarray, float], np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.stream)

    def at(self, rows: np.ndarray) -> "Elements":
        """Return only the elements at rows (K,)."""
        cold, known, ways = self.cold, self.known_numbers, self.known_ways
        return replace(
            self,
            stream=self.stream[rows],
            bounds=self.bounds[rows],
            cold=lambda chosen: cold(rows[chosen]),
            time_us=None if self.time_us is None else self.time_us[rows],
            heard_us=None if self.heard_us is None else self.heard_us[rows],
            known_numbers=None if known is None else lambda chosen, names: known(rows[chosen], names),
            known_ways=None if ways is None else lambda chosen, ahead_s: ways(rows[chosen], ahead_s),
        )

    def numbers(self, rows: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """Return properties of the elements at rows (K,), which may repeat, as numbers: float64 of shape (F, K)."""
        if self.known_numbers is not None:
            return self.known_numbers(rows, names)
        unique, place = np.unique(rows, return_inverse=True)
        return number_columns(self.cold(unique)["properties"], names)[:, place]

    def batch(self, rows: np.ndarray) -> pa.RecordBatch:
        """Return the elements at rows (K,), which may repeat, with `COLUMNS`; each geometry is stored once."""
        unique, place = np.unique(rows, return_inverse=True)
        return repeated(self.cold(unique), self.bounds[rows], place)


def repeated(table: pa.Table, bounds: np.ndarray, place: np.ndarray) -> pa.RecordBatch:
    """Return rows of a table in the form that user-defined filters take.

    Each geometry is stored once, however often its row repeats.

    Parameters
    ----------
    table : pyarrow.Table
        With key, geometry and properties.
    bounds : ndarray of float64, shape (K, 2n)
        The box of each row that is returned.
    place : ndarray of int64, shape (K,)
        The positions in `table` of the rows to return.

    Returns
    -------
    pyarrow.RecordBatch, K rows
        With `COLUMNS`; the geometry is dictionary-encoded.
    """
    index = pa.array(place.astype(np.int32))
    columns = {name: table[name].take(index).combine_chunks() for name in ("key", "properties")}
    columns["bounds"] = bounds_array(bounds)
    columns["geometry"] = pa.DictionaryArray.from_arrays(index, table["geometry"].combine_chunks())
    return pa.RecordBatch.from_arrays([columns[name] for name in COLUMNS], COLUMNS)
