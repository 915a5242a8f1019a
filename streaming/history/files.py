"""Where stored elements lie: Parquet parts by stream, day and region, and what is not in a part yet.

Below ``{root}/{space}``, ``{stream}/day={day}/region={region}/{epoch}.{first}.{last}.parquet`` holds the elements of a
stream, with event times of a day, that a region accepted in the micro-batches `first` to `last` of an epoch, and
``.pending/{epoch}/{region}/{batch}.{rows}.{second}.arrow`` those of one micro-batch, of all streams and days.

A name says what its file is complete for. So a part supersedes the parts whose batches lie within its own, and pending
batches likewise; whoever lists the pending files first and the parts afterwards meets every element once, whatever is
being merged meanwhile, and whenever somebody was killed while merging.
"""

import contextlib
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from streaming.layers.parts import settle

PENDING = ".pending"
PART, WAITING, UNFINISHED = ".parquet", ".arrow", ".tmp"


@dataclass(frozen=True)
class Part:
    """A Parquet file: the elements of a stream and a day that a region accepted in some batches of an epoch."""

    path: Path
    day: str
    region: int
    epoch: str
    first: int
    last: int

    @property
    def place(self) -> tuple[str, int, str]:
        """What parts must have in common for one to supersede the other."""
        return self.day, self.region, self.epoch


@dataclass(frozen=True)
class Pending:
    """A file of elements that are not in a part yet: those of one region and batch, `second` by the batch's clock."""

    path: Path
    epoch: str
    region: int
    batch: int
    rows: int
    second: int


def part_path(folder: Path, day: str, region: int, epoch: str, first: int, last: int) -> Path:
    """Return the path of a part, given its stream's folder."""
    return folder / f"day={day}" / f"region={region}" / f"{epoch}.{first}.{last}{PART}"


def pending_path(folder: Path, epoch: str, region: int, batch: int, rows: int, second: int) -> Path:
    """Return the path of a pending file, given its space's folder."""
    return folder / PENDING / epoch / str(region) / f"{batch}.{rows}.{second}{WAITING}"


def stream_names(folder: Path) -> list[str]:
    """Return the streams of which a space's folder has parts."""
    return sorted(entry.name for entry in _entries(folder) if not entry.name.startswith("."))


def days_of(folder: Path) -> list[str]:
    """Return the days of which a stream's folder has parts, in order."""
    return sorted(entry.name.removeprefix("day=") for entry in _entries(folder) if entry.name.startswith("day="))


def parts_of(folder: Path, days: Iterable[str] | None = None) -> list[Part]:
    """Return the parts in a stream's folder, those of some days where `days` are given; superseded ones, too."""
    return [part for day in (days_of(folder) if days is None else days) for part in _parts(folder / f"day={day}", day)]


def _parts(folder, day):
    for region in _entries(folder):
        number = int(region.name.removeprefix("region="))
        for entry in _entries(region.path):
            if entry.name.endswith(PART):
                epoch, first, last = entry.name.removesuffix(PART).split(".")
                yield Part(Path(entry.path), day, number, epoch, int(first), int(last))


def pending_of(folder: Path, among: Callable[[int], bool] = lambda region: True) -> list[Pending]:
    """Return the pending files in a space's folder, of the regions asked for, in the order of their batches."""
    found = [
        pending
        for epoch in _entries(folder / PENDING)
        for region in _entries(epoch.path)
        if among(int(region.name))
        for pending in _pending(region.path, epoch.name, int(region.name))
    ]
    return sorted(found, key=lambda pending: (pending.epoch, pending.region, pending.batch))


def _pending(folder, epoch, region):
    for entry in _entries(folder):
        if entry.name.endswith(WAITING):
            batch, rows, second = map(int, entry.name.removesuffix(WAITING).split("."))
            yield Pending(Path(entry.path), epoch, region, batch, rows, second)


def in_force(parts: Iterable[Part]) -> tuple[list[Part], list[Part]]:
    """Return the parts to be read, in the order of their batches within each place, and those that are superseded."""
    kept: list[Part] = []
    superseded: list[Part] = []
    for part in sorted(parts, key=lambda part: (*part.place, part.first, -part.last)):
        within = kept and kept[-1].place == part.place and part.last <= kept[-1].last
        (superseded if within else kept).append(part)
    return kept, superseded


def covers(parts: Iterable[Part], day: str, pending: Pending) -> bool:
    """Tell whether one of some parts of a stream has the elements of a day that are in a pending file."""
    place = day, pending.region, pending.epoch
    return any(part.place == place and part.first <= pending.batch <= part.last for part in parts)


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a path to write to, which becomes `path` at the end, its bytes on the disk, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{uuid.uuid4().hex}{UNFINISHED}")
    try:
        yield temporary
        settle(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _entries(folder):
    """Return what is in a folder; nothing where there is none (any more)."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
