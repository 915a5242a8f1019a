"""From an uploaded file to the one that GDAL opens: we unpack archives, within bounds that they cannot lie about."""

import gzip
import stat
import zipfile
import zlib
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from streaming.layers.features import InvalidLayer
from streaming.layers.job import Limits

# The kinds of files by suffix, with the drivers that may claim them; GDAL itself looks at what is inside.
SEQUENCE = ".geojsonl"
SUFFIXES = {
    ".geojson": ".geojson",
    ".json": ".json",
    ".geojsonl": SEQUENCE,
    ".geojsons": SEQUENCE,
    ".ndjson": SEQUENCE,
    ".topojson": ".topojson",
    ".gpkg": ".gpkg",
    ".shp": ".shp",
    ".kml": ".kml",
    ".fgb": ".fgb",
    ".gpx": ".gpx",
}
ARCHIVES = (".gz", ".zip", ".kmz")
# Shapefiles are several files.
ZIPPED_ONLY = (".shp",)
CHUNK_BYTES = 1 << 20


def suffixes_of(name: str) -> str:
    """Return the suffix of a file's name, with that of the archive, in lower case.

    Raises
    ------
    InvalidLayer
        When it is not one of those known.

    Examples
    --------
    >>> suffixes_of("Roads.GeoJSONL.gz"), suffixes_of("land.v2.zip")
    ('.geojsonl.gz', '.zip')
    """
    *_, before, last = ("", "", *PurePosixPath(name.lower()).suffixes)
    if last in (".zip", ".kmz"):
        return last
    if last == ".gz" and before in SUFFIXES and before not in ZIPPED_ONLY:
        return before + last
    if last in SUFFIXES and last not in ZIPPED_ONLY:
        return last
    known = ", ".join(suffix for suffix in SUFFIXES if suffix not in ZIPPED_ONLY)
    rule = f"a layer's file must end in one of {known}, each also with .gz or in a .zip, as a shapefile; or in .kmz"
    raise InvalidLayer(f"{rule}; got {PurePosixPath(name).name!r:.100}")


def unpacked(path: Path, folder: Path, limits: Limits) -> Path:
    """Return the file to open: `path` itself, or what was unpacked of it into `folder`.

    Raises
    ------
    InvalidLayer
        When the archive is broken or cut off, is larger than allowed, would write outside of the folder, or does not
        hold one file of a known kind.
    """
    suffix = suffixes_of(path.name)
    if suffix in (".zip", ".kmz"):
        return _unzipped(path, folder, limits)
    if suffix.endswith(".gz"):
        target = folder / f"layer{SUFFIXES[suffix.removesuffix('.gz')]}"
        with _whole(), gzip.open(path) as source:
            _copy(source, target, Allowance(limits.unpacked_bytes))
        return target
    if path.stat().st_size > limits.unpacked_bytes:
        raise InvalidLayer(_too_large(limits.unpacked_bytes, f"{path.stat().st_size:,}"))
    target = folder / f"layer{SUFFIXES[suffix]}"
    target.symlink_to(path.absolute())
    return target


class Allowance:
    """So many bytes may still be unpacked."""

    def __init__(self, total: int) -> None:
        self.total = self.left = total

    def take(self, count: int) -> None:
        """Take some of them, or raise InvalidLayer."""
        self.left -= count
        if self.left < 0:
            raise InvalidLayer(_too_large(self.total, "more"))


def _too_large(limit, size):
    return f"a layer's file must have at most {limit:,} bytes, unpacked; got {size}"


def _copy(source: IO[bytes] | gzip.GzipFile, target: Path, allowance: Allowance) -> None:
    with target.open("wb") as written:
        while chunk := source.read(CHUNK_BYTES):
            allowance.take(len(chunk))
            written.write(chunk)


@contextmanager
def _whole():
    """Say what is wrong with an archive that cannot be read."""
    try:
        yield
    except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise InvalidLayer(f"an archive must be whole and without a password; got: {error}") from None


def _unzipped(path, folder, limits):
    inside = folder / "zip"
    with _whole(), zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        _check_members(members, limits)
        members = [m for m in members if not m.filename.startswith("__MACOSX/")]
        allowance = Allowance(limits.unpacked_bytes)
        for number, member in enumerate(members):
            # Our own names: nothing of an archive decides where a byte goes. The files of a shapefile stay together.
            target = inside / _folder_of(member, members) / f"layer{PurePosixPath(member.filename.lower()).suffix}"
            if target.exists():
                target = target.with_name(f"{number}-{target.name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source:
                _copy(source, target, allowance)
    return _the_one([p for p in sorted(inside.rglob("*")) if p.suffix in SUFFIXES], [m.filename for m in members])


def _folder_of(member, members):
    """Return a folder of ours for the files of an archive that have the same name but for the suffix."""
    stems = sorted({str(PurePosixPath(m.filename.lower()).with_suffix("")) for m in members})
    return str(stems.index(str(PurePosixPath(member.filename.lower()).with_suffix(""))))


def _check_members(members: Iterable[zipfile.ZipInfo], limits: Limits) -> None:
    """Check by the archive's table of contents, before anything is unpacked."""
    members = list(members)
    if len(members) > limits.members:
        raise InvalidLayer(f"an archive must have at most {limits.members:,} files; got {len(members):,}")
    size = sum(member.file_size for member in members)
    if size > limits.unpacked_bytes:
        raise InvalidLayer(_too_large(limits.unpacked_bytes, f"{size:,}"))
    for member in members:
        name = PurePosixPath(member.filename.replace("\\", "/"))
        linked = stat.S_ISLNK(member.external_attr >> 16)
        if linked or name.is_absolute() or ".." in name.parts or ":" in name.parts[0]:
            raise InvalidLayer(f"the files of an archive must lie inside of it; got {member.filename!r:.100}")


def _the_one(found: list[Path], names: list[str]) -> Path:
    if len(found) != 1:
        rule = f"an archive must hold one file that ends in one of {', '.join(SUFFIXES)}"
        raise InvalidLayer(f"{rule}; got {len(found)} in {', '.join(names)[:200] or 'an empty archive'}")
    if SUFFIXES[found[0].suffix] != found[0].suffix:
        return found[0].rename(found[0].with_suffix(SUFFIXES[found[0].suffix]))
    return found[0]


def count_in(path: Path, word: bytes) -> int:
    """Return how often a word that has no line break occurs in a file, or a little less, reading it once."""
    count = 0
    with path.open("rb") as source:
        while chunk := source.read(CHUNK_BYTES):
            count += chunk.count(word)
    return count
