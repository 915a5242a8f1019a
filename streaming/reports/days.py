"""Days of a time zone: when they begin, and what of a span of time lies in each."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from streaming.reports.errors import InvalidReport

MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Days:
    """Consecutive days of a time zone.

    Parameters
    ----------
    names : tuple of str, length D
        Their dates in ISO 8601.
    starts_us : ndarray of int64, shape (D + 1,)
        When each begins, and when the last one ends, in microseconds since 1970 UTC. A day of 23 or 25 hours is one
        whose clocks change. A date that a zone left out has no length.
    """

    names: tuple[str, ...]
    starts_us: np.ndarray

    def number_of(self, times_us: np.ndarray) -> np.ndarray:
        """Return the numbers of the days in which instants lie, int64 of shape (N,)."""
        return np.searchsorted(self.starts_us, times_us, "right") - 1

    def named(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a frame with the date of its column day, a number, in place of the number."""
        return frame.with_columns(pl.Series("day", self.names, dtype=pl.String).gather(frame["day"]))


def days_of(start_us: int, stop_us: int, zone: ZoneInfo) -> Days:
    """Return the days of a time zone from one instant to another, both in microseconds since 1970 UTC.

    Raises
    ------
    InvalidReport
        Where such a day lies outside the years 1 to 9999.

    Examples
    --------
    >>> changed = days_of(1_774_652_400_000_000, 1_774_738_800_000_000, ZoneInfo("Europe/Helsinki"))
    >>> changed.names, (np.diff(changed.starts_us) // 3_600_000_000).tolist()
    (('2026-03-28', '2026-03-29'), [24, 23])
    """
    try:
        first, last = ((EPOCH + instant * MICROSECOND).astimezone(zone).date() for instant in (start_us, stop_us))
        dates = [first + timedelta(days=number) for number in range((last - first).days + 2)]
        starts = np.array([_start_us(day, zone) for day in dates], dtype=np.int64)
    except OverflowError:
        raise InvalidReport("from and to must lie within the years 1 to 9999, also in the zone") from None
    return Days(tuple(day.isoformat() for day in dates[:-1]), starts)


def _start_us(day: date, zone: ZoneInfo) -> int:
    """Return the first instant of a date. A midnight that clocks skip is the moment at which they are changed."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)  # of two equal midnights the first one
    return (midnight.astimezone(UTC) - EPOCH) // MICROSECOND


def by_day(spans: pl.DataFrame, days: Days) -> pl.DataFrame:
    """Divide spans of time at the beginnings of days.

    Parameters
    ----------
    spans : polars.DataFrame
        begin, end : int64, microseconds since 1970 UTC, within the days; other columns are repeated.
        metres : float64, optional; divided in proportion to time.
    days : Days

    Returns
    -------
    polars.DataFrame
        The columns of `spans`, and day : int64, the number of the day. A span without length lies in one day.
    """
    begin, end = (spans[name].to_numpy() for name in ("begin", "end"))
    first = days.number_of(begin)
    last = np.maximum(first, days.number_of(end - 1))
    pieces = last - first + 1
    if not len(pieces) or pieces.max() == 1:
        return spans.with_columns(day=first)
    row = np.repeat(np.arange(len(begin)), pieces)
    day = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + first[row]
    cut_begin, cut_end = np.maximum(begin[row], days.starts_us[day]), np.minimum(end[row], days.starts_us[day + 1])
    divided = spans[row].with_columns(begin=cut_begin, end=cut_end, day=day)
    if "metres" in spans.columns:
        share = (cut_end - cut_begin) / np.maximum(end - begin, 1)[row]
        divided = divided.with_columns(metres=divided["metres"] * np.where(pieces[row] > 1, share, 1.0))
    return divided
