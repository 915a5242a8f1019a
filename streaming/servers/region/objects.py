"""The objects that a region keeps: a table of sorted runs, and objects taken from it as arrays."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_of, whole_column
from streaming.operators.elements import Elements
from streaming.operators.runs import find, first_of_runs
from streaming.property_columns import number_columns_once
from streaming.servers.sorted_runs import Column, Run, SortedRuns, gathered
from streaming.spaces import Space

HOT_COLUMNS = ("stream", "time_us", "heard_us", "bounds")
COLD_COLUMNS = ("key", "geometry", "properties")


@dataclass(frozen=True)
class Objects:
    """Objects as arrays, ordered by `key_hash` unless it is said otherwise.

    Parameters
    ----------
    key_hash, stream, time_us, heard_us : ndarray of int64, shape (M,)
    bounds : ndarray of float64, shape (M, 2n)
    segment, row : ndarray of int64, shape (M,)
        The number of the run that has the object's cold columns, and the row in it.
    """

    key_hash: np.ndarray
    stream: np.ndarray
    time_us: np.ndarray
    heard_us: np.ndarray
    bounds: np.ndarray
    segment: np.ndarray
    row: np.ndarray

    @classmethod
    def arrived(cls, elements: pa.Table, segment: int) -> "Objects":
        """Return the objects of elements with `elements.tracked_schema`, as rows of a run with the number `segment`."""
        column = {name: elements[name].to_numpy() for name in ("key_hash", "stream", "time_us", "heard_us")}
        rows = np.arange(elements.num_rows)
        return cls(**column, bounds=bounds_of(elements["bounds"]), segment=np.full(len(rows), segment), row=rows)

    def __len__(self) -> int:
        return len(self.key_hash)

    def take(self, rows: np.ndarray) -> "Objects":
        """Return the objects at `rows`, positions or a mask."""
        return Objects(*(getattr(self, field.name)[rows] for field in fields(self)))

    def found(self, keys: np.ndarray) -> tuple["Objects", np.ndarray]:
        """Return the objects of those keys (K,) that are here, in the order of `keys`, and which are here."""
        position, present = find(self.key_hash, keys)
        return self.take(position[present]), present

    def followed(self, more: "Objects") -> "Objects":
        """Return these objects and more after them; the result is not ordered."""
        return Objects(
            *(np.concatenate([getattr(part, field.name) for part in (self, more)]) for field in fields(self))
        )

    def merged(self, newer: "Objects") -> "Objects":
        """Return these objects with newer ones, which replace those of the same key or are inserted."""
        position, present = find(self.key_hash, newer.key_hash)
        columns = []
        for name in (column.name for column in fields(self)):
            column, values = getattr(self, name).copy(), getattr(newer, name)
            column[position[present]] = values[present]
            columns.append(np.insert(column, position[~present], values[~present], axis=0))
        return Objects(*columns)


@dataclass(frozen=True)
class Cold:
    """The cold columns of runs, by their numbers, and a number that no run has yet."""

    columns: Mapping[int, Mapping[str, Column]]
    following: int = 0

    @functools.cached_property
    def has_geometries(self) -> bool:
        """Whether any row has a geometry besides its box."""
        geometries = [columns["geometry"] for columns in self.columns.values()]
        return any(isinstance(column, pa.Array) and column.null_count < len(column) for column in geometries)

    def append(self, elements: pa.Table) -> "Cold":
        """Return the cold columns of these runs and of one more, whose rows are elements."""
        return Cold({**self.columns, self.following: cold_columns(elements)}, self.following + 1)

    def take(self, objects: Objects) -> pa.Table:
        """Return the cold columns of objects, one row each."""
        if len(objects) and (objects.segment == objects.segment[0]).all():
            numbers, place = objects.segment[:1], np.zeros(len(objects), dtype=np.int64)
        else:
            numbers, place = np.unique(objects.segment, return_inverse=True)
        runs = [Run(number, objects.key_hash[:0], self.columns[number]) for number in numbers.tolist()]
        return pa.table(gathered(runs, place, objects.row, COLD_COLUMNS, NO_COLD))

    def numbers(self, segment: np.ndarray, row: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """Return properties at rows (K,) of runs as numbers, float64 of shape (F, K); each run is read once."""
        found = np.empty((len(names), len(row)))
        for number in np.unique(segment).tolist():
            mine = np.flatnonzero(segment == number)
            column = self.columns[number]["properties"]
            read = number_columns_once(column, tuple(names))
            found[:, mine] = read[:, row[mine]]
        return found


def cold_columns(elements: pa.Table) -> dict[str, pa.Array]:
    """Return the cold columns of elements, each in one piece."""
    return {name: whole_column(elements[name]) for name in COLD_COLUMNS}


@dataclass(frozen=True)
class ObjectTable:
    """An immutable version of the objects of a region.

    Attributes that `Objects` has as well are those of all objects together. They take time and memory for every object
    of the region, so a step asks for them only if it has to look at every object.

    Parameters
    ----------
    table : SortedRuns
        With `HOT_COLUMNS` and `COLD_COLUMNS`, by `key_hash`; one row a key.
    """

    table: SortedRuns
    _since: "tuple[ObjectTable, Objects, np.ndarray] | None" = field(default=None, repr=False, compare=False)

    @classmethod
    def empty(cls, space: Space, following: int = 0) -> "ObjectTable":
        """Return no objects."""
        return cls(SortedRuns(no_columns(space), following=following))

    def __len__(self) -> int:
        return len(self.table)

    @property
    def following(self) -> int:
        """The number of the run that `updated` adds."""
        return self.table.following

    def updated(self, elements: pa.Table) -> "ObjectTable":
        """Return a version with newer elements.

        Parameters
        ----------
        elements : pyarrow.Table
            With `elements.tracked_schema`, ordered by `key_hash`, one row a key.
        """
        arrived = Objects.arrived(elements, self.following)
        difference = int((self.table.find(arrived.key_hash)[0] < 0).sum())
        columns = {name: getattr(arrived, name) for name in HOT_COLUMNS} | cold_columns(elements)
        table = self.table.put(arrived.key_hash, columns, arrived.key_hash[:0], difference)
        return ObjectTable(table, (self, arrived, arrived.key_hash[:0]))

    def without(self, keys: np.ndarray) -> "ObjectTable":
        """Return a version without some of the objects, whose keys are ascending and distinct.

        The rows of elements that have come with `updated` stay where they are.
        """
        if not len(keys):
            return self
        before, arrived, _ = self._since or (self, self.at(*np.empty((2, 0), dtype=np.int64)), keys)
        return ObjectTable(self.table.without(keys, newest=len(arrived) > 0), (before, arrived, keys))

    def settled(self) -> "ObjectTable":
        """Return the same objects, after the merges that are due."""
        return ObjectTable(self.table.settled())

    def found(self, keys: np.ndarray) -> tuple[Objects, np.ndarray]:
        """Return the objects of those keys (K,) that are here, in the order of `keys`, and which are here."""
        wanted, place = _distinct(keys)
        part, row = self.table.find(wanted)
        known = part >= 0
        objects = self.at(part[known], row[known])
        if place is None:
            return objects, known
        present = known[place]
        return objects.take((np.cumsum(known) - 1)[place[present]]), present

    def select(self, matching: Callable[[Run], np.ndarray]) -> Objects:
        """Return the objects that `matching` chooses; see `SortedRuns.select`."""
        part, row = self.table.select(matching)
        order = np.argsort(self.table.keys(part, row), kind="stable")
        return self.at(part[order], row[order])

    def at(self, part: np.ndarray, row: np.ndarray) -> Objects:
        """Return the objects at rows of the table's parts, in that order."""
        hot = self.table.take(part, row, ("", *HOT_COLUMNS))
        numbers = np.array([run.number for run in self.table.parts], dtype=np.int64)
        segment = numbers[part] if len(part) else np.empty(0, dtype=np.int64)
        return Objects(hot.pop(""), **hot, segment=segment, row=row)

    @functools.cached_property
    def whole(self) -> Objects:
        """All objects."""
        if self._since is None:
            return self.at(*self.table.whole())
        before, arrived, removed = self._since
        whole = before.whole.merged(arrived)
        return whole if not len(removed) else whole.take(~find(removed, whole.key_hash)[1])

    @functools.cached_property
    def cold(self) -> Cold:
        """The cold columns of the objects."""
        return Cold({run.number: run.columns for run in self.table.parts}, self.following)

    def take(self, rows: np.ndarray) -> Objects:
        """Return the objects at `rows` of all objects."""
        return self.whole.take(rows)

    @property
    def key_hash(self) -> np.ndarray:
        """See `Objects`."""
        return self.whole.key_hash

    @property
    def stream(self) -> np.ndarray:
        """See `Objects`."""
        return self.whole.stream

    @property
    def time_us(self) -> np.ndarray:
        """See `Objects`."""
        return self.whole.time_us

    @property
    def heard_us(self) -> np.ndarray:
        """See `Objects`."""
        return self.whole.heard_us

    @property
    def bounds(self) -> np.ndarray:
        """See `Objects`."""
        return self.whole.bounds


def _distinct(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the distinct keys, ascending, and the place of each key among them; None if the keys are so already."""
    if (keys[1:] > keys[:-1]).all():
        return keys, None
    if (keys[1:] >= keys[:-1]).all():
        first = first_of_runs(keys)
        return keys[first], np.cumsum(first) - 1
    return np.unique(keys, return_inverse=True)


NO_COLD = {
    "key": pa.array([], pa.string()),
    "geometry": pa.array([], pa.binary()),
    "properties": pa.array([], pa.string()),
}


def no_columns(space: Space) -> dict[str, Column]:
    """Return the columns of the objects of a space, without rows."""
    whole = {name: np.empty(0, dtype=np.int64) for name in HOT_COLUMNS}
    return {**whole, "bounds": np.empty((0, 2 * space.n)), **NO_COLD}


def elements_of(objects: Objects, cold: Cold) -> Elements:
    """Return objects as the `Elements` that operators take."""
    return Elements(
        objects.stream,
        objects.bounds,
        lambda wanted: cold.take(objects.take(wanted)),
        cold.has_geometries,
        objects.time_us,
        objects.heard_us,
        lambda wanted, names: cold.numbers(objects.segment[wanted], objects.row[wanted], names),
    )
