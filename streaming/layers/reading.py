"""Read the features of a file with GDAL, in Arrow batches, with their keys and properties."""

import mmap
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyogrio

from streaming.language import gettext, gettext_noop
from streaming.layers.features import InvalidLayer
from streaming.layers.geometries import read_geometries
from streaming.layers.job import ImportOptions
from streaming.layers.sequences import sifted
from streaming.layers.tables import chosen
from streaming.layers.texts import TEXTS, codec_of, recoded, table_encoding, texts_of
from streaming.layers.unpack import SEQUENCE, Unpacked, count_in

# These drivers of GDAL read the file and nothing else. Others follow addresses, folders or programs that a file names.
DRIVERS = ("GeoJSON", "GeoJSONSeq", "TopoJSON", "GPKG", "ESRI Shapefile", "KML", "LIBKML", "FlatGeobuf", "GPX")
# RFC 7946 section 4: the coordinates of GeoJSON are longitude and latitude of WGS 84.
GEOJSON_SUFFIXES = (".geojson", ".json", ".topojson", SEQUENCE)
BATCH_ROWS = 16_384
# A reference system given by a link (GeoJSON of 2008, section 3.3.2). It contains no arrays, and the text around it
# does, so the pattern stops at brackets.
LINKED_SYSTEM = re.compile(rb'"crs"\s*:\s*\{[^\[\]]{0,2000}?"type"\s*:\s*"link"[^\[\]]{0,2000}')
LEADS_OUT = gettext_noop("its link to %(link)s was not followed, since it leads out of the file")
# Columns that say how Google Earth draws a feature; GDAL fills them with defaults.
KML_STYLE = ("altitudeMode", "tessellate", "extrude", "visibility", "drawOrder", "icon")


@dataclass(frozen=True)
class Rows:
    """A batch of a file's features.

    Parameters
    ----------
    keys : list of str, length N
    geometries : ndarray of shapely.Geometry or None, shape (N,)
    properties : list of str, length N
        JSON objects.
    notes : dict of int to str
        By row: what was done to a geometry to read it, or why it cannot be read.
    """

    keys: list[str]
    geometries: np.ndarray
    properties: list[str]
    notes: dict[int, str]


@dataclass(frozen=True)
class TableSource:
    """A table to read.

    Parameters
    ----------
    path : Path
        A file that GDAL opens, with texts in UTF-8 if it is a file of text.
    table : str or None
        None for the only table of a format.
    labels : dict of str to str
        Properties that each feature gets: the names of the file and of the table, where there are several. They are
        also the prefix of its key, unless a property has the keys.
    encoding : str or None
        The encoding of its texts, if GDAL cannot know it.
    left_out : list of (int, str)
        The numbers of lines that are left out, and why.
    """

    path: Path
    table: str | None
    labels: dict[str, str]
    encoding: str | None
    left_out: list[tuple[int, str]]


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


def sources_of(file: Unpacked, wanted: ImportOptions, tell: Callable[..., None]) -> list[TableSource]:
    """Return the tables of a file to read.

    Parameters
    ----------
    file : Unpacked
    wanted : ImportOptions
    tell : callable
        Called with a message about the whole file, and the values of the message by name.

    Raises
    ------
    InvalidLayer
        When GDAL cannot read the file, when it has no table with geometry or several, or when `wanted` does not fit it.
    """
    path, encoding = file.path, None
    for link in file.links:
        tell(LEADS_OUT, link=f"{link!r:.100}")
    if wanted.encoding:
        codec_of(wanted.encoding)
    with said_clearly(path):
        if path.suffix in TEXTS:
            path = recoded(path, wanted.encoding, tell)
        elif path.suffix == ".shp":
            encoding = table_encoding(path, wanted.encoding, tell)
        if path.suffix in GEOJSON_SUFFIXES and not wanted.crs:
            _check_system(path)
        path, left_out = sifted(path) if path.suffix == SEQUENCE else (path, [])
        tables = chosen(path, wanted.table)
        word = "folder" if path.suffix == ".kml" else "table"
        told = [{word: table} if table and len(tables) > 1 else {} for table in tables]
        named = {"file": file.name} if file.name else {}
        return [
            TableSource(path, table, named | label, encoding, left_out)
            for table, label in zip(tables, told, strict=True)
        ]


@contextmanager
def opened(source: TableSource, wanted: ImportOptions) -> Iterator[OpenedFile]:
    """Open a table for reading; yield a `OpenedFile`.

    Raises
    ------
    InvalidLayer
        When GDAL cannot read the table, or when `wanted` does not fit it.
    """
    path = source.path
    with said_clearly(path):
        options = {"layer": source.table, "use_pyarrow": True, "batch_size": BATCH_ROWS, "return_fids": True}
        with pyogrio.open_arrow(path, encoding=source.encoding, datetime_as_string=True, **options) as (meta, reader):
            geometry = meta["geometry_name"] or "wkb_geometry"
            if geometry not in reader.schema.names:
                raise InvalidLayer(
                    "a layer needs geometries; got the columns %(fields)s", fields=", ".join(map(str, meta["fields"]))
                )
            read = _reader_of(reader.schema, meta["fid_column"] or "OGC_FID", geometry, wanted.key, source)
            crs = wanted.crs or meta["crs"] or ("OGC:CRS84" if path.suffix in GEOJSON_SUFFIXES else None)
            yield OpenedFile(crs, _total(path, source.table), map(read, reader))


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
    except UnicodeDecodeError:
        raise InvalidLayer(
            "the names of a layer's properties must be UTF-8, or in the encoding that is named; got others"
        ) from None
    except (pa.ArrowException, OSError) as error:
        raise InvalidLayer("a layer's file must be whole; got: %(error)s", error=error) from None


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
    schema: pa.Schema, fid: str, geometry: str, key: str, source: TableSource
) -> Callable[[pa.RecordBatch], Rows]:
    """Return the function that turns a record batch of the file into `Rows`."""
    dropped = {fid, geometry, *(KML_STYLE if source.path.suffix == ".kml" else ())}
    columns = [name for name in schema.names if name not in dropped]
    if key and key not in columns:
        raise InvalidLayer(
            "key must be a property of the features: %(columns)s; got %(key)s",
            columns=", ".join(columns)[:300] or gettext("(none)"),
            key=repr(key),
        )
    # GDAL gives a GeoJSON feature's id as a column of this name if it is text, and otherwise as the feature's number.
    named = key or ("id" if "id" in columns else "")
    prefix = "" if key else "".join(f"{label}/" for label in source.labels.values())

    def read(batch: pa.RecordBatch) -> Rows:
        values = {name: _values(batch.column(schema.get_field_index(name))) for name in columns}
        numbers = batch.column(schema.get_field_index(fid)).to_pylist()
        keys = (
            numbers if not named else [n if k in (None, "") else k for k, n in zip(values[named], numbers, strict=True)]
        )
        for name, label in source.labels.items():
            values[_free_name(values, name)] = [label] * len(numbers)
        wkb = _binary(batch.column(schema.get_field_index(geometry)))
        shapes, notes = read_geometries(wkb, lambda rows: _linear(source, [numbers[row] for row in rows]))
        return Rows([prefix + _text(k) for k in keys], shapes, _json(values, batch), notes)

    return read


def _linear(source: TableSource, numbers: Sequence[int]) -> list[bytes | None]:
    """Return the geometries of features with lines in the place of curves, a vertex every 4 degrees of an arc.

    GDAL makes them where it reads without Arrow (``OGR_ARC_STEPSIZE``).
    """
    _, _, read, _ = pyogrio.raw.read(source.path, layer=source.table, columns=[], fids=numbers)
    return list(read)


def _free_name(values: Mapping[str, list[Any]], name: str) -> str:
    """Return a name, which no other property has, for a property with the name of a feature's file or table."""
    while name in values:
        name += "_"
    return name


def _values(column: pa.Array) -> list[Any]:
    """Return the values of a column as JSON values; binary values become null."""
    if isinstance(column.type, pa.BaseExtensionType):
        return [None if text is None else _nested(text) for text in texts_of(column.cast(pa.string()))]
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return [None] * len(column)
    if pa.types.is_date(column.type):
        return column.cast(pa.string()).to_pylist()  # a file may have years that Python's dates do not
    return texts_of(column)


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
