"""Decode ADS-B from SBS-1 (BaseStation) lines; the message types are merged for each aircraft.

References
----------
The BaseStation socket format: http://woodair.net/sbs/article/barebones42_socket_data.htm
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streaming.decoders.base import NULL_ISLAND, OUT_OF_RANGE, Points, Position, altitude_of, on_earth
from streaming.decoders.bounded import Bounded
from streaming.decoders.lines import LineDecoder
from streaming.decoders.options import option
from streaming.decoders.time_texts import LocalTimeOptions, TimeTexts
from streaming.decoders.units import FOOT_M, FOOT_PER_MINUTE_MPS, KNOT_MPS, scaled
from streaming.language import gettext
from streaming.spaces import EARTH, Space

# A line of `MLAT` may also tell the number of stations, and the error that is estimated, in metres.
FIELDS, MOST_FIELDS, ERROR = 22, 25, 24
SOURCES = {b"MSG": "adsb", b"MLAT": "mlat"}
# Several lines without an end between them.
GLUED = re.compile(rb"(?<=[^,])(?=(?:MSG|MLAT),[1-8],)")
TYPE, HEX_IDENT, DATE, TIME, LATITUDE, LONGITUDE = 1, 4, 6, 7, 14, 15
OTHER_MESSAGES = (b"SEL", b"ID", b"AIR", b"STA", b"CLK")
HEX_DIGITS = frozenset(b"0123456789abcdef")


def _number(factor: float) -> Callable[[bytes], float | None]:
    def read(field: bytes) -> float | None:
        number = float(field)
        if not math.isfinite(number):
            raise ValueError(gettext("a number must be finite"))
        return scaled(number, factor)

    return read


def _text(field: bytes) -> str | None:
    return field.decode("ascii").strip() or None


def _flag(field: bytes) -> bool:
    # BaseStation writes -1 for true, others write 1.
    return {b"-1": True, b"1": True, b"0": False}[field]


PROPERTIES: tuple[tuple[int, str, Callable[[bytes], Any]], ...] = (
    (10, "callsign", _text),
    (11, "altitude_m", _number(FOOT_M)),
    (12, "speed_mps", _number(KNOT_MPS)),
    (13, "course_deg", _number(1)),
    (16, "vertical_rate_mps", _number(FOOT_PER_MINUTE_MPS)),
    (17, "squawk", _text),
    (19, "emergency", _flag),
    (21, "on_ground", _flag),
)


@dataclass(frozen=True)
class SbsOptions(LocalTimeOptions):
    """Options of `SbsDecoder`; the lines carry local time of the receiver."""

    max_objects: int = option(20_000, "how many aircraft are remembered", minimum=1)
    max_line_bytes: int = option(1024, "longer lines are malformed", minimum=82)


class SbsDecoder(LineDecoder):
    """Decodes SBS-1 lines. A line with a position, or with other values once that is known, is an element.

    Parameters
    ----------
    options : SbsOptions
    stream : str
    space : Space
    """

    options = SbsOptions

    def __init__(self, options: SbsOptions, stream: str, space: Space = EARTH) -> None:
        super().__init__(options, stream, space)
        self._forms = TimeTexts(options.utc_offset_s, options.time_zone)
        self._aircraft = Bounded(options.max_objects)

    def _line(self, line: bytes, received_us: int, points: Points) -> None:
        fields = line.strip().split(b",")
        if len(fields) > MOST_FIELDS and len(lines := GLUED.split(line)) > 1:
            for part in lines:
                self._line(part, received_us, points)
        elif fields[0] not in OTHER_MESSAGES and fields != [b""]:
            self._message(fields, line, received_us, points)

    def _message(self, fields: list[bytes], line: bytes, received_us: int, points: Points) -> None:
        reason = _fault(fields)
        time_us = None if reason else self._time_us(fields)
        if reason or (time_us is None and (fields[DATE] or fields[TIME])):
            points.fault(reason or "time", line)
            return
        try:
            news = {name: read(fields[place]) for place, name, read in PROPERTIES if fields[place]}
            position = _position(fields)
            if position:
                news |= _quality(fields)
        except (ValueError, KeyError):
            points.fault("field", line)
            return
        if reason := position and self._misplaced(position):
            points.fault(reason, line)
            return
        self._tell(time_us, received_us, points)
        if element := self._merged(fields[HEX_IDENT].decode().lower(), position, news):
            self._give((*element, line), received_us, points)

    def _misplaced(self, position: tuple[float, float]) -> str | None:
        """Return why a position is none, so that it does not become the known one of an aircraft."""
        if not on_earth(*position):
            return OUT_OF_RANGE
        return NULL_ISLAND if self._options.drop_null_island and position == (0.0, 0.0) else None

    def _time_us(self, fields: list[bytes]) -> int | None:
        text = fields[DATE].replace(b"/", b"-") + b"T" + fields[TIME]
        return self._forms.us(text.decode("ascii", "replace"))

    def _merged(
        self, key: str, position: tuple[float, float] | None, news: dict[str, Any]
    ) -> tuple[str, Position, dict[str, Any]] | None:
        """Merge a line into what is known of an aircraft; return its key, position and all properties.

        Return None if the position is not known yet, or if the line has no position and changes no property.
        """
        known = self._aircraft.renew(key, lambda: {"position": None, "properties": {"icao24": key, "kind": "aircraft"}})
        self._aircraft.overflow()
        properties = known["properties"] | {name: value for name, value in news.items() if value is not None}
        if position and news["accuracy_m"] is None:
            properties.pop("accuracy_m", None)  # that of another position
        if news.get("on_ground") and news.get("altitude_m") is None:
            properties.pop("altitude_m", None)  # that of the flight before
        changed = properties != known["properties"]
        known["properties"], known["position"] = properties, position or known["position"]
        if known["position"] and (position or changed):
            return key, (*known["position"], altitude_of(properties)), properties
        return None


def _fault(fields: list[bytes]) -> str | None:
    """Return the reason why the fields are not those of a transmission, or None."""
    if fields[0] not in SOURCES or not FIELDS <= len(fields) <= MOST_FIELDS:
        return gettext("not a message")
    if fields[TYPE] not in (b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8"):
        return gettext("message type")
    # An address that is none of ICAO begins with a tilde.
    ident = fields[HEX_IDENT].lower().removeprefix(b"~")
    return None if len(ident) == 6 and HEX_DIGITS.issuperset(ident) else gettext("hex ident")


def _position(fields: list[bytes]) -> tuple[float, float] | None:
    """Return (longitude, latitude), or None if the line has neither; half a position is a ValueError."""
    if not fields[LATITUDE] and not fields[LONGITUDE]:
        return None
    return float(fields[LONGITUDE]), float(fields[LATITUDE])


def _quality(fields: list[bytes]) -> dict[str, Any]:
    """Return where a position comes from, and how accurate it is, which is None if the line does not say it."""
    error = fields[ERROR] if len(fields) > ERROR else b""
    # Positions of addresses that are none of ICAO may come from TIS-B, which the line does not say.
    source = None if fields[0] == b"MSG" and fields[HEX_IDENT].startswith(b"~") else SOURCES[fields[0]]
    return {"position_source": source, "accuracy_m": _number(1)(error) if error else None}
