"""The reports that wait in a region for partners: a BinR-tree.

Reports are kept in bins of event time. What comes in a micro-batch makes one small run in each bin, and runs of a
similar size in a bin are merged, until they are large. A run is ordered from south to north, so that a part of the
space is a part of each run. Each run has indexes of its own, which are built when somebody first looks for partners
there. Bins are dropped as a whole.

References
----------
Li et al., "Distributed join query method for large-scale spatial data streams", 2023, section 2.3.2: equations 4 and 5.
"""

import functools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_of
from streaming.operators.elements import Elements
from streaming.operators.features import IndexedBoxes
from streaming.operators.runs import expand, find, first_of_runs, order_of_hashes
from streaming.operators.stream_reach import Reach
from streaming.operators.time_joins import ReportTimes, TimeJoin
from streaming.servers.elements import tracked_schema
from streaming.servers.region.objects import COLD_COLUMNS, NO_COLD, cold_columns
from streaming.servers.region.place import RegionPlace
from streaming.servers.sorted_runs import Column, Run, gathered
from streaming.servers.ways.time_joins.report_order import report_names, report_order
from streaming.spaces import Space

# So many runs of a bin with a similar size are merged; sizes are similar if their logarithms to this base are.
TIER = 4
# Runs are not merged into one with more reports than this: no batch should wait for a merge of very many.
MOST_MERGED = 131_072
# The columns of numbers that a report brings along.
_SENT = ("key_hash", "time_us", "seen_us", "heard_us")


@functools.lru_cache(maxsize=64)
def reports_schema(space: Space) -> pa.Schema:
    """Return the columns of reports that are sent to a region: `tracked_schema`, and one more.

    `seen_us` (int64) is the newest event time that the home server had seen once the report was there; see
    `streaming.operators.watermarks`.
    """
    return tracked_schema(space).append(pa.field("seen_us", pa.int64(), nullable=False))


def no_columns(space: Space) -> dict[str, Column]:
    """Return the columns of reports, without rows."""
    numbers = ("key_hash", "time_us", "seen_us", "heard_us", "turn", "name")
    hot = {name: np.empty(0, dtype=np.int64) for name in numbers}
    return {**hot, "bounds": np.empty((0, 2 * space.n)), **NO_COLD}


@dataclass(frozen=True)
class ReportRun:
    """Reports of one stream in one bin, ordered by place and name (see `report_order`), with indexes over them.

    Parameters
    ----------
    stream : int
    first_us, last_us : int
        The bin: from its first microsecond to its last one.
    run : Run
        With the columns of `no_columns`. `turn` counts the micro-batches in which the region has kept reports, `name`
        is from `report_names`.
    """

    stream: int
    first_us: int
    last_us: int
    run: Run
    _indexes: dict[Any, IndexedBoxes] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.run.key)

    def __getitem__(self, name: str) -> Column:
        return self.run.columns[name]

    @property
    def bin(self) -> tuple[int, int, int]:
        """The stream and the bin; runs of the same are merged."""
        return self.stream, self.first_us, self.last_us

    @property
    def times(self) -> ReportTimes:
        """The times of the reports."""
        return ReportTimes(self["time_us"], self["seen_us"])

    @functools.cached_property
    def widest(self) -> np.ndarray:
        """How much the widest box extends in each dimension, float64 of shape (n,)."""
        low, high = np.hsplit(self["bounds"], 2)
        # Where an element has no place that is known, both of its bounds are infinite.
        widest: np.ndarray = np.subtract(high, low, out=np.zeros(low.shape), where=low < high).max(axis=0)
        return widest

    @functools.cached_property
    def period_us(self) -> tuple[int, int]:
        """The times of the oldest and of the newest report: while a stream comes in order, much less than the bin."""
        time_us = self["time_us"]
        return int(time_us.min()), int(time_us.max())

    def holds(self, keys: np.ndarray, names: np.ndarray) -> np.ndarray:
        """Tell which reports are in the run, given their places in the order and their names: bool of shape (K,)."""
        start, held = find(self.run.key, keys)
        if held.any():
            known = np.flatnonzero(held)
            stop = np.searchsorted(self.run.key, keys[known], "right")
            at, row = expand(start[known], stop - start[known])
            held[known] = False
            held[known[at[self["name"][row] == names[known[at]]]]] = True
        return held

    def without(self, rows: np.ndarray, runs: Sequence["ReportRun"]) -> tuple[np.ndarray, dict[str, Column]]:
        """Return the keys and the columns of the reports at `rows`, ascending, that none of some other runs has."""
        key, name, time_us = self.run.key[rows], self["name"][rows], self["time_us"][rows]
        rows = rows[_unknown(key, name, time_us, runs)]
        return self.run.key[rows], {name: _taken(column, rows) for name, column in self.run.columns.items()}

    def index(self, join: TimeJoin, partner: bool) -> IndexedBoxes:
        """Return an index over the boxes, or over how far the reports reach for partners if a join transforms them."""
        way = None if partner else join.way
        if way not in self._indexes:
            bounds = self["bounds"] if way is None else join.reach(self["bounds"])
            self._indexes[way] = IndexedBoxes(bounds, join.space, sparse=True)
        return self._indexes[way]


@dataclass(frozen=True)
class Picked:
    """Reports that were picked from runs.

    Parameters
    ----------
    runs : sequence of ReportRun
    part, row : ndarray of int64, shape (N,)
        The position in `runs`, ascending, and the row there.
    space : Space
    """

    runs: Sequence[ReportRun]
    part: np.ndarray
    row: np.ndarray
    space: Space

    def __len__(self) -> int:
        return len(self.part)

    def column(self, name: str) -> np.ndarray:
        """Return a column of the reports."""
        return _gathered(self.runs, self.part, self.row, self.space, [name])[name]

    def cold(self, rows: np.ndarray) -> pa.Table:
        """Return key, geometry and properties of the reports at `rows`."""
        return _cold(self.runs, self.part, self.row, self.space, rows)

    @functools.cached_property
    def elements(self) -> Elements:
        """The reports as operators take elements."""
        stream = np.array([run.stream for run in self.runs], dtype=np.int64)
        has_geometries = any(_has_values(run["geometry"]) for run in self.runs)
        # With `self.cold`, this would be a cycle, and the runs would stay in memory until cycles are looked for.
        cold = functools.partial(_cold, self.runs, self.part, self.row, self.space)
        return Elements(stream[self.part], self.column("bounds"), cold, has_geometries)


def _cold(runs: Sequence[ReportRun], part: np.ndarray, row: np.ndarray, space: Space, rows: np.ndarray) -> pa.Table:
    return pa.table(_gathered(runs, part[rows], row[rows], space, COLD_COLUMNS))


def _gathered(
    runs: Sequence[ReportRun], part: np.ndarray, row: np.ndarray, space: Space, names: Iterable[str]
) -> dict[str, Any]:
    return gathered([run.run for run in runs], part, row, names, no_columns(space))


class _StreamRuns:
    """The runs of one stream, and the times of their bins as arrays: there may be a bin for each report."""

    def __init__(self, runs: Sequence[ReportRun]) -> None:
        self.runs = runs
        self.first_us, self.last_us = (
            np.array([getattr(run, name) for run in runs], dtype=np.int64) for name in ("first_us", "last_us")
        )

    def count(self, start_us: np.ndarray, stop_us: np.ndarray) -> int:
        """Return how many reports lie in the bins that overlap periods, counted for each period; see `ReportTable`."""
        lengths = np.array(list(map(len, self.runs)), dtype=np.int64)
        counts = []
        # What begins before a period ends, without what ends before it begins.
        for times_us, limit_us in ((self.first_us, stop_us), (self.last_us, start_us)):
            order = np.argsort(times_us, kind="stable")
            reached = np.r_[0, np.cumsum(lengths[order])]
            counts.append(reached[np.searchsorted(times_us[order], limit_us, "left")].sum())
        return int(counts[0] - counts[1])


@dataclass(frozen=True)
class ReportTable:
    """An immutable version of the reports that wait in a region.

    Parameters
    ----------
    space : Space
    runs : tuple of ReportRun
    following : int
        The number of the next run.
    """

    space: Space
    runs: tuple[ReportRun, ...] = ()
    following: int = 0

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    @functools.cached_property
    def _of_streams(self) -> "dict[int, _StreamRuns]":
        runs = defaultdict(list)
        for run in self.runs:
            runs[run.stream].append(run)
        return {stream: _StreamRuns(some) for stream, some in runs.items()}

    def of(self, stream: int) -> Sequence[ReportRun]:
        """Return the runs of a stream."""
        known = self._of_streams.get(stream)
        return known.runs if known else ()

    def bins(self, stream: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and the last microsecond of the bin of each run of a stream, int64 each."""
        known = self._of_streams.get(stream) or _StreamRuns(())
        return known.first_us, known.last_us

    def between(self, stream: int, start_us: int, stop_us: int) -> list[ReportRun]:
        """Return the runs of a stream whose bins overlap the time from `start_us` to just before `stop_us`."""
        first_us, last_us = self.bins(stream)
        runs = self.of(stream)
        return [runs[place] for place in np.flatnonzero((first_us < stop_us) & (last_us >= start_us)).tolist()]

    def count(self, stream: int, start_us: np.ndarray, stop_us: np.ndarray) -> int:
        """Return how many reports the runs have that `between` returns for each of some periods, all together."""
        known = self._of_streams.get(stream)
        return known.count(start_us, stop_us) if known else 0

    def arrived(self, reports: pa.Table, bin_us: Mapping[int, int], turn: int) -> "ReportTable":
        """Return a table of those reports that are not in this one yet; of equal ones, the first.

        Parameters
        ----------
        reports : pyarrow.Table
            With `reports_schema`, in the order of arrival.
        bin_us : mapping of int to int
            How long a bin is, by stream number.
        turn : int
            In which they came.
        """
        reports, new = reports.combine_chunks(), list[ReportRun]()
        columns: dict[str, Column] = {name: reports[name].to_numpy() for name in _SENT}
        columns |= {"bounds": bounds_of(reports["bounds"])} | cold_columns(reports)
        stream, time_us = reports["stream"].to_numpy(), columns["time_us"]
        for number, size_us in bin_us.items():
            mine = np.flatnonzero(stream == number)
            bins = time_us[mine] // size_us
            for name in np.unique(bins).tolist():
                place = number, name * size_us, (name + 1) * size_us - 1
                key, kept = self._new(place[0], columns, mine[bins == name], turn)
                if len(key):
                    new.append(ReportRun(*place, Run(self.following + len(new), key, kept)))
        return replace(self, runs=tuple(new), following=self.following + len(new))

    def _new(
        self, stream: int, columns: Mapping[str, Column], rows: np.ndarray, turn: int
    ) -> tuple[np.ndarray, dict[str, Column]]:
        """Return the keys and columns of those reports at rows that are not in the table, of equal ones the first."""
        hot = {name: _taken(columns[name], rows) for name in ("key_hash", "time_us", "bounds")}
        name, time_us = report_names(*hot.values()), hot["time_us"]
        order = order_of_hashes(name)
        order = order[first_of_runs(name[order])]
        key = report_order(name, hot["bounds"], self.space)
        order = order[np.argsort(key[order], kind="stable")]
        known = self.between(stream, int(time_us.min()), int(time_us.max()) + 1)
        order = order[_unknown(key[order], name[order], time_us[order], known)]
        new = {name: _taken(column, rows[order]) for name, column in columns.items()}
        return key[order], new | {"turn": np.full(len(order), turn), "name": name[order]}

    def _and(self, place: tuple[int, int, int], key: np.ndarray, columns: Mapping[str, Column]) -> "ReportTable":
        """Return a table with one run more, unless it is empty."""
        if not len(key):
            return self
        run = ReportRun(*place, Run(self.following, key, columns))
        return replace(self, runs=(*self.runs, run), following=self.following + 1)

    def followed(self, arrived: "ReportTable") -> "ReportTable":
        """Return these reports and those that `arrived` has returned, after the merges that are due."""
        bins = defaultdict(list)
        for run in (*self.runs, *arrived.runs):
            bins[run.bin].append(run)
        following, merged = arrived.following, []
        for runs in bins.values():
            while len(due := _alike(runs)) >= TIER:
                taken = {run.run.number for run in due}
                runs = [run for run in runs if run.run.number not in taken]
                runs.append(_merged(due, following, self.space))
                following += 1
            merged += runs
        return ReportTable(self.space, tuple(merged), following)

    def kept(self, needed: Callable[[int, np.ndarray], np.ndarray]) -> "ReportTable":
        """Return the table of the runs that are `needed`.

        Parameters
        ----------
        needed : callable
            Takes a stream and the last microsecond of the bin of each of its runs (R,); returns bool of shape (R,).
        """
        known = self._of_streams.items()
        runs = [run for stream, of in known for run in compress(of.runs, needed(stream, of.last_us))]
        return self if len(runs) == len(self.runs) else replace(self, runs=tuple(runs))

    def within(self, reach: Reach, place: RegionPlace) -> "ReportTable":
        """Return a table with those of these reports alone that a region must know."""
        table = replace(self, runs=())
        for run in self.runs:
            rows = reach.reaching(run["bounds"], run.stream, place.region_map, place.number)
            if len(rows) == len(run):
                table = replace(table, runs=(*table.runs, run))
            else:
                table = table._and(run.bin, *run.without(rows, ()))
        return table

    def picked(self, runs: Sequence[ReportRun], chosen: Iterable[np.ndarray]) -> Picked:
        """Return reports, given their rows in each of some runs, as positions or as masks."""
        rows = [np.flatnonzero(some) if some.dtype == bool else some for some in chosen]
        part = np.repeat(np.arange(len(rows)), list(map(len, rows)))
        return Picked(runs, part, np.concatenate([np.empty(0, dtype=np.int64), *rows]), self.space)

    def taken_over(
        self, others: Iterable["ReportTable"], reach: Reach, place: RegionPlace, streams: Collection[int] | None = None
    ) -> "ReportTable":
        """Return a table that also has what a region must know of the reports in other regions.

        These are also reports that lie elsewhere and were sent to the other regions because they reach into them: the
        region in which they lie may have told all of its pairs, and may have dropped them.

        Parameters
        ----------
        others : iterable of ReportTable
            Of the other regions.
        reach : Reach
        place : RegionPlace
        streams : collection of int, optional
            Only reports of these.
        """
        table = self
        for other in others:
            new = table
            for run in other.runs:
                if streams is None or run.stream in streams:
                    rows = reach.reaching(run["bounds"], run.stream, place.region_map, place.number)
                    new = new._and(run.bin, *run.without(rows, table.of(run.stream)))
            table = table.followed(replace(new, runs=new.runs[len(table.runs) :]))
        return table


def _unknown(key: np.ndarray, name: np.ndarray, time_us: np.ndarray, runs: Sequence[ReportRun]) -> np.ndarray:
    """Return the rows of reports that no run has, given their keys, names and times: int64, ascending."""
    rows = np.arange(len(key))
    if not len(key):
        return rows
    oldest, newest = time_us.min(), time_us.max()
    for run in runs:
        oldest_us, newest_us = run.period_us
        # The same report has the same time, so few runs are looked at.
        if newest_us < oldest or oldest_us > newest:
            continue
        place = np.flatnonzero((time_us[rows] >= oldest_us) & (time_us[rows] <= newest_us))
        if len(place):
            rows = np.delete(rows, place[run.holds(key[rows[place]], name[rows[place]])])
    return rows


def _alike(runs: Sequence[ReportRun]) -> list[ReportRun]:
    """Return the smallest runs of about the same size."""
    levels: defaultdict[int, list[ReportRun]] = defaultdict(list)
    for run in runs:
        levels[(len(run).bit_length() - 1) // 2].append(run)
    due = (alike for _, alike in sorted(levels.items()) if len(alike) >= TIER)
    return next((alike for alike in due if sum(map(len, alike)) <= MOST_MERGED), [])


def _merged(runs: Sequence[ReportRun], number: int, space: Space) -> ReportRun:
    """Return runs of a bin as one."""
    key = np.concatenate([run.run.key for run in runs])
    order = np.argsort(key, kind="stable")
    columns = {}
    for name, like in no_columns(space).items():
        parts = [run[name] for run in runs]
        whole = np.concatenate(parts) if isinstance(like, np.ndarray) else pa.concat_arrays(parts)
        columns[name] = _taken(whole, order)
    return ReportRun(*runs[0].bin, Run(number, key[order], columns))


def _taken(column: Column, rows: np.ndarray) -> Column:
    # Of boxes, `column[rows]` takes three times as long as this.
    return np.take(column, rows, axis=0) if isinstance(column, np.ndarray) else column.take(pa.array(rows))


def _has_values(column: pa.Array) -> bool:
    return column.null_count < len(column)
