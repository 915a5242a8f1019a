"""What every decoder is: bytes in, elements and faults out; no clock, no input or output."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import orjson
import pyarrow as pa

from streaming.decoders.options import Options
from streaming.elements import element_schema, point_elements
from streaming.spaces import Space

MAX_SAMPLE_BYTES = 200
LONGITUDE_LIMIT_DEG = 360.0
LATITUDE_LIMIT_DEG = 90.0
OUT_OF_RANGE = "position out of range"


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
    """What one call of a decoder gave.

    Parameters
    ----------
    elements : pyarrow.Table
        With `streaming.elements.element_schema`, in the order of the input.
    malformed : tuple of Malformed
    """

    elements: pa.Table
    malformed: tuple[Malformed, ...] = ()


class Decoder(Protocol):
    """Turns the bytes of one stream into elements; any cut of the bytes gives the same elements."""

    options: type[Options]

    def __init__(self, options: Any, stream: str, space: Space) -> None:
        """Decode for the stream of that name, in that space."""

    def feed(self, data: bytes, received_us: int) -> Decoded:
        """Decode what is complete in the bytes so far; keep the rest, within a bound.

        A decoder may hold elements whose time is not known yet, if it has an attribute `waiting` that says so. Then it
        is fed with no bytes every second, to give up what waited too long.

        Parameters
        ----------
        data : bytes
        received_us : int
            Time of arrival, for elements that carry no time of their own.
        """

    def finish(self, received_us: int) -> Decoded:
        """Decode what is kept: the input (a file, a connection, a document) ended. The decoder may be fed again."""


def on_earth(lon: float | None, lat: float | None) -> bool:
    """Return whether a position is finite, its latitude within 90 degrees and its longitude within one turn of 0.

    Examples
    --------
    >>> on_earth(190, -90), on_earth(float("nan"), 0), on_earth(0, 91)
    (True, False, False)
    """
    return (
        lon is not None
        and lat is not None
        and -LONGITUDE_LIMIT_DEG <= lon <= LONGITUDE_LIMIT_DEG
        and -LATITUDE_LIMIT_DEG <= lat <= LATITUDE_LIMIT_DEG
    )


def json_sample(value: Any) -> bytes:
    """Return the beginning of a value as JSON; empty where the value is nested too deep to be written."""
    try:
        return orjson.dumps(value)[:MAX_SAMPLE_BYTES]
    except orjson.JSONEncodeError:
        return b""


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

    def add(self, key: str, time_us: int, position: tuple[float, float, float | None], properties: Mapping) -> bool:
        """Add an element; return False, and add nothing, where its position is not on earth.

        Parameters
        ----------
        position : (longitude, latitude, altitude_m)
            The altitude is None where the element has none.
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
        """Return all that was gathered."""
        if not self.keys:
            return Decoded(element_schema(self.space).empty_table(), tuple(self.malformed))
        coordinates = np.array(self.coordinates)[:, : self.space.n]
        table = point_elements(self.stream, self.keys, self.times_us, coordinates, self.properties, space=self.space)
        return Decoded(table, tuple(self.malformed))
