"""The last believed report of each object, its *fix*, as a home server knows it for queries about tracks.

What is believed depends on the speed that a query allows. So there is a fix for each object and *group*: a stream, and
a speed. Reports are taken in the order in which they come. One that is older than another report of its object is too
late, and one that has the same time repeats it; neither is looked at. So what is believed does not depend on where
micro-batches are cut.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array, bounds_of, whole_column
from streaming.operators.beliefs import ANEW, DOUBTED, Beliefs, believed
from streaming.operators.elements import Elements
from streaming.operators.runs import expand, first_of_runs, order_of_hashes
from streaming.operators.tracks import Legs, places_of
from streaming.servers.answers.names import names_of
from streaming.servers.elements import taken, tracked_schema
from streaming.servers.sorted_runs import Column, SortedRuns
from streaming.spaces import Space

# What is known of an object besides its fix; see `Beliefs`.
_KNOWN: dict[str, Any] = {"group": np.int64, "seen_us": np.int64, "doubted": np.int64, "doubted_us": np.int64}
_KNOWN |= {"doubted_lon": np.float64, "doubted_lat": np.float64}


def no_fixes(space: Space) -> dict[str, Column]:
    """Return the columns of fixes, without rows: those of the report, and what is known besides."""
    columns = {name: np.empty(0, dtype=kind) for name, kind in _KNOWN.items()}
    return columns | columns_of(tracked_schema(space).empty_table())


def columns_of(table: pa.Table) -> dict[str, Column]:
    """Return a table as columns, as sorted runs have them."""
    return {name: _column(table[name]) for name in table.schema.names}


def _column(column: pa.ChunkedArray) -> Column:
    kind = column.type
    if pa.types.is_fixed_size_list(kind):
        return bounds_of(column)
    return column.to_numpy() if pa.types.is_integer(kind) else whole_column(column)


@lru_cache(maxsize=64)
def _names(space: Space) -> tuple[str, ...]:
    return tuple(tracked_schema(space).names)


def reports_of(columns: dict[str, Column], space: Space) -> pa.Table:
    """Return the reports of fixes, with `elements.tracked_schema`."""
    schema = tracked_schema(space)
    found = {name: bounds_array(columns[name]) if name == "bounds" else columns[name] for name in schema.names}
    return pa.table(found, schema=schema)


def group_number(stream: int, fastest_m_s: float) -> int:
    """Return the number that stands for a group."""
    speed = np.array([fastest_m_s]).view(np.int64)
    return int(names_of(np.array([stream], dtype=np.int64), speed)[0])


@dataclass(frozen=True)
class FixChanges:
    """What the reports of a micro-batch change.

    Parameters
    ----------
    fixes : SortedRuns
    legs : Legs
    table : pyarrow.Table
        The reports of the legs, with `elements.tracked_schema`.
    name : ndarray of int64, shape (T,)
        The objects that have a leg, by `names_of` their groups; T objects in any order.
    group, key_hash : ndarray of int64, shape (T,)
        The position of the group, and the object.
    first, count : ndarray of int64, shape (T,)
        Which legs each object has.
    doubted, late : ndarray of int64, shape (groups,)
        How many reports were not believed, and how many came too late.
    """

    fixes: SortedRuns
    legs: Legs
    table: pa.Table
    name: np.ndarray
    group: np.ndarray
    key_hash: np.ndarray
    first: np.ndarray
    count: np.ndarray
    doubted: np.ndarray
    late: np.ndarray

    @property
    def are_new(self) -> np.ndarray:
        """Whether each object had no fix before the micro-batch, bool of shape (T,)."""
        return self.legs.before[self.first] < 0


@dataclass(frozen=True)
class _FixGroup:
    """The same of one group; rows of reports are positions in the batch, then behind them in `prior`."""

    put: tuple[np.ndarray, dict[str, Column], int]
    rows: np.ndarray
    before: np.ndarray
    prior: pa.Table
    linked: np.ndarray
    key_hash: np.ndarray
    name: np.ndarray
    count: np.ndarray
    doubted: int
    late: int


def advanced(fixes: SortedRuns, elements: pa.Table, groups: Sequence[tuple[int, float]], space: Space) -> FixChanges:
    """Take the reports of a micro-batch.

    Parameters
    ----------
    fixes : SortedRuns
        With the columns of `no_fixes`, by `names_of` group and object.
    elements : pyarrow.Table
        With `elements.tracked_schema`, in the order of arrival.
    groups : sequence of (int, float)
        As `TrackQueries` has them.
    space : Space
    """
    stream = elements["stream"].to_numpy()
    parts = [_of_group(fixes, elements, np.flatnonzero(stream == one[0]), one, space) for one in groups]
    for name, columns, more in (part.put for part in parts):
        fixes = fixes.put(name, columns, name[:0], more)
    rows, tables, before, offset = [], [], [], elements.num_rows
    table = pa.concat_tables([tracked_schema(space).empty_table(), elements, *(part.prior for part in parts)])
    for part in parts:
        # A report before that came in an earlier batch is a row of `prior`.
        earlier = part.before >= elements.num_rows
        before.append(np.where(earlier, part.before - elements.num_rows + offset, part.before))
        rows.append(part.rows)
        tables.append(part.prior)
        offset += part.prior.num_rows
    count = _together([part.count for part in parts])
    group = np.repeat(np.arange(len(parts)), [len(part.count) for part in parts])
    linked = _together([part.linked for part in parts]).astype(bool)
    return FixChanges(
        fixes,
        Legs(elements_of(table), table["time_us"].to_numpy(), _together(rows), _together(before), linked),
        table,
        name=_together([part.name for part in parts]),
        group=group,
        key_hash=_together([part.key_hash for part in parts]),
        first=np.cumsum(count) - count,
        count=count,
        doubted=np.array([part.doubted for part in parts], dtype=np.int64),
        late=np.array([part.late for part in parts], dtype=np.int64),
    )


def elements_of(table: pa.Table) -> Elements:
    """Return reports, with `elements.tracked_schema`, as operators see them."""
    return Elements(table["stream"].to_numpy(), bounds_of(table["bounds"]), lambda rows: table.take(pa.array(rows)))


def _together(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _of_group(
    fixes: SortedRuns, elements: pa.Table, rows: np.ndarray, group: tuple[int, float], space: Space
) -> _FixGroup:
    number, batch = group_number(*group), elements.num_rows
    key = elements["key_hash"].to_numpy()[rows]
    order = order_of_hashes(key)
    rows, key = rows[order], key[order]
    start = np.flatnonzero(first_of_runs(key))
    objects, heard = key[start], np.diff(np.r_[start, len(key)])
    name = names_of(np.full(len(objects), number), objects)
    prior, known = _prior(fixes, name, objects)
    seen_us = np.where(known, prior["seen_us"], -1)
    time_us = elements["time_us"].to_numpy()[rows]
    newest_us, last_us = _newest_before(seen_us, heard, time_us)
    taken_rows = np.flatnonzero(time_us > newest_us)
    of = expand(start, heard)[0]
    counts = np.bincount(of[taken_rows], minlength=len(objects))
    places = places_of(bounds_of(elements["bounds"]), space.n)[rows]
    outcome, beliefs = believed(
        _beliefs(prior, known, space), counts, time_us[taken_rows], places[taken_rows], group[1]
    )
    good = taken_rows[outcome != DOUBTED]
    count = np.bincount(of[good], minlength=len(objects))
    first = np.cumsum(count) - count
    reports = rows[good]
    # Where the report before each is: in the batch, or the fix of before.
    held = np.cumsum(known) - 1
    before = np.r_[np.full(1, -1), reports[:-1]][: len(reports)]
    some = count > 0
    before[first[some]] = np.where(known, batch + held, -1)[some]
    newest = np.where(some, np.r_[reports, 0][np.where(some, first + count - 1, 0)], batch + held)
    heard_us = elements["heard_us"].to_numpy()[rows]
    latest_us = np.maximum.reduceat(heard_us, start) if len(start) else heard_us
    latest_us = np.maximum(latest_us, np.where(known, prior["heard_us"], 0))
    told = reports_of({one: _chosen(column, np.flatnonzero(known)) for one, column in _reports(prior, space)}, space)
    columns = columns_of(taken(pa.concat_tables([elements, told]).combine_chunks(), newest))
    columns |= {"heard_us": latest_us, "group": np.full(len(objects), number), "seen_us": last_us}
    columns |= {"doubted": beliefs.doubted, "doubted_us": beliefs.doubted_us}
    columns |= {"doubted_lon": beliefs.doubted_place[:, 0], "doubted_lat": beliefs.doubted_place[:, 1]}
    by_name = np.argsort(name)
    put = name[by_name], {one: _chosen(column, by_name) for one, column in columns.items()}, int((~known).sum())
    linked = outcome[outcome != DOUBTED] != ANEW
    left = int((outcome == DOUBTED).sum()), int((time_us < newest_us).sum())
    return _FixGroup(put, reports, before, told, linked, objects[some], name[some], count[some], *left)


def _reports(columns: Mapping[str, Column], space: Space) -> list[tuple[str, Column]]:
    return [(name, columns[name]) for name in _names(space)]


def _chosen(column: Column, rows: np.ndarray) -> Column:
    return column[rows] if isinstance(column, np.ndarray) else column.take(pa.array(rows))


def _prior(fixes: SortedRuns, name: np.ndarray, objects: np.ndarray) -> tuple[dict[str, Column], np.ndarray]:
    """Return what is known of objects, with any values for those that are not, and which of them are known."""
    order = np.argsort(name)
    part, row = np.empty((2, len(name)), dtype=np.int64)
    part[order], row[order] = fixes.find(name[order])
    known = part >= 0
    found = fixes.take(part[known], row[known])
    place = np.where(known, np.cumsum(known) - 1, -1)
    if known.any():
        return {one: _chosen(column, np.maximum(place, 0)) for one, column in found.items()}, known
    return {one: _missing(column, len(objects)) for one, column in found.items()}, known


def _missing(column: Column, rows: int) -> Column:
    if isinstance(column, np.ndarray):
        return np.zeros((rows, *column.shape[1:]), dtype=column.dtype)
    return pa.nulls(rows, column.type)


def _beliefs(prior: Mapping[str, Column], known: np.ndarray, space: Space) -> Beliefs:
    place = places_of(prior["bounds"], space.n) if known.any() else np.zeros((len(known), 2))
    doubted = np.stack([prior["doubted_lon"], prior["doubted_lat"]], axis=1)
    times = np.where(known, prior["time_us"], -1), np.where(known, prior["doubted_us"], -1)
    return Beliefs(times[0], place, np.where(known, prior["doubted"], 0), times[1], doubted)


def _newest_before(seen_us: np.ndarray, count: np.ndarray, time_us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each report, the newest time of its object before it, and the newest of each object after all."""
    first = np.cumsum(count) - count
    of = np.repeat(np.arange(len(count)), count)
    place = np.arange(len(time_us)) + of + 1
    times = np.empty(len(time_us) + len(count), dtype=np.int64)
    times[place], times[first + np.arange(len(count))] = time_us, seen_us
    values, rank = np.unique(times, return_inverse=True)
    offset = np.repeat(np.arange(len(count)), count + 1) * max(1, len(values))
    newest = values[np.maximum.accumulate(offset + rank) - offset] if len(times) else times
    return newest[place - 1], newest[first + np.arange(len(count)) + count]


def without(fixes: SortedRuns, leaving: Callable[[dict[str, Column]], np.ndarray]) -> tuple[SortedRuns, dict]:
    """Return the fixes without those that `leaving` chooses, given columns of fixes, and these."""
    part, row = fixes.select(lambda run: leaving(dict(run.columns)))
    if not len(part):
        return fixes, fixes.take(part, row)
    return fixes.without(np.sort(fixes.keys(part, row)), newest=False), fixes.take(part, row)
