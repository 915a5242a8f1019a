"""The objects that a region keeps: hot columns in arrays, cold columns in appended segments.

References
----------
P. O'Neil et al., "The log-structured merge-tree", Acta Informatica 33(4), 1996: runs are appended, and merged when they
have grown to a similar size, so that the amount written follows the updates.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_of
from streaming.operators.elements import Elements
from streaming.operators.runs import find
from streaming.spaces import Space

COLD_COLUMNS = ("key", "geometry", "properties")


@dataclass(frozen=True)
class Segment:
    """An immutable table of cold columns; no other segment of the region ever has its number."""

    number: int
    table: pa.Table


@dataclass(frozen=True)
class Objects:
    """Objects of one region, ordered by `key_hash`.

    Parameters
    ----------
    key_hash, stream, time_us, heard_us : ndarray of int64, shape (M,)
    bounds : ndarray of float64, shape (M, 2n)
    segment, row : ndarray of int64, shape (M,)
        The number of the segment that has the object's cold columns, and the row in it.
    """

    key_hash: np.ndarray
    stream: np.ndarray
    time_us: np.ndarray
    heard_us: np.ndarray
    bounds: np.ndarray
    segment: np.ndarray
    row: np.ndarray

    @classmethod
    def empty(cls, space: Space) -> "Objects":
        """Return no objects."""
        columns = {field.name: np.empty(0, dtype=np.int64) for field in fields(cls)}
        return cls(**{**columns, "bounds": np.empty((0, 2 * space.n))})

    @classmethod
    def arrived(cls, elements: pa.Table, segment: int) -> "Objects":
        """Return the objects of elements with `elements.tracked_schema`, ordered by key, as rows of a new segment."""
        column = {name: elements[name].to_numpy() for name in ("key_hash", "stream", "time_us", "heard_us")}
        rows = np.arange(elements.num_rows)
        return cls(**column, bounds=bounds_of(elements["bounds"]), segment=np.full(len(rows), segment), row=rows)

    def __len__(self) -> int:
        return len(self.key_hash)

    def take(self, rows: np.ndarray) -> "Objects":
        """Return the objects at `rows`, which are ascending positions or a mask."""
        return Objects(*(getattr(self, field.name)[rows] for field in fields(self)))

    def followed(self, more: "Objects") -> "Objects":
        """Return these objects and more after them; the result is not ordered."""
        return Objects(
            *(np.concatenate([getattr(part, field.name) for part in (self, more)]) for field in fields(self))
        )

    def merged(self, newer: "Objects") -> "Objects":
        """Return these objects with newer ones, which replace those of the same key or are inserted."""
        position, present = find(self.key_hash, newer.key_hash)
        columns = []
        for field in fields(self):
            column, values = getattr(self, field.name).copy(), getattr(newer, field.name)
            column[position[present]] = values[present]
            columns.append(np.insert(column, position[~present], values[~present], axis=0))
        return Objects(*columns)


@dataclass(frozen=True)
class Cold:
    """The segments of a region, oldest first, and the number of the next."""

    segments: tuple[Segment, ...] = ()
    following: int = 0

    @property
    def has_geometries(self) -> bool:
        """Whether any row has a geometry besides its box."""
        return any(segment.table["geometry"].null_count < segment.table.num_rows for segment in self.segments)

    def append(self, table: pa.Table) -> "Cold":
        """Return the segments and one more, which has the `COLD_COLUMNS` of a table."""
        segment = Segment(self.following, table.select(COLD_COLUMNS))
        return Cold((*self.segments, segment), self.following + 1)

    def take(self, objects: Objects) -> pa.Table:
        """Return the cold columns of objects, one row each."""
        table = pa.concat_tables([segment.table for segment in self.segments])
        return table.take(pa.array(self._positions(objects)))

    def _positions(self, objects):
        """Return the rows of objects in the concatenation of all segments."""
        numbers = np.array([segment.number for segment in self.segments], dtype=np.int64)
        sizes = np.array([segment.table.num_rows for segment in self.segments], dtype=np.int64)
        return (np.cumsum(sizes) - sizes)[np.searchsorted(numbers, objects.segment)] + objects.row

    def compacted(self, objects: Objects) -> tuple["Cold", Objects]:
        """Merge the youngest segments if they have grown to a similar size; drop the rows that no object needs."""
        merged = 1
        rows = [segment.table.num_rows for segment in self.segments]
        while merged < len(rows) and 2 * sum(rows[-merged:]) >= rows[-merged - 1]:
            merged += 1
        if merged == 1:
            return self, objects
        old = self.segments[-merged:]
        live = np.flatnonzero(objects.segment >= old[0].number)
        table = Cold(old).take(objects.take(live)).combine_chunks()
        segment, row = objects.segment.copy(), objects.row.copy()
        segment[live], row[live] = self.following, np.arange(len(live))
        cold = Cold((*self.segments[:-merged], Segment(self.following, table)), self.following + 1)
        return cold, replace(objects, segment=segment, row=row)


def elements_of(objects: Objects, cold: Cold) -> Elements:
    """Return objects as the `Elements` that operators take."""
    return Elements(objects.stream, objects.bounds, lambda wanted: cold.take(objects.take(wanted)), cold.has_geometries)
