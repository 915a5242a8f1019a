"""Pages of stored elements for a replay, in the order in which they were heard: what was known of an area, and when.

A replay shows at time t what was known at t, as the live map did: each object at the last element that gateways had
heard by then, if that lies in the area and was not heard longer ago than the object's lifetime. A page tells this scene
at its beginning, and then what changes it.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
import polars as pl
import pyarrow as pa

from streaming.elements import bounds_array
from streaming.history.errors import InvalidQuestion
from streaming.history.reader import EVER, History, asked, reading
from streaming.language import thousands
from streaming.operators.boxes import intersects
from streaming.results import ENTERED, LEFT, MOVED, SNAPSHOT, STAYED, result_schema
from streaming.spaces import Space

# Columns of result tuples that a page has, and `at_us`, when the element was heard.
COLUMNS = ("sign", "reason", "key", "time_us", "bounds", "properties")
KEPT = pl.all().exclude("geometry")


@dataclass(frozen=True)
class ReplayLimits:
    """How much one page may read and tell.

    Parameters
    ----------
    scanned : int
        The most elements that were heard within a lifetime before a page.
    read : int
        The most elements of a page that are in memory, in the area or not. A page ends before there would be more.
    thinned : int
        The most elements of a page that is thinned out; fewer of them are in memory.
    objects : int
        The most objects of the stream within a lifetime before the page.
    rows : int
        After so many rows, a page ends; rows of the same time, or step, are never divided.
    """

    scanned: int = 20_000_000
    read: int = 200_000
    thinned: int = 1_000_000
    objects: int = 200_000
    rows: int = 20_000


@dataclass(frozen=True)
class PageRequest:
    """What a page is asked for.

    Parameters
    ----------
    stream : str
    box : ndarray of float64, shape (2n,)
        Of the area.
    from_us, to_us : int
        The page begins after `from_us` and ends at `to_us` or earlier: when gateways heard elements, in microseconds
        since 1970 UTC.
    life_us : int
        An object that was not heard for longer than this is not shown.
    scene : bool
        Whether to tell the scene at `from_us` as well.
    step_us : int
        Thin out: of the elements of an object that were heard within a step, tell the last alone; 0 for all. Steps
        begin at multiples of `step_us`. The scene at the end of each step is the same.
    """

    stream: str
    box: np.ndarray
    from_us: int
    to_us: int
    life_us: int
    scene: bool = True
    step_us: int = 0


@dataclass(frozen=True)
class ReplayPage:
    """A page of a replay.

    Parameters
    ----------
    rows : pyarrow.Table
        The columns `COLUMNS` of `results.result_schema`, and at_us : int64, when the element was heard. First the
        scene, if it was asked for: objects with the sign `ENTERED` and the reason `SNAPSHOT`, ordered by `at_us`, then
        key. Then the changes in the same order: `ENTERED`, `STAYED`, and `LEFT` for elements outside of the area whose
        objects were in it.
    scene : int
        The number of rows of the scene.
    until_us : int
        The rows are complete up to this time, which is included. The next page begins after it.
    """

    rows: pa.Table
    scene: int
    until_us: int


def read_page(history: History, wanted: PageRequest, limits: ReplayLimits = ReplayLimits()) -> ReplayPage:
    """Return a page of a stream's stored elements.

    Raises
    ------
    InvalidQuestion
        When there are more elements than a limit allows.
    """

    def read() -> ReplayPage:
        with reading():
            return _read(history.scan(wanted.stream, EVER), history.space, wanted, limits)

    return asked(read)


def _read(elements: pl.LazyFrame, space: Space, wanted: PageRequest, limits: ReplayLimits) -> ReplayPage:
    first = elements.filter(_between(wanted.from_us - wanted.life_us, wanted.from_us))
    if (scanned := first.select(pl.len()).collect().item()) > limits.scanned:
        raise InvalidQuestion(
            "a replay may look back over at most %(most)s elements of a stream; got "
            "%(got)s within a lifetime of %(life_us)g s",
            most=thousands(limits.scanned),
            got=thousands(scanned),
            life_us=wanted.life_us / 1e6,
        )
    before = _newest(first, limits).with_columns(inside=_inside(space, wanted))
    until_us = _until(elements, wanted, limits.thinned if wanted.step_us else limits.read)
    read = _thinned(elements.filter(_between(wanted.from_us + 1, until_us)).select(KEPT), wanted.step_us)
    page = _in_order(read.collect(engine="streaming"))
    page = page.with_columns(inside=_inside(space, wanted))
    changes = _signed(before, page, wanted)
    changes, until_us = _cut(changes, until_us, limits, max(1, wanted.step_us))
    scene = before.filter(pl.col("inside")).sort("heard", "key") if wanted.scene else before.clear()
    scene = scene.with_columns(sign=pl.lit(ENTERED, pl.Int8), reason=pl.lit(SNAPSHOT, pl.Int8))
    rows = pl.concat([scene.select(changes.columns), changes])
    return ReplayPage(_as_tuples(rows, space), scene.height, until_us)


def _between(first_us: int, last_us: int) -> pl.Expr:
    """Return the condition that an element was heard between two times, both included."""
    first, last = (pl.lit(time_us).cast(pl.Datetime("us", "UTC")) for time_us in (first_us, last_us))
    return (pl.col("heard") >= first) & (pl.col("heard") <= last)


def _newest(elements: pl.LazyFrame, limits: ReplayLimits) -> pl.DataFrame:
    """Return the last element of each object."""
    last = elements.group_by("key").agg(pl.col("heard").max())
    newest = elements.join(last, on=["key", "heard"], how="semi").select(KEPT)
    found = newest.head(limits.objects + 1).collect(engine="streaming")
    if found.height > limits.objects:
        raise InvalidQuestion(
            "a replay may know at most %(objects)s objects of a stream at a time; got more",
            objects=thousands(limits.objects),
        )
    return _in_order(found)


def _in_order(elements: pl.DataFrame) -> pl.DataFrame:
    """Return elements as they were heard, then by key; the newest of those of a key that were heard at one moment."""
    ordered = elements.sort("key", "heard", "time", "properties")
    return ordered.unique(["key", "heard"], keep="last", maintain_order=True).sort("heard", "key")


def _inside(space: Space, wanted: PageRequest) -> pl.Expr:
    """Return an expression: whether the boxes of elements intersect the area, as the view of the map tests it."""
    names = [f"{side}_{axis}" for side in ("lo", "hi") for axis in range(space.n)]

    def meets(boxes: pl.Series) -> pl.Series:
        found = boxes.struct.unnest().to_numpy()
        at = np.arange(len(found))
        return pl.Series(intersects(found, at, wanted.box[None], np.zeros_like(at), space), dtype=pl.Boolean)

    return pl.struct(names).map_batches(meets, return_dtype=pl.Boolean)


def _thinned(elements: pl.LazyFrame, step_us: int) -> pl.LazyFrame:
    """Return of each object the last element in each step."""
    if not step_us:
        return elements
    step = (pl.col("heard").dt.epoch("us") // step_us).alias("step")
    last = elements.group_by("key", step).agg(pl.col("heard").max())
    return elements.join(last, on=["key", "heard"], how="semi")


def _until(elements: pl.LazyFrame, wanted: PageRequest, most: int) -> int:
    """Return the last time up to which a page may read."""
    ahead = elements.filter(_between(wanted.from_us + 1, wanted.to_us))
    first = ahead.select(pl.col("heard").bottom_k(most + 1).dt.epoch("us")).collect()["heard"]
    if len(first) <= most:
        return wanted.to_us
    until_us = cast(int, first.max()) - 1
    if cast(int, first.min()) > until_us:
        raise InvalidQuestion(
            "a stream may be replayed that has at most %(most)s elements heard at one time; got more at %(np)sZ",
            most=thousands(most),
            np=np.datetime64(until_us + 1, "us"),
        )
    return until_us


def _signed(before: pl.DataFrame, page: pl.DataFrame, wanted: PageRequest) -> pl.DataFrame:
    """Return the elements that change the scene, with their signs and reasons."""
    known = pl.concat([before, page])
    gap = pl.col("heard") - pl.col("heard").shift().over("key")
    known = known.with_columns(
        was=(pl.col("inside").shift().over("key") & (gap <= pl.duration(microseconds=wanted.life_us))).fill_null(False)
    )
    sign = pl.when(pl.col("inside")).then(pl.when(pl.col("was")).then(STAYED).otherwise(ENTERED)).otherwise(LEFT)
    changes = known.tail(page.height).filter(pl.col("inside") | pl.col("was"))
    return changes.with_columns(sign=sign.cast(pl.Int8), reason=pl.lit(MOVED, pl.Int8)).drop("was")


def _cut(changes: pl.DataFrame, until_us: int, limits: ReplayLimits, step_us: int) -> tuple[pl.DataFrame, int]:
    """Cut a page after its limit of rows, between two steps; return it and the time up to which it is complete.

    Of an object, only the last element in a step is told. If a page ended before it, the next one would begin with one
    that was not told.
    """
    if changes.height <= limits.rows:
        return changes, until_us
    times = changes["heard"].dt.epoch("us")
    ends = max(int(times[limits.rows]) // step_us, int(times[0]) // step_us + 1) * step_us - 1
    until_us = min(ends, until_us)
    return changes.filter(times <= until_us), until_us


def _as_tuples(rows: pl.DataFrame, space: Space) -> pa.Table:
    names = [f"{side}_{axis}" for side in ("lo", "hi") for axis in range(space.n)]
    columns = {name: rows[name].to_arrow() for name in ("sign", "reason", "key", "properties")}
    columns["time_us"] = rows["time"].dt.epoch("us").to_arrow()
    columns["bounds"] = bounds_array(rows.select(names).to_numpy())
    schema = pa.schema([*(result_schema(space).field(name) for name in COLUMNS), pa.field("at_us", pa.int64(), False)])
    columns["at_us"] = rows["heard"].dt.epoch("us").to_arrow()
    return pa.table([columns[name] for name in schema.names], names=schema.names).cast(schema)


def heard_times(history: History, stream: str) -> tuple[int, int] | None:
    """Return when the first and the last of a stream's stored elements were heard; None without elements.

    Returns
    -------
    (int, int) or None
        Microseconds since 1970 UTC.
    """

    def read() -> tuple[int | None, int | None]:
        heard, in_time = pl.col("heard").dt.epoch("us"), pl.col("late").is_null()
        with reading():
            # Old reports may have any time, so the others tell where a replay begins.
            first = pl.coalesce(heard.filter(in_time).min(), heard.min())
            ends = history.scan(stream, EVER).select(first=first, last=heard.max())
            return ends.collect(engine="streaming").row(0)

    first, last = asked(read)
    return None if first is None or last is None else (first, last)
