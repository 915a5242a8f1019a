"""Read the features of a file with GDAL, in Arrow batches, with their keys and properties."""

import mmap
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyogrio

from streaming.language import gettext, thousands
from streaming.layers.features import InvalidLayer
from streaming.layers.job import ImportOptions
from streaming.layers.unpack import SEQUENCE, Unpacked, count_in

# These drivers of GDAL read the file and nothing else. Others follow addresses, folders or programs that a file names.
DRIVERS = ("GeoJSON", "GeoJSONSeq", "TopoJSON", "GPKG", "ESRI Shapefile", "KML", "LIBKML", "FlatGeobuf", "GPX")
# RFC 7946 section 4: the coordinates of GeoJSON are longitude and latitude of WGS 84.
GEOJSON_SUFFIXES = (".geojson", ".json", ".topojson", SEQUENCE)
# These formats have a single table. To list the tables, GDAL would read the whole file.
SINGLE = (".geojson", ".json", SEQUENCE, ".fgb")
BATCH_ROWS = 16_384
# A reference system given by a link (GeoJSON of 2008, section 3.3.2). It contains no arrays, and the text around it
# does, so the pattern stops at brackets.
LINKED_SYSTEM = re.compile(rb'"crs"\s*:\s*\{[^\[\]]{0,2000}?"type"\s*:\s*"link"[^\[\]]{0,2000}')
# Columns that say how Google Earth draws a feature; GDAL fills them with defaults.
KML_STYLE = ("altitudeMode", "tessellate", "extrude", "visibility", "drawOrder", "icon")


@dataclass(frozen=True)
class Rows:
    """A batch of a file's features.

    Parameters
    ----------
    keys : list of str, length N
    geometry : pyarrow.Array of binary, length N
        WKB or null.
    properties : list of str, length N
        JSON objects.
    """

    keys: list[str]
    geometry: pa.Array
    properties: list[str]


@dataclass(frozen=True)
class OpenedFile:
    """An opened file.

    Parameters
    ----------
    crs : str or None
        The coordinate reference system, if it is known.
    total : int or None
        The approximate number of features, if it is known.
    batches : iterator of Rows
    """

    crs: str | None
    total: int | None
    batches: Iterator[Rows]


@contextmanager
def opened(file: Unpacked, wanted: ImportOptions) -> Iterator[OpenedFile]:
    """Open a file for reading; yield a `OpenedFile`.

    If an archive held several files, each feature gets the file's name as a property, and as a prefix of its key unless
    `wanted` names a key.

    Raises
    ------
    InvalidLayer
        When GDAL cannot read the file, when it has no table with geometry or several, or when `wanted` does not fit it.
    """
    path = file.path
    with said_clearly(path):
        if path.suffix in GEOJSON_SUFFIXES and not wanted.crs:
            _check_system(path)
        table = _table(path, wanted.table)
        options = {"layer": table, "use_pyarrow": True, "batch_size": BATCH_ROWS, "return_fids": True}
        with pyogrio.open_arrow(path, datetime_as_string=True, **options) as (meta, reader):
            geometry = meta["geometry_name"] or "wkb_geometry"
            if geometry not in reader.schema.names:
                raise InvalidLayer(
                    "a layer needs geometries; got the columns %(fields)s", fields=", ".join(map(str, meta["fields"]))
                )
            read = _reader_of(reader.schema, meta["fid_column"] or "OGC_FID", geometry, wanted.key, file)
            crs = wanted.crs or meta["crs"] or ("OGC:CRS84" if path.suffix in GEOJSON_SUFFIXES else None)
            yield OpenedFile(crs, _total(path, table), map(read, reader))


@contextmanager
def said_clearly(path: Path) -> Iterator[None]:
    """Raise the errors of GDAL as InvalidLayer, with GDAL's message."""
    try:
        yield
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError) as error:
        words = re.sub(f"'?{re.escape(str(path))}'?", "the file", str(error)).split("; It might help")[0]
        raise InvalidLayer("a layer's file must be whole and of a known kind; got: %(words)s", words=words) from None
    except (pyogrio.errors.FeatureError, pyogrio.errors.GeometryError, pyogrio.errors.FieldError) as error:
        raise InvalidLayer("a layer's file must be whole; got: %(error)s", error=error) from None
    except UnicodeDecodeError as error:
        raise InvalidLayer(
            "the texts of a layer's file must be UTF-8, or what the file says; got: %(error)s", error=error
        ) from None
    except (pa.ArrowException, OSError) as error:
        raise InvalidLayer("a layer's file must be whole; got: %(error)s", error=error) from None


def _table(path: Path, wanted: str) -> str | None:
    """Return the name of the table to read, or None if the format has a single table."""
    if path.suffix in SINGLE and not wanted:
        return None
    tables = pyogrio.list_layers(path)
    names = [str(name) for name, kind in tables if kind is not None]
    if wanted:
        if wanted not in names:
            raise InvalidLayer(
                "table must be one of %(names)s; got %(wanted)s", names=", ".join(names)[:300], wanted=repr(wanted)
            )
        return wanted
    if not names:
        raise InvalidLayer(
            "a layer needs geometries; got the tables %(tables)s",
            tables=", ".join(str(name) for name, _ in tables)[:300] or gettext("(none)"),
        )
    if len(names) > 1:
        raise InvalidLayer(
            "the table must be named where a file has several; got %(names)s", names=", ".join(names)[:300]
        )
    return names[0]


def _total(path: Path, table: str | None) -> int | None:
    if path.suffix == SEQUENCE:
        return count_in(path, b"\n") or None
    if path.suffix in GEOJSON_SUFFIXES:
        return count_in(path, b'"geometry"') or None
    count = pyogrio.read_info(path, layer=table)["features"]
    return count if count >= 0 else None


def _check_system(path: Path) -> None:
    """Raise InvalidLayer if a GeoJSON file gives its reference system by a link, which is never followed."""
    if not path.is_file() or not path.stat().st_size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        found = LINKED_SYSTEM.search(text)
        if found is None:
            return
        told = re.search(rb'"href"\s*:\s*"([^"]*)"', found[0])
    raise InvalidLayer(
        "the reference system of GeoJSON must not be a link; name it, as crs, such as EPSG:4326; got %(told)s",
        told=f"{(told[1] if told else b'no address').decode(errors='replace'):.200}",
    )


def _reader_of(
    schema: pa.Schema, fid: str, geometry: str, key: str, file: Unpacked
) -> Callable[[pa.RecordBatch], Rows]:
    """Return the function that turns a record batch of the file into `Rows`."""
    dropped = {fid, geometry, *(KML_STYLE if file.path.suffix == ".kml" else ())}
    columns = [name for name in schema.names if name not in dropped]
    if key and key not in columns:
        raise InvalidLayer(
            "key must be a property of the features: %(columns)s; got %(key)s",
            columns=", ".join(columns)[:300] or gettext("(none)"),
            key=repr(key),
        )
    # GDAL gives a GeoJSON feature's id as a column of this name if it is text, and otherwise as the feature's number.
    named = key or ("id" if "id" in columns else "")
    prefix = f"{file.name}/" if file.name and not key else ""

    def read(batch: pa.RecordBatch) -> Rows:
        values = {name: _values(batch.column(schema.get_field_index(name))) for name in columns}
        numbers = batch.column(schema.get_field_index(fid)).to_pylist()
        keys = (
            numbers if not named else [n if k in (None, "") else k for k, n in zip(values[named], numbers, strict=True)]
        )
        if file.name:
            values[_free_name(values)] = [file.name] * len(numbers)
        return Rows(
            [prefix + _text(k) for k in keys],
            _binary(batch.column(schema.get_field_index(geometry))),
            _json(values, batch),
        )

    return read


def _free_name(values: Mapping[str, list[Any]]) -> str:
    """Return a name, which no other property has, for the property with the name of a feature's file."""
    name = "file"
    while name in values:
        name += "_"
    return name


def _values(column: pa.Array) -> list[Any]:
    """Return the values of a column as JSON values; binary values become null."""
    if isinstance(column.type, pa.BaseExtensionType):
        return [None if text is None else _nested(text) for text in column.cast(pa.string()).to_pylist()]
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return [None] * len(column)
    return column.to_pylist()


def _nested(text: str) -> Any:
    """Return the value of a text that GDAL marks as JSON, or the text itself if it is not JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _text(key: Any) -> str:
    if isinstance(key, float) and key.is_integer():
        return str(int(key))
    return key if isinstance(key, str) else orjson.dumps(key).decode()


def _json(values: Mapping[str, list[Any]], batch: pa.RecordBatch) -> list[str]:
    """Return the properties of each row as JSON text, without nulls."""
    if not values:
        return ["{}"] * batch.num_rows
    rows = zip(*values.values(), strict=True)
    objects = ({name: value for name, value in zip(values, row, strict=True) if value is not None} for row in rows)
    return [orjson.dumps(it).decode() for it in objects]


def _binary(column: pa.Array) -> pa.Array:
    storage = column.storage if isinstance(column.type, pa.BaseExtensionType) else column
    return storage.cast(pa.binary())


def check_sequence(path: Path, features: int) -> None:
    """Check that GDAL skipped no line of a GeoJSON text sequence; it skips lines that it cannot read.

    Parameters
    ----------
    path : Path
    features : int
        The number of features that GDAL read.

    Raises
    ------
    InvalidLayer
        When lines were skipped; the error has the number of the first line that is not JSON, if there is one.
    """
    if sum(1 for _ in _texts_of(path)) == features:
        return
    for number, text in _texts_of(path):
        try:
            orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise InvalidLayer(
                "line %(number)s must be a GeoJSON feature; got %(text)s: %(error)s",
                number=number,
                text=repr(text[:80].decode(errors="replace")),
                error=error,
            ) from None
    raise InvalidLayer(
        "every line must be a GeoJSON feature; got %(features)s features in more lines",
        features=thousands(features),
    )


def _texts_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers from 1 on."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if text := line.strip(b"\x1e \t\r\n"):  # RFC 8142 section 2: a record separator before each text
                yield number, text
