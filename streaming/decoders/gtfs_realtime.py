"""Decode GTFS-Realtime VehiclePositions.

References
----------
https://gtfs.org/documentation/realtime/reference/
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from google.transit import gtfs_realtime_pb2 as gtfs

from streaming.decoders.base import NO_POSITION, OUT_OF_RANGE, Points
from streaming.decoders.documents import DocumentDecoder
from streaming.decoders.units import epoch_us
from streaming.language import gettext

VEHICLE = gtfs.VehiclePosition
# Few feeds have fewer digits behind the point, and none has more than these numbers hold.
DECIMALS = (4, 5, 6, 7)


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
    texts = (key, vehicle.trip.start_date, vehicle.trip.start_time, *properties.values())
    if any(isinstance(value, bytes) for value in texts):
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
    key = " ".join(f"{part}" for part in (*named, trip.start_date, trip.start_time) if part)
    return key


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
    trip, position = vehicle.trip, vehicle.position
    properties = {
        "kind": "vehicle",
        "vehicle_id": vehicle.vehicle.id or None,
        "label": vehicle.vehicle.label or None,
        "license_plate": vehicle.vehicle.license_plate or None,
        "route_id": trip.route_id or None,
        "trip_id": trip.trip_id or None,
        "direction_id": trip.direction_id if trip.HasField("direction_id") else None,
        "stop_id": vehicle.stop_id or None,
        "speed_mps": _number(position, "speed"),
        "course_deg": _number(position, "bearing"),
        "odometer_m": _number(position, "odometer"),
        "current_status": _word(vehicle, "current_status", VEHICLE.VehicleStopStatus),
        "occupancy": _word(vehicle, "occupancy_status", VEHICLE.OccupancyStatus),
        "congestion": _word(vehicle, "congestion_level", VEHICLE.CongestionLevel),
    }
    return {name: value for name, value in properties.items() if value is not None}


def _number(message: gtfs.Position, name: str) -> float | None:
    # The numbers have single precision, so they hold no more than three digits behind the point.
    number = round(getattr(message, name), 3)
    return number if message.HasField(name) and math.isfinite(number) else None


def _word(message: gtfs.VehiclePosition, name: str, enumeration: Any) -> str | None:
    if not message.HasField(name):
        return None
    return enumeration.Name(getattr(message, name)).lower().replace("_", " ")
