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

MICROSECONDS = 1_000_000
# The size of an epoch number shows its unit: each limit is the year 5138 in the unit before.
_SECONDS_LIMIT = 1e11
_MILLISECONDS_LIMIT = 1e14
_MICROSECONDS_LIMIT = 1e17
LATEST_US = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp()) * MICROSECONDS


def scaled(value: float | None, factor: float) -> float | None:
    """Return a number in SI units, not rounded; None for None, or if it is not finite.

    Examples
    --------
    >>> scaled(10, KNOT_MPS) == 10 * KNOT_MPS, scaled(1e306, 1000.0)
    (True, None)
    """
    if value is None:
        return None
    product = value * factor
    return product if math.isfinite(product) else None


def epoch_us(number: float) -> int | None:
    """Return microseconds since 1970 of an epoch number in s, ms, us or ns, whichever its size suggests.

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
    if number >= _MICROSECONDS_LIMIT:
        time_us = round(number / 1000)
    else:
        factor = MICROSECONDS if number < _SECONDS_LIMIT else 1000 if number < _MILLISECONDS_LIMIT else 1
        time_us = round(number * factor)
    return time_us if time_us < LATEST_US else None
