"""Values, times and spans of time in the words of explanations."""

import math
from datetime import UTC, datetime
from typing import Any

from streaming.kinds.words import number
from streaming.language import gettext, numeral

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
MICROSECONDS = 1_000_000


def value(found: Any) -> str:
    """Return the value of a property as text.

    Examples
    --------
    >>> value(3.2), value("cargo"), value(None), value(True)
    ('3.2', "'cargo'", 'missing', 'true')
    """
    if found is None:
        return gettext("missing")
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, int | float):
        return number(found)
    return f"{found!r:.80}"


def span(seconds: float) -> str:
    """Return a span of time in its two largest units.

    Examples
    --------
    >>> span(130), span(0.4), span(7200), span(90061)
    ('2 min 10 s', '0.4 s', '2 h', '1 d 1 h')
    """
    if seconds < 10:
        return f"{number(round(seconds, 1))} s"
    whole, parts = round(seconds), []
    for size, unit in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min"), (1, "s")):
        count, whole = divmod(whole, size)
        if count:
            parts.append((size, f"{count} {unit}"))
    first = parts[0][0]
    return " ".join(text for size, text in parts[:2] if first / size <= DAY_S / HOUR_S * 60)


def clock(time_us: int, now_us: int | None = None) -> str:
    """Return a time as text, in UTC; with its day unless that is the day of `now_us`.

    Examples
    --------
    >>> clock(0, now_us=1_000_000), clock(0)
    ('00:00:00 UTC', '1970-01-01 00:00:00 UTC')
    """
    at = datetime.fromtimestamp(time_us / MICROSECONDS, UTC)
    same = now_us is not None and at.date() == datetime.fromtimestamp(now_us / MICROSECONDS, UTC).date()
    return f"{at:%H:%M:%S} UTC" if same else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def metres(length: float) -> str:
    """Return a length in metres as text, in kilometres from 1,000 m on.

    Examples
    --------
    >>> metres(12.3), metres(1234.0), metres(250_000.0)
    ('12 m', '1.23 km', '250 km')
    """
    if not math.isfinite(length):
        return gettext("any distance")
    if length < 1_000:
        return numeral(f"{length:,.0f} m" if length >= 10 else f"{length:.2g} m")
    return numeral(f"{length / 1_000:,.2f} km" if length < 10_000 else f"{length / 1_000:,.0f} km")
