"""Steps of time by a calendar: hours, days, weeks, months and years of a time zone."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

_RULES = {"hour": "h", "day": "D", "week": "W-MON", "month": "MS", "year": "YS"}


def steps_us(every: str, zone: str, first_us: int, last_us: int) -> np.ndarray:
    """Return where the steps begin that two times lie in, and all between, and where the last one ends.

    Parameters
    ----------
    every : {"hour", "day", "week", "month", "year"}
        Weeks begin on Monday.
    zone : str
        A name of the IANA time zone database.
    first_us, last_us : int
        Microseconds since 1970 UTC.

    Returns
    -------
    ndarray of int64, shape (G + 1,)

    Examples
    --------
    >>> steps_us("month", "UTC", 0, 31 * 86_400_000_000).tolist()
    [0, 2678400000000, 5097600000000]
    """
    clock = ZoneInfo(zone)
    first, last = (datetime.fromtimestamp(us / 1e6, UTC).astimezone(clock) for us in (first_us, last_us))
    if every == "hour":
        hour_us = 3_600_000_000
        return np.arange(first_us // hour_us, last_us // hour_us + 2) * hour_us
    begin = first.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    end = last.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    before = {"day": 1, "week": 7, "month": 31, "year": 366}[every]
    starts = pd.date_range(begin - timedelta(days=before), end + timedelta(days=before), freq=_RULES[every])
    edges = starts.tz_localize(clock, ambiguous=True, nonexistent="shift_forward").tz_convert("UTC")
    edges = edges.as_unit("us").asi8
    return edges[np.searchsorted(edges, first_us, "right") - 1 : np.searchsorted(edges, last_us, "right") + 1]
