"""Sort features along a Hilbert curve, also more of them than fit into memory: an external sort by distribution.

All features are appended to a file. Once the positions of all on the curve are known, the file is divided into buckets
of neighbours, and each bucket is sorted alone. So memory holds a bucket, and a few bytes of each feature.

References
----------
D. E. Knuth, "The Art of Computer Programming", volume 3, second edition, section 5.4.9: sorting by distribution into
files.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.elements import bounds_of
from streaming.layers.features import InvalidLayer, hilbert_positions, middles
from streaming.layers.parts import ROWS_PER_GROUP
from streaming.spaces import Space

SPILL, BUCKET = "features.arrow", "bucket-{}.arrow"
# Of the features of a bucket, as they are in memory; a few times as much is in use when it is sorted and written.
BUCKET_BYTES = 64 << 20
COLUMNS = ("key", "bounds", "geometry", "properties")
RANK = pa.field("rank", pa.int64())


class Spill:
    """Features in files, until all of them are known.

    Parameters
    ----------
    folder : Path
        For the files.
    space : Space

    Attributes
    ----------
    rows : int
        How many features were added.
    """

    def __init__(self, folder: Path, space: Space) -> None:
        self.rows = 0
        self._folder, self._space = folder, space
        self._sizes: list[np.ndarray] = []
        self._low, self._high = np.full((2, min(2, space.n)), [[np.inf], [-np.inf]])
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def add(self, table: pa.Table) -> None:
        """Append features: a table with `COLUMNS`."""
        with _room():
            if self._writer is None:
                self._writer = _writer(self._folder / SPILL, table.schema)
            self._writer.write_table(table)
        middle = middles(bounds_of(table["bounds"]), self._space)
        self._low = np.fmin(self._low, np.fmin.reduce(middle))
        self._high = np.fmax(self._high, np.fmax.reduce(middle))
        self._sizes.append(_bytes_of(table))
        self.rows += table.num_rows

    def batches(self, column: str) -> Iterator[pa.Array]:
        """Yield a column, as it was added; nothing can be added afterwards."""
        self._close()
        for table in _read(self._folder / SPILL, [COLUMNS.index(column)]):
            yield table[column].combine_chunks()

    def groups(self, tell: Callable[[float], None], named: Callable[[int, pa.Array], pa.Array]) -> Iterator[pa.Table]:
        """Yield the features along the curve, in groups of `parts.ROWS_PER_GROUP`; then no file is left.

        Parameters
        ----------
        tell : function of float
            Called with the share that is done.
        named : function
            Given the number of a feature and the keys from it on, returns the keys that these features get.
        """
        rank = self._ranks()
        bucket = self._buckets(rank)
        count = int(bucket[-1]) + 1
        self._distribute(rank, bucket, count, lambda share: tell(share / 2), named)
        del rank
        done = 0
        for number in range(count):
            for rows in self._sorted(number):
                yield rows
                done += rows.num_rows
                tell((1 + done / self.rows) / 2)

    def _close(self) -> None:
        if self._writer is not None:
            with _room():
                self._writer.close()

    def _ranks(self) -> np.ndarray:
        """Return the place of each feature along the curve, int64 of shape (N,)."""
        found = [
            hilbert_positions(middles(bounds_of(bounds), self._space), self._low, self._high)
            for bounds in self.batches("bounds")
        ]
        rank = np.empty(self.rows, dtype=np.int64)
        rank[np.argsort(np.concatenate(found), kind="stable")] = np.arange(self.rows)
        return rank

    def _buckets(self, rank: np.ndarray) -> np.ndarray:
        """Return the bucket of each group: of neighbouring groups as many as have `BUCKET_BYTES`."""
        sizes = np.zeros(-(-self.rows // ROWS_PER_GROUP))
        first = 0
        for bytes_of in self._sizes:
            group = rank[first : first + len(bytes_of)] // ROWS_PER_GROUP
            sizes += np.bincount(group, bytes_of, len(sizes))
            first += len(bytes_of)
        self._sizes.clear()
        return np.unique(np.cumsum(sizes) // BUCKET_BYTES, return_inverse=True)[1]

    def _distribute(
        self,
        rank: np.ndarray,
        bucket: np.ndarray,
        count: int,
        tell: Callable[[float], None],
        named: Callable[[int, pa.Array], pa.Array],
    ) -> None:
        """Divide the file into buckets, each with the places of its features; then remove the file."""
        first = 0
        writers: dict[int, pa.ipc.RecordBatchStreamWriter] = {}
        with contextlib.ExitStack() as opened:
            for table in _read(self._folder / SPILL):
                rows = table.set_column(0, "key", named(first, table["key"].combine_chunks()))
                places = rank[first : first + table.num_rows]
                number = bucket[places // ROWS_PER_GROUP]
                order = np.argsort(number, kind="stable")
                rows = rows.append_column(RANK, pa.array(places)).take(pa.array(order))
                starts = np.searchsorted(number[order], np.arange(count + 1)).tolist()
                for n in np.unique(number).tolist():
                    with _room():
                        if n not in writers:
                            writers[n] = opened.enter_context(_writer(self._folder / BUCKET.format(n), rows.schema))
                        writers[n].write_table(rows.slice(starts[n], starts[n + 1] - starts[n]))
                first += table.num_rows
                tell(first / self.rows)
        (self._folder / SPILL).unlink()

    def _sorted(self, number: int) -> Iterator[pa.Table]:
        """Yield the groups of a bucket, and remove its file."""
        path = self._folder / BUCKET.format(number)
        with pa.OSFile(str(path)) as file:
            table = pa.ipc.open_stream(file).read_all()
        path.unlink()
        order = np.argsort(table["rank"].to_numpy())
        rows = table.select(COLUMNS)
        for start in range(0, len(order), ROWS_PER_GROUP):
            yield rows.take(pa.array(order[start : start + ROWS_PER_GROUP]))


@contextlib.contextmanager
def _room() -> Iterator[None]:
    """Raise the errors of a disk that is full, or of a file that may not be larger, as InvalidLayer."""
    try:
        yield
    except OSError as error:
        raise InvalidLayer("an import needs room for its features on the disk; got: %(error)s", error=error) from None


def _writer(path: Path, schema: pa.Schema) -> pa.ipc.RecordBatchStreamWriter:
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    return pa.ipc.new_stream(str(path), schema, options=options)


def _read(path: Path, columns: list[int] | None = None) -> Iterator[pa.Table]:
    """Yield the tables of a file, as they were written, of some columns."""
    options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file, options=options) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _bytes_of(table: pa.Table) -> np.ndarray:
    """Return about how many bytes each feature takes in memory, uint32 of shape (N,)."""
    sizes = [pc.fill_null(pc.binary_length(table[name]), 0).to_numpy() for name in ("key", "geometry", "properties")]
    return (np.sum(sizes, axis=0) + table["bounds"].type.list_size * 8).astype(np.uint32)
