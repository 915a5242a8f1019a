"""Decode ADS-B from ``aircraft.json`` of readsb and dump1090, and from aggregators' answers of the same form.

References
----------
readsb, README-json.md: https://github.com/wiedehopf/readsb/blob/dev/README-json.md
"""

from codecs import BOM_UTF8
from collections.abc import Sequence
from typing import Any

import orjson

from streaming.decoders.aircraft_quality import quality
from streaming.decoders.base import OUT_OF_RANGE, Points, altitude_of, json_sample
from streaming.decoders.documents import DocumentDecoder
from streaming.decoders.properties import read_number
from streaming.decoders.units import FOOT_M, FOOT_PER_MINUTE_MPS, KNOT_MPS, MICROSECONDS, epoch_us, scaled
from streaming.language import gettext

OLDEST_S = 1e9

# Names of the field, the newest program's first; name of the property; factor to SI units.
NUMBERS = (
    (("gs", "speed"), "speed_mps", KNOT_MPS),
    (("track",), "course_deg", 1),
    (("true_heading",), "heading_deg", 1),
    (("alt_geom",), "altitude_geometric_m", FOOT_M),
    (("baro_rate", "vert_rate", "geom_rate"), "vertical_rate_mps", FOOT_PER_MINUTE_MPS),
    (("alt_baro", "altitude"), "altitude_m", FOOT_M),
)
TEXTS = (
    ("flight", "callsign"),
    ("squawk", "squawk"),
    ("category", "category"),
    ("emergency", "emergency"),
    ("r", "registration"),
    ("t", "aircraft_type"),
)


class AircraftJsonDecoder(DocumentDecoder):
    """Decodes ``{"now": ..., "aircraft": [...]}``, with the list also as ``ac`` or alone. See `DocumentDecoder`."""

    def _read(self, document: bytes, received_us: int, points: Points) -> None:
        try:
            content = orjson.loads(document.removeprefix(BOM_UTF8))
        except orjson.JSONDecodeError:
            points.fault(gettext("not JSON"), document)
            return
        # The oldest programs, dump1090 among them, give the list alone.
        content = {"aircraft": content} if isinstance(content, list) else content
        aircraft = _aircraft(content)
        told = content.get("now") if aircraft is not None else None
        now = read_number(told)
        if aircraft is None or (now is None and told is not None):
            points.fault(gettext("not a list of aircraft"), document)
            return
        now_us = None if now is None else epoch_us(now)
        for entry in aircraft:
            reason = _add(entry, received_us if now_us is None else now_us, points)
            if reason:
                points.fault(reason, json_sample(entry))


def _aircraft(content: Any) -> list[Any] | None:
    """Return a document's list of aircraft, or None if it has none; some aggregators say null if there are none."""
    if not isinstance(content, dict):
        return None
    name = "aircraft" if "aircraft" in content else "ac"
    aircraft = content.get(name, "")
    return [] if aircraft is None else aircraft if isinstance(aircraft, list) else None


def _first(entry: dict[str, Any], names: Sequence[str]) -> float | None:
    """Return the first number that an entry has by one of some names."""
    for name in names:
        if name in entry and (value := read_number(entry[name])) is not None:
            return value
    return None


def _add(entry: Any, now_us: int, points: Points) -> str | None:
    """Add an aircraft if it has a position; return the reason why it cannot be read, or None."""
    if not isinstance(entry, dict) or not isinstance(entry.get("hex"), str) or not entry["hex"].strip():
        return gettext("aircraft without hex")
    place = _place(entry)
    lon, lat = place.get("lon"), place.get("lat")
    if (lon is None and lat is None) or entry.get("validposition") == 0:
        return None
    lon, lat = read_number(lon), read_number(lat)
    if lon is None or lat is None:
        return "position"
    key = entry["hex"].strip().lower()
    age_s = min(max(_first(place, ("seen_pos", "seen")) or 0, 0), OLDEST_S)
    time_us = max(0, now_us - round(age_s * MICROSECONDS))
    properties = _properties(entry)
    properties.update(quality(entry, place), icao24=key, kind="aircraft")
    position = (lon, lat, altitude_of(properties))
    return None if points.add(key, time_us, position, properties) else OUT_OF_RANGE


def _place(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what has the position of an aircraft: its entry, or within that its last position, if that is old."""
    last = entry.get("lastPosition")
    return last if entry.get("lat") is None and isinstance(last, dict) else entry


def _properties(entry: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for field, name in TEXTS:
        if isinstance(text := entry.get(field), str) and (text := text.strip()):
            properties[name] = text
    for fields, name, factor in NUMBERS:
        if (number := scaled(_first(entry, fields), factor)) is not None:
            properties[name] = number
    properties["on_ground"] = _is_ground(entry.get("alt_baro")) or _is_ground(entry.get("altitude"))
    return properties


def _is_ground(altitude: Any) -> bool:
    return isinstance(altitude, str) and altitude.strip().lower() == "ground"
