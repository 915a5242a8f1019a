"""Read the history of a space: every stored element once, from parts and pending files."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from streaming.errors import LookoutError
from streaming.history.files import HistoryPart, Pending, covers, days_of, in_force, parts_of, pending_of, stream_names
from streaming.history.rows import days, part_schema, rows_of, stored, waiting_of
from streaming.language import gettext_noop
from streaming.spaces import Space

Answer = TypeVar("Answer")
Span = tuple[int | None, int | None]
EVER: Span = (None, None)
# How often parts are listed for one question. If a listed part is merged before it is read, they are listed again.
ATTEMPTS = 5
_MOVED = gettext_noop("what is stored must stay in its files while it is read; it moved several times: ask again")


class Moved(LookoutError):
    """A listed part has gone: its elements are in another part, or are not kept any more."""


class History:
    """The stored elements of a space's streams.

    Parameters
    ----------
    root : Path
    space : Space
    """

    def __init__(self, root: Path, space: Space) -> None:
        self.folder, self.space = Path(root) / space.name, space

    def streams(self) -> list[str]:
        """Return the names of the streams that have parts."""
        return stream_names(self.folder)

    def pending(self) -> int:
        """Return the number of elements of all streams that are not in parts yet."""
        return sum(one.rows for one in pending_of(self.folder))

    def collect(
        self,
        stream: str,
        condition: pc.Expression,
        span: Span,
        take: Callable[[pa.Table], None],
        few: bool = False,
    ) -> None:
        """Pass the stored elements of a stream that satisfy a condition to `take`, in no order.

        Parameters
        ----------
        stream : str
        condition : pyarrow.compute.Expression
            Over the columns of `rows.part_schema`.
        span : (int or None, int or None)
            Event times in microseconds since 1970 UTC, both ends included; None leaves an end open. It only serves to
            skip days, so the condition must contain it as well.
        take : callable
            Called with tables with `rows.row_schema`. It may raise an error to end the reading.
        few : bool
            Whether to read the columns of the condition first, and the other columns only of row groups that have such
            rows. This pays if few rows satisfy the condition, but the row groups' minima and maxima do not show it.

        Raises
        ------
        Moved
            When a part has gone since it was listed; see `asked`.
        """
        waiting, parts = self._in_no_part(stream, span)
        if waiting.num_rows:
            take(rows_of(waiting.filter(condition), self.space))
        for batch in _batches(parts, condition, self.space, few):
            take(rows_of(batch, self.space))

    def scan(self, stream: str, span: Span) -> pl.LazyFrame:
        """Return the stored elements of a stream, of the days of a span at least, to be read lazily.

        Parameters
        ----------
        stream : str
        span : (int or None, int or None)
            As in `collect`: it only serves to skip days.

        Returns
        -------
        polars.LazyFrame
            The columns of `rows.part_schema`, in no order. A part may go before it is read, so collect it within
            `reading`.
        """
        waiting, parts = self._in_no_part(stream, span)
        frames = [pl.DataFrame(waiting).lazy()]
        if parts:
            paths = [str(part.path) for part in parts]
            schema = frames[0].collect_schema()
            frames.append(
                pl.scan_parquet(paths, glob=False, schema=schema, missing_columns="insert", extra_columns="ignore")
            )
        return pl.concat(frames)

    def _in_no_part(self, stream: str, span: Span) -> tuple[pa.Table, list[HistoryPart]]:
        """Return a stream's elements in pending files that no part has, with `rows.part_schema`, and its parts.

        The parts are listed when the pending files have been read, so elements that are merged meanwhile are not
        missed.
        """
        pending = self._pending(stream)
        folder = self.folder / stream
        parts = in_force(parts_of(folder, [day for day in days_of(folder) if _in_span(day, span)]))[0]
        waiting = [table for one, rows in pending if (table := _uncovered(one, rows, parts)).num_rows]
        if not waiting:
            return part_schema(self.space).empty_table(), parts
        return stored(pa.concat_tables(waiting), self.space), parts

    def _pending(self, stream: str) -> list[tuple[Pending, pa.Table]]:
        """Read the elements of a stream in the pending files.

        A file that has gone since it was listed was merged, or written anew when its batch ran again. So the files are
        listed again until all that are new have been read.
        """
        read: dict[Path, pa.Table | None] = {}
        while True:
            listed = pending_of(self.folder)
            fresh = [one.path for one in listed if one.path not in read]
            read |= {path: _pending_table(path, self.space) for path in fresh}
            if all(read[path] is not None for path in fresh):
                there = ((one, table) for one in listed if (table := read[one.path]) is not None)
                return [
                    (one, table.filter(pc.equal(table["stream"].cast(pa.string()), stream))) for one, table in there
                ]


def _uncovered(pending: Pending, rows: pa.Table, parts: Sequence[HistoryPart]) -> pa.Table:
    """Return those rows of a pending file whose days no part has of its batch."""
    if not rows.num_rows:
        return rows
    day = days(rows)
    covered = [date for date in np.unique(day) if covers(parts, str(date), pending)]
    return rows.filter(pa.array(~np.isin(day, covered))) if covered else rows


def asked(ask: Callable[[], Answer]) -> Answer:
    """Return the answer to a question; ask again, `ATTEMPTS` times in all, if parts moved meanwhile."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(Moved):
            return ask()
    return ask()


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Raise `Moved` where a file that was to be read has gone."""
    try:
        yield
    except FileNotFoundError:
        raise Moved(_MOVED) from None


def _pending_table(path: Path, space: Space) -> pa.Table | None:
    """Return the elements of a pending file, of all streams, or None if it has gone."""
    try:
        status = path.stat()
        return _kept_table(path, (status.st_ino, status.st_mtime_ns), space)
    except FileNotFoundError:
        return None


@functools.lru_cache(maxsize=2048)
def _kept_table(path: Path, _: tuple[int, int], space: Space) -> pa.Table:
    """Return the elements of a pending file as it was written; none if the space was defined anew since then."""
    return waiting_of(path.read_bytes(), space)


def _batches(parts: list[HistoryPart], condition: pc.Expression, space: Space, few: bool) -> Iterator[pa.Table]:
    """Yield the elements of parts that satisfy a condition; row groups that cannot have any are not read."""
    if not parts:
        return
    try:
        dataset = ds.dataset([str(part.path) for part in parts], schema=part_schema(space), format="parquet")
        if few:
            groups = (group for part in dataset.get_fragments() for group in part.split_by_row_group(condition))
            found = [group for group in groups if group.count_rows(filter=condition)]
            dataset = ds.FileSystemDataset(found, dataset.schema, dataset.format, dataset.filesystem)
        for batch in dataset.to_batches(filter=condition):
            if batch.num_rows:
                yield pa.Table.from_batches([batch])
    except FileNotFoundError:
        raise Moved(_MOVED) from None


def _in_span(day: str, span: Span) -> bool:
    date = np.datetime64(day, "D")
    start, stop = (None if end is None else np.datetime64(end, "us").astype("datetime64[D]") for end in span)
    return (start is None or date >= start) and (stop is None or date <= stop)
