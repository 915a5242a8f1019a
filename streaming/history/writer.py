"""Write the history, in the engine: a region stores the elements that it accepts.

References
----------
BBoxDB Streams (2022), section 4.1.1: a processed element is stored or discarded; section 4.1.2: new elements are
collected, then written as immutable files, which are merged later.
"""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.elements import to_ipc
from streaming.history.files import (
    PENDING,
    HistoryPart,
    Pending,
    covers,
    part_path,
    parts_of,
    pending_of,
    pending_path,
)
from streaming.history.rows import days, stored, waiting, waiting_of, waiting_schema, write_rows
from streaming.spaces import Space
from streaming.state.files import make_folder, whole, write_whole

# Pending elements are written as parts once there are this many, or once the oldest have waited this long.
MERGE_ROWS = 50_000
MERGE_AFTER_S = 60
MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class Turn:
    """A region's turn in one micro-batch.

    Parameters
    ----------
    epoch : str
    region, regions : int
        The region's number, and the number of regions.
    batch : int
        The number of the micro-batch. Since it runs, all earlier ones are committed.
    now_us : int
        The region's clock, in microseconds since 1970 UTC.
    """

    epoch: str
    region: int
    regions: int
    batch: int
    now_us: int


class HistoryWriter:
    """Writes the history of a space.

    Parameters
    ----------
    root : Path
        The folder of the history; created when the first element is stored.
    space : Space
    merger : Executor, optional
        What merges pending elements, so that no batch waits for it; without one, `store` does. Only one process may
        merge what a region has written: see `settle`.
    """

    def __init__(self, root: Path, space: Space, merger: Executor | None = None) -> None:
        self.folder, self.space, self._merger = Path(root) / space.name, space, merger
        self._merging: Future[None] | None = None
        # The pending files that each region cares for, as long as only this process changes them.
        self._known: dict[int, list[Pending]] = {}
        self._shape: tuple[str, int] | None = None

    def store(
        self, turn: Turn, elements: Sequence[pa.Table], names: Mapping[int, str], dropped: Collection[str] = ()
    ) -> None:
        """Store the elements that a region accepted in a micro-batch, only once even if the batch runs again.

        Parameters
        ----------
        turn : Turn
        elements : sequence of pyarrow.Table
            With `servers.elements.tracked_schema` or `belated_schema`, of all streams.
        names : mapping of int to str
            The names of the stored streams, by number. Elements of other streams are not stored.
        dropped : collection of str
            The streams whose elements from earlier batches are to be removed.
        """
        if dropped:
            self.settle()  # what is dropped must not be written as parts afterwards
        pending = self._pending(turn)
        if dropped:
            self._drop(turn, pending, dropped)
        # Regions take turns, so that one of them is merged at a time.
        if turn.batch % turn.regions == turn.region and _due(turn, pending):
            self._begin_merge(turn, pending)
            pending = self._pending(turn)
        kept = [waiting(table, names, self.space) for table in elements if names and table.num_rows]
        if kept or pending:
            self._wait(turn, pending, pa.concat_tables([waiting_schema(self.space).empty_table(), *kept]))

    def settle(self) -> None:
        """Wait until nothing is merged; raise the error of a merge that failed.

        Whoever stores a region's elements must have done this before another process does.
        """
        self._known.clear()
        if self._merging is not None:
            merging, self._merging = self._merging, None
            merging.result()

    def _begin_merge(self, turn: Turn, pending: Sequence[Pending]) -> None:
        """Merge pending elements, after those of another region are merged."""
        if self._merger is None:
            self._merge(turn, pending)
            self._known.clear()
        elif self._merging is None or self._merging.done():
            self.settle()
            self._merging = self._merger.submit(self._merge, turn, pending)

    def _pending(self, turn: Turn) -> list[Pending]:
        """Return the pending files that this region cares for: its own, and those of regions that no longer exist."""
        if self._shape != (turn.epoch, turn.regions) or (self._merging is not None and self._merging.done()):
            self.settle()
            self._shape = turn.epoch, turn.regions
        if turn.region not in self._known:
            self._known[turn.region] = pending_of(self.folder, lambda region: region % turn.regions == turn.region)
        return self._known[turn.region]

    def _wait(self, turn: Turn, pending: Sequence[Pending], elements: pa.Table) -> None:
        """Write the batch's pending file unless it is empty, and remove the file of an interrupted run of the batch."""
        second, place = turn.now_us // MICROSECONDS, (turn.epoch, turn.region, turn.batch)
        path = pending_path(self.folder, turn.epoch, turn.region, turn.batch, elements.num_rows, second)
        known = [one for one in pending if (one.epoch, one.region, one.batch) != place]
        if elements.num_rows:
            make_folder(path.parent)
            _put(path, elements)
            known.append(Pending(path, *place, elements.num_rows, second))
        for other in pending:
            if (other.epoch, other.region, other.batch) == place and other.path != path:
                other.path.unlink(missing_ok=True)
        self._known[turn.region] = known

    def _merge(self, turn: Turn, pending: Sequence[Pending]) -> None:
        """Write the pending elements of committed batches as parts, then remove their pending files."""
        ripe = [one for one in pending if _committed(one, turn)]
        places: dict[tuple[str, int], list[Pending]] = {}
        for one in ripe:
            places.setdefault((one.epoch, one.region), []).append(one)
        for (epoch, region), files in places.items():
            tables = [read_pending(one, self.space) for one in files]
            self._write_parts(epoch, region, files, tables)
        for one in ripe:
            one.path.unlink(missing_ok=True)
        self._tidy(turn)

    def _write_parts(self, epoch: str, region: int, files: Sequence[Pending], tables: Sequence[pa.Table]) -> None:
        """Write the parts of pending files of one region and epoch, which are ordered by batch."""
        table = pa.concat_tables(tables, promote_options="none").unify_dictionaries().combine_chunks()
        number = np.repeat(np.arange(len(files)), [one.num_rows for one in tables])
        day = days(table)
        for stream, mine in _by_stream(table):
            for date in np.unique(day[mine]):
                rows = mine[day[mine] == date]
                self._write_part(self.folder / stream, str(date), region, epoch, files, number[rows], table, rows)

    def _write_part(
        self,
        folder: Path,
        day: str,
        region: int,
        epoch: str,
        files: Sequence[Pending],
        number: np.ndarray,
        table: pa.Table,
        rows: np.ndarray,
    ) -> None:
        """Write the elements that no part has yet; an interrupted merge may have written some of its parts."""
        known = parts_of(folder, [day])
        fresh = np.array([not covers(known, day, one) for one in files])
        rows = rows[fresh[number]]
        if not len(rows):
            return
        batches = [one.batch for one, new in zip(files, fresh, strict=True) if new]
        path = part_path(folder, day, region, epoch, batches[0], batches[-1])
        with whole(path) as temporary:
            write_rows(temporary, stored(table.take(pa.array(rows)), self.space), self.space)

    def _drop(self, turn: Turn, pending: Sequence[Pending], dropped: Collection[str]) -> None:
        """Remove the elements of dropped streams from earlier batches, in the files that this region cares for."""
        names = pa.array(sorted(dropped), pa.string())
        for one in pending:
            if not _committed(one, turn):
                continue
            table = read_pending(one, self.space)
            kept = table.filter(pc.invert(pc.is_in(table["stream"].cast(pa.string()), names)))
            if kept.num_rows < table.num_rows:
                _put(one.path, kept)
        for name in dropped:
            remove(part for part in parts_of(self.folder / name) if part.region % turn.regions == turn.region)

    def _tidy(self, turn: Turn) -> None:
        """Remove the folders of former epochs that are empty."""
        for path in (self.folder / PENDING).glob("*/*"):
            if path.parent.name != turn.epoch:
                with contextlib.suppress(OSError):
                    path.rmdir()
                    path.parent.rmdir()


def read_pending(pending: Pending, space: Space) -> pa.Table:
    """Return the elements of a pending file, with `rows.waiting_schema`.

    The table has no rows if the file has gone, or if the space was defined anew since it was written.
    """
    with contextlib.suppress(FileNotFoundError):
        return waiting_of(pending.path.read_bytes(), space)
    return waiting_schema(space).empty_table()


def _put(path: Path, table: pa.Table) -> None:
    """Write a pending file whole. It is made durable before the state of its batch is (`files.sync_pending`)."""
    write_whole(path, to_ipc(table), durable=False)


def remove(parts: Iterable[HistoryPart]) -> int:
    """Remove parts, and the folders that are then empty; return the number of parts."""
    count = 0
    for part in parts:
        part.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            part.path.parent.rmdir()
            part.path.parent.parent.rmdir()
            part.path.parent.parent.parent.rmdir()
        count += 1
    return count


def _due(turn: Turn, pending: Sequence[Pending]) -> bool:
    """Return whether it is time to merge; the batches of former epochs are merged at once."""
    ripe = [one for one in pending if _committed(one, turn)]
    if any(one.epoch != turn.epoch for one in ripe) or sum(one.rows for one in ripe) >= MERGE_ROWS:
        return True
    oldest = min((one.second for one in ripe), default=turn.now_us)
    return turn.now_us // MICROSECONDS - oldest >= MERGE_AFTER_S


def _committed(pending: Pending, turn: Turn) -> bool:
    return pending.epoch != turn.epoch or pending.batch < turn.batch


def _by_stream(table: pa.Table) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the streams of waiting elements, each with the positions of its rows."""
    column = table["stream"].combine_chunks() if table.num_rows else None
    if column is None:
        return
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    codes = column.indices.to_numpy()
    for code in np.unique(codes).tolist():
        yield column.dictionary[code].as_py(), np.flatnonzero(codes == code)
