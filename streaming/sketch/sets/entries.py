"""Entries of sets, as columns: each is about one feature in one cell and one bin of time."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa

from streaming.sketch.sets.dense import Dense, fold, merged
from streaming.sketch.sets.settings import VALUE_BYTES, SetSettings
from streaming.state.codec import array_of, head_of, with_head


@dataclass(frozen=True)
class EntryKeys:
    """The keys of K entries: arrays of int64, shape (K,).

    Parameters
    ----------
    start_us : ndarray
        Where the time bin begins, in microseconds since 1970 UTC.
    cell : ndarray
        The geohash of the cell.
    feature : ndarray
        The position of the feature in the settings.
    """

    start_us: np.ndarray
    cell: np.ndarray
    feature: np.ndarray

    def take(self, rows: np.ndarray) -> "EntryKeys":
        """Return some keys, given their positions or a mask."""
        return EntryKeys(self.start_us[rows], self.cell[rows], self.feature[rows])


@dataclass(frozen=True)
class Values:
    """Values that entries keep themselves: arrays of shape (V,), ordered by entry, then by hash.

    Parameters
    ----------
    entry : ndarray of int64
        The position of the entry.
    hash : ndarray of uint64
        Each once in an entry.
    n : ndarray of int64
        How often the value came.
    """

    entry: np.ndarray
    hash: np.ndarray
    n: np.ndarray


@dataclass(frozen=True)
class SetEntries:
    """K entries, ordered by their keys, each key once.

    Parameters
    ----------
    keys : EntryKeys
    level : int
        The level of all of them: see `SetSettings.bits`.
    count : ndarray of int64, shape (K,)
        How many values came, each as often as it came.
    place : ndarray of int64, shape (K,)
        The position of the entry in `dense`; -1 if it keeps its values themselves.
    values : Values
    dense : Dense
    """

    keys: EntryKeys
    level: int
    count: np.ndarray
    place: np.ndarray
    values: Values
    dense: Dense

    def __len__(self) -> int:
        return len(self.count)

    @property
    def nbytes(self) -> int:
        """The memory of the values and the sketches."""
        dense = sum(getattr(self.dense, field.name).nbytes for field in fields(Dense))
        return dense + VALUE_BYTES * len(self.values.hash)

    def take(self, chosen: np.ndarray) -> "SetEntries":
        """Return the entries of a mask."""
        number = np.cumsum(chosen) - 1
        kept = chosen[self.values.entry]
        values = Values(number[self.values.entry[kept]], self.values.hash[kept], self.values.n[kept])
        place = self.place[chosen]
        of = place[place >= 0]
        place = np.where(place >= 0, np.cumsum(place >= 0) - 1, -1)
        return SetEntries(self.keys.take(chosen), self.level, self.count[chosen], place, values, self.dense.take(of))


def no_entries(settings: SetSettings, level: int = 0) -> SetEntries:
    """Return no entries."""
    none = np.empty(0, dtype=np.int64)
    values = Values(none, none.view(np.uint64), none)
    return SetEntries(EntryKeys(none, none, none), level, none, none, values, Dense.zeros(0, settings))


def entries_of(
    start_us: np.ndarray, cell: np.ndarray, hashes: np.ndarray, known: np.ndarray, level: int, settings: SetSettings
) -> SetEntries:
    """Return the entries of N elements.

    Parameters
    ----------
    start_us : ndarray of int64, shape (N,)
        Where the element's time bin of the level begins.
    cell : ndarray of int64, shape (N,)
        The element's cell of the level.
    hashes : ndarray of uint64, shape (F, N)
        The hashes of its values, for each feature of the settings.
    known : ndarray of bool, shape (F, N)
        Whether it has the feature.
    level : int
    settings : SetSettings
    """
    feature, row = np.nonzero(known)
    keys, code = _numbered_keys(EntryKeys(start_us[row], cell[row], feature))
    values = _counted(code, hashes[feature, row], np.ones(len(row), dtype=np.int64))
    place = np.full(len(keys.cell), -1, dtype=np.int64)
    count = np.bincount(code, minlength=len(place))
    return _folded(SetEntries(keys, level, count, place, values, Dense.zeros(0, settings)), settings)


def together(parts: Sequence[SetEntries], settings: SetSettings, level: int) -> SetEntries:
    """Return the entries of several as one, at a level that is not below any of theirs.

    What it returns depends on the elements that the parts have, and on nothing else.
    """
    parts = [part for part in parts if len(part)] or [no_entries(settings, level)]
    if len(parts) == 1 and parts[0].level == level:
        return parts[0]
    coarser = [_coarser(part, level, settings) for part in parts]
    keys, group = _numbered_keys(
        EntryKeys(*(np.concatenate([getattr(some, field.name) for some in coarser]) for field in fields(EntryKeys)))
    )
    offset = np.cumsum([0, *map(len, parts)])
    entry = [group[offset[i] + part.values.entry] for i, part in enumerate(parts)]
    hashes, n = ([getattr(part.values, name) for part in parts] for name in ("hash", "n"))
    values = _counted(*map(np.concatenate, (entry, hashes, n)))
    count = _sums(group, np.concatenate([part.count for part in parts]), len(keys.cell))
    old = np.concatenate([_dense_entries(part) + offset[i] for i, part in enumerate(parts)])
    place, size = _numbered(np.isin(np.arange(len(count)), group[old]))
    dense = merged([part.dense for part in parts], place[group[old]], size, settings)
    return _folded(SetEntries(keys, level, count, place, values, dense), settings)


def _folded(entries: SetEntries, settings: SetSettings) -> SetEntries:
    """Return entries whose values are in the sketches, if an entry has sketches already or has too many values."""
    values, place = entries.values, entries.place
    different = np.bincount(values.entry, minlength=len(place))
    is_dense = (place >= 0) | (different > settings.most_values)
    moved = is_dense[values.entry]
    if not moved.any():
        return entries
    number, size = _numbered(is_dense)
    dense = merged([entries.dense], number[_dense_entries(entries)], size, settings)
    fold(dense, number[values.entry[moved]], values.hash[moved], values.n[moved], settings)
    kept = Values(values.entry[~moved], values.hash[~moved], values.n[~moved])
    return SetEntries(entries.keys, entries.level, entries.count, number, kept, dense)


def _numbered(chosen: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the number of each chosen one among the chosen, -1 for the others, and how many are chosen."""
    return np.where(chosen, np.cumsum(chosen) - 1, -1), int(chosen.sum())


def _dense_entries(entries: SetEntries) -> np.ndarray:
    """Return the positions of the entries with sketches, in the order of the sketches."""
    rows = np.flatnonzero(entries.place >= 0)
    return rows[np.argsort(entries.place[rows], kind="stable")]


def _coarser(entries: SetEntries, level: int, settings: SetSettings) -> EntryKeys:
    """Return the keys of entries at a higher level."""
    keys, length = entries.keys, settings.bin_us(level)
    drop = settings.bits(entries.level) - settings.bits(level)
    return EntryKeys(keys.start_us // length * length, keys.cell >> drop, keys.feature)


def _numbered_keys(keys: EntryKeys) -> tuple[EntryKeys, np.ndarray]:
    """Return the different keys of N in order, and the position of each of the N among them."""
    columns = [getattr(keys, field.name) for field in fields(EntryKeys)]
    code = np.zeros(len(keys.cell), dtype=np.int64)
    for column in columns:
        different, number = np.unique(column, return_inverse=True)
        # What is made of the numbers of two columns is numbered anew, so it never has too many bits.
        _, code = np.unique(code * max(1, len(different)) + number, return_inverse=True)
    first = np.empty(int(code.max(initial=-1)) + 1, dtype=np.int64)
    first[code] = np.arange(len(code))
    return keys.take(first), code


def _counted(entry: np.ndarray, hashes: np.ndarray, n: np.ndarray) -> Values:
    """Return values whose entry and hash are the same as one, with the sum of their `n`, ordered."""
    order = _order(entry, hashes)
    entry, hashes = entry[order], hashes[order]
    first = np.flatnonzero(_firsts(entry, hashes))
    return Values(entry[first], hashes[first], np.add.reduceat(n[order], first) if len(first) else n[:0])


def _order(entry: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """Return the order of values by entry, then by hash: one sort of 64 bits if these tell all of them apart."""
    bits = np.uint64(int(entry.max(initial=0)).bit_length())
    packed = hashes >> bits
    if bits:
        packed |= entry.view(np.uint64) << (np.uint64(64) - bits)
    order = np.argsort(packed)
    same = packed[order[1:]] == packed[order[:-1]]
    if (same & (hashes[order[1:]] != hashes[order[:-1]])).any():
        return np.lexsort((hashes, entry))
    return order


def _firsts(*columns: np.ndarray) -> np.ndarray:
    """Tell which rows of ordered columns differ from the one before."""
    first = np.ones(len(columns[0]), dtype=bool)
    first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return first


def _sums(group: np.ndarray, numbers: np.ndarray, count: int) -> np.ndarray:
    """Return the sum of the numbers of each group, int64."""
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, group, numbers)
    return sums


def tables_of(entries: SetEntries) -> list[pa.Table]:
    """Return entries as three tables: keys, values and sketches; `entries_of_tables` reads them."""
    keys = {field.name: getattr(entries.keys, field.name) for field in fields(EntryKeys)}
    keys |= {"count": entries.count, "place": entries.place}
    values = {field.name: getattr(entries.values, field.name) for field in fields(Values)}
    sketches = {field.name: _rows(getattr(entries.dense, field.name)) for field in fields(Dense)}
    return [with_head(pa.table(keys), {"level": entries.level}), pa.table(values), pa.table(sketches)]


def entries_of_tables(tables: Sequence[pa.Table]) -> SetEntries:
    """Return the entries of `tables_of`."""
    first, second, third = tables
    keys = EntryKeys(*(array_of(first[field.name]) for field in fields(EntryKeys)))
    values = Values(*(array_of(second[field.name]) for field in fields(Values)))
    dense = Dense(*(_matrix(third[field.name]) for field in fields(Dense)))
    level = head_of(first)["level"]
    return SetEntries(keys, level, array_of(first["count"]), array_of(first["place"]), values, dense)


def _rows(matrix: np.ndarray) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(matrix).reshape(-1)), matrix.shape[1])


def _matrix(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    column = column.combine_chunks()
    array = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    return array.flatten().to_numpy().reshape(len(array), array.type.list_size)
