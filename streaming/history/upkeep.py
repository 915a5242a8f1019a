"""Maintain a history while the engine runs: merge small parts into larger ones, and remove old ones.

References
----------
BBoxDB Streams (2022), section 4.1.2: a cleanup task merges files that were written once.
"""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streaming.history.files import HistoryPart, days_of, in_force, part_path, parts_of
from streaming.history.rows import part_schema, write_rows
from streaming.history.writer import remove
from streaming.spaces import Space
from streaming.state.files import UNFINISHED, whole

# Parts smaller than this are merged once there are this many in a row, or once they reach this size together.
SMALL_BYTES = 4 << 20
MERGED_AT_ONCE = 16
# Unfinished files, which killed programs left, are removed after this time.
UNFINISHED_S = 3600.0


@dataclass(frozen=True)
class Extent:
    """The extent of a stream's history.

    Parameters
    ----------
    files, size : int
        The number of parts, and their size in bytes.
    first_day, last_day : str
        As in ``2026-11-21``; empty if there are no parts.
    """

    files: int
    size: int
    first_day: str
    last_day: str


def extent(folder: Path) -> Extent:
    """Return the extent of the parts in a stream's folder; superseded parts count too."""
    parts = parts_of(folder)
    days = sorted({part.day for part in parts}) or [""]
    return Extent(len(parts), sum(map(_size, parts)), days[0], days[-1])


def expire(folder: Path, before_us: int) -> int:
    """Remove the parts of a stream whose event times are all before `before_us`; return the number of parts.

    Parameters
    ----------
    folder : Path
        The stream's folder.
    before_us : int
        Microseconds since 1970 UTC.
    """
    day = str(np.datetime64(before_us, "us").astype("datetime64[D]"))
    old = parts_of(folder, [date for date in days_of(folder) if _day(date) < _day(day)])
    border = [part for part in parts_of(folder, [day]) if _newest_us(part) < before_us]
    return remove([*old, *border])


def compact(folder: Path, space: Space, more: Callable[[], bool] = lambda: True) -> int:
    """Merge small parts in a stream's folder, and remove superseded parts; return how many parts were merged.

    Parameters
    ----------
    folder : Path
        The stream's folder.
    space : Space
    more : callable
        Called before each merge; returns whether to go on.
    """
    kept, superseded = in_force(parts_of(folder))
    remove(superseded)
    merged = 0
    for _, parts in groupby(kept, key=lambda part: part.place):
        for run in _runs(parts):
            if not more():
                return merged
            merged += _merge(folder, run, space)
    return merged


def forget(folder: Path) -> None:
    """Remove the folder of a stream, or of a space, with all its files."""
    shutil.rmtree(folder, ignore_errors=True)


def tidy(folder: Path) -> None:
    """Remove unfinished files, which killed programs left, from a space's folder."""
    for path in folder.rglob(f"*{UNFINISHED}"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > UNFINISHED_S:
                path.unlink()


def _runs(parts: Iterable[HistoryPart]) -> list[list[HistoryPart]]:
    """Return the runs of small parts that are worth merging."""
    runs: list[list[HistoryPart]] = [[]]
    sizes = [0]
    for part in parts:
        if (size := _size(part)) < SMALL_BYTES:
            runs[-1].append(part)
            sizes[-1] += size
        if size >= SMALL_BYTES or sizes[-1] >= SMALL_BYTES:
            runs.append([])
            sizes.append(0)
    full = [len(run) >= MERGED_AT_ONCE or size >= SMALL_BYTES for run, size in zip(runs, sizes, strict=True)]
    return [run for run, worth in zip(runs, full, strict=True) if worth and len(run) > 1]


def _merge(folder: Path, run: Sequence[HistoryPart], space: Space) -> int:
    """Merge a run of parts into one; return how many were merged, or 0 if one of them has gone meanwhile."""
    path = part_path(folder, run[0].day, run[0].region, run[0].epoch, run[0].first, run[-1].last)
    try:
        table = pa.concat_tables([pq.read_table(part.path, schema=part_schema(space)) for part in run])
        with whole(path) as temporary:
            write_rows(temporary, table, space)
    except FileNotFoundError:
        return 0
    if not all(part.path.exists() for part in run):  # the stream is being dropped
        path.unlink(missing_ok=True)
        return 0
    remove(run)
    return len(run)


def _size(part: HistoryPart) -> int:
    try:
        return part.path.stat().st_size
    except FileNotFoundError:
        return 0


def _newest_us(part: HistoryPart) -> float:
    """Return the newest event time of a part, in microseconds since 1970 UTC; infinity if it is not known."""
    try:
        metadata = pq.read_metadata(part.path)
    except FileNotFoundError:
        return np.inf
    column = metadata.schema.names.index("time")
    groups = [metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups)]
    if not all(group is not None and group.has_min_max for group in groups):
        return np.inf
    return max(int(np.datetime64(group.max.replace(tzinfo=None), "us").astype(np.int64)) for group in groups)


def _day(day: str) -> np.datetime64:
    return np.datetime64(day, "D")
