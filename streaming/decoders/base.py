"""The interface of every decoder: it takes bytes and returns elements and faults, without clock, input or output."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import orjson
import pyarrow as pa

from streaming.decoders.options import Options
from streaming.elements import UNKNOWN, element_schema, point_elements
from streaming.language import gettext_noop
from streaming.spaces import Space

MAX_SAMPLE_BYTES = 200
LONGITUDE_LIMIT_DEG = 180.0
LATITUDE_LIMIT_DEG = 90.0
OUT_OF_RANGE = gettext_noop("position out of range")
NO_POSITION = gettext_noop("no position")
NULL_ISLAND = gettext_noop("null island")

# Longitude and latitude in degrees, and the altitude in metres: None for what has none, such as a ship, and `UNKNOWN`
# where it has one that is not known.
Position = tuple[float, float, float | None]


@dataclass(frozen=True)
class Malformed:
    """A piece of input that could not be decoded.

    Parameters
    ----------
    reason : str
        One of the few reasons that docs/decoders.md lists for the decoder.
    sample : bytes
        The offending bytes, at most `MAX_SAMPLE_BYTES`.
    """

    reason: str
    sample: bytes


@dataclass(frozen=True)
class Decoded:
    """What one call of a decoder returned.

    Parameters
    ----------
    elements : pyarrow.Table
        With `streaming.elements.element_schema`, in the order of the input.
    malformed : tuple of Malformed
        The pieces of input that could not be decoded.
    """

    elements: pa.Table
    malformed: tuple[Malformed, ...] = ()


class Decoder(Protocol):
    """Turns the bytes of one stream into elements, which are the same however the bytes are cut."""

    options: type[Options]

    def __init__(self, options: Any, stream: str, space: Space) -> None:
        """Make a decoder for the stream named `stream`, whose elements lie in `space`."""

    def feed(self, data: bytes, received_us: int) -> Decoded:
        """Decode the complete pieces of the bytes so far; keep the rest, within a bound.

        A decoder may hold elements whose time is not known yet, if it has an attribute `waiting` that is then true.
        While it is, the decoder is fed empty bytes every second, so that it can return elements that waited too long.

        Parameters
        ----------
        data : bytes
        received_us : int
            Time of arrival in microseconds since 1970, for elements that carry no time of their own.
        """

    def finish(self, received_us: int) -> Decoded:
        """Decode the rest, since the input (a file, a connection, a document) ended; more may be fed afterwards."""


def on_earth(lon: float | None, lat: float | None) -> bool:
    """Return whether a position is finite, with a latitude within 90 degrees and a longitude within 180 degrees.

    Examples
    --------
    >>> on_earth(180, -90), on_earth(float("nan"), 0), on_earth(181, 0)
    (True, False, False)
    """
    return (
        lon is not None
        and lat is not None
        and -LONGITUDE_LIMIT_DEG <= lon <= LONGITUDE_LIMIT_DEG
        and -LATITUDE_LIMIT_DEG <= lat <= LATITUDE_LIMIT_DEG
    )


def json_sample(value: Any) -> bytes:
    """Return the beginning of a value as JSON; empty if the value is nested too deep to be written."""
    try:
        return orjson.dumps(value)[:MAX_SAMPLE_BYTES]
    except orjson.JSONEncodeError:
        return b""


def altitude_of(properties: Mapping[str, Any]) -> float:
    """Return the altitude of an aircraft, given its properties: 0 on the ground, `UNKNOWN` if nothing tells it.

    Examples
    --------
    >>> altitude_of({"altitude_m": 150.0}), altitude_of({"on_ground": True}), altitude_of({})
    (150.0, 0.0, inf)
    """
    told = properties.get("altitude_m", properties.get("altitude_geometric_m"))
    if told is None:
        return 0.0 if properties.get("on_ground") else UNKNOWN
    return float(told)


class Points:
    """Gathers the point elements and the faults of one call of a decoder.

    Parameters
    ----------
    stream : str
    space : Space
    """

    def __init__(self, stream: str, space: Space) -> None:
        self.stream, self.space = stream, space
        self.keys: list[str] = []
        self.times_us: list[int] = []
        self.coordinates: list[tuple[float, float, float]] = []
        self.properties: list[Mapping] = []
        self.malformed: list[Malformed] = []

    def add(self, key: str, time_us: int, position: Position, properties: Mapping) -> bool:
        """Add an element and return True; add nothing and return False if its position is not on earth.

        Parameters
        ----------
        key : str
        time_us : int
            Event time in microseconds since 1970.
        position : (longitude, latitude, altitude_m)
            In degrees and metres; see `Position`.
        properties : mapping
        """
        lon, lat, altitude = position
        if not on_earth(lon, lat):
            return False
        self.keys.append(key)
        self.times_us.append(time_us)
        self.coordinates.append((lon, lat, math.nan if altitude is None else altitude))
        self.properties.append(properties)
        return True

    def fault(self, reason: str, sample: bytes) -> None:
        """Count a piece of input as malformed."""
        self.malformed.append(Malformed(reason, sample[:MAX_SAMPLE_BYTES]))

    def decoded(self) -> Decoded:
        """Return the gathered elements and faults."""
        if not self.keys:
            return Decoded(element_schema(self.space).empty_table(), tuple(self.malformed))
        coordinates = np.array(self.coordinates)[:, : self.space.n]
        table = point_elements(self.stream, self.keys, self.times_us, coordinates, self.properties, space=self.space)
        return Decoded(table, tuple(self.malformed))
