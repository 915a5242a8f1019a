"""The times that a query of a sketch asks about: from JSON and back, and as intervals of event time.

If a value breaks a rule, the functions raise `InvalidPlan`. The message says the rule and the value.
"""

import functools
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any

import numpy as np
import polars as pl

from streaming.errors import InvalidPlan
from streaming.kinds.parts import check_keys, given, parse_number
from streaming.language import gettext
from streaming.time_zones import is_time_zone

TIMES_KEYS = ("ranges", "last_s", "daily", "zone")
MAX_RANGES = 16
# A hundred years.
MAX_LAST_S = 3_155_760_000.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY_US = 86_400_000_000
# The hours of days are told from 1900 to 2199.
_FIRST_US, _END_US = (us.astype(int).item() for us in np.array(["1900", "2200"], dtype="datetime64[us]"))


@dataclass(frozen=True)
class TimeRange:
    """Event times from a time to just before another.

    Parameters
    ----------
    from_us : int or None
        The first time, in microseconds since 1970 UTC; None for no bound.
    to_us : int or None
        The end, which does not belong to the range.
    """

    from_us: int | None = None
    to_us: int | None = None


@dataclass(frozen=True)
class Daily:
    """Hours of each day, by the clocks of a time zone.

    Parameters
    ----------
    from_s : int
        The first second, in seconds since midnight.
    to_s : int
        The second behind the last; if it is not above `from_s`, the hours end on the next day. It may be 24:00.
    """

    from_s: int
    to_s: int


@dataclass(frozen=True)
class SelectedTimes:
    """The event times of a selection; all times if nothing is given.

    Parameters
    ----------
    ranges : tuple of TimeRange
        Absolute times: one of these ranges must have an element.
    last_s : float or None
        The last so many seconds instead, up to the moment when the answer is made.
    daily : Daily or None
        Of those times, only these hours of each day.
    zone : str
        The time zone of `daily`, and of times in documents that have no offset: a name of the IANA database.
    """

    ranges: tuple[TimeRange, ...] = ()
    last_s: float | None = None
    daily: Daily | None = None
    zone: str = "UTC"

    def intervals_us(self, now_us: int, first_us: int, end_us: int) -> np.ndarray:
        """Return the times as intervals of event time.

        Parameters
        ----------
        now_us : int
            The moment of the answer, in microseconds since 1970 UTC.
        first_us, end_us : int
            The times of interest: of the answer, only what lies in [first_us, end_us) is returned.

        Returns
        -------
        ndarray of int64, shape (N, 2)
            Intervals [from, to) in order of time, which do not touch each other; with `daily`, those from 1900 to 2199.

        Examples
        --------
        >>> SelectedTimes(last_s=2.0).intervals_us(10_000_000, 0, 9_000_000).tolist()
        [[8000000, 9000000]]
        """
        spans = self._spans_us(now_us)
        spans = np.column_stack([np.maximum(spans[:, 0], first_us), np.minimum(spans[:, 1], end_us)])
        spans = _joined(spans[spans[:, 0] < spans[:, 1]])
        if self.daily is None or not len(spans):
            return spans
        first, end = max(int(spans[0, 0]), _FIRST_US), min(int(spans[-1, 1]), _END_US)
        if first >= end:
            return spans[:0]
        return _joined(_common(spans, _hours_us(self.daily, self.zone, first, end)))

    def _spans_us(self, now_us: int) -> np.ndarray:
        """Return the absolute or relative times, without the hours of the day."""
        limits = np.iinfo(np.int64)
        if self.last_s is not None:
            return np.array([[now_us - round(self.last_s * 1e6), now_us]], dtype=np.int64)
        spans = [
            (
                limits.min if entry.from_us is None else entry.from_us,
                limits.max if entry.to_us is None else entry.to_us,
            )
            for entry in self.ranges or (TimeRange(),)
        ]
        return np.array(spans, dtype=np.int64)


def _joined(spans: np.ndarray) -> np.ndarray:
    """Return intervals (N, 2) in order, and as one where they overlap or touch."""
    if not len(spans):
        return spans.reshape(0, 2)
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    ends = np.maximum.accumulate(spans[:, 1])
    begins = np.flatnonzero(np.concatenate([[True], spans[1:, 0] > ends[:-1]]))
    return np.column_stack([spans[begins, 0], ends[np.concatenate([begins[1:], [len(spans)]]) - 1]])


def _common(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return what two sets of intervals have in common, each of which is in order and does not overlap."""
    first = np.searchsorted(others[:, 1], some[:, 0], side="right")
    count = np.maximum(0, np.searchsorted(others[:, 0], some[:, 1], side="left") - first)
    rows = np.repeat(np.arange(len(some)), count)
    matched = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
    lo = np.maximum(some[rows, 0], others[matched, 0])
    return np.column_stack([lo, np.minimum(some[rows, 1], others[matched, 1])])


@functools.lru_cache(maxsize=64)
def _hours_us(daily: Daily, zone: str, first_us: int, end_us: int) -> np.ndarray:
    """Return the hours of each day of a zone that may meet [first_us, end_us), as intervals (N, 2)."""
    first, last = (np.datetime64(us, "us").astype("datetime64[D]") for us in (first_us, end_us))
    # The first and the last day of a zone may be those before and after the days of UTC.
    days = np.arange(first - 2, last + 2)
    following = int(daily.to_s <= daily.from_s)
    hours = np.column_stack([_instants_us(days, daily.from_s, zone), _instants_us(days + following, daily.to_s, zone)])
    return _joined(hours[hours[:, 0] < hours[:, 1]])


def _instants_us(days: np.ndarray, second: int, zone: str) -> np.ndarray:
    """Return when the clocks of a zone show a second of each day; the first time if they show it twice.

    Where clocks are set forward beyond it, it is when they would have shown it.
    """
    wall = pl.Series(days.astype("datetime64[us]") + np.timedelta64(second, "s"))
    day_before = _shown(wall.dt.offset_by("-1d"), zone) + _DAY_US
    return _shown(wall, zone).fill_null(day_before).to_numpy()


def _shown(wall: pl.Series, zone: str) -> pl.Series:
    """Return when the clocks of a zone show a time, in microseconds; null if they never do."""
    return wall.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null").dt.epoch("us")


def us_of(moment: datetime) -> int:
    """Return a moment as microseconds since 1970 UTC, without rounding."""
    return (moment.astimezone(UTC) - _EPOCH) // _MICROSECOND


def parse_times(document: Any, name: str = "time") -> SelectedTimes:
    """Return the times of a JSON object; all times for null."""
    if document is None:
        return SelectedTimes()
    if not isinstance(document, dict):
        raise InvalidPlan(
            "%(name)s must be an object with %(times_keys)s; got %(document)s",
            name=name,
            times_keys=", ".join(TIMES_KEYS),
            document=f"{document!r:.200}",
        )
    check_keys(document, TIMES_KEYS, name)
    named = given(document, ("ranges", "last_s"))
    if len(named) > 1:
        raise InvalidPlan("%(name)s must have one of ranges, last_s; got both", name=name)
    zone = _zone(document.get("zone", "UTC"), name)
    last_s = document.get("last_s")
    if last_s is not None:
        last_s = round(parse_number(last_s, f"{name}: last_s", lo=1e-6, hi=MAX_LAST_S), 6)
    daily = document.get("daily")
    return SelectedTimes(
        _ranges(document.get("ranges", []), name, zone), last_s, None if daily is None else _daily(daily, name), zone
    )


def _zone(zone: Any, name: str) -> str:
    if is_time_zone(zone):
        return zone
    raise InvalidPlan(
        "%(name)s: zone must be a name of the IANA time zone database; got %(zone)s",
        name=name,
        zone=f"{zone!r:.80}",
    )


def _ranges(ranges: Any, name: str, zone: str) -> tuple[TimeRange, ...]:
    if ranges is None:
        return ()
    if not isinstance(ranges, list) or len(ranges) > MAX_RANGES:
        raise InvalidPlan(
            "%(name)s: ranges must be a list of at most %(max_ranges)s objects; got %(ranges)s",
            name=name,
            max_ranges=MAX_RANGES,
            ranges=f"{ranges!r:.200}",
        )
    return tuple(_range(entry, name, zone) for entry in ranges)


def _range(document: Any, name: str, zone: str) -> TimeRange:
    what = gettext("%(name)s: a range") % {"name": name}
    if not isinstance(document, dict):
        raise InvalidPlan(
            "%(what)s must be an object with from, to or both; got %(document)s",
            what=what,
            document=f"{document!r:.200}",
        )
    check_keys(document, ("from", "to"), what)
    if not document:
        raise InvalidPlan("%(what)s must have from, to or both; got none", what=what)
    from_us, to_us = (
        parse_instant(document[side], f"{what}: {side}", zone) if side in document else None for side in ("from", "to")
    )
    if from_us is not None and to_us is not None and not from_us < to_us:
        raise InvalidPlan(
            "%(what)s: from must be before to; got %(value)s and %(to)s",
            what=what,
            value=document["from"],
            to=document["to"],
        )
    return TimeRange(from_us, to_us)


def parse_instant(value: Any, name: str, zone: str = "UTC") -> int:
    """Return a time in ISO 8601 as microseconds since 1970 UTC; without an offset, it is one of `zone`.

    Examples
    --------
    >>> parse_instant("1970-01-01T08:00:01", "from", "Asia/Shanghai")
    1000000
    """
    try:
        if not isinstance(value, str):
            raise ValueError
        moment = datetime.fromisoformat(value)
        us = us_of(moment if moment.tzinfo else moment.replace(tzinfo=zoneinfo.ZoneInfo(zone)))
    except (ValueError, OverflowError):
        raise InvalidPlan(
            "%(name)s must be a time in ISO 8601, such as 2013-06-01T14:00Z; got %(value)s",
            name=name,
            value=f"{value!r:.80}",
        ) from None
    return us


def _daily(document: Any, name: str) -> Daily:
    what = f"{name}: daily"
    if not isinstance(document, dict):
        raise InvalidPlan(
            "%(what)s must be an object with from and to; got %(document)s", what=what, document=f"{document!r:.200}"
        )
    check_keys(document, ("from", "to"), what)
    if len(given(document, ("from", "to"))) < 2:
        raise InvalidPlan(
            "%(what)s must have from and to; got %(document)s",
            what=what,
            document=", ".join(document) or gettext("none"),
        )
    from_s, to_s = (_second(document[side], f"{what}: {side}") for side in ("from", "to"))
    if from_s == to_s or (from_s, to_s) == (86_400, 0):
        raise InvalidPlan("%(what)s: from and to must differ; got %(value)s twice", what=what, value=document["from"])
    if from_s == 86_400:
        raise InvalidPlan("%(what)s: from must be before 24:00; got %(value)s", what=what, value=document["from"])
    return Daily(from_s, to_s)


def _second(value: Any, name: str) -> int:
    """Return the second of the day of a text ``HH:MM`` or ``HH:MM:SS``."""
    if value == "24:00":
        return 86_400
    try:
        if not isinstance(value, str):
            raise ValueError
        clock = time.fromisoformat(value)
        if clock.tzinfo or clock.microsecond:
            raise ValueError
    except ValueError:
        raise InvalidPlan(
            "%(name)s must be a time of day, such as 14:00; got %(value)s", name=name, value=f"{value!r:.80}"
        ) from None
    return clock.hour * 3_600 + clock.minute * 60 + clock.second


def times_document(times: SelectedTimes) -> dict[str, Any]:
    """Return the JSON form of times; empty for all times."""
    document: dict[str, Any] = {}
    if times.ranges:
        document["ranges"] = [_range_document(entry, times.zone) for entry in times.ranges]
    if times.last_s is not None:
        document["last_s"] = times.last_s
    if times.daily is not None:
        document["daily"] = {"from": clock_text(times.daily.from_s), "to": clock_text(times.daily.to_s)}
    return document | ({"zone": times.zone} if times.zone != "UTC" else {})


def _range_document(entry: TimeRange, zone: str) -> dict[str, str]:
    sides = {"from": entry.from_us, "to": entry.to_us}
    return {side: instant_text(us, zone) for side, us in sides.items() if us is not None}


def instant_text(us: int, zone: str = "UTC") -> str:
    """Return a time as text in ISO 8601, by the clocks of a zone and with their offset; `parse_instant` is the inverse.

    Examples
    --------
    >>> instant_text(1_000_000), instant_text(1_000_000, "Asia/Shanghai")
    ('1970-01-01T00:00:01Z', '1970-01-01T08:00:01+08:00')
    """
    try:
        text = (_EPOCH + us * _MICROSECOND).astimezone(zoneinfo.ZoneInfo(zone)).isoformat()
    except OverflowError:  # the first and the last hours of the calendar
        text = (_EPOCH + us * _MICROSECOND).isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def clock_text(second: int) -> str:
    """Return a second of the day as text.

    Examples
    --------
    >>> clock_text(50_400), clock_text(86_400), clock_text(1)
    ('14:00', '24:00', '00:00:01')
    """
    text = f"{second // 3_600:02}:{second // 60 % 60:02}"
    return text + (f":{second % 60:02}" if second % 60 else "")
