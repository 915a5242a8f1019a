"""Windows that have ended, and are joined in slices, so that no batch waits for a whole window.

The driving reports of a window are joined in the order of the runs, from south to north, some of them in each batch. A
batch looks at so many reports, and tells so many pairs, not for so much time, since it must do the same when it runs
again. Whose queries have windows that are left share what a batch may do, and take turns in who begins; of the windows
of one, that which ended first comes first.

How far a window is joined is a key of that order: see `ended_windows`.

References
----------
Li et al., "Distributed join query method for large-scale spatial data streams", 2023: SINLJ (algorithm 2).
L. Arge et al., "Scalable Sweeping-Based Spatial Join", VLDB 1998: a strip of both inputs fits where the whole does not.
"""

import functools
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import pyarrow as pa

from streaming.language import gettext_noop, thousands
from streaming.operators.boxes import in_plane, turns
from streaming.operators.features import IndexedBoxes
from streaming.operators.meetings import Meetings
from streaming.operators.neighbours import may_meet
from streaming.operators.time_joins import ReportTimes, WindowJoin
from streaming.servers.ways.time_joins.ended_windows import END, FIRST, EndedWindow
from streaming.servers.ways.time_joins.pairing import Pairing
from streaming.servers.ways.time_joins.report_order import PLACE_STEP, ordered_by, place_order
from streaming.servers.ways.time_joins.reports import Picked, ReportRun, ReportTable
from streaming.spaces import Space

# In a batch, a task looks at so many reports of windows that have ended, or each of its regions at `AHEAD` times as
# many as came in the meantime if that is more: otherwise it would fall behind. `MET` pairs whose boxes meet count as
# much as a report, a pair that is told as much as `PAIR`, and a slice as much as `A_SLICE` before it looks at any:
# there may be very many windows with few reports each.
BUDGET, AHEAD, MET, PAIR, A_SLICE = 60_000, 2, 16, 12, 500
# It tells about so many pairs, however many there are: whoever sends and shows them has more work than who finds them.
TOLD = 1_200
# So many windows of a query may be left: those of a day that is replayed, if one begins every five seconds.
MOST_LEFT = 20_000
BEHIND = gettext_noop(
    "its windows end faster than their pairs can be told: %(count)s of them wait, and at most %(most)s may; make its "
    "distance or its area smaller, or have its windows begin less often (slide_s)"
)
# So many driving reports are joined at once, about, or half of what a batch may look at if that is less, but at least
# the second number.
SLICE, LEAST_SLICE = 16_384, 1_024
# Of a run, so many keys for each run there is are enough to find where a slice ends.
_SAMPLED = 8
# Driving reports of a slice are asked for their pairs, each time so many times as many as before, until they are so
# many, or have so many pairs: these tell how many pairs all of them have.
_MORE, _ASKED, _PAIRS_ASKED = 4, 512, 1_024
# Indexed reports that are so many times as many as those that probe them are thinned out first.
_MANY = 4


@dataclass(frozen=True)
class SliceBound:
    """What may be done yet.

    Parameters
    ----------
    reports : int
        How many may be looked at, at most about.
    pairs : int
        How many may be told, at most about.
    """

    reports: int
    pairs: int

    def __bool__(self) -> bool:
        return self.reports > 0 and self.pairs > 0

    def __sub__(self, done: "SliceBound") -> "SliceBound":
        return SliceBound(self.reports - done.reports, self.pairs - done.pairs)

    def shared(self, among: int) -> "SliceBound":
        """Return the share of one of some; as long as there is anything, everybody may do something."""
        return SliceBound(-(-self.reports // among), -(-self.pairs // among))


@dataclass(frozen=True)
class _Driven:
    """Reports that driving reports may reach, and how far these reach."""

    reports: Picked
    reach: np.ndarray

    @functools.cached_property
    def index(self) -> tuple[np.ndarray, IndexedBoxes]:
        """The reports that are near any of the driving ones, and an index over them."""
        space, bounds = self.reports.space, self.reports.column("bounds")
        chosen = np.arange(len(bounds))
        if len(bounds) > _MANY * len(self.reach):
            few, near = in_plane(self.reach, space), np.zeros(len(bounds), dtype=bool)
            for turn in turns(space):
                near |= may_meet(in_plane(bounds, space) + np.tile(turn, 2), few)
            chosen = np.flatnonzero(near)
        return chosen, IndexedBoxes(bounds[chosen], space, sparse=True)


@dataclass(frozen=True)
class _Slice:
    """Driving reports up to a key, how many had to be looked at for them, how far they reach, and what may be there."""

    until: int
    looked: int
    driving: Picked
    reach: np.ndarray
    driven: _Driven

    def meeting(self, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of some of the boxes of `reach` and driven reports that meet, int64 each."""
        chosen, index = self.driven.index
        if not len(chosen):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        at, other = index.meeting(boxes)
        return at, chosen[other]

    def pairs(self, most: int) -> tuple[int, int]:
        """Return about how many pairs there are, 0 if they are less than some, and how many were found to know it."""
        chosen, index = self.driven.index
        if not len(chosen) or index.counts(self.reach).sum() <= most:
            return 0, 0
        asked, met = 1, 0
        while True:
            sample = self.reach[:: max(1, len(self.reach) // asked)]
            found = len(self.meeting(sample)[0])
            met += found
            if found >= _PAIRS_ASKED or asked >= _ASKED or len(sample) == len(self.reach):
                return found * len(self.reach) // len(sample), met
            asked *= _MORE


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

    def next(self, window: EndedWindow, most: SliceBound) -> tuple[pa.Table, EndedWindow, SliceBound]:
        """Join the next slice of a window.

        Parameters
        ----------
        window : EndedWindow
        most : SliceBound
            What it may do.

        Returns
        -------
        rows : pyarrow.Table
        window : EndedWindow
            With the position behind the slice, `END` if it was the last one.
        done : SliceBound
            What it has done: how many reports of both streams it has looked at.
        """
        size = min(SLICE, max(most.reports // 2, LEAST_SLICE))
        part, looked, asked = self._part(window, size), 0, 0
        if len(part.driving):
            may = max(1, int(min(most.pairs, most.reports / PAIR)))
            many, asked = part.pairs(may)
            if many > self.pairing.failures.allowance.most and not self.pairing.has_room(many):
                # It would never come to its end, and what waits for it would fill the memory. The step is not used.
                return self._nothing(part), window, most
            if many > may:
                # There is a crowd: so many fewer reports have as many pairs as may be told.
                looked = part.looked
                part = self._part(window, max(1, min(size, part.looked) * may // many), part)
        after = replace(window, position=part.until)
        if not len(part.driving):
            return self._nothing(part), after, SliceBound(looked + part.looked + A_SLICE, 0)
        picked, pairs, met = self._joined(part)
        for told in window.earlier:
            pairs = pairs.take(told.untold(self._join, picked, pairs))
        rows = self.pairing.rows(picked, pairs, window.start_us)
        looked += part.looked + len(part.driven.reports) + A_SLICE
        looked += PAIR * (len(picked) + rows.num_rows) + (asked + met) // MET
        return rows, after, SliceBound(int(looked), rows.num_rows)

    def _nothing(self, part: _Slice) -> pa.Table:
        return self.pairing.rows(part.driving, Meetings.none(self.pairing.space), None)

    def _part(self, window: EndedWindow, size: int, larger: _Slice | None = None) -> _Slice:
        """Return the next slice, of about so many driving reports; what may be there is known of a larger one."""
        space = self.pairing.space
        sides = [self._runs(window, stream) for stream in self._join.sides]
        until = _slice_end(sides[0], window.position, size)
        ends = (np.searchsorted(run.run.key, (window.position, until)).tolist() for run in sides[0])
        parts = [(start, stop) for start, stop in ends]
        driving = self._picked(window, sides[0], [[part] for part in parts])
        reach = self._join.reach(driving.column("bounds"))
        looked = sum(stop - start for start, stop in parts)
        if larger is not None:
            return _Slice(until, looked, driving, reach, larger.driven)
        strips = [_met_by(run, reach, space) if len(driving) else [(0, 0)] for run in sides[1]]
        return _Slice(until, looked, driving, reach, _Driven(self._picked(window, sides[1], strips), reach))

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
        driving, driven = part.driving, part.driven.reports
        at, other = part.meeting(part.reach)
        (one, at), (two, other) = (np.unique(side, return_inverse=True) for side in (at, other))
        run = np.r_[driving.part[one], len(driving.runs) + driven.part[two]]
        row = np.r_[driving.row[one], driven.row[two]]
        picked = Picked([*driving.runs, *driven.runs], run, row, self.pairing.space)
        other += len(one)
        row, partner = (other, at) if self._join.partner_drives else (at, other)
        return picked, self.pairing.own(picked, self.pairing.judged(picked, row, partner)), len(at)


def behind(windows: Sequence[EndedWindow]) -> str | None:
    """Return why a query is refused for which so many windows are left; None if it is not.

    More and more would wait, and what they need fill the memory.
    """
    if len(windows) <= MOST_LEFT:
        return None
    return BEHIND % {"count": thousands(len(windows)), "most": thousands(MOST_LEFT)}


def budget(stream: np.ndarray, joins: Iterable[WindowJoin], regions: float) -> SliceBound:
    """Return what a region may do in a batch.

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
    regions = max(1.0, regions)
    return SliceBound(max(int(BUDGET / regions), AHEAD * due), max(1, int(TOLD / regions)))


def sliced(
    slices: Mapping[int, WindowSlices],
    ended: dict[int, list[EndedWindow]],
    most: SliceBound,
    owners: Mapping[int, int],
    turn: int,
) -> Iterator[tuple[int, pa.Table, float]]:
    """Join as much of the windows that have ended as a batch may, of each owner those that ended first at first.

    Parameters
    ----------
    slices : mapping of int to WindowSlices
        By query.
    ended : dict of int to list of EndedWindow
        By query, what is left to be joined. It is changed: windows that are told are removed.
    most : SliceBound
        What may be done. At least one slice is joined.
    owners : mapping of int to int
        For whom each query counts.
    turn : int
        Who is the first says the turn; what is left by one, the others may have.

    Yields
    ------
    query : int
    rows : pyarrow.Table
    seconds : float
        What it took.
    """
    told = dict.fromkeys(ended, 0)  # of each query, how many windows
    waiting = sorted({owners[query] for query, windows in ended.items() if windows})
    first = turn % max(1, len(waiting))
    for place, owner in enumerate([*waiting[first:], *waiting[:first]]):
        share = most.shared(len(waiting) - place)
        mine = [(windows[0].turn, query) for query, windows in ended.items() if windows and owners[query] == owner]
        heapq.heapify(mine)
        while mine and share:
            _, query = mine[0]
            began, windows = perf_counter(), ended[query]
            rows, window, done = slices[query].next(windows[told[query]], share)
            most, share, windows[told[query]] = most - done, share - done, window
            yield query, rows, perf_counter() - began
            if window.position == END:
                told[query] += 1
                heapq.heappop(mine)
                if told[query] < len(windows):
                    heapq.heappush(mine, (windows[told[query]].turn, query))
    for query, windows in ended.items():
        del windows[: told[query]]


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
