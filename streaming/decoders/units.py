"""Conversions to SI units and to microseconds since 1970."""

import math
from datetime import UTC, datetime

KNOT_MPS = 1852 / 3600
FOOT_M = 0.3048
FOOT_PER_MINUTE_MPS = FOOT_M / 60
MILE_M = 1609.344

# The factor from each unit to its SI unit; degrees and plain numbers stay as they are.
FACTORS = {
    "number": 1.0,
    "degrees": 1.0,
    "mps": 1.0,
    "knots": KNOT_MPS,
    "kmh": 1 / 3.6,
    "mph": MILE_M / 3600,
    "feet_per_min": FOOT_PER_MINUTE_MPS,
    "metres": 1.0,
    "feet": FOOT_M,
    "km": 1000.0,
    "miles": MILE_M,
    "nautical_miles": 1852.0,
}

# Digits kept behind the point of numbers converted to SI units: millimetres, and millimetres per second.
DIGITS_KEPT = 3
# Numbers from here on have no digits behind the point.
WHOLE = 2.0**53

MICROSECONDS = 1_000_000
# The size of an epoch number shows its unit: these limits are the year 5138 in seconds and in milliseconds.
_SECONDS_LIMIT = 1e11
_MILLISECONDS_LIMIT = 1e14
LATEST_US = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp()) * MICROSECONDS


def scaled(value: float | None, factor: float) -> float | None:
    """Return a number in SI units, rounded to a millimetre (per second); None for None, or if it is not finite.

    Examples
    --------
    >>> scaled(10, KNOT_MPS), scaled(1e306, 1000.0)
    (5.144, None)
    """
    if value is None:
        return None
    product = value * factor
    if not math.isfinite(product):
        return None
    return product if abs(product) >= WHOLE else round(product, DIGITS_KEPT)


def epoch_us(number: float) -> int | None:
    """Return microseconds since 1970 of an epoch number in s, ms or us, whichever its size suggests.

    Returns
    -------
    int or None
        None for a time before 1970 or after 2200, or a number that is not finite.

    Examples
    --------
    >>> epoch_us(1328133720012), epoch_us(1328133720.012), epoch_us(-1)
    (1328133720012000, 1328133720012000, None)
    """
    if not 0 <= number < float("inf"):
        return None
    factor = MICROSECONDS if number < _SECONDS_LIMIT else 1000 if number < _MILLISECONDS_LIMIT else 1
    time_us = round(number * factor)
    return time_us if time_us < LATEST_US else None


def iso_us(text: str, utc_offset_s: float = 0.0) -> int | None:
    """Return microseconds since 1970 of an ISO 8601 date and time.

    Parameters
    ----------
    text : str
    utc_offset_s : float
        Local time minus UTC, for texts that do not state it.

    Returns
    -------
    int or None
        None for a text of another form, and for a time before 1970 or after 2200.

    Examples
    --------
    >>> iso_us("1970-01-01T01:00:00+01:00"), iso_us("1970-01-01 00:00:01"), iso_us("yesterday")
    (0, 1000000, None)
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    offset = 0.0
    if moment.tzinfo is None:
        moment, offset = moment.replace(tzinfo=UTC), utc_offset_s
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    time_us = (since.days * 86_400 + since.seconds) * MICROSECONDS + since.microseconds - round(offset * MICROSECONDS)
    return time_us if 0 <= time_us < LATEST_US else None
