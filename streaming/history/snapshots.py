"""Snapshots of the history; a stream is joined with a snapshot as with a layer.

References
----------
BBoxDB Streams (2022), section 2.2.5: elements are joined with all elements that were stored before them.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.history.tables import StoredTables, stored
from streaming.layers import LayerStore
from streaming.layers.features import feature_schema, with_hashes
from streaming.spaces import Space

SNAPSHOTS = ".snapshots"
# A snapshot has at most this many elements, the newest, since the program that takes it holds it in memory.
MOST_ROWS = 1_000_000
VERSIONS_KEPT, VERSION_LIFE_S = 3, 600.0


def snapshots(history: Path, space: Space) -> LayerStore:
    """Return the store with the snapshots of a space: for each stream, a layer with the name of the stream."""
    return LayerStore(Path(history) / space.name / SNAPSHOTS)


def take(history: Path, stream: str, space: Space, most_rows: int = MOST_ROWS) -> int:
    """Take a snapshot of the stored elements of a stream; return its version, or the last one if nothing is new.

    Parameters
    ----------
    history : Path
    stream : str
    space : Space
    most_rows : int
        The most elements in the snapshot; if more are stored, it has the newest.

    Returns
    -------
    int
    """
    store = snapshots(history, space)
    found = StoredTables(store.root, history, space).newest(stored(stream), most_rows).rows
    table = features(stream, found, space)
    mark = f"{table.num_rows}.{np.bitwise_xor.reduce(table['key_hash'].to_numpy(), initial=0)}"
    newest = store.newest(stream)
    if newest is not None and store.manifest(stream, newest).title == mark:
        return newest
    version = store.write(stream, table, space, mark)
    store.discard(stream, VERSIONS_KEPT, VERSION_LIFE_S)
    return version


def features(stream: str, rows: pa.Table, space: Space) -> pa.Table:
    """Return stored elements as features with the keys ``key@time``; of elements with equal key and time, keep one.

    Parameters
    ----------
    stream : str
    rows : pyarrow.Table
        With `rows.row_schema(space)`.
    space : Space

    Returns
    -------
    pyarrow.Table
        With `layers.features.feature_schema(space)`.
    """
    instants = pa.array(np.datetime_as_string(rows["time_us"].to_numpy().astype("datetime64[us]"), timezone="UTC"))
    keys = pc.binary_join_element_wise(rows["key"], pa.chunked_array([instants], pa.string()), "@")
    _, first = np.unique(keys.to_numpy(zero_copy_only=False).astype(str), return_index=True)
    columns = {"key": keys} | {name: rows[name] for name in ("bounds", "geometry", "properties")}
    table = pa.table(columns).take(pa.array(first))
    return with_hashes(stream, table, space).cast(feature_schema(space))
