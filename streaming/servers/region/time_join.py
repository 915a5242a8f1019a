"""Joins over event time in a region: the reports that wait for partners, and the pairs that they make.

A report is sent to the region where it lies, and to all regions into which it reaches for partners. Each pair is found
in every region that knows both reports, and told by one of them (`Meetings.tellers`).

References
----------
Li et al., "Distributed join query method for large-scale spatial data streams", 2023: SINLJ (algorithm 2), the regions
to which reports are sent (algorithm 3), BSINLJ (algorithm 4).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array, bounds_of
from streaming.operators.failures import Failures
from streaming.operators.stream_join import Meetings
from streaming.operators.time_joins import IntervalJoin, TimeJoin, Times, WindowJoin, too_late
from streaming.operators.watermarks import NEVER_US, Progress, complete_until
from streaming.results import ENTERED, MOVED, result_schema
from streaming.servers.answers.tuples import Results
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.region.reports import Picked, ReportTable, reports_schema
from streaming.servers.region.stream_join import RegionPlace
from streaming.spaces import Space


@dataclass(frozen=True)
class Waiting:
    """How far a join over event time is.

    Parameters
    ----------
    since : int
        The turn from which on reports count: when the query was registered.
    since_us : int
        When that was, by the engine's clock.
    watermark_us : int
        The event time up to which both streams are complete.
    """

    since: int
    since_us: int
    watermark_us: int = NEVER_US


@dataclass(frozen=True)
class TimeJoins:
    """State of a region's joins over event time.

    Parameters
    ----------
    reports : ReportTable
    queries : mapping of int to Waiting
    turn : int
        The number of micro-batches that it has seen.
    """

    reports: ReportTable
    queries: Mapping[int, Waiting] = field(default_factory=dict)
    turn: int = 0

    @classmethod
    def empty(cls, space: Space, following: int = 0) -> "TimeJoins":
        """Return the state before the first report; the number of the first run is `following`."""
        return cls(ReportTable(space, following=following))


def step(
    was: TimeJoins,
    reports: pa.Table,
    homes: Sequence[Mapping[int, Progress]],
    control: ControlStep,
    place: RegionPlace,
) -> tuple[TimeJoins, Results]:
    """Join the reports of a micro-batch with each other and with those that wait.

    Parameters
    ----------
    was : TimeJoins
    reports : pyarrow.Table
        With `reports_schema`, the reports of each home server in the order of arrival.
    homes : sequence of mapping
        How far each home server is with each stream after the batch.
    control : ControlStep
    place : RegionPlace

    Returns
    -------
    state : TimeJoins
    results : Results
        One ``+`` for each pair; for window joins, one for each window that has the pair.
    """
    joins, turn = control.after.time_joins, was.turn + 1
    waiting = {query: _waiting(was, query, turn, control) for query in joins}
    failures, tables, after = Failures(), [result_schema(control.after.space).empty_table()], {}
    accepted, late = _on_time(reports, joins, waiting, failures)
    arrived = was.reports.arrived(accepted, _bins(joins.values()), turn)
    whole = was.reports.followed(arrived)
    for query, join in joins.items():
        began = perf_counter()
        known = waiting[query]
        until_us = complete_until(
            homes, (join.stream, join.partner_stream), known.since_us, control.now_us, join.idle_us
        )
        until_us = max(known.watermark_us, until_us - join.lateness_us)
        evaluation = _Evaluation(query, join, known, control.after.space, place, failures)
        if isinstance(join, WindowJoin):
            tables += evaluation.windows(whole, until_us)
        elif isinstance(join, IntervalJoin):
            tables += evaluation.intervals(was.reports, arrived)
        after[query] = replace(known, watermark_us=until_us)
        failures.charge(np.array([query]), np.array([perf_counter() - began]))
    rows = pa.concat_tables(tables)
    dropped = control.applied.dropped
    kept = whole.without(lambda run: run.stream in dropped or _done(run, joins, after))
    counters = {"results": rows.num_rows, "reports": len(kept), "late": late}
    none = result_schema(control.after.space).empty_table()
    told = Results(rows, none, counters, failures.errors, seconds=failures.seconds)
    return TimeJoins(kept, after, turn), told


def _waiting(was, query, turn, control):
    """Return how far a query is: one that is new or edited begins now."""
    if query in was.queries and query not in control.applied.changed:
        return was.queries[query]
    return Waiting(turn, control.now_us)


def _bins(joins: Iterable[TimeJoin]) -> dict[int, int]:
    """Return how long a bin is by stream: as the shortest one that a join asks for."""
    bins: dict[int, int] = {}
    for join in joins:
        for stream in (join.stream, join.partner_stream):
            bins[stream] = min(bins.get(stream, join.bin_us), join.bin_us)
    return bins


def _on_time(reports, joins, waiting, failures):
    """Return the reports that some join can use, and how many of the region's own came too late, for all joins."""
    stream, own = (reports[name].to_numpy() for name in ("stream", "own"))
    times = Times(reports["time_us"].to_numpy(), reports["seen_us"].to_numpy())
    wanted, count = np.zeros(len(stream), dtype=bool), 0
    for query, join in joins.items():
        mine = ((stream == join.stream) | (stream == join.partner_stream)) & join.covers(times.time_us)
        early = join.on_time(times, waiting[query].watermark_us)
        wanted |= mine & early
        late = mine & ~early & (own != 0)
        if late.any():
            count += int(late.sum())
            behind_us = int((times.seen_us - times.time_us)[late].max())
            failures.note(np.array([query]), too_late(join, int(late.sum()), behind_us))
    return reports if wanted.all() else reports.filter(pa.array(wanted)), count


def _done(run, joins, waiting):
    """Tell whether no join needs the reports of a run any more."""
    for query, join in joins.items():
        for partner, stream in enumerate((join.stream, join.partner_stream)):
            if run.stream == stream and join.needed_us(run.last_us, bool(partner)) > waiting[query].watermark_us:
                return False
    return True


@dataclass(frozen=True)
class _Evaluation:
    """A join over event time in a micro-batch."""

    query: int
    join: Any
    known: Waiting
    space: Space
    place: RegionPlace
    failures: Failures

    def windows(self, reports: ReportTable, until_us: int) -> Iterator[pa.Table]:
        """Yield the pairs of each window that is complete now."""
        join, after_us = self.join, self.known.watermark_us
        if until_us <= after_us:
            return
        sides = [reports.of(stream) for stream in (join.stream, join.partner_stream)]
        due = (join.due(*_bins_of(runs), after_us, until_us) for runs in sides)
        for start_us in np.intersect1d(*due).tolist():
            both = sides[0] if join.itself else [*sides[0], *sides[1]]
            runs = [run for run in both if run.first_us < start_us + join.size_us and run.last_us >= start_us]
            picked = reports.picked(runs, [self._inside(run, start_us) for run in runs])
            stream = picked.elements.stream
            left, right = (np.flatnonzero(stream == side) for side in (join.stream, join.partner_stream))
            yield self._told(picked, self._pairs(picked, left, right), start_us)

    def _inside(self, run, start_us):
        """Tell which reports of a run are in the window, came before it was complete, and count for the query."""
        inside = (run["time_us"] >= start_us) & (run["time_us"] < start_us + self.join.size_us)
        return inside & self.join.in_time(run.times, start_us) & (run["turn"] >= self.known.since)

    def intervals(self, waited: ReportTable, arrived: ReportTable) -> Iterator[pa.Table]:
        """Yield the pairs of the reports that have arrived, with each other and with those that waited."""
        join = self.join
        new = [self._usable(arrived, stream) for stream in (join.stream, join.partner_stream)]
        if not any(len(side) for side in new):
            return
        old = [self._near(waited, new[1 - partner], bool(partner)) for partner in (0, 1)]
        chosen: dict[int, np.ndarray] = {}
        runs = (*waited.runs, *arrived.runs)
        position = {run.run.number: place for place, run in enumerate(runs)}
        for run, rows in [*old[0], *old[1], *_by_run(new[0]), *_by_run(new[1])]:
            number = position[run.run.number]
            chosen[number] = np.union1d(chosen.get(number, np.empty(0, dtype=np.int64)), rows)
        order = sorted(chosen)
        picked = waited.picked([runs[place] for place in order], [chosen[place] for place in order])
        fresh = np.array([place >= len(waited.runs) for place in order], dtype=bool)[picked.part]
        stream = picked.elements.stream
        left, right = (stream == side for side in (join.stream, join.partner_stream))
        found = [
            self._pairs(picked, np.flatnonzero(left & fresh), np.flatnonzero(right)),
            self._pairs(picked, np.flatnonzero(left & ~fresh), np.flatnonzero(right & fresh)),
        ]
        pairs, time_us = Meetings.together(found), picked.column("time_us")
        pairs = pairs.take(join.within(time_us[pairs.row], time_us[pairs.partner]))
        yield self._told(picked, pairs, None)

    def _usable(self, reports, stream):
        """Return the reports of a stream that came in time, and that count for the query."""
        runs = reports.of(stream)
        return reports.picked(runs, [self._counts(run) for run in runs])

    def _counts(self, run):
        return self.join.on_time(run.times, self.known.watermark_us) & (run["turn"] >= self.known.since)

    def _near(self, waited, others, partner):
        """Return the reports that waited and may match others, by run; with `partner`, those of the second stream."""
        join, found = self.join, []
        if not len(others):
            return found
        time_us, bounds = others.column("time_us"), others.column("bounds")
        reach = join.reach(bounds) if partner else join.about(bounds)
        lower_us, upper_us = (join.lower_us, join.upper_us) if partner else (-join.upper_us, -join.lower_us)
        for run in waited.of(join.partner_stream if partner else join.stream):
            close = np.flatnonzero((time_us + lower_us <= run.last_us) & (time_us + upper_us >= run.first_us))
            if len(close):
                at, row = run.index(join, partner).meeting(reach[close])
                apart_us = run["time_us"][row] - time_us[close[at]]
                keep = (apart_us >= lower_us) & (apart_us <= upper_us) & (run["turn"][row] >= self.known.since)
                keep &= join.on_time(Times(run["time_us"][row], run["seen_us"][row]), NEVER_US)
                found.append((run, np.unique(row[keep])))
        return found

    def _pairs(self, picked: Picked, left, right) -> Meetings:
        failed = Failures()
        found = self.join.pairs(picked.elements, picked.column("key_hash"), left, right, failed)
        self.failures.add(failed, np.array([self.query]))
        return found

    def _told(self, picked: Picked, pairs: Meetings, window_us: int | None) -> pa.Table:
        """Return the pairs that this region tells, as result tuples."""
        pairs = pairs.take(self.join.unmirrored(pairs, picked.column("key_hash")))
        mine = pairs.tellers(picked.column("bounds"), self.place.region_map) == self.place.number
        return _rows(self.query, picked, pairs.take(mine), window_us, self.space)


def _bins_of(runs):
    """Return the first and the last microsecond of the bins of runs."""
    return np.array([(run.first_us, run.last_us) for run in runs], dtype=np.int64).reshape(-1, 2).T


def _by_run(picked):
    return [(run, picked.row[picked.part == place]) for place, run in enumerate(picked.runs)]


def _rows(query, picked, pairs, window_us, space):
    """Return pairs as result tuples."""
    count, schema = len(pairs.row), result_schema(space)
    if not count:
        return schema.empty_table()
    one, other = picked.cold(pairs.row), picked.cold(pairs.partner)
    time_us, key_hash, bounds = (picked.column(name) for name in ("time_us", "key_hash", "bounds"))
    columns = {
        "query": np.full(count, query),
        "sign": np.full(count, ENTERED, dtype=np.int8),
        "reason": np.full(count, MOVED, dtype=np.int8),
        "key": one["key"],
        "key_hash": key_hash[pairs.row],
        "time_us": time_us[pairs.row],
        "bounds": bounds_array(bounds[pairs.row]),
        "properties": one["properties"],
        "partner": other["key"],
        "partner_hash": key_hash[pairs.partner],
        "partner_properties": other["properties"],
        "distance": pa.array(pairs.distance, from_pandas=True),
        "partner_time_us": time_us[pairs.partner],
        "partner_bounds": bounds_array(bounds[pairs.partner]),
        "window_us": pa.nulls(count, pa.int64()) if window_us is None else np.full(count, window_us),
    }
    return pa.table([columns.get(field.name, pa.nulls(count, field.type)) for field in schema], schema=schema)


def divided(states: Sequence[TimeJoins], place: RegionPlace, before: Registry, following: int) -> TimeJoins:
    """Return the state of a region, made of those of all regions under another region map.

    Parameters
    ----------
    states : sequence of TimeJoins
        Of all regions under the map before. They have seen the same micro-batches.
    place : RegionPlace
        The region, and the map from now on.
    before : Registry
        As the batch before left it.
    following : int
        The number of the first run.
    """
    space, reach = before.space, before.report_reach
    tables = [reports_schema(space).append(pa.field("turn", pa.int64())).empty_table()]
    for state in states:
        for reports in state.reports.own():
            bounds, stream = bounds_of(reports["bounds"]), reports["stream"].to_numpy()
            met = reach.regions(bounds, stream, place.region_map)[:, place.number]
            own = place.region_map.region_of(bounds) == place.number
            at = reports.schema.get_field_index("own")
            reports = reports.set_column(at, reports.schema.field(at), pa.array(own.astype(np.int8)))
            tables.append(reports.filter(pa.array(met)).cast(tables[0].schema))
    reports = pa.concat_tables(tables)
    bins = _bins(before.running.time_joins.joins.values())
    table = ReportTable(space, following=following).arrived(reports, bins, reports["turn"].to_numpy())
    return TimeJoins(table, states[0].queries, states[0].turn)
