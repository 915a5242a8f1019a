"""Read tiles from local files: MBTiles and PMTiles, which hold images or vector tiles."""

import contextlib
import mmap
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from pmtiles.reader import Reader
from pmtiles.tile import Compression, TileType

from streaming.errors import LookoutError

SUFFIXES = (".mbtiles", ".pmtiles")
TYPES = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp", "mvt": "application/x-protobuf"}
PMTILES = {TileType.PNG: "png", TileType.JPEG: "jpg", TileType.WEBP: "webp", TileType.MVT: "mvt"}
MBTILES = {"png": "png", "jpg": "jpg", "jpeg": "jpg", "webp": "webp", "pbf": "mvt"}
GZIPPED = b"\x1f\x8b"


class BrokenMap(LookoutError):
    """A file of tiles is missing, or is not a valid one."""


def map_format(folder: Path, name: str) -> str:
    """Return the format of a file's tiles, a key of `TYPES`.

    Parameters
    ----------
    folder : Path
        The folder in which files must lie.
    name : str
        Path of the file, relative to the folder.

    Raises
    ------
    BrokenMap
        When the file is missing, lies elsewhere, cannot be read, or has tiles of another format.
    """
    path = _path(folder, name)
    with _said(name):
        if path.suffix == ".mbtiles":
            with _tables(path) as tables:
                row = tables.execute("SELECT value FROM metadata WHERE name = 'format'").fetchone()
            found = MBTILES.get(row[0] if row else "png")
        else:
            with _archive(path) as archive:
                header = archive.header()
                plain = header["tile_compression"] in (Compression.NONE, Compression.GZIP)
                found = PMTILES.get(header["tile_type"]) if plain else None
    if found is None:
        raise BrokenMap(
            "the tiles of a file must be one of %(types)s, plain or gzipped; got others in %(name)s",
            types=", ".join(TYPES),
            name=repr(name),
        )
    return found


def tile_of(folder: Path, name: str, z: int, x: int, y: int) -> bytes | None:
    """Return a tile of a file, with rows counted from the north; None if the file has no such tile.

    Raises
    ------
    BrokenMap
        When the file is missing, lies elsewhere, or cannot be read.
    """
    path = _path(folder, name)
    with _said(name):
        if path.suffix == ".pmtiles":
            with _archive(path) as archive:
                return archive.get(z, x, y)
        query = "SELECT tile_data FROM tiles WHERE zoom_level = ? AND tile_column = ? AND tile_row = ?"
        with _tables(path) as tables:
            # MBTiles 1.3 counts rows from the south, as the Tile Map Service does.
            row = tables.execute(query, (z, x, 2**z - 1 - y)).fetchone()
        return row[0] if row else None


def _path(folder: Path, name: str) -> Path:
    path = (folder / name).resolve()
    if path.suffix not in SUFFIXES or not path.is_relative_to(folder.resolve()):
        raise BrokenMap(
            "a file of tiles must end in one of %(suffixes)s and lie in %(folder)s; got %(name)s",
            suffixes=", ".join(SUFFIXES),
            folder=folder,
            name=repr(name),
        )
    if not path.is_file():
        raise BrokenMap(
            "a file of tiles must lie in %(folder)s; got %(name)s, which is not there", folder=folder, name=repr(name)
        )
    return path


@contextlib.contextmanager
def _said(name: str) -> Iterator[None]:
    """Turn the errors of a file that cannot be read into `BrokenMap`."""
    try:
        yield
    except (sqlite3.Error, OSError, ValueError, KeyError, EOFError, IndexError) as error:
        raise BrokenMap(
            "a file of tiles must be whole; got %(name)s: %(error)s", name=repr(name), error=error
        ) from None
    except Exception as error:  # pmtiles raises plain exceptions
        if type(error) is not Exception and type(error).__module__.partition(".")[0] != "pmtiles":
            raise
        raise BrokenMap(
            "a file of tiles must be whole; got %(name)s: %(error)s", name=repr(name), error=error
        ) from None


@contextlib.contextmanager
def _tables(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as tables:
        yield tables


@contextlib.contextmanager
def _archive(path: Path) -> Iterator[Reader]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        yield Reader(lambda offset, length: text[offset : offset + length])
