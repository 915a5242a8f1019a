"""What home servers observe for sketches, and send to the regions in place of whole elements.

A region keeps the newest element of an object, but sketches every one. A sketch takes a few numbers of an element, so
the home server reads these once, and sends them as columns: a third of the bytes, and no region reads JSON again.

References
----------
Synopsis (2017), section 3.2: what comes is made into observations before it is sent to the sketchlet of its place.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_of
from streaming.kinds.sketch.asks import KEY
from streaming.property_columns import PropertyColumns, number_columns
from streaming.sketch.observations import Observations
from streaming.sketch.sets.hashing import hashes_of_values
from streaming.sketch.settings import SketchSettings
from streaming.sketch.stream import StreamSketch

# What is sent while no stream is sketched.
NOTHING = pa.table({"stream": pa.array([], pa.int64())})


@dataclass(frozen=True)
class Observed:
    """What is observed of the elements of each stream that is sketched, region by region.

    Parameters
    ----------
    tables : tuple of pyarrow.Table
        Of each stream. They have the number of the `stream`, the columns of `Observations.table`, and of each feature
        whose set is kept ``hash_0``, ``hash_1`` ..., null where an element lacks it.
    regions : tuple of ndarray of int64
        Of each table, the region of each row, ascending.
    """

    tables: tuple[pa.Table, ...] = ()
    regions: tuple[np.ndarray, ...] = ()

    def to(self, region: int) -> pa.Table:
        """Return the rows for a region, without a copy.

        Of a stream with fewer features than another, the columns of the others are null.
        """
        parts = [NOTHING]
        for table, regions in zip(self.tables, self.regions, strict=True):
            begin, end = np.searchsorted(regions, (region, region + 1))
            if begin < end:
                parts.append(table.slice(begin, end - begin))
        return parts[-1] if len(parts) < 3 else pa.concat_tables(parts, promote_options="default")


def observed(
    elements: pa.Table, rows: np.ndarray, regions: np.ndarray, sketched: Mapping[int, StreamSketch]
) -> Observed:
    """Observe elements for the sketches of their streams.

    Parameters
    ----------
    elements : pyarrow.Table
        With `elements.tracked_schema`.
    rows, regions : ndarray of int64, shape (N,)
        The rows that are observed, in the order in which they are sketched, and the region of each.
    sketched : mapping of int to StreamSketch
        How streams are sketched, by their numbers.
    """
    if not sketched:
        return Observed()
    order = np.argsort(regions.astype(np.int8), kind="stable")  # of such small numbers in a single pass
    rows, regions, streams = rows[order], regions[order], elements["stream"].to_numpy()
    found = [(stream, told, np.flatnonzero(streams[rows] == stream)) for stream, told in sketched.items()]
    found = [(stream, told, mine) for stream, told, mine in found if len(mine)]
    tables = (_table(elements, rows[mine], stream, told) for stream, told, mine in found)
    return Observed(tuple(tables), tuple(regions[mine] for _, _, mine in found))


def _table(elements: pa.Table, rows: np.ndarray, stream: int, told: StreamSketch) -> pa.Table:
    """Return what is sent of some elements, all of one stream."""
    table = observations_of(elements, rows, told.sketch).table()
    table = table.add_column(0, "stream", pa.array(np.full(len(rows), stream)))
    for place, name in enumerate(told.sets.features if told.sets else ()):
        hashes, known = _hashed(elements["key" if name == KEY else "properties"].take(pa.array(rows)), name)
        table = table.append_column(f"hash_{place}", pa.array(hashes, mask=~known))
    return table


def _hashed(texts: pa.ChunkedArray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the hashes of the values of a feature, given keys or properties, and which elements have it."""
    values = texts.to_pylist() if name == KEY else PropertyColumns(texts).text(name).to_list()
    return hashes_of_values(values), np.array([value is not None for value in values], dtype=bool)


def observations_of(elements: pa.Table, rows: np.ndarray, settings: SketchSettings) -> Observations:
    """Return what a sketch takes of elements: their times, the middles of their boxes, and the features as numbers.

    Parameters
    ----------
    elements : pyarrow.Table
    rows : ndarray of int64, shape (N,)
        Of which of them, in this order.
    settings : SketchSettings
    """
    bounds, n = bounds_of(elements["bounds"]), settings.space.n
    place = np.stack([(bounds[rows, axis] + bounds[rows, n + axis]) / 2 for axis in settings.axes])
    values = number_columns(elements["properties"], settings.features, rows)
    return Observations(elements["time_us"].to_numpy()[rows], place, values)


def hashes_of(table: pa.Table, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the hashes of F features in a table of `observed`, uint64 (F, N), and which are known, bool (F, N)."""
    columns = [table[f"hash_{place}"] for place in range(features)]
    hashes = np.stack([column.fill_null(0).to_numpy() for column in columns])
    return hashes, np.stack([column.is_valid().to_numpy() for column in columns])
