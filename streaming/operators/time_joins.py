"""Joins of two streams over event time: which reports are on time, what must wait, and which pairs are found.

Both kinds compare place and properties as joins with last known elements do (`streaming.operators.stream_join`).

References
----------
Li et al., "Distributed join query method for large-scale spatial data streams", 2023: windows (definition 5), SINLJ
(algorithm 2), BSINLJ (algorithm 4), the time at which a bin is dropped (equation 5).
"""

from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import Any, TypeVar

import numpy as np

from streaming.elements import stream_number
from streaming.kinds.join.plan import JoinPlan
from streaming.kinds.registry import kind_of
from streaming.language import gettext
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.meetings import Meetings, is_first
from streaming.operators.region_map import RegionMap
from streaming.operators.runs import expand
from streaming.operators.stream_join import StreamJoins
from streaming.operators.stream_reach import reached
from streaming.spaces import Space

MICROSECONDS = 1_000_000
T = TypeVar("T", int, np.ndarray)


@dataclass(frozen=True)
class ReportTimes:
    """When reports happened, and how much of their stream was there before them.

    Parameters
    ----------
    time_us : ndarray of int64, shape (N,)
    seen_us : ndarray of int64, shape (N,)
        The newest event time that the report's home server had seen once the report was there.
    """

    time_us: np.ndarray
    seen_us: np.ndarray


class TimeJoin:
    """A join over event time, ready to be evaluated.

    Parameters
    ----------
    plan : WindowJoinPlan or IntervalJoinPlan
    space : Space
    partner_drives : bool
        Whether the partners are sent to each region that they reach, and the reports only to those where they lie; by
        default it is the other way round. It changes which region tells a pair, and no pair.

    Attributes
    ----------
    stream, partner_stream : int
        The numbers of the two streams.
    lateness_us, idle_us : int
    """

    def __init__(self, plan: Any, space: Space, partner_drives: bool = False) -> None:
        self.plan, self.space, self.partner_drives = plan, space, partner_drives
        self.stream, self.partner_stream = stream_number(plan.stream), stream_number(plan.partners.name)
        self.lateness_us, self.idle_us = _us(plan.lateness_s), _us(plan.idle_s)
        self.join = by_place(plan)
        self._joins = StreamJoins([self.join], space)

    @property
    def itself(self) -> bool:
        """Whether a stream is joined with itself."""
        return self.stream == self.partner_stream

    @property
    def sides(self) -> tuple[int, int]:
        """The numbers of the driving stream and of the driven one."""
        return (self.partner_stream, self.stream) if self.partner_drives else (self.stream, self.partner_stream)

    @property
    def way(self) -> tuple | None:
        """What `reach` depends on besides the boxes; None if the boxes of reports are enough for `about`."""
        join = self.join
        return (join.transform, join.partners.predicate, join.partners.distance) if join.transform else None

    def about(self, bounds: np.ndarray) -> np.ndarray:
        """Return boxes (N, 2n) around partners that contain all of the reports that reach them.

        With transformations, it is how far the reports reach that meets the boxes of partners, so these are returned.
        """
        if self.join.transform:
            return bounds
        # A report farther from the equator reaches over more degrees than its partner would. Twice as far is enough
        # for both.
        return self.reach(self.reach(bounds))

    def reach(self, bounds: np.ndarray) -> np.ndarray:
        """Return the boxes (N, 2n) that the box of a partner must meet, given those of reports."""
        return reached(self.join, bounds, self.space)

    def pairs(
        self, elements: Elements, key_hash: np.ndarray, left: np.ndarray, right: np.ndarray, failures: Failures
    ) -> Meetings:
        """Return the pairs of reports that satisfy all but the times; see `StreamJoins.pairs`."""
        return self._joins.pairs(elements, key_hash, left, right, failures)

    def judged(
        self, elements: Elements, key_hash: np.ndarray, row: np.ndarray, partner: np.ndarray, failures: Failures
    ) -> Meetings:
        """Return those of some pairs of reports that satisfy all but the times; see `StreamJoins.judged`."""
        return self._joins.judged(elements, key_hash, row, partner, failures)

    def unmirrored(
        self, pairs: Meetings, elements: Elements, key_hash: np.ndarray, time_us: np.ndarray, failures: Failures
    ) -> np.ndarray:
        """Tell which pairs are told: of two that mirror each other, only one unless the plan wants both.

        Parameters
        ----------
        pairs : Meetings
            Pairs that satisfy the whole join. Their mirror images need not be there; they are judged, too.
        elements, key_hash, failures
            As `pairs` takes them.
        time_us : ndarray of int64, shape (N,)

        Returns
        -------
        ndarray of bool, shape (P,)
        """
        told = np.ones(len(pairs.row), dtype=bool)
        if self.plan.mirrored or not self.itself or not len(told):
            return told
        told = is_first(elements, pairs.row, pairs.partner)
        row, partner = pairs.partner[~told], pairs.row[~told]
        mirrors = self.judged(elements, key_hash, row, partner, failures)
        mirrors = mirrors.take(self.within(time_us[mirrors.row], time_us[mirrors.partner]))
        size = len(key_hash)
        told[~told] = ~np.isin(row * size + partner, mirrors.row * size + mirrors.partner)
        return told

    def tellers(
        self, pairs: Meetings, bounds: np.ndarray, region_map: RegionMap, partner_drives: bool | None = None
    ) -> np.ndarray:
        """Return the region that tells each pair: one that both sides are sent to; see `Meetings.tellers`.

        Parameters
        ----------
        pairs : Meetings
        bounds : ndarray of float64, shape (N, 2n)
        region_map : RegionMap
        partner_drives : bool, optional
            As it was at some time; by default, as it is.
        """
        if self.partner_drives if partner_drives is None else partner_drives:
            pairs = replace(pairs, reach=self.reach(bounds[pairs.partner]), other=bounds[pairs.row])
        return pairs.tellers(region_map)

    @property
    def bin_us(self) -> int:
        """How much event time a bin of reports should have."""
        raise NotImplementedError

    def needed_us(self, last_us: np.ndarray, partner: bool) -> np.ndarray:
        """Return the watermarks at which reports of the one or the other side up to `last_us` find no more partners."""
        raise NotImplementedError

    def covers(self, time_us: np.ndarray) -> np.ndarray:
        """Tell which times the join looks at at all, bool of shape (N,)."""
        return np.ones(len(time_us), dtype=bool)

    def within(self, time_us: np.ndarray, partner_us: np.ndarray) -> np.ndarray:
        """Tell which pairs of times may be those of a pair, bool of shape (P,)."""
        return np.ones(len(time_us), dtype=bool)

    def on_time(self, times: ReportTimes, watermark_us: int) -> np.ndarray:
        """Tell which reports are not too late to be joined at all, bool of shape (N,), given the last watermark."""
        raise NotImplementedError


class WindowJoin(TimeJoin):
    """A window join."""

    def __init__(self, plan: Any, space: Space, partner_drives: bool = False) -> None:
        super().__init__(plan, space, partner_drives)
        self.size_us, self.slide_us, self.start_us = _us(plan.window_s), _us(plan.slide_s), _us(plan.start_s)

    @property
    def bin_us(self) -> int:
        """See `TimeJoin`: windows begin and end at the ends of bins if they do not overlap."""
        return self.slide_us

    def needed_us(self, last_us: np.ndarray, partner: bool) -> np.ndarray:
        """See `TimeJoin`: the end of the last window that has such reports."""
        return self._newest(last_us) + self.size_us

    def covers(self, time_us: np.ndarray) -> np.ndarray:
        """See `TimeJoin`: between windows that do not touch there is time that is in none."""
        return time_us < self._newest(time_us) + self.size_us

    def on_time(self, times: ReportTimes, watermark_us: int) -> np.ndarray:
        """Tell for which reports the last of their windows is not told yet, and was not complete when they came."""
        newest = self._newest(times.time_us)
        return self.in_time(times, newest) & (newest + self.size_us > watermark_us)

    def _newest(self, time_us: T) -> T:
        """Return the beginning of the last window that began by a time."""
        return (time_us - self.start_us) // self.slide_us * self.slide_us + self.start_us

    def in_time(self, times: ReportTimes, window_us: np.ndarray | int) -> np.ndarray:
        """Tell which reports came before the window that begins at `window_us` was complete, bool of shape (N,)."""
        return times.seen_us - self.lateness_us < window_us + self.size_us

    def due(self, first_us: np.ndarray, last_us: np.ndarray, after_us: int, until_us: int) -> np.ndarray:
        """Return the beginnings of the windows that may overlap bins, and that end behind `after_us`, up to `until_us`.

        Parameters
        ----------
        first_us, last_us : ndarray of int64, shape (B,)
            The first and the last microsecond of each bin.
        after_us, until_us : int

        Returns
        -------
        ndarray of int64
            Ascending.
        """
        low = (first_us - self.start_us) // self.slide_us - -(-self.size_us // self.slide_us) + 1
        # A bin may be far in the future: only the windows up to the limit count.
        high = np.minimum((last_us - self.start_us) // self.slide_us, (until_us - self.start_us) // self.slide_us)
        low = np.maximum(low, (after_us - self.size_us - self.start_us) // self.slide_us)
        start_us = self.start_us + np.unique(expand(low, np.maximum(high - low + 1, 0))[1]) * self.slide_us
        return start_us[(start_us + self.size_us > after_us) & (start_us + self.size_us <= until_us)]


class IntervalJoin(TimeJoin):
    """An interval join."""

    def __init__(self, plan: Any, space: Space, partner_drives: bool = False) -> None:
        super().__init__(plan, space, partner_drives)
        self.lower_us, self.upper_us = _us(plan.lower_s), _us(plan.upper_s)

    @property
    def bin_us(self) -> int:
        """See `TimeJoin`."""
        return _us(self.plan.bin_s)

    def needed_us(self, last_us: np.ndarray, partner: bool) -> np.ndarray:
        """See `TimeJoin`; equation 5 of the paper."""
        return last_us + max(0, -self.lower_us if partner else self.upper_us) + 1

    def on_time(self, times: ReportTimes, watermark_us: int) -> np.ndarray:
        """Tell which reports were not late when they came."""
        return (times.seen_us - self.lateness_us <= times.time_us) & (times.time_us >= watermark_us)

    def within(self, time_us: np.ndarray, partner_us: np.ndarray) -> np.ndarray:
        """Tell for which pairs of times the second lies in the interval of the first, bool of shape (P,)."""
        return (time_us + self.lower_us <= partner_us) & (partner_us <= time_us + self.upper_us)


def too_late(join: TimeJoin, behind_us: int) -> str:
    """Return the warning of reports that came too late, up to so much behind the newest of their stream."""
    return gettext(
        "reports came too late to be joined, up to %(behind_s)g s behind the newest of "
        "their stream; lateness_s is %(lateness_s)g, idle_s is %(idle_s)g"
    ) % {
        "behind_s": behind_us / MICROSECONDS,
        "lateness_s": join.plan.lateness_s,
        "idle_s": join.plan.idle_s,
    }


def by_place(plan: Any) -> JoinPlan:
    """Return the join that compares as a join over event time does, without regard to times."""
    filters = {"where": plan.where, "filters": plan.filters}
    return JoinPlan(plan.stream, plan.partners, plan.area, plan.transform, emit="all", **filters)


def driving(plan: Any, partner_drives: bool) -> JoinPlan:
    """Return the join whose reach says to which regions the reports of the two streams are sent."""
    join = by_place(plan)
    if not partner_drives:
        return join
    return replace(join, stream=plan.partners.name, partners=replace(plan.partners, name=plan.stream))


def either_may_drive(plan: Any) -> bool:
    """Tell whether the partners of a join over event time may be the ones that are sent to all regions they reach.

    They may unless boxes are transformed: a transformation says how far a report reaches, and has no inverse. In the
    join of a stream with itself there is nothing to choose.
    """
    return not plan.transform and plan.stream != plan.partners.name


def compiled(plan: Any, space: Space, partner_drives: bool = False) -> TimeJoin:
    """Return a join over event time, ready to be evaluated."""
    made: TimeJoin = resolve_name(kind_of(plan).operator)(plan, space, partner_drives)
    return made


def _us(seconds: float) -> int:
    return round(seconds * MICROSECONDS)
