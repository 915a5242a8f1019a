"""The files of stored elements: Parquet parts by stream, day and region, and pending files that are not in a part yet.

Below ``{root}/{space}``, ``{stream}/day={day}/region={region}/{epoch}.{first}.{last}.parquet`` holds the elements of a
stream, with event times of a day, that a region accepted in the micro-batches `first` to `last` of an epoch, and
``.pending/{epoch}/{region}/{batch}.{rows}.{second}.arrow`` those of one micro-batch, of all streams and days.

A file is complete for the batches in its name. So a part supersedes the parts and the pending files whose batches lie
within its own. A reader that reads the pending files first and lists the parts afterwards gets every element once, even
while files are merged, and after a merge that was killed.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from streaming.state.files import sync

PENDING = ".pending"
PART, WAITING = ".parquet", ".arrow"


@dataclass(frozen=True)
class HistoryPart:
    """A Parquet file: the elements of one stream and day that a region accepted in batches `first` to `last`."""

    path: Path
    day: str
    region: int
    epoch: str
    first: int
    last: int

    @property
    def place(self) -> tuple[str, int, str]:
        """Day, region and epoch; a part can supersede another only if these are equal."""
        return self.day, self.region, self.epoch


@dataclass(frozen=True)
class Pending:
    """A file of elements that are in no part yet: those of one region and batch, at `second` of the batch's clock."""

    path: Path
    epoch: str
    region: int
    batch: int
    rows: int
    second: int


def part_path(folder: Path, day: str, region: int, epoch: str, first: int, last: int) -> Path:
    """Return the path of a part in a stream's folder."""
    return folder / f"day={day}" / f"region={region}" / f"{epoch}.{first}.{last}{PART}"


def pending_path(folder: Path, epoch: str, region: int, batch: int, rows: int, second: int) -> Path:
    """Return the path of a pending file in a space's folder."""
    return folder / PENDING / epoch / str(region) / f"{batch}.{rows}.{second}{WAITING}"


def stream_names(folder: Path) -> list[str]:
    """Return the names of the streams with parts in a space's folder, in order."""
    return sorted(entry.name for entry in _entries(folder) if not entry.name.startswith("."))


def days_of(folder: Path) -> list[str]:
    """Return the days with parts in a stream's folder, in order."""
    return sorted(entry.name.removeprefix("day=") for entry in _entries(folder) if entry.name.startswith("day="))


def parts_of(folder: Path, days: Iterable[str] | None = None) -> list[HistoryPart]:
    """Return the parts in a stream's folder, of all days or of `days`; superseded parts are included."""
    return [part for day in (days_of(folder) if days is None else days) for part in _parts(folder / f"day={day}", day)]


def _parts(folder: Path, day: str) -> Iterator[HistoryPart]:
    for region in _entries(folder):
        number = int(region.name.removeprefix("region="))
        for entry in _entries(region.path):
            if entry.name.endswith(PART):
                epoch, first, last = entry.name.removesuffix(PART).split(".")
                yield HistoryPart(Path(entry.path), day, number, epoch, int(first), int(last))


def pending_of(folder: Path, among: Callable[[int], bool] = lambda region: True) -> list[Pending]:
    """Return the pending files in a space's folder of the regions `among`, ordered by epoch, region and batch."""
    found = [
        pending
        for epoch in _entries(folder / PENDING)
        for region in _entries(epoch.path)
        if among(int(region.name))
        for pending in _pending(region.path, epoch.name, int(region.name))
    ]
    return sorted(found, key=lambda pending: (pending.epoch, pending.region, pending.batch))


def sync_pending(folder: Path, known: Set[Path]) -> set[Path]:
    """Make the pending files in a space's folder survive a power cut, unless they are known to; return all of them."""
    there = {pending.path for pending in pending_of(folder)}
    for path in there - known:
        with contextlib.suppress(FileNotFoundError):  # its elements are in a part by now, which is durable
            sync(path)
    for changed in {path.parent for path in there - known}:
        sync(changed)
    return there


def _pending(folder: str, epoch: str, region: int) -> Iterator[Pending]:
    for entry in _entries(folder):
        if entry.name.endswith(WAITING):
            batch, rows, second = map(int, entry.name.removesuffix(WAITING).split("."))
            yield Pending(Path(entry.path), epoch, region, batch, rows, second)


def in_force(parts: Iterable[HistoryPart]) -> tuple[list[HistoryPart], list[HistoryPart]]:
    """Return the parts to read, in the order of their batches within each place, and the superseded parts."""
    kept: list[HistoryPart] = []
    superseded: list[HistoryPart] = []
    for part in sorted(parts, key=lambda part: (*part.place, part.first, -part.last)):
        within = kept and kept[-1].place == part.place and part.last <= kept[-1].last
        (superseded if within else kept).append(part)
    return kept, superseded


def covers(parts: Iterable[HistoryPart], day: str, pending: Pending) -> bool:
    """Return whether one of a stream's parts already has the elements of a pending file for a day."""
    place = day, pending.region, pending.epoch
    return any(part.place == place and part.first <= pending.batch <= part.last for part in parts)


def _entries(folder: Path | str) -> list[os.DirEntry[str]]:
    """Return the entries of a folder; none if the folder does not exist (any more)."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
