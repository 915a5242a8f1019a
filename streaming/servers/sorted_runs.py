"""A table of rows by key, of which each version shares with the one before what did not change.

New rows come as a *run*: rows ordered by key, and the keys that were removed. The newest run that mentions a key says
what its rows are. Young runs are merged when several of a similar size have come (tiering). When the runs have half as
many rows as the *base*, they are merged into it. The base consists of chunks that follow each other by key, and a
*sweep* merges chunk after chunk, as fast as new rows come. So the rows that are copied and written follow the updates,
and no single update waits for a merge of everything.

References
----------
P. O'Neil et al., "The log-structured merge-tree", Acta Informatica 33(4), 1996: sorted runs, and rolling merges.
R. Sears, R. Ramakrishnan, "bLSM: a general purpose log structured merge tree", SIGMOD 2012, section 4: a merge goes on
as fast as the runs that wait for the next one grow.
N. Dayan, S. Idreos, "Dostoevsky", SIGMOD 2018, section 4: tiering above a largest level that is one run.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array, bounds_of, whole_column
from streaming.operators.runs import expand, find, first_of_runs

Column: TypeAlias = np.ndarray | pa.Array

# So many young runs of a similar size are merged into one; their sizes are similar if `Run.level` is equal.
TIER = 4
LEVEL_BITS = 2

# Young runs are not merged into one with more rows than this.
MOST_TIERED = 131_072

# A sweep begins when the runs have more rows than this, and more than this part of the base.
LEAST_SWEPT = 4_096
PART_OF_BASE = 2

# The base has about so many chunks, unless they would have fewer rows than `LEAST_CHUNK`.
CHUNKS = 32
LEAST_CHUNK = 16_384


@dataclass(frozen=True)
class Run:
    """An immutable sorted run; no other run of its table ever has its number.

    Parameters
    ----------
    number : int
    key : ndarray of int64, shape (N,)
        Ascending; a key may have several rows.
    columns : mapping of str to ndarray of shape (N, ...), or to a pyarrow array of length N
    removed : ndarray of int64, shape (R,)
        Keys without rows, ascending. If the run has rows of such a key, they do not count.
    """

    number: int
    key: np.ndarray
    columns: Mapping[str, Column]
    removed: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.key) + len(self.removed)

    @property
    def level(self) -> int:
        """The order of magnitude of its size."""
        return (len(self).bit_length() - 1) // LEVEL_BITS

    def mentions(self, keys: np.ndarray) -> np.ndarray:
        """Tell which keys, ascending, have rows in this run or are removed by it: bool of shape (K,)."""
        mentioned = _among(keys, self.key)
        return mentioned | _among(keys, self.removed) if len(self.removed) else mentioned

    def between(self, low: int | None, high: int | None) -> "Run":
        """Return the part of the run with keys from `low` to below `high`; None is no limit."""
        part, removed = (slice(*_limits(keys, low, high)) for keys in (self.key, self.removed))
        return replace(self._sliced(part), removed=self.removed[removed])

    def cut(self, rows: int) -> list["Run"]:
        """Cut the rows into pieces of about so many, numbered from this run's number on; a key stays in one piece."""
        pieces = max(1, round(len(self.key) / rows))
        first = self.key[np.linspace(0, len(self.key), pieces, endpoint=False, dtype=np.int64)[1:]]
        limits = [0, *np.unique(np.searchsorted(self.key, first)).tolist(), len(self.key)]
        parts = [slice(*limit) for limit in itertools.pairwise(limits) if limit[0] < limit[1]]
        none = np.empty(0, dtype=np.int64)
        return [replace(self._sliced(p), number=self.number + place, removed=none) for place, p in enumerate(parts)]

    def _sliced(self, part: slice) -> "Run":
        return replace(self, key=self.key[part], columns={name: column[part] for name, column in self.columns.items()})

    def tables(self) -> list[pa.Table]:
        """Return the run as two tables: its rows, and the removed keys."""
        columns = {name: bounds_array(c) if _is_boxes(c) else c for name, c in self.columns.items()}
        return [pa.table({"run_key": self.key} | columns), pa.table({"removed": self.removed})]

    @classmethod
    def of_tables(cls, number: int, tables: Sequence[pa.Table]) -> "Run":
        """Return the run that `tables` returned as tables."""
        rows, removed = tables
        key, *columns = (_column(column) for column in rows.columns)
        return cls(number, key, dict(zip(rows.column_names[1:], columns, strict=True)), _column(removed["removed"]))


@dataclass(frozen=True)
class SortedRuns:
    """An immutable version of a table.

    Parameters
    ----------
    like : mapping of str to Column
        The columns, without rows.
    base : tuple of Run
        The chunks of the base, by ascending keys, which do not overlap. No chunk is empty or removes anything.
    runs : tuple of Run
        What has come since, oldest first.
    sweeping : int
        How many of the oldest runs a sweep merges into the base; 0 if none goes on.
    swept : int
        How many chunks of the base have already taken over what these runs say.
    following : int
        The number of the next run.
    count : int
        How many keys have rows.
    """

    like: Mapping[str, Column]
    base: tuple[Run, ...] = ()
    runs: tuple[Run, ...] = ()
    sweeping: int = 0
    swept: int = 0
    following: int = 0
    count: int = 0

    def __len__(self) -> int:
        return self.count

    @functools.cached_property
    def parts(self) -> tuple[Run, ...]:
        """All runs: first the chunks of the base, then what has come since, oldest first."""
        return (*self.base, *self.runs)

    @functools.cached_property
    def _first(self) -> np.ndarray:
        """The first key of each chunk of the base, int64."""
        return np.array([chunk.key[0] for chunk in self.base], dtype=np.int64)

    def find(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Look keys up.

        Parameters
        ----------
        keys : ndarray of int64, shape (K,)
            Ascending and distinct.

        Returns
        -------
        part : ndarray of int64, shape (K,)
            The position in `parts` of the run that has the key's rows, -1 for a key without rows.
        row : ndarray of int64, shape (K,)
            The key's first row there.
        """
        part, row = np.full(len(keys), -1), np.zeros(len(keys), dtype=np.int64)
        left = np.arange(len(keys))
        for place in range(len(self.parts) - 1, len(self.base) - 1, -1):
            if not len(left):
                return part, row
            run, wanted = self.parts[place], keys[left]
            gone = _among(wanted, run.removed) if len(run.removed) else np.zeros(len(left), dtype=bool)
            position, present = _first_rows(run.key, wanted)
            here = present & ~gone
            part[left[here]], row[left[here]] = place, position[here]
            left = left[~(present | gone)]
        chunk = np.maximum(np.searchsorted(self._first, keys[left], "right") - 1, 0)
        for place, start, stop in _blocks(chunk):
            if self.base:
                mine = left[start:stop]
                position, present = _first_rows(self.base[place].key, keys[mine])
                part[mine[present]], row[mine[present]] = place, position[present]
        return part, row

    def rows(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all rows of keys, which are ascending and distinct: part and row, ordered by key."""
        part, row = self.find(keys)
        known = np.flatnonzero(part >= 0)
        part, row, wanted = part[known], row[known], keys[known]
        stop = row.copy()
        order = np.argsort(part, kind="stable")
        for place, first, last in _blocks(part[order]):
            mine = order[first:last]
            stop[mine] = np.searchsorted(self.parts[place].key, wanted[mine], "right")
        index, rows = expand(row, stop - row)
        return part[index], rows

    def select(self, matching: Callable[[Run], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that `matching` chooses, given a run, as positions or as a mask: part and row.

        Rows that a newer run supersedes may be offered to `matching`; they are not returned.
        """
        parts, rows = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for place, run in enumerate(self.parts):
            chosen = matching(run)
            found = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
            found = found[self.current(place, found)]
            parts.append(np.full(len(found), place))
            rows.append(found)
        return np.concatenate(parts), np.concatenate(rows)

    def current(self, place: int, rows: np.ndarray) -> np.ndarray:
        """Tell which rows, ascending, of the part at `place` no newer run supersedes: bool of shape (K,)."""
        keys = self.parts[place].key[rows]
        superseded = np.zeros(len(rows), dtype=bool)
        if not len(rows):
            return ~superseded
        if len(self.parts[place].removed):
            superseded |= _among(keys, self.parts[place].removed)
        for newer in self.parts[max(place + 1, len(self.base)) :]:
            superseded |= newer.mentions(keys)
        return ~superseded

    def whole(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all rows, ordered by key: part and row. This takes time and memory for every row of the table."""
        part, row = self.select(lambda run: np.arange(len(run.key)))
        order = np.argsort(self.keys(part, row), kind="stable")
        return part[order], row[order]

    def keys(self, part: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Return the keys of rows, int64 of shape (K,)."""
        return self.take(part, row, ("",))[""]

    def take(self, part: np.ndarray, row: np.ndarray, names: Iterable[str] | None = None) -> dict[str, Any]:
        """Return columns of rows, all columns by default; the name "" stands for the keys."""
        like = {**self.like, "": np.empty(0, dtype=np.int64)}
        return gathered(self.parts, part, row, self.like if names is None else names, like)

    def put(
        self, key: np.ndarray, columns: Mapping[str, Column], removed: np.ndarray, difference: int = 0
    ) -> "SortedRuns":
        """Return a version in which the rows replace all rows of their keys, and `removed` keys have none.

        Parameters
        ----------
        key : ndarray of int64, shape (N,)
            Ascending.
        columns : mapping of str to Column
        removed : ndarray of int64
            Ascending and distinct. Rows of such keys are not counted, even if they are among those given.
        difference : int
            How many more keys have rows than before.
        """
        if not len(key) and not len(removed):
            return self
        run = Run(self.following, key, columns, removed)
        return replace(self, runs=(*self.runs, run), following=self.following + 1, count=self.count + difference)

    def some(self, part: np.ndarray, row: np.ndarray, following: int) -> "SortedRuns":
        """Return a table of some of the rows that are in force, with all rows of each of their keys.

        Each run of the new table has the rows of a run of this one, so that nothing is merged.

        Parameters
        ----------
        part, row : ndarray of int64
            As `select` returns them: `part` is ascending, and so are the rows of a part.
        following : int
            The number of the first run of the new table.
        """
        base: list[Run] = []
        runs: list[Run] = []
        count = 0
        for number, (place, start, stop) in enumerate(_blocks(part), following):
            run, rows = self.parts[place], row[start:stop]
            columns = {name: _taken(column, rows) for name, column in run.columns.items()}
            taken = Run(number, run.key[rows], columns)
            count += int(first_of_runs(taken.key).sum())
            (base if place < len(self.base) else runs).append(taken)
        following += len(base) + len(runs)
        return SortedRuns(self.like, tuple(base), tuple(runs), following=following, count=count)

    def joined(self, other: "SortedRuns") -> "SortedRuns":
        """Return a version with the rows of another table, too, as `some` returns it: of keys without rows here.

        The base of the other one becomes one run, without being sorted.
        """
        if not self.parts:
            return other
        runs, following = list(other.runs), other.following
        if other.base:
            key = np.concatenate([chunk.key for chunk in other.base])
            columns = {name: _joined([chunk.columns[name] for chunk in other.base]) for name in self.like}
            runs.insert(0, Run(following, key, columns))
            following += 1
        return replace(self, runs=(*self.runs, *runs), following=following, count=self.count + other.count)

    def with_column(self, name: str, value: Any) -> "SortedRuns":
        """Return a version in which all rows have one value in a column; all runs get new numbers."""

        def renewed(run: Run, number: int) -> Run:
            column = np.full_like(run.columns[name], value)
            return replace(run, number=number, columns={**run.columns, name: column})

        parts = tuple(renewed(run, self.following + place) for place, run in enumerate(self.parts))
        base, runs = parts[: len(self.base)], parts[len(self.base) :]
        return replace(self, base=base, runs=runs, following=self.following + len(parts))

    def without(self, keys: np.ndarray, newest: bool) -> "SortedRuns":
        """Return a version without the rows of some keys.

        Parameters
        ----------
        keys : ndarray of int64
            Keys with rows, ascending and distinct.
        newest : bool
            Whether the newest run, which has removed nothing yet, is to say so, and not one more run.
        """
        if not newest:
            none = {name: column[:0] for name, column in self.like.items()}
            return self.put(keys[:0], none, keys, -len(keys))
        run = replace(self.runs[-1], removed=keys)
        return replace(self, runs=(*self.runs[:-1], run), count=self.count - len(keys))

    def settled(self) -> "SortedRuns":
        """Return the same rows, after the merges that are due; called once for each micro-batch.

        Which merges are due depends on the sizes of the runs alone.
        """
        table = self._tiered()
        base, runs = (sum(map(len, parts)) for parts in (table.base, table.runs))
        if not table.sweeping and runs > max(LEAST_SWEPT, base // PART_OF_BASE):
            table = replace(table, sweeping=len(table.runs), swept=0)
        while table.sweeping and table._behind:
            table = table._swept_on()
        return table

    def _tiered(self) -> "SortedRuns":
        """Merge the youngest runs while so many are of a similar size."""
        table = self
        while True:
            young = table.runs[table.sweeping :]
            many = 0
            while many < len(young) and young[-many - 1].level <= young[-1].level:
                many += 1
            if many < TIER or sum(map(len, young[-many:])) > MOST_TIERED:
                return table
            run = merged(table.following, young[-many:])
            table = replace(table, runs=(*table.runs[:-many], run), following=table.following + 1)

    @property
    def _behind(self) -> bool:
        """Whether the sweep has to go on: it ends when half as many rows have come as it merges."""
        done, base = (sum(map(len, chunks)) for chunks in (self.base[: self.swept], self.base))
        old, young = (sum(map(len, runs)) for runs in (self.runs[: self.sweeping], self.runs[self.sweeping :]))
        return done * old < 2 * young * max(1, base)

    def _swept_on(self) -> "SortedRuns":
        """Merge the next chunks of the base with what the runs of the sweep have of their keys."""
        rows = max(LEAST_CHUNK, sum(map(len, self.base)) // CHUNKS)
        stop = min(self.swept + 1, len(self.base))
        while stop < len(self.base) and sum(map(len, self.base[self.swept : stop + 1])) <= rows:
            stop += 1
        low = self._first[self.swept] if self.swept else None
        high = self._first[stop] if stop < len(self.base) else None
        front = [run.between(low, high) for run in self.runs[: self.sweeping]]
        chunk = merged(self.following, [*self.base[self.swept : stop], *front])
        pieces = chunk.cut(rows)
        base = (*self.base[: self.swept], *pieces, *self.base[stop:])
        following, swept = self.following + len(pieces), self.swept + len(pieces)
        if high is None:
            return replace(self, base=base, runs=self.runs[self.sweeping :], sweeping=0, swept=0, following=following)
        return replace(self, base=base, swept=swept, following=following)

    def head(self) -> dict[str, Any]:
        """Return what JSON must keep of the table besides its runs."""
        base, runs = ([run.number for run in runs] for runs in (self.base, self.runs))
        names = ("sweeping", "swept", "following", "count")
        return {"base": base, "runs": runs} | {name: getattr(self, name) for name in names}

    @classmethod
    def of_head(cls, like: Mapping[str, Column], head: Mapping[str, Any], run: Callable[[int], Run]) -> "SortedRuns":
        """Return the table of a head, given a function that returns the run of a number."""
        base, runs = (tuple(map(run, head[name])) for name in ("base", "runs"))
        return cls(like, **{**head, "base": base, "runs": runs})


def merged(number: int, runs: Sequence[Run]) -> Run:
    """Return one run that says the same as several, oldest first."""
    parts = [keys for run in reversed(runs) for keys in (run.removed, run.key)]
    keys, rank = np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    order = np.argsort(keys, kind="stable")
    ordered, rank = keys[order], rank[order]
    first = first_of_runs(ordered)
    deciding = rank == rank[first][np.cumsum(first) - 1]
    is_row = rank % 2 == 1
    # Among the rows alone, the removed keys that come before in the concatenation do not count.
    before = np.cumsum([0, *[0 if place % 2 else len(part) for place, part in enumerate(parts)]])
    chosen = deciding & is_row
    rows = order[chosen] - before[rank[chosen]]
    columns = {name: _taken(_joined([run.columns[name] for run in reversed(runs)]), rows) for name in runs[0].columns}
    return Run(number, ordered[chosen], columns, ordered[deciding & ~is_row])


def gathered(
    runs: Sequence[Run], part: np.ndarray, row: np.ndarray, names: Iterable[str], like: Mapping[str, Column]
) -> dict[str, Any]:
    """Return columns of rows of several runs, given the position of each row's run; the name "" stands for the keys."""
    if not len(part):
        return {name: like[name] for name in names}
    order = None if (part[1:] >= part[:-1]).all() else np.argsort(part, kind="stable")
    chosen, row = (part, row) if order is None else (part[order], row[order])
    blocks = [(runs[place], slice(start, stop)) for place, start, stop in _blocks(chosen)]
    back = None
    columns = {}
    for name in names:
        parts = [(run.columns[name] if name else run.key, block) for run, block in blocks]
        if isinstance(like[name], np.ndarray):
            columns[name] = _scattered(parts, row, order, like[name])
            continue
        column = _joined([_taken(column, row[block]) for column, block in parts])
        if order is not None and back is None:
            back = np.empty_like(order)
            back[order] = np.arange(len(order))
        columns[name] = column if back is None else _taken(column, back)
    return columns


def _scattered(
    parts: Sequence[tuple[Column, slice]], row: np.ndarray, order: np.ndarray | None, like: np.ndarray
) -> np.ndarray:
    """Return a column of rows of several runs: each block of rows at its places, which `order` tells."""
    values = np.empty((len(row), *like.shape[1:]), dtype=like.dtype)
    for column, block in parts:
        values[block if order is None else order[block]] = np.take(column, row[block], axis=0)
    return values


def _blocks(ordered: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Yield the distinct values of an ordered array, each with the start and the stop of its positions."""
    if len(ordered):
        starts = np.flatnonzero(first_of_runs(ordered))
        yield from zip(ordered[starts].tolist(), starts.tolist(), [*starts[1:].tolist(), len(ordered)], strict=True)


def _among(keys: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Tell which keys are among others, both ascending: bool of shape (K,)."""
    if len(keys) <= len(others):
        return find(others, keys)[1]
    mask = np.zeros(len(keys), dtype=bool)
    start, stop = np.searchsorted(keys, others, "left"), np.searchsorted(keys, others, "right")
    mask[expand(start, stop - start)[1]] = True
    return mask


def _first_rows(ordered: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row of each key among ordered ones, and whether it has one; the keys ascend and differ."""
    if len(keys) <= len(ordered):
        return find(ordered, keys)
    row, present = np.zeros(len(keys), dtype=np.int64), np.zeros(len(keys), dtype=bool)
    first = np.flatnonzero(first_of_runs(ordered))
    place, known = find(keys, ordered[first])
    row[place[known]], present[place[known]] = first[known], True
    return row, present


def _limits(keys: np.ndarray, low: int | None, high: int | None) -> tuple[int, int]:
    """Return the positions between which ascending keys lie from `low` to below `high`."""
    start = 0 if low is None else int(np.searchsorted(keys, low))
    return start, len(keys) if high is None else int(np.searchsorted(keys, high))


def _taken(column: Column, rows: np.ndarray) -> Column:
    return np.take(column, rows, axis=0) if isinstance(column, np.ndarray) else column.take(pa.array(rows))


def _joined(columns: Sequence[Column]) -> Column:
    if len(columns) == 1:
        return columns[0]
    return np.concatenate(columns) if isinstance(columns[0], np.ndarray) else pa.concat_arrays(columns)


def _is_boxes(column: Column) -> bool:
    return isinstance(column, np.ndarray) and column.ndim > 1


def _column(column: pa.ChunkedArray) -> Column:
    """Return a column of a table as `Run` has it."""
    if pa.types.is_fixed_size_list(column.type):
        return bounds_of(column)
    whole = whole_column(column)
    return whole.to_numpy() if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) else whole
