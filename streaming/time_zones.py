"""Time zones that people name."""

from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def is_time_zone(name: Any) -> bool:
    """Tell whether a value is a name of the IANA time zone database.

    Examples
    --------
    >>> [is_time_zone(name) for name in ("Europe/Berlin", "localtime", "Europe", "../etc/passwd", None)]
    [True, False, False, False, False]
    """
    # "localtime" is another zone on each machine, and "Factory" none at all.
    if not isinstance(name, str) or name in ("localtime", "Factory"):
        return False
    try:
        return ZoneInfo(name).key == name
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a folder of the database is no file
        return False
