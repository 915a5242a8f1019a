"""Schedules of rules: days of the week and times of day in a time zone."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from streaming.errors import InvalidPlan
from streaming.kinds.parts import check_keys
from streaming.language import gettext
from streaming.time_zones import is_time_zone

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
KEYS = ("days", "from", "to", "time_zone")
MINUTES_A_DAY = 24 * 60
_SECOND_US = 1_000_000


@dataclass(frozen=True)
class Schedule:
    """When a rule counts.

    Parameters
    ----------
    days : tuple of int
        The days of the week on which it begins to count, 0 for Monday; ascending.
    begin : int
        The minute of the day from which on it counts.
    end : int
        The minute of the day up to which it counts. An end that is not above the beginning is on the next day.
    time_zone : str
        Its name in the time zone database. Clocks that are put forward or back are followed.
    """

    days: tuple[int, ...]
    begin: int
    end: int
    time_zone: str

    def at(self, now_us: int) -> tuple[bool, int]:
        """Tell whether it counts at a time, and until when the same holds, both in microseconds since 1970 UTC.

        Examples
        --------
        >>> Schedule((0, 1, 2, 3, 4), 8 * 60, 18 * 60, "UTC").at(0)  # a Thursday, at midnight
        (False, 28800000000)
        """
        spans = list(self._spans(now_us))
        bounds_us = [bound_us for span in spans for bound_us in span if bound_us > now_us]
        return any(begin_us <= now_us < end_us for begin_us, end_us in spans), min(bounds_us)

    def _spans(self, now_us: int) -> Iterator[tuple[int, int]]:
        """Yield the spans about a time in which it counts; at least one of them ends later."""
        zone = ZoneInfo(self.time_zone)
        today = datetime.fromtimestamp(now_us / _SECOND_US, UTC).astimezone(zone).date()
        for offset in range(-2, 9):
            day = today + timedelta(days=offset)
            if day.weekday() in self.days:
                yield _us(day, self.begin, zone), _us(day, self.end + MINUTES_A_DAY * (self.end <= self.begin), zone)


def _us(day: date, minutes: int, zone: ZoneInfo) -> int:
    """Return the time at which the clocks of a zone show some minutes of a day."""
    days, minutes = divmod(minutes, MINUTES_A_DAY)
    local = datetime.combine(day + timedelta(days=days), time(*divmod(minutes, 60)), zone)
    return int(local.timestamp()) * _SECOND_US


def parse_schedule(document: Any) -> Schedule:
    """Return the schedule that a JSON object describes; raise `InvalidPlan` if it breaks a rule."""
    if not isinstance(document, dict):
        raise InvalidPlan(
            "schedule must be an object with %(keys)s; got %(document)s",
            keys=", ".join(KEYS),
            document=f"{document!r:.200}",
        )
    check_keys(document, KEYS, "schedule")
    days = document.get("days", list(DAYS))
    if not isinstance(days, list) or not days or not all(isinstance(day, str) and day in DAYS for day in days):
        raise InvalidPlan(
            "schedule: days must be a list of %(days)s; got %(value)s", days=", ".join(DAYS), value=f"{days!r:.200}"
        )
    begin, end = (_minutes(document.get(key), key) for key in ("from", "to"))
    if begin in (end, MINUTES_A_DAY):
        raise InvalidPlan(
            "schedule: from must be before 24:00, and not to; got %(value)s", value=repr(document["from"])
        )
    time_zone = document.get("time_zone", "UTC")
    if not is_time_zone(time_zone):
        raise InvalidPlan(
            "schedule: time_zone must be a name such as Europe/Berlin; got %(time_zone)s",
            time_zone=f"{time_zone!r:.80}",
        )
    return Schedule(tuple(sorted({DAYS.index(day) for day in days})), begin, end, time_zone)


def schedule_document(schedule: Schedule) -> dict[str, Any]:
    """Return the JSON object of a schedule; the inverse of `parse_schedule`."""
    begin, end = (f"{minutes // 60:02}:{minutes % 60:02}" for minutes in (schedule.begin, schedule.end))
    days = [DAYS[day] for day in schedule.days]
    return {"days": days, "from": begin, "to": end, "time_zone": schedule.time_zone}


def in_words(document: dict[str, Any]) -> str:
    """Describe a schedule in words, given its JSON object."""
    days = "" if len(document["days"]) == len(DAYS) else f"{', '.join(document['days'])} "
    return gettext("%(days)s%(from)s to %(to)s %(time_zone)s") % {
        "days": days,
        "from": document["from"],
        "to": document["to"],
        "time_zone": document["time_zone"],
    }


def _minutes(value: Any, key: str) -> int:
    parts = value.split(":") if isinstance(value, str) else ()
    if len(parts) == 2 and all(len(part) == 2 and part.isdecimal() for part in parts):
        hours, minutes = map(int, parts)
        if minutes < 60 and 60 * hours + minutes <= MINUTES_A_DAY:
            return 60 * hours + minutes
    raise InvalidPlan(
        "schedule: %(key)s must be a time of day from 00:00 to 24:00; got %(value)s",
        key=key,
        value=f"{value!r:.80}",
    )
