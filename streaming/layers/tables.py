"""The tables of a file, of which an import reads one or all: layers, folders of KML, kinds of GPX."""

from dataclasses import dataclass
from pathlib import Path

import pyogrio

from streaming.language import gettext
from streaming.layers.features import InvalidLayer

# Asks for all tables as one layer.
ALL = "*"
# These formats have a single table. To list the tables, GDAL would read the whole file.
SINGLE = (".geojson", ".json", ".geojsonl", ".fgb")
# The points of the lines in GPX, which are tables of their own; they are read only if they are named.
GPX_POINTS = ("route_points", "track_points")


@dataclass(frozen=True)
class FileTable:
    """A table with geometries.

    Parameters
    ----------
    name : str
    kind : str
        The kind of its geometries; ``Unknown`` if they may differ.
    features : int or None
        How many it has, if that is known.
    """

    name: str
    kind: str
    features: int | None


def tables_in(path: Path) -> list[FileTable]:
    """Return the tables of a file that have geometries, without those that are empty unless all are.

    Raises
    ------
    InvalidLayer
        When no table has geometries.
    """
    listed = pyogrio.list_layers(path)
    tables = [FileTable(str(name), str(kind), _features(path, str(name))) for name, kind in listed if kind is not None]
    if not tables:
        raise InvalidLayer(
            "a layer needs geometries; got the tables %(tables)s",
            tables=", ".join(str(name) for name, _ in listed)[:300] or gettext("(none)"),
        )
    return [table for table in tables if table.features != 0] or tables[:1]


def _features(path: Path, table: str) -> int | None:
    # The points of a track are as many as to be counted only once, when they are read.
    count = pyogrio.read_info(path, layer=table, force_feature_count=path.suffix == ".gpx")["features"]
    return count if count >= 0 else None


def chosen(path: Path, wanted: str) -> list[str | None]:
    """Return the names of the tables to read; None stands for the only one of its format.

    Parameters
    ----------
    path : Path
    wanted : str
        The name of a table, `ALL`, or empty: then the only table that has features, or all folders of KML.

    Raises
    ------
    InvalidLayer
        When there is no such table, or there are several and none is named.
    """
    if path.suffix in SINGLE and wanted in ("", ALL):
        return [None]
    known = [str(name) for name, kind in pyogrio.list_layers(path) if kind is not None]
    if wanted and wanted != ALL:
        if wanted not in known:
            raise InvalidLayer(
                "table must be one of %(names)s; got %(wanted)s", names=", ".join(known)[:300], wanted=repr(wanted)
            )
        return [wanted]
    names = [table.name for table in tables_in(path) if path.suffix != ".gpx" or table.name not in GPX_POINTS]
    if len(names) > 1 and not wanted and path.suffix != ".kml":
        raise InvalidLayer(
            "the table must be named where a file has several, or be * for all; got %(names)s",
            names=", ".join(names)[:300],
        )
    return [*names]
