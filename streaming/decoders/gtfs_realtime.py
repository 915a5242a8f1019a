"""Decode GTFS-Realtime VehiclePositions.

References
----------
https://gtfs.org/documentation/realtime/reference/
"""

import math
from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from google.transit import gtfs_realtime_pb2 as gtfs

from streaming.decoders.base import NO_POSITION, OUT_OF_RANGE, Points
from streaming.decoders.documents import DocumentDecoder
from streaming.decoders.units import epoch_us
from streaming.language import gettext

VEHICLE = gtfs.VehiclePosition


def _words(enumeration: Any) -> Mapping[int, str]:
    return {code: name.lower().replace("_", " ") for name, code in enumeration.items()}


STATUSES, OCCUPANCIES = _words(VEHICLE.VehicleStopStatus), _words(VEHICLE.OccupancyStatus)
CONGESTIONS = _words(VEHICLE.CongestionLevel)
# Few feeds have fewer digits behind the point, and none has more than these numbers hold.
DECIMALS = (4, 5, 6, 7)
# Nine digits are enough for every number of single precision; most were written with fewer.
DIGITS = (7, 8, 9)
_SINGLE = Struct("f")


class GtfsRealtimeDecoder(DocumentDecoder):
    """Decodes the vehicle positions of a feed message; ignores trip updates and alerts. See `DocumentDecoder`."""

    def _read(self, document: bytes, received_us: int, points: Points) -> None:
        feed = gtfs.FeedMessage()
        try:
            feed.ParseFromString(document)
        except DecodeError:
            points.fault(gettext("not GTFS-Realtime"), document)
            return
        feed_us = epoch_us(feed.header.timestamp) if feed.header.timestamp else received_us
        for entity in feed.entity:
            if entity.is_deleted or not entity.HasField("vehicle") or not entity.vehicle.HasField("position"):
                continue
            reason = _add(entity, feed_us, points)
            if reason:
                points.fault(reason, entity.SerializePartialToString())
        points.coordinates = _decimals(points.coordinates)


def _add(entity: gtfs.FeedEntity, feed_us: int | None, points: Points) -> str | None:
    """Add a vehicle; return the reason why it cannot be read, or None."""
    vehicle = entity.vehicle
    time_us = epoch_us(vehicle.timestamp) if vehicle.timestamp else feed_us
    if time_us is None:
        return "time"
    if not (key := _key(vehicle)):
        return gettext("vehicle without id")
    if not (vehicle.position.HasField("longitude") and vehicle.position.HasField("latitude")):
        return NO_POSITION
    properties = _properties(vehicle)
    # Protobuf returns a text that is not UTF-8 as bytes.
    if bytes in map(type, (key, vehicle.trip.start_date, vehicle.trip.start_time, *properties.values())):
        return "encoding"
    position = (vehicle.position.longitude, vehicle.position.latitude, None)
    return None if points.add(key, time_us, position, properties) else OUT_OF_RANGE


def _key(vehicle: gtfs.VehiclePosition) -> str:
    """Return what names a vehicle from one feed message to the next; the id of its entity need not.

    It is its own id, else its trip with the date and the time at which it starts, if they are told, else its label or
    its plate. A trip without an id is its route with the direction, if the date and time are told.
    """
    if vehicle.vehicle.id.strip():
        return vehicle.vehicle.id
    trip = vehicle.trip
    named = [trip.trip_id] if trip.trip_id else []
    if not named and trip.route_id and trip.start_date and trip.start_time:
        named = [trip.route_id, str(trip.direction_id) if trip.HasField("direction_id") else ""]
    if not named:
        return vehicle.vehicle.label or vehicle.vehicle.license_plate
    # Formatted, since a text that is not UTF-8 is bytes.
    return " ".join(f"{part}" for part in (*named, trip.start_date, trip.start_time) if part)


def _decimals(coordinates: Sequence[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Return places with the shortest decimals that are these numbers of single precision, as their sender wrote."""
    singles = np.array(coordinates, dtype=np.float64).reshape(-1, 3)
    shortest = singles.copy()
    for digits in reversed(DECIMALS):
        decimals = np.round(singles, digits)
        fits = decimals.astype(np.float32) == singles
        shortest[fits] = decimals[fits]
    return [(lon, lat, height) for lon, lat, height in shortest.tolist()]


def _properties(vehicle: gtfs.VehiclePosition) -> dict[str, Any]:
    trip, position, described = vehicle.trip, vehicle.position, vehicle.vehicle
    properties = {
        "kind": "vehicle",
        "vehicle_id": described.id or None,
        "label": described.label or None,
        "license_plate": described.license_plate or None,
        "route_id": trip.route_id or None,
        "trip_id": trip.trip_id or None,
        "direction_id": trip.direction_id if trip.HasField("direction_id") else None,
        "stop_id": vehicle.stop_id or None,
        "speed_mps": None if (speed := _number(position, "speed")) is None else single(speed),
        "course_deg": None if (course := _number(position, "bearing")) is None else single(course),
        "odometer_m": _number(position, "odometer"),  # of double precision
        "current_status": _word(vehicle, "current_status", STATUSES),
        "occupancy": _word(vehicle, "occupancy_status", OCCUPANCIES),
        "congestion": _word(vehicle, "congestion_level", CONGESTIONS),
    }
    return {name: value for name, value in properties.items() if value is not None}


def _number(message: gtfs.Position, name: str) -> float | None:
    if not message.HasField(name):
        return None
    number = getattr(message, name)
    return number if math.isfinite(number) else None


def single(number: float) -> float:
    """Return the shortest decimal that is a number of single precision, as its sender wrote it.

    Examples
    --------
    >>> single(12.300000190734863), single(83886.078125)
    (12.3, 83886.08)
    """
    if number == int(number):
        return number
    for digits in DIGITS:
        decimal = float(f"{number:.{digits}g}")
        if _SINGLE.unpack(_SINGLE.pack(decimal))[0] == number:
            return decimal
    return number


def _word(message: gtfs.VehiclePosition, name: str, words: Mapping[int, str]) -> str | None:
    return words.get(getattr(message, name)) if message.HasField(name) else None
