"""Decode GeoJSON features from lines, from a text sequence, or from one FeatureCollection.

References
----------
RFC 7946 (GeoJSON), RFC 8142 (GeoJSON text sequences).
"""

from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import shapely

from streaming.decoders.base import MAX_SAMPLE_BYTES, OUT_OF_RANGE, Decoded, Malformed, json_sample, on_earth
from streaming.decoders.encodings import AUTO, Recoder
from streaming.decoders.framing import TOO_LONG_DOCUMENT, TOO_LONG_LINE, Document, Lines
from streaming.decoders.options import option
from streaming.decoders.properties import check_null_values, check_properties, is_number, targets, translated
from streaming.decoders.time_texts import LocalTimeOptions, TimeTexts
from streaming.decoders.units import epoch_us
from streaming.elements import UNKNOWN, box_elements, element_schema
from streaming.language import gettext
from streaming.shorter_way import take_shorter_way
from streaming.spaces import EARTH, Space

FRAMINGS = ("lines", "sequence", "document")
RECORD_SEPARATOR = b"\x1e"


@dataclass(frozen=True)
class GeoJsonOptions(LocalTimeOptions):
    """Options of `GeoJsonDecoder`."""

    framing: str = option(
        "lines", "lines: a text a line; sequence: RFC 8142 record separators; document: one text", FRAMINGS
    )
    key: str = option("id", "property that names the object; where a feature lacks it, the feature's own id does")
    time: str = option("", "property with the time (ISO 8601, or epoch in s, ms, us or ns); empty: time of arrival")
    properties: Mapping = option(
        {},
        "what becomes of properties: a new name, with a unit where it is a number; others stay as they are",
        shape="targets",
    )
    null_values: Mapping = option({}, "values that mean none, by property", shape="value_lists")
    max_bytes: int = option(64_000_000, "longer lines or documents are malformed", minimum=1000)

    def __post_init__(self) -> None:
        """Check every field."""
        super().__post_init__()
        check_properties(self.properties)
        check_null_values(self.null_values, str | int | float, gettext("texts or numbers"))


@dataclass
class _Features:
    """Gathers the features and faults of one call; the boxes of all features are then computed together."""

    keys: list[str] = field(default_factory=list)
    times_us: list[int] = field(default_factory=list)
    properties: list[Mapping[str, Any]] = field(default_factory=list)
    geometries: list[dict] = field(default_factory=list)
    malformed: list[Malformed] = field(default_factory=list)

    def fault(self, reason: str, sample: bytes) -> None:
        self.malformed.append(Malformed(reason, sample[:MAX_SAMPLE_BYTES]))


class GeoJsonDecoder:
    """Decodes GeoJSON features: points to point elements, other geometries to boxes that carry the geometry as WKB.

    Parameters
    ----------
    options : GeoJsonOptions
    stream : str
    space : Space
    """

    options = GeoJsonOptions

    def __init__(self, options: GeoJsonOptions, stream: str, space: Space = EARTH) -> None:
        self._options, self._stream, self._space = options, stream, space
        self._targets = targets(options.properties)
        self._forms = TimeTexts(options.utc_offset_s, options.time_zone)
        separator = RECORD_SEPARATOR if options.framing == "sequence" else b"\n"
        self._lines = Lines(options.max_bytes, separator)
        self._document, self._recoder = Document(options.max_bytes), Recoder(AUTO)

    def feed(self, data: bytes, received_us: int) -> Decoded:
        """Decode all complete lines or texts of a sequence; keep a document until `finish`. See `Decoder.feed`."""
        features = _Features()
        return self._decoded(self._cut(self._recoder.feed(data), features), received_us, features)

    def finish(self, received_us: int) -> Decoded:
        """Decode the document, or a last text without an end; see `Decoder.finish`."""
        features = _Features()
        texts = self._cut(self._recoder.finish(), features)
        return self._decoded(texts + self._document.finish() + self._lines.finish(), received_us, features)

    def _cut(self, data: bytes, features: _Features) -> list[bytes]:
        """Return the texts that are complete, none of a document; count those that are too long."""
        texts: list[bytes] = []
        if self._options.framing == "document":
            too_long, reason = self._document.feed(data), TOO_LONG_DOCUMENT
        else:
            texts, too_long = self._lines.feed(data)
            reason = TOO_LONG_LINE
        for beginning in too_long:
            features.fault(reason, beginning)
        return texts

    def _decoded(self, texts: Iterable[bytes], received_us: int, features: _Features) -> Decoded:
        for text in texts:
            self._text(text.strip(b" \t\r\n\x1e").removeprefix(BOM_UTF8), received_us, features)
        return Decoded(self._elements(features), tuple(features.malformed))

    def _text(self, text: bytes, received_us: int, features: _Features) -> None:
        if not text:
            return
        try:
            content = orjson.loads(text)
        except orjson.JSONDecodeError:
            features.fault(gettext("not JSON"), text)
            return
        kind = content.get("type") if isinstance(content, dict) else None
        if kind == "Feature":
            self._feature(content, received_us, features)
        elif kind == "FeatureCollection" and isinstance(content.get("features"), list):
            for feature in content["features"]:
                self._feature(feature, received_us, features)
        else:
            features.fault(gettext("not a feature"), text)

    def _feature(self, feature: Any, received_us: int, features: _Features) -> None:
        reason = _fault(feature)
        if reason:
            features.fault(reason, json_sample(feature))
            return
        properties = feature.get("properties") or {}
        key = _key(properties.get(self._options.key)) or _key(feature.get("id"))
        time_us = self._time_us(properties.get(self._options.time)) if self._options.time else received_us
        if key is None or time_us is None:
            features.fault(gettext("feature without key") if key is None else "time", json_sample(feature))
            return
        features.keys.append(key)
        features.times_us.append(time_us)
        features.properties.append(translated(properties, self._targets, self._options.null_values))
        features.geometries.append(feature["geometry"])

    def _time_us(self, value: Any) -> int | None:
        if isinstance(value, str):
            return self._forms.us(value)
        return epoch_us(value) if is_number(value) else None

    def _elements(self, features: _Features) -> pa.Table:
        """Return the elements of the features that lie on earth; count the others as malformed."""
        count = len(features.keys)
        if not count:
            return element_schema(self._space).empty_table()
        bounds, wkb = np.full((count, 2 * self._space.n), np.nan), np.full(count, None)
        is_point = np.array([_is_point(geometry) for geometry in features.geometries])
        self._points(features, np.flatnonzero(is_point), bounds)
        self._shapes(features, np.flatnonzero(~is_point), bounds, wkb)
        bad = np.isnan(bounds).any(axis=1)
        for row in np.flatnonzero(bad):
            features.fault(OUT_OF_RANGE if is_point[row] else "geometry", json_sample(features.geometries[row]))
        table = box_elements(
            self._stream,
            features.keys,
            features.times_us,
            np.where(bad[:, None], 0.0, bounds),
            features.properties,
            wkb.tolist(),
            self._space,
        )
        return table.filter(pa.array(~bad)) if bad.any() else table

    def _points(self, features: _Features, rows: np.ndarray, bounds: np.ndarray) -> None:
        n = self._space.n
        for row in rows:
            coordinates = features.geometries[row]["coordinates"][:n]
            if on_earth(*coordinates[:2]):
                bounds[row, :n], bounds[row, n:] = -np.inf, np.inf
                if coordinates[-1] is None:  # devices say so that they do not know their altitude
                    bounds[row, 2] = UNKNOWN
                    coordinates = coordinates[:2]
                bounds[row, : len(coordinates)] = bounds[row, n : n + len(coordinates)] = coordinates

    def _shapes(self, features: _Features, rows: np.ndarray, bounds: np.ndarray, wkb: np.ndarray) -> None:
        n = self._space.n
        texts = np.array([orjson.dumps(features.geometries[row]).decode() for row in rows], dtype=object)
        shapes = shapely.from_geojson(texts, on_invalid="ignore")
        if self._space.geographic:
            take_shorter_way(shapes)
        boxes = shapely.bounds(shapes)
        limits = np.array([-360.0, -90.0, 360.0, 90.0])
        good = (boxes[:, :2] >= limits[:2]).all(axis=1) & (boxes[:, 2:] <= limits[2:]).all(axis=1)
        rows, boxes = rows[good], boxes[good]
        bounds[rows, :n], bounds[rows, n:] = -np.inf, np.inf
        bounds[rows, :2], bounds[rows, n : n + 2] = boxes[:, :2], boxes[:, 2:]
        wkb[rows] = shapely.to_wkb(shapes[good])


def _fault(feature: Any) -> str | None:
    """Return the reason why a value is not a feature with a geometry, or None."""
    if not isinstance(feature, dict) or feature.get("type") != "Feature":
        return gettext("not a feature")
    if not isinstance(feature.get("properties") or {}, dict):
        return gettext("not a feature")
    if not isinstance(feature.get("geometry"), dict):
        return gettext("feature without geometry")
    return None if json_sample(feature) else gettext("nested too deep")


def _key(value: Any) -> str | None:
    """Return a text or a number as a key, or None if the value is neither, or empty."""
    return (str(value) or None) if isinstance(value, str) or is_number(value) else None


def _is_point(geometry: dict[str, Any]) -> bool:
    """Return whether a geometry is a point whose coordinates are two or more numbers; the altitude may be null."""
    coordinates = geometry.get("coordinates")
    if geometry.get("type") != "Point" or not isinstance(coordinates, list) or len(coordinates) < 2:
        return False
    return all(map(is_number, coordinates)) or (coordinates[2:] == [None] and all(map(is_number, coordinates[:2])))
