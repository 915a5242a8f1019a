"""Find the NMEA sentences in lines of JSON, as receivers and aggregators send them, with the time beside them."""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from streaming.decoders.properties import is_number
from streaming.decoders.time_texts import TimeTexts
from streaming.decoders.units import epoch_us

_BEGIN = re.compile(rb"[\[{]")
_SENTENCE = re.compile(r"!..VD[MO]\b", re.DOTALL)
# Names of times, the most exact first: AIS-catcher has `rxuxtime` [s] and `rxtime` [s].
_TIMES = (
    "rxuxtime",
    "toa",
    "timestamp",
    "time",
    "ts",
    "epoch",
    "received",
    "receivedat",
    "rxtime",
    "datetime",
    "timeutc",
)
# A smaller number is not the time of a position: `timestamp` is also the second in a message of AIS.
_EARLIEST = 1e8
_TEXTS = TimeTexts()


def texts_of_json(line: bytes) -> list[tuple[bytes, int | None]]:
    r"""Return the texts with sentences in a line of JSON, each with the time beside it; empty if there are none.

    Parameters
    ----------
    line : bytes
        It may have other text before the JSON.

    Returns
    -------
    list of (text, time_us)
        In the order of the line. The time is that of the innermost object that has one, in microseconds since 1970, or
        None.

    References
    ----------
    AIS-catcher, JSON output: https://docs.aiscatcher.org/references/JSON-decoding/

    Examples
    --------
    >>> texts_of_json(rb'{"nmea": ["\u0021AIVDM,1"], "rxuxtime": 1764000000.5}')
    [(b'!AIVDM,1', 1764000000500000)]
    """
    begin = _BEGIN.search(line)
    try:
        # A line of a list that goes over many lines ends with a comma.
        content = orjson.loads(line[begin.start() :].rstrip(b", \t\r\n")) if begin else None
    except orjson.JSONDecodeError:
        return []
    found: list[tuple[bytes, int | None]] = []
    waiting: list[tuple[Any, int | None]] = [(content, None)]
    while waiting:
        value, time_us = waiting.pop()
        if isinstance(value, dict):
            own_us = _time_us(value)
            time_us = time_us if own_us is None else own_us
            waiting += [(inner, time_us) for inner in reversed(value.values())]
        elif isinstance(value, list):
            waiting += [(inner, time_us) for inner in reversed(value)]
        elif isinstance(value, str) and _SENTENCE.search(value):
            found.append((value.encode(), time_us))
    return found


def _time_us(value: Mapping[str, Any]) -> int | None:
    named = {name.lower().replace("_", ""): time for name, time in value.items()}
    times = (_read_time(named[name]) for name in _TIMES if name in named)
    return next((time_us for time_us in times if time_us is not None), None)


def _read_time(time: Any) -> int | None:
    if is_number(time):
        return epoch_us(time) if time >= _EARLIEST else None
    return _TEXTS.us(time) if isinstance(time, str) else None
