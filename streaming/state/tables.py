"""Tables as bytes: Arrow IPC streams, one after the other."""

from collections.abc import Iterable

import pyarrow as pa

# Without options, pyarrow asks the environment for each table.
_OPTIONS = pa.ipc.IpcWriteOptions()


def serialized(tables: Iterable[pa.Table]) -> pa.Buffer:
    """Return tables as one buffer; the inverse of `tables_in`."""
    sink = pa.BufferOutputStream()
    for table in tables:
        with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as writer:
            writer.write_table(table)
    return sink.getvalue()


def tables_in(content: pa.Buffer) -> list[pa.Table]:
    """Return the tables in a buffer; they share its memory."""
    source, tables = pa.BufferReader(content), []
    while source.tell() < content.size:
        tables.append(pa.ipc.open_stream(source).read_all())
    return tables
