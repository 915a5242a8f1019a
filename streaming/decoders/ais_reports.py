"""Read single AIS messages: turn the bits of a payload into a position and properties in SI units.

`pyais` reads the fields; this module removes the codes for "not available" and gives units and names. It reads the ship
type from its bits, because the enumeration of `pyais` turns reserved codes into others (78 into 75, 38 into 0).

References
----------
ITU-R M.1371-5 (2014), annex 8, section 3: the messages and their "not available" codes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from pyais.bit_vector import bit_vector
from pyais.constants import TurnRate
from pyais.messages import MSG_CLASS

from streaming.decoders.ais_words import (
    AID_TYPE,
    COARSE,
    EMERGENCIES,
    EXACT,
    SENDERS,
    SHIP_TYPE,
    STARTS_AT,
    STATUS,
    TEST_MAKER,
    TESTED,
    UNTIMED,
)
from streaming.decoders.base import Position
from streaming.decoders.units import KNOT_MPS
from streaming.elements import UNKNOWN
from streaming.language import gettext

LAST_TYPE = 27
NO_LATITUDE, NO_LONGITUDE = 91.0, 181.0
NO_HEADING, NO_COURSE = 511, 360.0
NO_SPEED = 102.3

# A message of pyais, whose fields have no types.
Message = Any
# The position of a report, its moving and its static properties.
Parts = tuple[Position | None, dict[str, Any], dict[str, Any]]

# Shortest and longest payload of each type in bits: some stations leave out the last bits, which are spare or tell the
# state of the radio, or in part A of message 24 belong to the last character of the name; some pad.
LENGTHS = dict.fromkeys((1, 2, 3, 4, 9, 18), (149, 174)) | {
    5: (420, 430),
    14: (40, 1008),
    19: (306, 318),
    21: (268, 366),
    24: (154, 174),
    27: (94, 174),
}
SHORTEST_PART_B = 162
# First of the eight bits of the ship type, by type of message. In message 24, only part B has it.
SHIP_TYPE_AT = {5: 232, 19: 263, 24: 40}


class AisReport(NamedTuple):
    """The content of one message.

    Parameters
    ----------
    mmsi : int
    position : (longitude, latitude, altitude_m or None) or None
        In degrees and metres. None if the message has no position, or its codes say that none is available.
    moving : dict
        Properties that belong to the position; a value is None if not available.
    static : dict
        Properties that stay with the sender; a value is None if not available.
    """

    mmsi: int
    position: Position | None
    moving: dict[str, Any]
    static: dict[str, Any]


def read_report(payload: bytes, fill_bits: int) -> AisReport | str | None:
    """Return the content of a payload.

    Parameters
    ----------
    payload : bytes
        The characters of the payload as transmitted, six bits each, of all parts of the message.
    fill_bits : int
        How many of its last bits are padding, 0 to 5.

    Returns
    -------
    AisReport, str or None
        None for a type without position or static data; a str is the reason why the payload is malformed.
    """
    bits = bit_vector(payload, fill_bits)
    kind = bits.get(0, 6)
    if kind not in READERS:
        return None if 1 <= kind <= LAST_TYPE else gettext("unknown message type")
    if reason := _fault(kind, bits):
        return reason
    message: Message = MSG_CLASS[kind].from_vector(bits)
    position, moving, static = READERS[kind](message)
    if kind in SHIP_TYPE_AT and not (kind == 24 and message.partno == 0):
        static |= _type(bits.get(SHIP_TYPE_AT[kind], 8))
    if position is not None:
        moving |= _quality(kind, message)
        start = message.mmsi // STARTS_AT
        if start in SENDERS and moving["kind"] == "ship":
            moving |= _sender(message, SENDERS[start])
    return AisReport(message.mmsi, position, moving, static) if moving or static else None


def _fault(kind: int, bits: Any) -> str | None:
    """Return the reason why the bits of a payload are not those of a message of a kind, or None."""
    shortest, longest = LENGTHS[kind]
    part = bits.get(38, 2) if kind == 24 else 0
    if not (SHORTEST_PART_B if part == 1 else shortest) <= len(bits) <= longest:
        return gettext("payload length")
    return gettext("unknown part number") if part > 1 else None


def _quality(kind: int, message: Message) -> dict[str, Any]:
    """Return how accurate a position is, in metres, and where it comes from."""
    if kind == 27:
        return COARSE
    # The seconds of message 4 are those of the time of day.
    return EXACT[message.accuracy, message.raim] if kind == 4 or message.second < 60 else UNTIMED[message.second]


def _sender(message: Message, kind: str) -> dict[str, Any]:
    """Return the kind, and of a beacon whether it is being tested, if its number or its status says so."""
    if kind not in EMERGENCIES:
        return {"kind": kind}
    is_test_number = message.mmsi // 10_000 % 100 == TEST_MAKER
    return {"kind": kind, "test": True if is_test_number else TESTED.get(getattr(message, "status", -1))}


def _position(message: Message, altitude_m: float | None = None) -> Position | None:
    if message.lat == NO_LATITUDE or message.lon == NO_LONGITUDE:
        return None
    return message.lon, message.lat, altitude_m


def _moving(kind: str, message: Message) -> dict[str, Any]:
    speed, course = message.speed, message.course
    return {
        "kind": kind,
        "speed_mps": None if speed == NO_SPEED else speed * KNOT_MPS,
        "course_deg": None if course >= NO_COURSE else course,
    }


def _heading(message: Message) -> float | None:
    return message.heading if message.heading < NO_COURSE else None


def _class_a(message: Message) -> Parts:
    turn, moving = message.turn, _moving("ship", message)
    moving["heading_deg"] = _heading(message)
    moving["rate_of_turn_deg_per_min"] = None if isinstance(turn, TurnRate) else turn
    moving["status"] = STATUS[message.status]
    return _position(message), moving, {"ais_class": "A"}


def _class_b(message: Message) -> Parts:
    return _position(message), _moving("ship", message) | {"heading_deg": _heading(message)}, {"ais_class": "B"}


def _class_b_extended(message: Message) -> Parts:
    position, moving, static = _class_b(message)
    return position, moving, static | {"name": message.shipname or None} | _size(message)


def _long_range(message: Message) -> Parts:
    # Message 27 has whole knots and degrees: 63 and 511 stand for none.
    moving = {
        "kind": "ship",
        "speed_mps": None if message.speed >= 63 else message.speed * KNOT_MPS,
        "course_deg": None if message.course >= NO_COURSE else message.course,
        "status": STATUS[message.status],
    }
    position = None if abs(message.lat) > 90 or abs(message.lon) > 180 else (message.lon, message.lat, None)
    return position, moving, {}


def _aircraft(message: Message) -> Parts:
    # Message 9 has whole knots and metres: 1023 and 4095 stand for none.
    altitude = None if message.alt == 4095 else float(message.alt)
    speed = None if message.speed == 1023 else message.speed * KNOT_MPS
    moving = _moving("aircraft", message) | {"speed_mps": speed, "altitude_m": altitude}
    return _position(message, UNKNOWN if altitude is None else altitude), moving, {}


def _base_station(message: Message) -> Parts:
    return _position(message), {"kind": "base station"}, {}


def _aid_to_navigation(message: Message) -> Parts:
    moving = {"kind": "aid to navigation", "off_position": message.off_position, "virtual": message.virtual_aid}
    name = message.name + (message.name_ext or "")
    return _position(message), moving, {"name": name or None, "aid_type": AID_TYPE.get(message.aid_type)}


def _safety_text(message: Message) -> Parts:
    # A beacon tells by its text whether it is being tested: "SART TEST", "MOB ACTIVE" (ITU-R M.1371-5, annex 9).
    if SENDERS.get(message.mmsi // STARTS_AT) not in EMERGENCIES:
        return None, {}, {}
    return None, {}, {"test": "TEST" in message.text.upper()}


def _voyage(message: Message) -> Parts:
    static = {
        "name": message.shipname or None,
        "imo": message.imo or None,
        "callsign": message.callsign or None,
        "draught_m": message.draught or None,
        "destination": message.destination or None,
    }
    return None, {}, static | _size(message)


def _static_b(message: Message) -> Parts:
    if message.partno == 0:
        return None, {}, {"name": message.shipname or None}
    static = {"callsign": message.callsign or None}
    # An auxiliary craft (MMSI 98xxxxxxx) sends its mother ship's MMSI in place of its size.
    if hasattr(message, "mothership_mmsi"):
        return None, {}, static | {"mothership_mmsi": message.mothership_mmsi or None}
    return None, {}, static | _size(message)


def _type(code: int) -> dict[str, Any]:
    return {"ship_type_code": code or None, "ship_type": SHIP_TYPE.get(code)}


_SIDES = ("to_bow", "to_stern", "to_port", "to_starboard")


def _size(message: Message) -> dict[str, Any]:
    length, width = message.to_bow + message.to_stern, message.to_port + message.to_starboard
    # ITU-R M.1371: a bow and a port of 0 say that it is not known where in the ship the antenna is.
    known = length and width and (message.to_bow or message.to_port)
    antenna = {f"{name}_m": getattr(message, name) for name in _SIDES} if known else {}
    return {"length_m": length or None, "width_m": width or None} | antenna


READERS: dict[int, Callable[[Message], Parts]] = {
    1: _class_a,
    2: _class_a,
    3: _class_a,
    4: _base_station,
    5: _voyage,
    9: _aircraft,
    14: _safety_text,
    18: _class_b,
    19: _class_b_extended,
    21: _aid_to_navigation,
    24: _static_b,
    27: _long_range,
}
