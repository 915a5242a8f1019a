"""Elements as operators see them: hot columns are arrays, the other columns are read on demand."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array
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
    """

    stream: np.ndarray
    bounds: np.ndarray
    cold: Callable[[np.ndarray], pa.Table]
    has_geometries: bool = True

    def __len__(self) -> int:
        return len(self.stream)

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
