"""Unpack an uploaded file into the files that GDAL opens, within limits that an archive cannot lie about."""

import gzip
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO

from streaming.language import gettext, gettext_noop, thousands
from streaming.layers.features import InvalidLayer
from streaming.layers.job import ImportLimits
from streaming.layers.links import first_of, follow

# The suffixes of known files, and the suffix under which GDAL opens each; GDAL itself looks at the content.
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
# A shapefile consists of several files, so it must be in an archive.
ZIPPED_ONLY = (".shp",)
CHUNK_BYTES = 1 << 20
# Above the first size, unpacked content may be at most the second number times as large as its archive, against
# decompression bombs: real files shrink less.
FREE_OF_RATIO_BYTES = 256 << 20
MOST_RATIO = 200


@dataclass(frozen=True)
class Unpacked:
    """A file to open.

    Parameters
    ----------
    path : Path
    name : str
        Its original name without the suffix, if an archive held several files; else empty.
    links : list of str
        Links in it, and in the files that it links to, which are not followed.
    """

    path: Path
    name: str = ""
    links: Sequence[str] = ()


def suffixes_of(name: str) -> str:
    """Return the suffix of a file's name in lower case, together with ``.gz`` if there is one.

    Raises
    ------
    InvalidLayer
        When the suffix is not a known one.

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
    raise InvalidLayer(
        "a layer's file must end in one of %(known)s, each also with .gz or in a .zip, as a "
        "shapefile; or in .kmz; got %(name)s",
        known=known,
        name=f"{PurePosixPath(name).name!r:.100}",
    )


def unpacked(path: Path, folder: Path, limits: ImportLimits) -> list[Unpacked]:
    """Return the files to open in `folder`: a link to `path` itself, or the unpacked content of an archive.

    The list has one file, or several for an archive of several shapefiles.

    Raises
    ------
    InvalidLayer
        When the archive is broken or cut off, is larger than allowed, would write outside of the folder, or holds
        neither one file of a known kind nor several shapefiles.
    """
    suffix = suffixes_of(path.name)
    if suffix in (".zip", ".kmz"):
        return _unzipped(path, folder, limits)
    if suffix.endswith(".gz"):
        target = folder / f"layer{SUFFIXES[suffix.removesuffix('.gz')]}"
        with _whole(), path.open("rb") as packed, gzip.open(packed) as source:
            _copy(source, target, _Growing(_allowance(path, folder, limits), packed))
        return [_alone(target)]
    if path.stat().st_size > limits.unpacked_bytes:
        raise InvalidLayer(_MOST_BYTES, total=thousands(limits.unpacked_bytes), told=thousands(path.stat().st_size))
    target = folder / f"layer{SUFFIXES[suffix]}"
    target.symlink_to(path.absolute())
    return [_alone(target)]


def _alone(path: Path) -> Unpacked:
    links = follow(path.name, {path.name: path}).elsewhere if path.suffix == ".kml" else ()
    return Unpacked(path, links=links)


_MOST_BYTES = gettext_noop("a layer's file must have at most %(total)s bytes, unpacked; got %(told)s")
_RATIO = gettext_noop("%(packed)s bytes of an archive must unpack to %(total)s at most; got %(told)s")
_DISK = gettext_noop("half of the free disk, %(total)s bytes, must hold what is unpacked; got %(told)s")


class Allowance:
    """The number of bytes that may still be unpacked.

    Parameters
    ----------
    total : int
    rule : str
        The message of the error, with the placeholders `total`, `told` and `packed`.
    packed : int
        The number of bytes of the archive.
    """

    def __init__(self, total: int, rule: str, packed: int) -> None:
        self.left, self.rule = total, rule
        self.values = {"total": thousands(total), "packed": thousands(packed)}

    def take(self, count: int, told: str = gettext_noop("more")) -> None:
        """Use up some bytes, or raise InvalidLayer if too few are left; `told` says in the error how many there are."""
        self.left -= count
        if self.left < 0:
            raise InvalidLayer(self.rule, told=told, **self.values)


class _Growing(Allowance):
    """An allowance that grows with the bytes read of the archive, so that a decompression bomb is found early."""

    def __init__(self, whole: Allowance, packed: IO[bytes]) -> None:
        super().__init__(whole.left, whole.rule, 0)
        self.values = whole.values
        self.packed, self.taken = packed, 0

    def take(self, count: int, told: str = gettext_noop("more")) -> None:
        """Use up some bytes, or raise InvalidLayer if too few are left."""
        self.taken += count
        most = _most_of(self.packed.tell())
        if self.taken > most:
            raise InvalidLayer(_RATIO, packed=thousands(self.packed.tell()), total=thousands(most), told=told)
        super().take(count, told)


def _most_of(packed_bytes: int) -> int:
    return max(FREE_OF_RATIO_BYTES, MOST_RATIO * packed_bytes)


def _allowance(path: Path, folder: Path, limits: ImportLimits) -> Allowance:
    """Return how much an archive may unpack to: the least by the limit, by its own size, and by the free disk."""
    size = path.stat().st_size
    rules = (
        (limits.unpacked_bytes, _MOST_BYTES),
        (_most_of(size), _RATIO),
        (max(0, shutil.disk_usage(folder).free - limits.reserve_bytes) // 2, _DISK),
    )
    total, rule = min(rules)
    return Allowance(total, rule, size)


def _copy(source: IO[bytes] | gzip.GzipFile, target: Path, allowance: Allowance) -> None:
    with target.open("wb") as written:
        while chunk := source.read(CHUNK_BYTES):
            allowance.take(len(chunk))
            written.write(chunk)


@contextmanager
def _whole() -> Iterator[None]:
    """Raise InvalidLayer, with the reason, if an archive cannot be read."""
    try:
        yield
    except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise InvalidLayer("an archive must be whole and without a password; got: %(error)s", error=error) from None


def _unzipped(path: Path, folder: Path, limits: ImportLimits) -> list[Unpacked]:
    with _whole(), zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        _check_members(members, limits)
        _allowance(path, folder, limits).take(size := sum(m.file_size for m in members), f"{size:,}")
        members = [m for m in members if not m.filename.startswith("__MACOSX/")]
        allowance = _allowance(path, folder, limits)
        targets = _targets(members, folder / "zip")
        for member, target in zip(members, targets, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source:
                _copy(source, target, allowance)
    names = [m.filename for m in members]
    found = [(name, target) for name, target in zip(names, targets, strict=True) if target.suffix in SUFFIXES]
    return _chosen(found, names)


def _targets(members: Sequence[zipfile.ZipInfo], folder: Path) -> list[Path]:
    """Return the paths for the files of an archive, with names of our own, so that it cannot choose where to write.

    The files of a shapefile have the same name but for the suffix; they stay together.
    """
    stems = [_stem(member.filename.lower()) for member in members]
    folders = {stem: folder / str(number) for number, stem in enumerate(sorted(set(stems)))}
    targets: dict[Path, None] = {}
    for number, (member, stem) in enumerate(zip(members, stems, strict=True)):
        target = folders[stem] / f"layer{PurePosixPath(member.filename.lower()).suffix}"
        targets[target.with_name(f"{number}-{target.name}") if target in targets else target] = None
    return list(targets)


def _stem(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(""))


def _check_members(members: Iterable[zipfile.ZipInfo], limits: ImportLimits) -> None:
    """Check the archive's table of contents before anything is unpacked."""
    members = list(members)
    if len(members) > limits.members:
        raise InvalidLayer(
            "an archive must have at most %(members)s files; got %(count)s",
            members=thousands(limits.members),
            count=thousands(len(members)),
        )
    for member in members:
        name = PurePosixPath(member.filename.replace("\\", "/"))
        linked = stat.S_ISLNK(member.external_attr >> 16)
        if linked or name.is_absolute() or ".." in name.parts or ":" in name.parts[0]:
            raise InvalidLayer(
                "the files of an archive must lie inside of it; got %(filename)s", filename=f"{member.filename!r:.100}"
            )


def _chosen(found: list[tuple[str, Path]], names: list[str]) -> list[Unpacked]:
    """Return the one file of an archive that can be opened, all of its shapefiles, or what its first KML links to."""
    kinds = {path.suffix for _, path in found}
    if kinds == {".kml"}:
        paths = dict(found)
        linked = follow(first_of([*paths]), paths)
        if len(linked.names) > 1 or len(found) == 1:
            first, *others = _named([(name, paths[name]) for name in linked.names])
            return [replace(first, links=linked.elsewhere), *others]
    if len(found) == 1:
        (_, path), *_ = found
        known = path.with_suffix(SUFFIXES[path.suffix])
        return [Unpacked(path if known == path else path.rename(known))]
    if not found or kinds != set(ZIPPED_ONLY):
        raise InvalidLayer(
            "an archive must hold one file that ends in one of %(suffixes)s, or several that end "
            "in .shp; got %(count)s in %(names)s",
            suffixes=", ".join(SUFFIXES),
            count=len(found),
            names=", ".join(names)[:200] or gettext("an empty archive"),
        )
    return sorted(_named(found), key=lambda one: one.name)


def _named(found: list[tuple[str, Path]]) -> list[Unpacked]:
    """Return files with their names, where there are several: without the folders if they differ so."""
    if len(found) == 1:
        return [Unpacked(found[0][1])]
    short = [PurePosixPath(name).stem for name, _ in found]
    told = short if len(set(short)) == len(short) else [_stem(name) for name, _ in found]
    return [Unpacked(path, name) for (_, path), name in zip(found, told, strict=True)]


def count_in(path: Path, word: bytes) -> int:
    """Return about how often a word occurs in a file, which is read once; a word across two chunks is missed."""
    count = 0
    with path.open("rb") as source:
        while chunk := source.read(CHUNK_BYTES):
            count += chunk.count(word)
    return count
