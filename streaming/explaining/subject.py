"""The element that an explanation is about."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from streaming.elements import bounds_of, box_elements, stream_number
from streaming.operators.elements import Elements
from streaming.operators.places import middles
from streaming.spaces import Space
from streaming.udf.base import shapes_of


@dataclass(frozen=True)
class Subject:
    """One element of a stream.

    Parameters
    ----------
    stream : str
    table : pyarrow.Table
        One row, with `elements.element_schema`.
    space : Space
    """

    stream: str
    table: pa.Table
    space: Space

    @classmethod
    def of(
        cls,
        stream: str,
        key: str,
        time_us: int,
        bounds: np.ndarray,
        properties: Mapping[str, Any],
        space: Space,
        geometry: bytes | None = None,
    ) -> "Subject":
        """Return the element with a box, float64 of shape (2n,), and perhaps a geometry, WKB."""
        rows = [key], np.array([time_us]), np.asarray(bounds, dtype=np.float64)[None], [properties], [geometry]
        return cls(stream, box_elements(stream, *rows, space=space), space)

    @functools.cached_property
    def elements(self) -> Elements:
        """The element as operators see it."""
        shaped = self.table["geometry"].null_count == 0
        return Elements(np.array([stream_number(self.stream)]), self.bounds, self.table.take, has_geometries=shaped)

    @functools.cached_property
    def bounds(self) -> np.ndarray:
        """Its box, float64 of shape (1, 2n)."""
        return bounds_of(self.table["bounds"])

    @functools.cached_property
    def shape(self) -> np.ndarray:
        """Its geometry, or its box as one, an array of shape (1,)."""
        return shapes_of(self.elements.batch(np.zeros(1, dtype=np.int64)))

    @property
    def place(self) -> tuple[float, float]:
        """The middle of its box in the first two dimensions."""
        x, y = middles(self.bounds, self.space)[0, :2].tolist()
        return x, y

    @property
    def key(self) -> str:
        """Its key."""
        return self.table["key"][0].as_py()

    @property
    def key_hash(self) -> np.ndarray:
        """The hash of its key, int64 of shape (1,)."""
        return self.table["key_hash"].to_numpy()

    @functools.cached_property
    def properties(self) -> dict[str, Any]:
        """Its properties."""
        return orjson.loads(self.table["properties"][0].as_py() or "{}")
