"""Joins over event time in a region: the reports that wait for partners, and the pairs that they make.

A report is sent to the region where it lies. Those of the driving stream are also sent to all regions into which they
reach for partners. Each pair is found in every region that knows both reports, and told by one of them
(`TimeJoin.tellers`).

References
----------
Li et al., "Distributed join query method for large-scale spatial data streams", 2023: SINLJ (algorithm 2), the regions
to which reports are sent (algorithm 3), BSINLJ (algorithm 4).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_of
from streaming.operators.allowance import A_LOOK, SAMPLE, pieces
from streaming.operators.failures import LATE, Failures
from streaming.operators.features import IndexedBoxes
from streaming.operators.meetings import Meetings
from streaming.operators.region_map import RegionMap
from streaming.operators.time_joins import IntervalJoin, ReportTimes, TimeJoin, WindowJoin, too_late
from streaming.operators.watermarks import LONG_AGO_US, Progress, complete_until
from streaming.results import result_schema
from streaming.servers.answers.tuples import Results
from streaming.servers.control.border import refuse
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.region.place import RegionPlace
from streaming.servers.ways.time_joins.ended_windows import EndedWindow, redivided
from streaming.servers.ways.time_joins.pairing import Pairing
from streaming.servers.ways.time_joins.reports import Picked, ReportRun, ReportTable
from streaming.servers.ways.time_joins.windows import WindowSlices, behind, budget, sliced
from streaming.spaces import Space

# For so many reports that wait there is room, at most; `windows.budget` bounds what is looked at in most batches.
MOST_WAITING = 5_000


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
    ended : tuple of EndedWindow
        The windows up to there of which some pairs are not told yet, in the order of time.
    """

    since: int
    since_us: int
    watermark_us: int = LONG_AGO_US
    ended: tuple[EndedWindow, ...] = ()


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
        One ``+`` for each pair; for window joins, one for each window that has the pair. The counter ``unjoined`` says
        how many reports of windows that have ended are left: the next step goes on with them.
    """
    joins, turn = control.after.time_joins, was.turn + 1
    waiting = {query: _waiting(was, query, turn, control) for query in joins}
    space, owners = control.after.space, control.after.columns.owners_of
    failures, in_windows = _failures(was, joins, bounds_of(reports["bounds"]), place)
    accepted, late = _on_time(reports, joins, waiting, place, failures)
    arrived = was.reports.arrived(accepted, _bins(joins.values()), turn)
    whole = was.reports.followed(arrived)
    tables, slices = [result_schema(space).empty_table()], dict[int, WindowSlices]()
    ended: dict[int, list[EndedWindow]] = {}
    for query, join in failures.while_there_is_room(joins.items()):
        began, known = perf_counter(), waiting[query]
        until_us = _complete(join, known, homes, control.now_us)
        if isinstance(join, WindowJoin):
            slices[query] = WindowSlices(Pairing(query, join, space, place, in_windows), whole, known.since)
            ended[query] = [*known.ended, *slices[query].ended(known.watermark_us, until_us, turn)]
        elif isinstance(join, IntervalJoin):
            pairing = Pairing(query, join, space, place, failures)
            tables.append(_Intervals(pairing, known.since, known.watermark_us).rows(was.reports, arrived))
        waiting[query] = replace(known, watermark_us=until_us)
        failures.charge(np.array([query]), np.array([perf_counter() - began]))
    # There are about as many tasks as home servers.
    shared = place.region_map.regions / max(1, len(homes))
    most = budget(accepted["stream"].to_numpy(), (one.pairing.join for one in slices.values()), shared)
    for query, rows, seconds in () if failures.alone else sliced(slices, ended, most, _owners(slices, control), turn):
        tables.append(rows)
        failures.charge(np.array([query]), np.array([seconds]))
    in_windows.refused |= {query: why for query, windows in ended.items() if (why := behind(windows))}
    refuse(failures.settled(owners) | in_windows.settled(owners))
    after = {query: replace(known, ended=tuple(ended.get(query, ()))) for query, known in waiting.items()}
    dropped = control.applied.dropped
    kept = whole.kept(lambda stream, last_us: _needed(stream, last_us, joins, after) & (stream not in dropped))
    unjoined = sum(slices[query].left(windows) for query, windows in ended.items())
    counters = {"reports": len(kept), "late": late, "unjoined": unjoined}
    return TimeJoins(kept, after, turn), _results(pa.concat_tables(tables), counters, failures)


def _results(rows: pa.Table, counters: dict[str, int], failures: Failures) -> Results:
    counters = {"results": rows.num_rows} | counters
    return Results(rows, rows[:0], counters, failures.errors, seconds=failures.seconds, unused=failures.unused)


def _owners(slices: Iterable[int], control: ControlStep) -> dict[int, int]:
    """Return for whom queries count, each for one owner."""
    queries = list(slices)
    of, owner = control.after.columns.owners_of(np.array(queries, dtype=np.int64))
    return {queries[place]: number for place, number in sorted(zip(of.tolist(), owner.tolist(), strict=True))[::-1]}


def _complete(join: TimeJoin, known: Waiting, homes: Sequence[Mapping[int, Progress]], now_us: int) -> int:
    """Return the event time up to which both streams of a join are complete, which never falls."""
    streams = join.stream, join.partner_stream
    until_us = complete_until(homes, streams, known.since_us, now_us, join.idle_us)
    return max(known.watermark_us, until_us - join.lateness_us)


def _waiting(was: TimeJoins, query: int, turn: int, control: ControlStep) -> Waiting:
    """Return how far a query is: one that is new or edited begins now."""
    if query in was.queries and query not in control.applied.changed:
        return was.queries[query]
    return Waiting(turn, control.now_us)


def _failures(
    was: TimeJoins, joins: Mapping[int, TimeJoin], bounds: np.ndarray, place: RegionPlace
) -> tuple[Failures, Failures]:
    """Return the failures of interval joins and of window joins, which have rooms of their own.

    Windows join reports that wait when they end, and no report may come then. `bounds` are those of the reports that
    came.
    """
    waiting = min(len(was.reports), MOST_WAITING) if any(isinstance(join, WindowJoin) for join in joins.values()) else 0
    usual = place.allowance_for_elements(bounds)
    failures, in_windows = Failures(usual), Failures(usual.with_known(waiting))
    in_windows.errors = failures.errors
    return failures, in_windows


def _bins(joins: Iterable[TimeJoin]) -> dict[int, int]:
    """Return how long a bin is by stream: as the shortest one that a join asks for."""
    bins: dict[int, int] = {}
    for join in joins:
        for stream in (join.stream, join.partner_stream):
            bins[stream] = min(bins.get(stream, join.bin_us), join.bin_us)
    return bins


def _on_time(
    reports: pa.Table,
    joins: Mapping[int, TimeJoin],
    waiting: Mapping[int, Waiting],
    place: RegionPlace,
    failures: Failures,
) -> tuple[pa.Table, int]:
    """Return the reports that some join can use, and how many of the region's own came too late, for all joins."""
    stream = reports["stream"].to_numpy()
    times = ReportTimes(reports["time_us"].to_numpy(), reports["seen_us"].to_numpy())
    wanted, count = np.zeros(len(stream), dtype=bool), 0
    for query, join in joins.items():
        mine = ((stream == join.stream) | (stream == join.partner_stream)) & join.covers(times.time_us)
        early = join.on_time(times, waiting[query].watermark_us)
        wanted |= mine & early
        late = np.flatnonzero(mine & ~early)
        if len(late):  # those that lie elsewhere, and were sent because they reach into the region, are counted there
            late = late[place.region_map.keeps(place.number, bounds_of(reports["bounds"])[late])]
        if len(late):
            count += len(late)
            behind_us = int((times.seen_us - times.time_us)[late].max())
            failures.leave(np.array([query]), LATE, too_late(join, behind_us), len(late))
    return reports if wanted.all() else reports.filter(pa.array(wanted)), count


def _needed(
    stream: int, last_us: np.ndarray, joins: Mapping[int, TimeJoin], waiting: Mapping[int, Waiting]
) -> np.ndarray:
    """Tell which bins of a stream, given their last microseconds (B,), a join still needs: bool of shape (B,)."""
    needed = np.zeros(len(last_us), dtype=bool)
    for query, join in joins.items():
        for partner, side in enumerate((join.stream, join.partner_stream)):
            if side == stream:
                needed |= join.needed_us(last_us, bool(partner)) > _told_us(join, waiting[query])
    return needed


def _told_us(join: TimeJoin, known: Waiting) -> int:
    """Return the event time up to which a join has told everything."""
    if not known.ended:
        return known.watermark_us
    assert isinstance(join, WindowJoin), "only window joins have windows that end"
    return known.ended[0].start_us + join.size_us - 1


@dataclass(frozen=True)
class _Intervals:
    """An interval join in a micro-batch."""

    pairing: Pairing
    since: int
    watermark_us: int

    @property
    def _join(self) -> IntervalJoin:
        join: IntervalJoin = self.pairing.join
        return join

    def rows(self, waited: ReportTable, arrived: ReportTable) -> pa.Table:
        """Return the pairs of the reports that have arrived, with each other and with those that waited."""
        join = self._join
        new = [self._usable(arrived, stream) for stream in (join.stream, join.partner_stream)]
        if not any(len(side) for side in new):
            return result_schema(self.pairing.space).empty_table()
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
            self.pairing.pairs(picked, np.flatnonzero(left & fresh), np.flatnonzero(right)),
            self.pairing.pairs(picked, np.flatnonzero(left & ~fresh), np.flatnonzero(right & fresh)),
        ]
        pairs, time_us = Meetings.together(found), picked.column("time_us")
        pairs = pairs.take(join.within(time_us[pairs.row], time_us[pairs.partner]))
        return self.pairing.rows(picked, self.pairing.own(picked, pairs), None)

    def _usable(self, reports: ReportTable, stream: int) -> Picked:
        """Return the reports of a stream that came in time, and that count for the query."""
        runs = reports.of(stream)
        return reports.picked(runs, [self._counts(run) for run in runs])

    def _counts(self, run: ReportRun) -> np.ndarray:
        return self._join.on_time(run.times, self.watermark_us) & (run["turn"] >= self.since)

    def _near(self, waited: ReportTable, others: Picked, partner: bool) -> list[tuple[ReportRun, np.ndarray]]:
        """Return the reports that waited and may match others, by run; with `partner`, those of the second stream."""
        join, found = self._join, list[tuple[ReportRun, np.ndarray]]()
        if not len(others):
            return found
        time_us, bounds = others.column("time_us"), others.column("bounds")
        reach = join.reach(bounds) if partner else join.about(bounds)
        lower_us, upper_us = (join.lower_us, join.upper_us) if partner else (-join.upper_us, -join.lower_us)
        of = join.partner_stream if partner else join.stream
        for run in (run for run in waited.of(of) if run["turn"].max() >= self.since):
            close = np.flatnonzero((time_us + lower_us <= run.last_us) & (time_us + upper_us >= run.first_us))
            rows = self._near_in(run, run.index(join, partner), reach[close], time_us[close], (lower_us, upper_us))
            if len(rows):
                found.append((run, rows))
        return found

    def _near_in(
        self, run: ReportRun, index: IndexedBoxes, reach: np.ndarray, time_us: np.ndarray, span_us: tuple[int, int]
    ) -> np.ndarray:
        """Return which reports of a run may match others, given what these reach, their times and the join's span."""
        counts, rows = index.counts(reach), np.zeros(len(run), dtype=bool)
        allowance, most = self.pairing.failures.allowance, int(counts.sum())
        self.pairing.has_room(A_LOOK)
        room, left = allowance.left, most
        for piece in pieces(counts, first=SAMPLE):
            if not self.pairing.goes_on(room - allowance.left, most - left, left):
                self.pairing.miss(left)
                break
            left -= int(counts[piece].sum())
            at, row = index.meeting(reach[piece])
            if self.pairing.has_room(len(row)):
                apart_us = run["time_us"][row] - time_us[piece][at]
                keep = (apart_us >= span_us[0]) & (apart_us <= span_us[1]) & (run["turn"][row] >= self.since)
                keep &= self._join.on_time(ReportTimes(run["time_us"][row], run["seen_us"][row]), LONG_AGO_US)
                rows[row[keep]] = True
        return np.flatnonzero(rows)


def _by_run(picked: Picked) -> list[tuple[ReportRun, np.ndarray]]:
    return [(run, picked.row[picked.part == place]) for place, run in enumerate(picked.runs)]


def divided(
    states: Sequence[TimeJoins], place: RegionPlace, before: Registry, after: Registry, following: int
) -> TimeJoins:
    """Return the state of a region, made of those of all regions before another map took force.

    Parameters
    ----------
    states : sequence of TimeJoins
        Of all regions under the map before. They have seen the same micro-batches.
    place : RegionPlace
        The region, and the map from now on.
    before, after : Registry
        As the batch before left it, and as it is from now on.
    following : int
        The number of the first run.
    """
    number = place.number
    table, others = ReportTable(after.space, following=following), dict(enumerate(states))
    if _has_part_of(before.region_map, place):
        table = others.pop(number).reports
        if (before.region_map.cells[number] != place.region_map.cells[number]).any():
            table = table.within(after.report_reach, place)
    table = table.taken_over([state.reports for state in others.values()], after.report_reach, place)
    queries = {query: _redivided(query, states, before, after) for query in states[0].queries}
    return TimeJoins(table, queries, states[0].turn)


def driven(states: Sequence[TimeJoins], place: RegionPlace, before: Registry, after: Registry) -> TimeJoins:
    """Return the state of a region in which other streams drive joins from now on; see `divided`.

    The reports of these streams are sent to each region that they reach. Copies of the streams that drove until now may
    stay until their bins are dropped: they change no pair. Reports of either stream are taken over, since a region may
    have dropped some that it needs now.
    """
    changed = before.by_partner ^ after.by_partner
    joins = after.running.groups.time_joins.joins
    streams = {stream for query, join in joins.items() if query in changed for stream in join.sides}
    others = [state.reports for number, state in enumerate(states) if number != place.number]
    own = states[place.number]
    table = own.reports.taken_over(others, after.report_reach, place, streams)
    queries = {query: _redivided(query, states, before, after) for query in own.queries}
    return TimeJoins(table, queries, own.turn)


def _has_part_of(known: RegionMap, place: RegionPlace) -> bool:
    """Tell whether a region had a part of its cell under another map."""
    if place.number >= known.regions:
        return False
    n, was, now = known.space.n, known.cells[place.number], place.region_map.cells[place.number]
    return bool((np.maximum(was[:n], now[:n]) < np.minimum(was[n:], now[n:])).all())


def _redivided(query: int, states: Sequence[TimeJoins], before: Registry, after: Registry) -> Waiting:
    """Return how far a query is in each region from now on."""
    drives, known = query in before.by_partner, [state.queries.get(query) for state in states]
    # A region in which the query failed has none.
    ended = [one.ended if one else () for one in known]
    left = redivided(ended, before.region_map, drives, drives == (query in after.by_partner))
    return replace(next(one for one in known if one), ended=left)
