"""Filters that compare real geometries.

References
----------
BBoxDB Streams (2022), section 3.6.2: UserDefinedGeoJsonSpatialFilter and UserDefinedGeoJsonSpatialStrictFilter.
"""

import math
import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyarrow as pa
import shapely

from streaming.errors import InvalidFilter
from streaming.language import gettext
from streaming.operators.metres import closer_than, meets
from streaming.udf.base import shapes_of
from streaming.udf.equality import has_property, key_and_value

DISTANCE_M = 5.0
_DISTANCE = re.compile(r"(?:^|;)\s*distance\s*=([^;=]*)$")
_REGION = 2


class GeoJsonSpatialStrict:
    """Passes elements that intersect the argument, and pairs that intersect each other.

    For elements the argument is a GeoJSON geometry; without it all elements pass. For pairs the argument may be
    ``key:value``: then the element or the feature, or both, must have that property.
    """

    def filter_element(self, elements: pa.RecordBatch, argument: str) -> np.ndarray:
        """Tell which elements intersect the argument's geometry."""
        if not argument.strip():
            return np.ones(elements.num_rows, dtype=bool)
        return meets(shapes_of(elements), _geometry(argument))

    def filter_pair(self, elements: pa.RecordBatch, features: pa.RecordBatch, argument: str) -> np.ndarray:
        """Tell which pairs intersect."""
        return _pairs(elements, features, argument, meets)


class GeoJsonSpatial(GeoJsonSpatialStrict):
    """Passes what the strict filter passes, and pairs that are closer than 5 m, unless both geometries are areas.

    For pairs the argument is ``key:value``, ``distance=10`` (metres, instead of the 5), both as
    ``key:value;distance=10``, or empty.
    """

    def filter_pair(self, elements: pa.RecordBatch, features: pa.RecordBatch, argument: str) -> np.ndarray:
        """Tell which pairs are near enough."""
        wanted, limit_m = property_and_distance(argument)
        return _pairs(elements, features, wanted, lambda shapes, others: nearly_meets(shapes, others, limit_m))


def property_and_distance(argument: str) -> tuple[str, float]:
    """Return the two parts of ``key:value;distance=metres``. Each may be missing: then it is empty, or `DISTANCE_M`.

    Raises
    ------
    LookoutError
        If the distance is not a finite number, or negative.

    Examples
    --------
    >>> property_and_distance("name:Elizabeth Street;distance=10"), property_and_distance("lanes:4")
    (('name:Elizabeth Street', 10.0), ('lanes:4', 5.0))
    """
    match = _DISTANCE.search(argument)
    if match is None:
        return argument, DISTANCE_M
    try:
        metres = float(match[1])
    except ValueError:
        metres = math.nan
    if not 0 <= metres < math.inf:
        raise InvalidFilter(
            "distance must be a finite number of metres that is not negative; got %(match)s",
            match=f"{match[1]!r:.80}",
        )
    return argument[: match.start()], metres


def nearly_meets(shapes: np.ndarray, geometries: np.ndarray, limit_m: float) -> np.ndarray:
    """Tell which pairs intersect or, unless both are areas, are closer than `limit_m` metres; bool of shape (N,)."""
    met = meets(shapes, geometries)
    regions = (shapely.get_dimensions(shapes) == _REGION) & (shapely.get_dimensions(geometries) == _REGION)
    apart = np.flatnonzero(~met & ~regions)
    met[apart] = closer_than(shapes[apart], geometries[apart], limit_m)
    return met


def _pairs(
    elements: pa.RecordBatch,
    features: pa.RecordBatch,
    wanted: str,
    predicate: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> np.ndarray:
    """Tell which pairs satisfy the predicate and have the wanted property, if any, on at least one side."""
    passes = np.ones(elements.num_rows, dtype=bool)
    if wanted.strip():
        key, value = key_and_value(wanted)
        passes = has_property(elements, key, value) | has_property(features, key, value)
    chosen = pa.array(passes)
    passes[passes] = predicate(shapes_of(elements.filter(chosen)), shapes_of(features.filter(chosen)))
    return passes


@lru_cache(maxsize=256)
def _geometry(text: str) -> shapely.Geometry:
    """Return the geometry of GeoJSON text, prepared; raise LookoutError if it is none, empty or not valid."""
    try:
        geometry = shapely.from_geojson(text)
    except shapely.errors.GEOSException as error:
        raise InvalidFilter(
            "argument must be a GeoJSON geometry; got %(text)s: %(error)s", text=f"{text!r:.200}", error=error
        ) from None
    if geometry.is_empty or not geometry.is_valid:
        reason = gettext("an empty one") if geometry.is_empty else shapely.is_valid_reason(geometry)
        raise InvalidFilter("argument must be a valid GeoJSON geometry; got %(reason)s", reason=reason)
    shapely.prepare(geometry)
    return geometry
