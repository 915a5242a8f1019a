"""How a state becomes named parts and back, and the conversions that codecs share."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
import orjson
import polars as pl
import pyarrow as pa

# The part that every version of a state writes anew. All other parts are immutable: a version that has a part of the
# same name as the version before it has the same part.
HEAD = "head"
_METADATA = b"head"
# A table that is there only to carry a document; see `with_head`.
NOTHING = pa.table({})


class StatePart(Protocol):
    """A part of a state. It is made into tables only if it has to be written."""

    def tables(self) -> Sequence[pa.Table]:
        """Return what is stored of the part."""


@dataclass(frozen=True)
class Tables:
    """A part that consists of given tables."""

    content: Sequence[pa.Table]

    def tables(self) -> Sequence[pa.Table]:
        """Return the tables."""
        return self.content


Parts = Mapping[str, StatePart]


@dataclass(frozen=True)
class Codec:
    """How states of one kind are stored.

    Parameters
    ----------
    empty : callable
        Returns the state before anything happened, given the batch before which it begins.
    encode : callable
        Returns the parts of a state by name. Names have letters, digits and ``-``. A name other than `HEAD` must never
        be used again for another content, so names of parts have numbers that only rise.
    decode : callable
        Returns the state of parts; the inverse of `encode`. Parts that an earlier state in memory shares are the very
        objects that `encode` returned for it; all others read their tables when these are asked for.
    """

    empty: Callable[[int], Any]
    encode: Callable[[Any], Parts]
    decode: Callable[[Parts], Any]


def with_head(table: pa.Table, head: Mapping[str, Any]) -> pa.Table:
    """Return a table that carries a JSON document."""
    return table.replace_schema_metadata({_METADATA: orjson.dumps(head)})


def head_of(table: pa.Table) -> dict[str, Any]:
    """Return the document that a table carries; see `with_head`."""
    return orjson.loads(table.schema.metadata[_METADATA])


def array_of(column: pa.ChunkedArray) -> np.ndarray:
    """Return a column of numbers as an array; it shares the column's memory if it has one chunk."""
    return column.to_numpy() if column.num_chunks != 1 else column.chunk(0).to_numpy()


def table_of_arrays(columns: Any) -> pa.Table:
    """Return a dataclass of arrays as a table, with a column for each field."""
    return pa.table({field.name: getattr(columns, field.name) for field in fields(columns)})


def arrays_of_table(kind: type, table: pa.Table) -> Any:
    """Return a dataclass of arrays; the inverse of `table_of_arrays`."""
    return kind(*(array_of(table[field.name]) for field in fields(kind)))


def table_of_frame(frame: pl.DataFrame) -> pa.Table:
    """Return a data frame as a table. Most are empty, and polars takes milliseconds even then, so these are cached."""
    return frame.to_arrow() if len(frame) else _no_rows(tuple(frame.schema.items()))


@functools.cache
def _no_rows(columns: tuple[tuple[str, Any], ...]) -> pa.Table:
    return pl.DataFrame(schema=dict(columns)).to_arrow()


def frame_of_table(table: pa.Table) -> pl.DataFrame:
    """Return a table as a data frame; the inverse of `table_of_frame`."""
    return pl.DataFrame(pl.from_arrow(table))
