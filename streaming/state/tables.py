"""Tables as bytes: Arrow IPC streams, one after the other."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

# Without options, pyarrow asks the environment for each table.
_OPTIONS = pa.ipc.IpcWriteOptions()
# Each part begins at a multiple of so many bytes, as the arrays in it want.
ALIGNMENT = 64
# Memory that is larger than so many bytes is not kept. The largest runs of reports that wait for partners fit in.
MOST_KEPT = 1 << 25
# So much more than the values of a table its stream may need, for the schema, and for each column of a piece.
_SCHEMA_BYTES, _COLUMN_BYTES = 4_096, 512


def serialized(tables: Iterable[pa.Table]) -> pa.Buffer:
    """Return tables as one buffer; the inverse of `tables_in`."""
    sink = pa.BufferOutputStream()
    _write(tables, sink)
    return sink.getvalue()


class Packer:
    """Puts parts of a state, which are tables, into one buffer, in memory that is used again and again.

    To touch fresh memory takes several times as long as to copy the tables.
    """

    def __init__(self) -> None:
        self._memory = pa.allocate_buffer(0)

    def packed(self, parts: Sequence[Sequence[pa.Table]]) -> tuple[pa.Buffer, list[tuple[int, int]]]:
        """Return a buffer, which is valid until the next call, and the offset and the size of each part in it."""
        size = sum(_most_bytes(part) for part in parts)
        while True:
            try:
                return self._packed(parts, self._of(size))
            except OSError:  # there is too little of it
                size *= 2

    def _of(self, size: int) -> pa.Buffer:
        """Return memory of at least so many bytes."""
        if size > MOST_KEPT:
            return pa.allocate_buffer(size)
        if size > self._memory.size:
            self._memory = pa.allocate_buffer(min(2 * size, MOST_KEPT))
        return self._memory

    def _packed(
        self, parts: Sequence[Sequence[pa.Table]], memory: pa.Buffer
    ) -> tuple[pa.Buffer, list[tuple[int, int]]]:
        sink, places = pa.FixedSizeBufferWriter(memory), []
        for part in parts:
            sink.write(bytes(-sink.tell() % ALIGNMENT))
            offset = sink.tell()
            _write(part, sink)
            places.append((offset, sink.tell() - offset))
        return memory.slice(0, sink.tell()), places


def _most_bytes(tables: Sequence[pa.Table]) -> int:
    """Return how many bytes tables need, at most, unless their schemas are very long."""
    pieces = sum(column.num_chunks for table in tables for column in table.columns)
    return ALIGNMENT + sum(table.nbytes + _SCHEMA_BYTES for table in tables) + pieces * _COLUMN_BYTES


def _write(tables: Iterable[pa.Table], sink: pa.NativeFile) -> None:
    for table in tables:
        with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as writer:
            writer.write_table(table)


def tables_in(content: pa.Buffer) -> list[pa.Table]:
    """Return the tables in a buffer; they share its memory."""
    source, tables = pa.BufferReader(content), []
    while source.tell() < content.size:
        tables.append(pa.ipc.open_stream(source).read_all())
    return tables
