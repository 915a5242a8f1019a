"""When somebody wants to be told: days of the week and a time of day, in a time zone."""

from collections.abc import Collection
from datetime import datetime, time
from zoneinfo import ZoneInfo, available_timezones

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def within(at: datetime, weekdays: Collection[int], begins: time | None, ends: time | None, zone: str) -> bool:
    """Return whether a time lies in a weekly schedule.

    Parameters
    ----------
    at : datetime
        With a time zone.
    weekdays : collection of int
        Days of the week, 0 for Monday.
    begins, ends : time or None
        Times of day, the end excluded. None, or equal times, stand for the whole day. An end before the beginning is on
        the next day; the weekday is then that of the beginning.
    zone : str
        The name of the time zone of days and times, such as ``Europe/Helsinki``.

    Examples
    --------
    >>> from datetime import UTC
    >>> at = datetime(2026, 1, 5, 1, 30, tzinfo=UTC)  # in the night from Sunday to Monday
    >>> within(at, [6], time(22), time(6), "UTC"), within(at, [0], time(22), time(6), "UTC")
    (True, False)
    >>> within(at, [0], time(3), time(4), "Europe/Helsinki")
    True
    """
    local = at.astimezone(ZoneInfo(zone))
    now, today = local.time(), local.weekday()
    if begins is None or ends is None or begins == ends:
        return today in weekdays
    if begins < ends:
        return today in weekdays and begins <= now < ends
    yesterday = (today - 1) % 7
    return (today in weekdays and now >= begins) or (yesterday in weekdays and now < ends)


def is_zone(name: str) -> bool:
    """Return whether there is a time zone of a name."""
    return name in available_timezones()
