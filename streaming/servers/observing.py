"""What home servers observe for sketches, and send to the regions in place of whole elements.

A region keeps the newest element of an object, but sketches every one. A sketch takes a few numbers of an element, so
the home server reads these once, and sends them as columns: a third of the bytes, and no region reads JSON again.

References
----------
Synopsis (2017), section 3.2: what comes is made into observations before it is sent to the sketchlet of its place.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_of
from streaming.kinds.sketch.asks import KEY
from streaming.property_columns import PropertyColumns, number_columns
from streaming.servers.elements import taken
from streaming.sketch.observations import Observations
from streaming.sketch.sets.hashing import hashes_of_values
from streaming.sketch.settings import SketchSettings
from streaming.sketch.stream import StreamSketch

# What is sent while no stream is sketched.
NOTHING = pa.table({"stream": pa.array([], pa.int64())})


def observed(elements: pa.Table, rows: np.ndarray, sketched: Mapping[int, StreamSketch]) -> tuple[pa.Table, np.ndarray]:
    """Observe elements for the sketches of their streams.

    Parameters
    ----------
    elements : pyarrow.Table
        With `elements.tracked_schema`.
    rows : ndarray of int64, shape (N,)
        The rows that are observed, in the order in which they are sketched.
    sketched : mapping of int to StreamSketch
        How streams are sketched, by their numbers.

    Returns
    -------
    table : pyarrow.Table, K rows
        The number of the `stream`, the columns of `Observations.table`, and of each feature whose set is kept
        ``hash_0``, ``hash_1`` ..., null where an element lacks it. Of a stream with fewer features than another, the
        columns of the others are null.
    rows : ndarray of int64, shape (K,)
        Those of `elements` whose streams are sketched.
    """
    tables, chosen = [NOTHING], [np.empty(0, dtype=np.int64)]
    streams = elements["stream"].to_numpy()[rows]
    for stream, told in sketched.items():
        mine = rows[streams == stream]
        if len(mine):
            tables.append(_table(taken(elements, mine), stream, told))
            chosen.append(mine)
    return pa.concat_tables(tables, promote_options="default"), np.concatenate(chosen)


def _table(elements, stream, told):
    """Return what is sent of elements, all of one stream."""
    table = observations_of(elements, told.sketch).table()
    table = table.add_column(0, "stream", pa.array(np.full(elements.num_rows, stream)))
    for place, name in enumerate(told.sets.features if told.sets else ()):
        hashes, known = _hashed(elements, name)
        table = table.append_column(f"hash_{place}", pa.array(hashes, mask=~known))
    return table


def _hashed(elements, name):
    """Return the hashes of the values of a feature, and which elements have it."""
    if name == KEY:
        return hashes_of_values(elements["key"].to_pylist()), np.ones(elements.num_rows, dtype=bool)
    text = PropertyColumns(elements["properties"]).texts(name)
    return hashes_of_values(text), np.array([value is not None for value in text], dtype=bool)


def observations_of(elements: pa.Table, settings: SketchSettings) -> Observations:
    """Return what a sketch takes of elements: their times, the middles of their boxes, and the features as numbers.

    Parameters
    ----------
    elements : pyarrow.Table, N rows
    settings : SketchSettings
    """
    bounds, n = bounds_of(elements["bounds"]), settings.space.n
    place = np.stack([(bounds[:, axis] + bounds[:, n + axis]) / 2 for axis in settings.axes])
    values = number_columns(elements["properties"], settings.features)
    return Observations(elements["time_us"].to_numpy(), place, values)


def hashes_of(table: pa.Table, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the hashes of F features in a table of `observed`, uint64 (F, N), and which are known, bool (F, N)."""
    columns = [table[f"hash_{place}"] for place in range(features)]
    hashes = np.stack([column.fill_null(0).to_numpy() for column in columns])
    return hashes, np.stack([column.is_valid().to_numpy() for column in columns])
