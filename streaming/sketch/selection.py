"""Which part of a sketch is asked: where, when, and with which values of features."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from typing import TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
import shapely

from streaming.sketch.settings import InvalidSketch

_DAY = timedelta(days=1)
_US = timedelta(microseconds=1)
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")

Box = tuple[float, float, float, float]
Area: TypeAlias = Box | shapely.Geometry


@dataclass(frozen=True)
class ValueRange:
    """Values of a feature, from `low` to `high`; both belong to the range.

    Parameters
    ----------
    feature : str
    low, high : float
        -inf and inf where there is no limit.
    """

    feature: str
    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise InvalidSketch(
                "%(feature)s: low must not exceed high; got %(low)s and %(high)s",
                feature=self.feature,
                low=repr(self.low),
                high=repr(self.high),
            )


@dataclass(frozen=True)
class TimeIntervals:
    """Times, as intervals.

    Parameters
    ----------
    limits : ndarray of int64, shape (R, 2)
        Microseconds since 1970 UTC, ascending; no two intervals overlap or touch. The first microsecond of an interval
        belongs to it, and the last one does not.
    """

    limits: np.ndarray

    @classmethod
    def of(cls, intervals: Sequence[tuple[int, int]]) -> "TimeIntervals":
        """Return the union of intervals in microseconds.

        Examples
        --------
        >>> TimeIntervals.of([(5, 9), (0, 5), (20, 30), (40, 40)]).limits.tolist()
        [[0, 9], [20, 30]]
        """
        limits = np.array(sorted(intervals), dtype=np.int64).reshape(-1, 2)
        limits = limits[limits[:, 0] < limits[:, 1]]
        if not len(limits):
            return cls(limits)
        reached = np.maximum.accumulate(limits[:, 1])
        first = np.append(True, limits[1:, 0] > reached[:-1])
        last = np.append(first[1:], True)
        return cls(np.column_stack([limits[first, 0], reached[last]]))

    @classmethod
    def between(cls, start_us: int, end_us: int) -> "TimeIntervals":
        """Return one interval."""
        return cls.of([(start_us, end_us)])

    @classmethod
    def daily(cls, first: date, last: date, start: time_of_day, end: time_of_day, zone: str = "UTC") -> "TimeIntervals":
        """Return the same hours of many days, such as "from 14:00 to 16:00, from June to August".

        Parameters
        ----------
        first, last : date
            The days; both are among them. At most 100 years.
        start, end : time
            By the clock of the zone. If `end` is not after `start`, the hours end on the next day.
        zone : str
            A name of the IANA time zone database, such as ``Europe/Helsinki``.

        Raises
        ------
        InvalidSketch
            If the days are in the wrong order or too many, or no zone has the name.

        Examples
        --------
        >>> days, hours = (date(2013, 6, 1), date(2013, 6, 2)), (time_of_day(14), time_of_day(16))
        >>> afternoons = TimeIntervals.daily(*days, *hours, "Asia/Shanghai")
        >>> [datetime.fromtimestamp(start / 1e6, ZoneInfo("UTC")).hour for start, _ in afternoons.limits.tolist()]
        [6, 6]
        """
        count = (last - first).days + 1
        if not 1 <= count <= 36_525:
            raise InvalidSketch(
                "daily times must be of 1 to 36,525 days; got %(first)s to %(last)s", first=first, last=last
            )
        try:
            clock = ZoneInfo(zone)
        except (KeyError, ValueError) as error:
            raise InvalidSketch(
                "zone must be a name of the IANA time zone database; got %(zone)s", zone=f"{zone!r:.80}"
            ) from error
        over = _DAY * (end <= start)
        days = [first + _DAY * number for number in range(count)]
        return cls.of([(_us(day, start, clock), _us(day + over, end, clock)) for day in days])

    def intersection(self, other: "TimeIntervals") -> "TimeIntervals":
        """Return the times that are in both."""
        borders = np.unique(np.concatenate([self.limits.ravel(), other.limits.ravel()]))
        inside = (self.covered(borders[1:]) > self.covered(borders[:-1])) & (
            other.covered(borders[1:]) > other.covered(borders[:-1])
        )
        return TimeIntervals.of(np.column_stack([borders[:-1][inside], borders[1:][inside]]).tolist())

    def covered(self, time_us: np.ndarray) -> np.ndarray:
        """Return how many microseconds of these times lie before each time, int64 of shape (N,)."""
        if not len(self.limits):
            return np.zeros(len(time_us), dtype=np.int64)
        starts, ends = self.limits.T
        place = np.searchsorted(starts, time_us, "right") - 1
        before = np.maximum(place, 0)
        within = np.clip(time_us - starts[before], 0, ends[before] - starts[before])
        return np.where(place >= 0, self._lengths[before] + within, 0)

    @functools.cached_property
    def _lengths(self) -> np.ndarray:
        """For each interval, the length of all intervals before it."""
        length = self.limits[:, 1] - self.limits[:, 0]
        return np.cumsum(length) - length


@dataclass(frozen=True)
class Selection:
    """Where, when, and with which values; all conditions hold together.

    Parameters
    ----------
    areas : tuple of Area
        Boxes ``(x_lo, y_lo, x_hi, y_hi)`` and geometries of shapely, with their borders; an element must lie in each.
        In a dimension that wraps, an upper bound may lie beyond the dimension's end.
    times : TimeIntervals or None
        None: any time.
    ranges : tuple of ValueRange
        An element without the feature does not match.
    """

    areas: tuple[Area, ...] = ()
    times: TimeIntervals | None = None
    ranges: tuple[ValueRange, ...] = field(default=())

    def __and__(self, other: "Selection") -> "Selection":
        """Return the selection of what both select."""
        times = self.times if other.times is None else other.times
        if self.times is not None and other.times is not None:
            times = self.times.intersection(other.times)
        return Selection((*self.areas, *other.areas), times, (*self.ranges, *other.ranges))


EVERYTHING = Selection()


def _us(day: date, clock: time_of_day, zone: ZoneInfo) -> int:
    """Return a local time in microseconds since 1970 UTC."""
    return (datetime.combine(day, clock, zone) - _EPOCH) // _US
