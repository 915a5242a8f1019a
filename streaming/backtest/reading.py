"""Read stored elements in the order in which they were heard, a part of them at a time."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from streaming.backtest.asked import US, BacktestRequest
from streaming.backtest.cuts import boxes_about
from streaming.elements import bounds_array, key_hashes, stream_number
from streaming.history.reader import EVER, History, asked, reading
from streaming.history.rows import INSTANT, MARGIN, boxes
from streaming.servers.elements import tracked_schema
from streaming.spaces import Space

# So many elements are in memory at a time, more if one second has more.
CHUNK_ROWS = 500_000
_HEARD = pl.Datetime("us", "UTC")


class StoredElements:
    """The stored elements that a back-test plays.

    Parameters
    ----------
    history : History
    question : BacktestRequest

    Attributes
    ----------
    stored : int
        How many elements were heard in the time that is asked for.
    total : int
        How many of them are of objects that came near the queries, and are read.
    """

    def __init__(self, history: History, question: BacktestRequest, chunk_rows: int = CHUNK_ROWS) -> None:
        self._history, self._question = history, question
        self._keys: dict[str, pl.DataFrame] = {}
        self._boxes = boxes_about([question.parsed(number) for number in question.plans], question.space)
        self.stored = sum(map(self._count, question.streams))
        counts = pl.concat([self._counted(stream) for stream in question.streams])
        counts = counts.group_by("second").agg(pl.col("rows").sum()).sort("second")
        self.total = int(counts["rows"].sum())
        self._bounds_us = _bounds(counts["second"].to_numpy(), counts["rows"].to_numpy(), chunk_rows)

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield tables with `tracked_schema` in the order in which the elements were heard; see `Playing.play`."""
        for span in self._bounds_us:
            tables = [self._table(stream, span) for stream in self._question.streams]
            table = pa.concat_tables(tables)
            order = np.lexsort((table["time_us"].to_numpy(), table["heard_us"].to_numpy()))
            yield table.take(pa.array(order)).combine_chunks()

    def _count(self, stream: str) -> int:
        """Return how many elements of a stream were heard."""

        def read() -> int:
            with reading():
                elements = self._heard(stream, (self._question.begin_us, self._question.span[1]))
                return elements.select(pl.len()).collect(engine="streaming").item()

        return asked(read)

    def _counted(self, stream: str) -> pl.DataFrame:
        """Return how many elements of a stream were heard in each second: a frame with `second` and `rows`."""
        end_us = self._question.span[1]

        def read() -> pl.DataFrame:
            with reading():
                elements = self._scanned(stream, (self._question.begin_us, end_us))
                second = (pl.col("heard").dt.epoch("us") // US).alias("second")
                return elements.group_by(second).agg(pl.len().cast(pl.Int64).alias("rows")).collect(engine="streaming")

        return asked(read)

    def _scanned(self, stream: str, span: tuple[int, int]) -> pl.LazyFrame:
        """Return those elements of a stream that were heard in a span and are of objects that came near, lazily."""
        elements = self._heard(stream, span)
        if self._boxes is None:
            return elements
        if stream not in self._keys:  # whoever never comes near is left out
            near = self._heard(stream, (self._question.begin_us, self._question.span[1]))
            near = near.filter(_meets(self._boxes, self._question.space))
            self._keys[stream] = near.select("key").unique().collect(engine="streaming")
        return elements.join(self._keys[stream].lazy(), on="key", how="semi")

    def _heard(self, stream: str, span: tuple[int, int]) -> pl.LazyFrame:
        """Return the elements of a stream that were heard in a span, its end excluded, to be read lazily."""
        begin, end = (pl.lit(time_us).cast(_HEARD) for time_us in span)
        heard = (pl.col("heard") >= begin) & (pl.col("heard") < end)
        # What came too late changed no answer.
        return self._history.scan(stream, EVER).filter(heard & pl.col("late").is_null())

    def _table(self, stream: str, span: tuple[int, int]) -> pa.Table:
        def read() -> pa.Table:
            with reading():
                return self._scanned(stream, span).collect(engine="streaming").to_arrow()

        return tracked(asked(read), stream, self._question.space)


def tracked(stored: pa.Table, stream: str, space: Space) -> pa.Table:
    """Return stored elements of a stream, with `part_schema`, as servers take them.

    What is stored was accepted when it was heard. So `version` is the time at which it was heard.
    """
    time_us, heard_us = (stored[name].cast(INSTANT).cast(pa.int64()) for name in ("time", "heard"))
    key = stored["key"].cast(pa.string())
    columns = {
        "key": key,
        "key_hash": pa.array(key_hashes(stream, key.to_numpy(zero_copy_only=False))),
        "time_us": time_us,
        "version": heard_us,
        "bounds": bounds_array(boxes(stored, space)) if len(key) else pa.array([], pa.list_(pa.float64(), 2 * space.n)),
        "geometry": stored["geometry"].cast(pa.binary()),
        "properties": stored["properties"].cast(pa.string()),
        "stream": pa.array(np.full(len(key), stream_number(stream))),
        "heard_us": heard_us,
    }
    schema = tracked_schema(space)
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _bounds(second: np.ndarray, rows: np.ndarray, chunk_rows: int) -> Sequence[tuple[int, int]]:
    """Return spans of whole seconds, in microseconds, with about so many elements each."""
    if not len(second):
        return []
    chunk = (np.cumsum(rows) - rows) // chunk_rows
    start = np.flatnonzero(np.r_[True, chunk[1:] != chunk[:-1]])
    begin = (second[start] * US).tolist()
    return list(zip(begin, [*begin[1:], int(second[-1] + 1) * US], strict=True))


def _meets(boxes: np.ndarray, space: Space) -> pl.Expr:
    """Return a condition that holds for every element whose box meets one of some boxes (K, 2n), and for few others."""
    return pl.any_horizontal([_meets_box(box, space) for box in boxes])


def _meets_box(box: np.ndarray, space: Space) -> pl.Expr:
    conditions = [pl.lit(True)]
    for axis, dimension in enumerate(space.dimensions):
        low, high = float(box[axis]), float(box[space.n + axis])
        turns = (0.0, dimension.extent, -dimension.extent) if dimension.wraps else (0.0,)
        there = [
            (pl.col(f"hi_{axis}") >= low - turn - MARGIN) & (pl.col(f"lo_{axis}") <= high - turn + MARGIN)
            for turn in turns
        ]
        conditions.append(pl.any_horizontal(there))
    return pl.all_horizontal(conditions)
