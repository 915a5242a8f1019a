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

from streaming.history.files import HistoryPart, Pending, covers, days_of, in_force, parts_of, pending_of, stream_names
from streaming.history.rows import days, part_schema, rows_of, stored, waiting_of
from streaming.spaces import Space

Answer = TypeVar("Answer")
Span = tuple[int | None, int | None]
EVER: Span = (None, None)
# How often files are listed for one question. If a listed file is merged before it is read, they are listed again.
ATTEMPTS = 5


class Moved(Exception):
    """A listed file has gone: its elements are in another file, or are not kept any more."""


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
            When a file has gone since it was listed; see `asked`.
        """
        pending, parts = self._listed(stream, span)
        waiting = self._in_no_part(stream, pending, parts)
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
            The columns of `rows.part_schema`, in no order. A file may go before it is read, so collect it within
            `reading`.

        Raises
        ------
        Moved
            When a pending file has gone since it was listed; see `asked`.
        """
        pending, parts = self._listed(stream, span)
        frames = [pl.DataFrame(self._in_no_part(stream, pending, parts)).lazy()]
        if parts:
            paths = [str(part.path) for part in parts]
            schema = frames[0].collect_schema()
            frames.append(
                pl.scan_parquet(paths, glob=False, schema=schema, missing_columns="insert", extra_columns="ignore")
            )
        return pl.concat(frames)

    def _listed(self, stream: str, span: Span) -> tuple[list[Pending], list[HistoryPart]]:
        """List the pending files, then a stream's parts: in this order, elements merged in between are not missed."""
        pending = pending_of(self.folder)
        folder = self.folder / stream
        wanted = [day for day in days_of(folder) if _in_span(day, span)]
        return pending, in_force(parts_of(folder, wanted))[0]

    def _in_no_part(self, stream: str, pending: Sequence[Pending], parts: Sequence[HistoryPart]) -> pa.Table:
        """Return the elements of a stream in pending files that no part has, with `rows.part_schema`."""
        waiting = [table for one in pending if (table := self._waiting(stream, one, parts)) is not None]
        return stored(pa.concat_tables(waiting), self.space) if waiting else part_schema(self.space).empty_table()

    def _waiting(self, stream: str, pending: Pending, parts: Sequence[HistoryPart]) -> pa.Table | None:
        """Return the elements of a stream in a pending file that no part has, or None if the stream has none there."""
        table = _pending_table(pending.path, _stamp(pending.path), self.space)
        mine = table.filter(pc.equal(table["stream"].cast(pa.string()), stream))
        if not mine.num_rows:
            return None
        day = days(mine)
        covered = [date for date in np.unique(day) if covers(parts, str(date), pending)]
        return mine.filter(pa.array(~np.isin(day, covered))) if covered else mine


def asked(ask: Callable[[], Answer]) -> Answer:
    """Return the answer to a question; ask again, `ATTEMPTS` times in all, if files moved meanwhile."""
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
        raise Moved from None


def _stamp(path: Path) -> tuple[int, int]:
    """Return a value that changes when a file is written anew."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise Moved from None
    return status.st_ino, status.st_mtime_ns


@functools.lru_cache(maxsize=2048)
def _pending_table(path: Path, _: tuple[int, int], space: Space) -> pa.Table:
    """Return the elements of a pending file; none if the space was defined anew since it was written."""
    try:
        return waiting_of(path.read_bytes(), space)
    except FileNotFoundError:
        raise Moved from None


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
        raise Moved from None


def _in_span(day: str, span: Span) -> bool:
    date = np.datetime64(day, "D")
    start, stop = (None if end is None else np.datetime64(end, "us").astype("datetime64[D]") for end in span)
    return (start is None or date >= start) and (stop is None or date <= stop)
