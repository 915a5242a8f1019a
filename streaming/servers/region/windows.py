"""Windows that have ended, and are joined in slices, so that no batch waits for a whole window.

The driving reports of a window are joined in the order of the runs, from south to north, some of them in each batch. A
batch looks at so many reports, not for so much time, since it must do the same when it runs again. All windows of all
queries share what a batch may look at, and the one that ended first comes first.

How far a window is joined is a key of that order (`reports.report_order`). So it does not matter that runs are merged
meanwhile. When the region map or the driving stream changes, each region begins its part of the window anew, and leaves
out the pairs that were told before: those below the position of the region that told them (`WindowProgress`).

References
----------
Li et al., "Distributed join query method for large-scale spatial data streams", 2023: SINLJ (algorithm 2).
L. Arge et al., "Scalable Sweeping-Based Spatial Join", VLDB 1998: a strip of both inputs fits where the whole does not.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import pyarrow as pa

from streaming.operators.boxes import in_plane, turns
from streaming.operators.features import IndexedBoxes
from streaming.operators.neighbours import may_meet
from streaming.operators.region_map import RegionMap
from streaming.operators.stream_join import Meetings
from streaming.operators.time_joins import ReportTimes, TimeJoin, WindowJoin
from streaming.servers.region.pairing import Pairing
from streaming.servers.region.report_order import PLACE_STEP, ordered_by, place_order, report_order
from streaming.servers.region.reports import Picked, ReportRun, ReportTable
from streaming.spaces import Space

# In a batch, a task looks at so many reports of windows that have ended, or each of its regions at `AHEAD` times as
# many as came in the meantime if that is more: otherwise it would fall behind. A pair that is told counts as much as
# `PAIR` reports, `MET` pairs whose boxes meet as much as a report, and a slice as much as `A_SLICE` before it looks at
# any: there may be very many windows with few reports each.
BUDGET, AHEAD, PAIR, A_SLICE = 60_000, 2, 24, 500
# So many driving reports are joined at once, about, or half of what a batch may look at if that is less, but at least
# the second number.
SLICE, LEAST_SLICE = 16_384, 1_024
# The first and the last position in the order of reports, which none of them has.
FIRST, END = 0, np.iinfo(np.int64).max
# Of a run, so many keys for each run there is are enough to find where a slice ends.
_SAMPLED = 8
MET = 16
# So many of the driving reports of a slice, at most about, tell how many pairs all of them may have; fewer, down to the
# second number, if they have more pairs than the third.
_ASKED, _FEW_ASKED, _PAIRS_ASKED = 512, 16, 1 << 17
# Indexed reports that are so many times as many as those that probe them are thinned out first.
_MANY = 4


@dataclass(frozen=True)
class WindowProgress:
    """What regions had told of a window when the region map or the driving stream changed.

    Parameters
    ----------
    region_map : RegionMap
        That was in force until then.
    partner_drives : bool
        Whether the partners drove the join until then.
    positions : tuple of int
        By region, up to which key of the driving reports it had told its pairs.
    """

    region_map: RegionMap
    partner_drives: bool
    positions: tuple[int, ...]

    def untold(self, join: TimeJoin, picked: Picked, pairs: Meetings) -> np.ndarray:
        """Tell which pairs were not told by then, bool of shape (P,)."""
        tellers = join.tellers(pairs, picked.column("bounds"), self.region_map, self.partner_drives)
        driving = pairs.partner if self.partner_drives else pairs.row
        names, bounds = (picked.column(name)[driving] for name in ("name", "bounds"))
        key = report_order(names, bounds, join.space)
        return key >= np.array(self.positions, dtype=np.int64)[tellers]


@dataclass(frozen=True)
class EndedWindow:
    """A window that has ended, of which some pairs are not told yet.

    Parameters
    ----------
    start_us : int
    turn : int
        The turn in which it ended. What comes later does not belong to it.
    position : int
        The pairs of driving reports with keys below it are told.
    earlier : tuple of WindowProgress
        What was told under other region maps, or by another driving stream.
    """

    start_us: int
    turn: int
    position: int = FIRST
    earlier: tuple[WindowProgress, ...] = ()


@dataclass(frozen=True)
class _Slice:
    """Driving reports up to a key, how many had to be looked at for them, how far they reach, and what may be there."""

    until: int
    looked: int
    driving: Picked
    reach: np.ndarray
    driven: Picked

    @functools.cached_property
    def _index(self) -> tuple[np.ndarray, IndexedBoxes]:
        """The driven reports that may be reached, and an index over them."""
        space, bounds = self.driven.space, self.driven.column("bounds")
        chosen = np.arange(len(bounds))
        if len(bounds) > _MANY * len(self.reach):
            few, near = in_plane(self.reach, space), np.zeros(len(bounds), dtype=bool)
            for turn in turns(space):
                near |= may_meet(in_plane(bounds, space) + np.tile(turn, 2), few)
            chosen = np.flatnonzero(near)
        return chosen, IndexedBoxes(bounds[chosen], space, sparse=True)

    def meeting(self, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of some of the boxes of `reach` and driven reports that meet, int64 each."""
        chosen, index = self._index
        if not len(chosen):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        at, other = index.meeting(boxes)
        return at, chosen[other]

    def pairs(self) -> tuple[int, int]:
        """Return about how many pairs there may be, and how many pairs were looked at to find that out."""
        asked = max(_FEW_ASKED, min(_ASKED, _PAIRS_ASKED // max(1, len(self.driven))))
        sample = self.reach[:: max(1, len(self.reach) // asked)]
        met = len(self.meeting(sample)[0])
        return met * len(self.reach) // len(sample), met


@dataclass(frozen=True)
class WindowSlices:
    """Joins the windows of one query, a slice at a time.

    Parameters
    ----------
    pairing : Pairing
    reports : ReportTable
    since : int
        The turn from which on reports count.
    """

    pairing: Pairing
    reports: ReportTable
    since: int

    @property
    def _join(self) -> WindowJoin:
        join: WindowJoin = self.pairing.join
        return join

    def ended(self, after_us: int, until_us: int, turn: int) -> list[EndedWindow]:
        """Return the windows that end behind `after_us`, up to `until_us`, where both streams may have reports."""
        if until_us <= after_us:
            return []
        bins = map(self.reports.bins, self._join.sides)
        one, other = (self._join.due(first_us, last_us, after_us, until_us) for first_us, last_us in bins)
        return [EndedWindow(start_us, turn) for start_us in np.intersect1d(one, other).tolist()]

    def left(self, windows: Sequence[EndedWindow]) -> int:
        """Return how many driving reports are left to be joined in windows, about: those of their bins."""
        stream, start_us = self._join.sides[0], np.array([window.start_us for window in windows], dtype=np.int64)
        begun = [window for window in windows if window.position != FIRST]
        told = sum(
            int(np.searchsorted(run.run.key, window.position)) for window in begun for run in self._runs(window, stream)
        )
        return self.reports.count(stream, start_us, start_us + self._join.size_us) - told

    def next(self, window: EndedWindow, most: int) -> tuple[pa.Table, EndedWindow, int]:
        """Join the next slice of a window.

        Parameters
        ----------
        window : EndedWindow
        most : int
            How many reports it should look at, at most about.

        Returns
        -------
        rows : pyarrow.Table
        window : EndedWindow
            With the position behind the slice, `END` if it was the last one.
        looked : int
            How many reports it has looked at, of both streams; a pair counts as `PAIR` reports.
        """
        size = min(SLICE, max(most // 2, LEAST_SLICE))
        part, asked = self._part(window, size), 0
        if len(part.driving):
            many, asked = part.pairs()
            if many > most // PAIR:
                # There is a crowd: so many fewer reports have as many pairs as a batch may look at.
                part = self._part(window, max(1, min(size, part.looked) * most // (PAIR * many)))
        after = replace(window, position=part.until)
        if not len(part.driving):
            return self.pairing.rows(part.driving, Meetings.none(self.pairing.space), None), after, part.looked
        picked, pairs, met = self._joined(part)
        for told in window.earlier:
            pairs = pairs.take(told.untold(self._join, picked, pairs))
        rows = self.pairing.rows(picked, pairs, window.start_us)
        looked = part.looked + len(part.driven) + PAIR * (len(picked) + rows.num_rows) + (asked + met) // MET
        return rows, after, looked

    def _part(self, window: EndedWindow, size: int) -> _Slice:
        """Return the next slice, of about so many driving reports."""
        space = self.pairing.space
        sides = [self._runs(window, stream) for stream in self._join.sides]
        until = _slice_end(sides[0], window.position, size)
        ends = (np.searchsorted(run.run.key, (window.position, until)).tolist() for run in sides[0])
        parts = [(start, stop) for start, stop in ends]
        driving = self._picked(window, sides[0], [[part] for part in parts])
        reach = self._join.reach(driving.column("bounds"))
        strips = [_met_by(run, reach, space) if len(driving) else [(0, 0)] for run in sides[1]]
        driven = self._picked(window, sides[1], strips)
        return _Slice(until, sum(stop - start for start, stop in parts), driving, reach, driven)

    def _runs(self, window: EndedWindow, stream: int) -> list[ReportRun]:
        return self.reports.between(stream, window.start_us, window.start_us + self._join.size_us)

    def _picked(
        self, window: EndedWindow, runs: Sequence[ReportRun], parts: Sequence[Sequence[tuple[int, int]]]
    ) -> Picked:
        """Return the reports in parts of runs that belong to a window."""
        rows = []
        for run, some in zip(runs, parts, strict=True):
            rows.append(np.concatenate([self._inside(window, run, *part) for part in some]))
        return self.reports.picked(runs, rows)

    def _inside(self, window: EndedWindow, run: ReportRun, start: int, stop: int) -> np.ndarray:
        """Return the rows of a run, from `start` on, that are in a window, came in time, and count for the query."""
        part = slice(start, stop)
        time_us, turn = run["time_us"][part], run["turn"][part]
        inside = (time_us >= window.start_us) & (time_us < window.start_us + self._join.size_us)
        inside &= self._join.in_time(ReportTimes(time_us, run["seen_us"][part]), window.start_us)
        return start + np.flatnonzero(inside & (turn >= self.since) & (turn <= window.turn))

    def _joined(self, part: _Slice) -> tuple[Picked, Meetings, int]:
        """Return the reports of a slice that have pairs, the pairs that this region tells, and how many boxes meet."""
        driving, driven = part.driving, part.driven
        at, other = part.meeting(part.reach)
        (one, at), (two, other) = (np.unique(side, return_inverse=True) for side in (at, other))
        run = np.r_[driving.part[one], len(driving.runs) + driven.part[two]]
        row = np.r_[driving.row[one], driven.row[two]]
        picked = Picked([*driving.runs, *driven.runs], run, row, self.pairing.space)
        other += len(one)
        row, partner = (other, at) if self._join.partner_drives else (at, other)
        return picked, self.pairing.own(picked, self.pairing.judged(picked, row, partner)), len(at)


def budget(stream: np.ndarray, joins: Iterable[WindowJoin], regions: float) -> int:
    """Return how many reports a region may look at in a batch.

    Parameters
    ----------
    stream : ndarray of int64, shape (N,)
        The streams of the reports that came.
    joins : iterable of WindowJoin
    regions : float
        How many regions a task runs, one after the other, on average.
    """
    came = dict(zip(*(column.tolist() for column in np.unique(stream, return_counts=True)), strict=True))
    # Each report is in so many windows of a join.
    due = sum(-(-j.size_us // j.slide_us) * sum(came.get(side, 0) for side in set(j.sides)) for j in joins)
    return max(int(BUDGET / max(1.0, regions)), AHEAD * due)


def sliced(
    slices: Mapping[int, WindowSlices], ended: dict[int, list[EndedWindow]], most: int
) -> Iterator[tuple[int, pa.Table, float]]:
    """Join as much of the windows that have ended as a batch may, the one that ended first at first.

    Parameters
    ----------
    slices : mapping of int to WindowSlices
        By query.
    ended : dict of int to list of EndedWindow
        By query, what is left to be joined. It is changed: windows that are told are removed.
    most : int
        How many reports may be looked at. At least one slice is joined.

    Yields
    ------
    query : int
    rows : pyarrow.Table
    seconds : float
        What it took.
    """
    order = [(window.turn, query, window.start_us) for query, windows in ended.items() for window in windows]
    for _, query, _ in sorted(order):
        window = ended[query][0]
        while window.position != END:
            if most <= 0:
                return
            began = perf_counter()
            rows, window, looked = slices[query].next(window, most)
            most -= looked + A_SLICE
            ended[query] = [window, *ended[query][1:]]
            yield query, rows, perf_counter() - began
        ended[query] = ended[query][1:]


def redivided(
    windows: Sequence[Sequence[EndedWindow]], region_map: RegionMap, partner_drives: bool, stays: bool
) -> tuple[EndedWindow, ...]:
    """Return the windows of a query that are left, for any region under another map or with another driving stream.

    Parameters
    ----------
    windows : sequence of sequence of EndedWindow
        What is left in each region until now. A region that lacks a window has told all of its pairs.
    region_map : RegionMap
        Until now.
    partner_drives : bool
        Until now.
    stays : bool
        Whether the same stream drives the join from now on.
    """
    positions: dict[int, list[int]] = {}
    known: dict[int, EndedWindow] = {}
    for region, some in enumerate(windows):
        for window in some:
            positions.setdefault(window.start_us, [END] * len(windows))[region] = window.position
            known[window.start_us] = window
    left = []
    for start_us, window in sorted(known.items()):
        told = WindowProgress(region_map, partner_drives, tuple(positions[start_us]))
        position = min(told.positions) if stays else FIRST
        left.append(EndedWindow(start_us, window.turn, position, (*window.earlier, told)))
    return tuple(left)


def _slice_end(runs: Sequence[ReportRun], position: int, size: int) -> int:
    """Return the key at which a slice ends that begins at a position: about `size` reports later, or `END`."""
    starts = [int(np.searchsorted(run.run.key, position)) for run in runs]
    if sum(len(run) - start for run, start in zip(runs, starts, strict=True)) <= size:
        return END
    step = max(1, size // (_SAMPLED * len(runs)))
    parts = [run.run.key[start : start + size + step : step][1:] for run, start in zip(runs, starts, strict=True)]
    # Each key stands for as many reports before it.
    keys = np.sort(np.concatenate(parts))
    return max(int(keys[min(size // step, len(keys)) - 1]), position + 1) if len(keys) else END


def _met_by(run: ReportRun, reach: np.ndarray, space: Space) -> list[tuple[int, int]]:
    """Return the parts of a run, from row to row, whose reports may meet some boxes in the dimension of the order."""
    axis = ordered_by(space)
    low, high = reach[:, axis].min(), reach[:, space.n + axis].max()
    parts: list[tuple[int, int]] = []
    for turn in np.unique(turns(space)[:, axis]):
        # One step of the order more on both sides is more than a turn may round.
        start = np.searchsorted(run.run.key, place_order(low + turn - run.widest[axis], space) - PLACE_STEP)
        stop = np.searchsorted(run.run.key, place_order(high + turn, space) + 2 * PLACE_STEP)
        parts.append((int(start), int(stop)))
    merged = [(0, 0)]
    for part in sorted(parts):
        if part[0] <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], part[1])
        else:
            merged.append(part)
    return merged
