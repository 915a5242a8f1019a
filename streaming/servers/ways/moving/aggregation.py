"""The assembler of aggregates: it merges what participating servers computed, and watches thresholds.

References
----------
PLACE* (2007), section 4.2: the assembler keeps the latest part of each participating server, and merges these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from streaming.kinds.aggregate.plan import Aggregate
from streaming.operators.aggregates import PARTS, merged, valued
from streaming.results import ENTERED, LEFT, STAYED
from streaming.servers.control.registry import MICROSECONDS
from streaming.servers.ways.moving.partial import Partial

REGIONAL = pl.Schema({**PARTS, "region": pl.Int64()})
TOLD = pl.Schema(
    {
        "query": pl.Int64,
        "group": pl.String,
        "count": pl.Int64,
        "value": pl.Float64,
        "object": pl.Int64,
        "time_us": pl.Int64,
    }
)
CROSSED = pl.Schema(
    {
        "query": pl.Int64,
        "group": pl.String,
        "threshold": pl.Int64,
        "name": pl.String,
        "value": pl.Float64,
        "since_us": pl.Int64,
        "raised": pl.Boolean,
    }
)
GROUP = ["query", "group"]
_NOTHING = pl.DataFrame()


@dataclass(frozen=True)
class Aggregation:
    """The assembler's state of aggregates.

    Parameters
    ----------
    parts : polars.DataFrame
        The latest part of each participating server, with the columns `REGIONAL`.
    told : polars.DataFrame
        The groups as they were reported, with the columns `TOLD`. `time_us` is the event time of the object that has a
        minimum or maximum, otherwise the time of the change.
    crossed : polars.DataFrame
        The thresholds that values have crossed, since when, and whether for long enough, with the columns `CROSSED`.
    """

    parts: pl.DataFrame
    told: pl.DataFrame
    crossed: pl.DataFrame

    @classmethod
    def none(cls) -> "Aggregation":
        """Return the state without aggregates."""
        return cls(pl.DataFrame(schema=REGIONAL), pl.DataFrame(schema=TOLD), pl.DataFrame(schema=CROSSED))

    def without(self, queries: np.ndarray) -> "Aggregation":
        """Return the state without some queries."""
        others = ~pl.col("query").is_in(queries.tolist())
        return Aggregation(self.parts.filter(others), self.told.filter(others), self.crossed.filter(others))


@dataclass(frozen=True)
class AggregateGroups:
    """The aggregates of a micro-batch.

    Parameters
    ----------
    aggregates : mapping of int to Aggregate
        By the numbers of queries.
    changed : ndarray of int64
        Those that are new, or have another plan.
    times : callable
        Given the `key_hash` of objects, returns the event times of their newest elements, in microseconds.
    now_us : int
        The latest tick.
    """

    aggregates: Mapping[int, Aggregate]
    changed: np.ndarray
    times: Any
    now_us: int


def step(
    state: Aggregation, partials: Sequence[Partial], groups: AggregateGroups
) -> tuple[Aggregation, pl.DataFrame, pl.DataFrame]:
    """Merge the parts, compare the values with those reported, and check the thresholds.

    Returns
    -------
    state : Aggregation
    changes : polars.DataFrame
        Groups that begin, change or end, with the columns `TOLD` and `sign`; no columns if there is no aggregate. They
        are ordered, so that a batch that runs again tells the same: joins of Polars promise no order.
    crossings : polars.DataFrame
        Thresholds that are crossed, or no longer crossed, with the columns `CROSSED` and `sign`; likewise.
    """
    running = list(groups.aggregates)
    if not running and state.told.is_empty():
        return Aggregation.none(), _NOTHING, _NOTHING
    parts = [_without(state.parts.filter(pl.col("query").is_in(running)), partials)]
    parts += [partial.parts.with_columns(region=pl.lit(n, pl.Int64)) for n, partial in enumerate(partials)]
    held = pl.concat([part.select(list(REGIONAL)) for part in parts])
    altered = np.unique(np.concatenate([groups.changed, *(partial.altered for partial in partials)]))
    concerned = pl.col("query").is_in(altered.tolist())
    whole = merged(held.filter(concerned).sort("query", "group", "region").drop("region"))
    values = _timed(pl.concat([valued(whole, groups.aggregates), _empty(whole, altered, groups)]), groups)
    gone = ~pl.col("query").is_in(running)
    renewed = np.concatenate([partial.renewed for partial in partials])
    newest, changes = _compared(state.told.filter(concerned | gone), values, groups, renewed)
    told = pl.concat([state.told.filter(~concerned & ~gone), newest]).sort(GROUP)
    crossed = _crossed(state.crossed, told, groups)
    crossings = _crossings(state.crossed, crossed, told)
    return Aggregation(held, told, crossed), changes, crossings


def _without(parts: pl.DataFrame, partials: Sequence[Partial]) -> pl.DataFrame:
    """Return the parts that no participating server has replaced."""
    for region, partial in enumerate(partials):
        if len(partial.altered):
            renewed = (pl.col("region") == region) & pl.col("query").is_in(partial.altered.tolist())
            parts = parts.filter(~renewed)
    return parts


def _empty(whole: pl.DataFrame, altered: np.ndarray, groups: AggregateGroups) -> pl.DataFrame:
    """Return the one group of each aggregate that has no `group_by` and no members."""
    present = set(whole["query"].to_list())
    lacking = [q for q in altered.tolist() if q in groups.aggregates and q not in present]
    rows = [
        (query, "", 0, 0.0 if groups.aggregates[query].function in ("count", "sum") else None, None)
        for query in lacking
        if not groups.aggregates[query].group_by
    ]
    schema = {name: kind for name, kind in TOLD.items() if name != "time_us"}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _timed(values: pl.DataFrame, groups: AggregateGroups) -> pl.DataFrame:
    keys = values["object"].to_numpy()
    named = values["object"].is_not_null().to_numpy()
    times = np.zeros(len(values), dtype=np.int64)
    times[named] = groups.times(keys[named].astype(np.int64)) if named.any() else 0
    time_us = pl.when(pl.col("object").is_not_null()).then(pl.Series(times, dtype=pl.Int64))
    return values.with_columns(time_us=time_us).select(list(TOLD)).cast(TOLD)


def _compared(
    old: pl.DataFrame, new: pl.DataFrame, groups: AggregateGroups, renewed: np.ndarray
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the values as they are now, and the changes; groups of a query with a new plan are reported again."""
    both = old.with_columns(was=pl.lit(True)).join(
        new.with_columns(now=pl.lit(True)), on=GROUP, how="full", suffix="_new", coalesce=True
    )
    was, now = pl.col("was").fill_null(False), pl.col("now").fill_null(False)
    sign = pl.when(was & now).then(STAYED).when(now).then(ENTERED).otherwise(LEFT).cast(pl.Int8)
    names = ("count", "value", "object")
    same = was & now & pl.all_horizontal([pl.col(name).eq_missing(pl.col(f"{name}_new")) for name in names])
    # An object may lie elsewhere, although its event time is the same.
    same &= ~pl.col("object").is_in(renewed.tolist()).fill_null(False)
    same &= ~pl.col("query").is_in(groups.changed.tolist())
    newest = {name: pl.when(now).then(pl.col(f"{name}_new")).otherwise(pl.col(name)) for name in names}
    changed_us = pl.col("time_us_new").fill_null(groups.now_us)
    newest["time_us"] = pl.when(same).then(pl.col("time_us")).otherwise(changed_us)
    told = both.select("query", "group", **newest, sign=sign, same=same, now=now)
    return told.filter("now").select(list(TOLD)).cast(TOLD), told.filter(~pl.col("same")).drop("same", "now").sort(
        GROUP
    )


def _crossed(former: pl.DataFrame, told: pl.DataFrame, groups: AggregateGroups) -> pl.DataFrame:
    """Return the thresholds that values have crossed, and since when."""
    rows = [
        (query, number, threshold.name, threshold.above, threshold.below, round(threshold.for_s * MICROSECONDS))
        for query, aggregate in groups.aggregates.items()
        for number, threshold in enumerate(aggregate.thresholds)
    ]
    if not rows:
        return former.clear()
    kinds = {"query": pl.Int64, "threshold": pl.Int64, "name": pl.String, "above": pl.Float64, "below": pl.Float64}
    limits = pl.DataFrame(rows, schema=kinds | {"for_us": pl.Int64}, orient="row")
    beyond = told.join(limits, on="query").filter(
        (pl.col("value") > pl.col("above")).fill_null(False) | (pl.col("value") < pl.col("below")).fill_null(False)
    )
    since = former.filter(~pl.col("query").is_in(groups.changed.tolist())).select(*GROUP, "threshold", "since_us")
    timed = beyond.join(since, on=[*GROUP, "threshold"], how="left").with_columns(
        since_us=pl.col("since_us").fill_null(groups.now_us)
    )
    raised = groups.now_us - pl.col("since_us") >= pl.col("for_us")
    return timed.with_columns(raised=raised).select(list(CROSSED)).cast(CROSSED).sort(*GROUP, "threshold")


def _crossings(former: pl.DataFrame, crossed: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame:
    """Return the thresholds that are raised now and were not, and the reverse, with the present values."""
    names = [*GROUP, "threshold", "name"]
    was, now = former.filter("raised"), crossed.filter("raised")
    begun = now.join(was, on=names, how="anti").with_columns(sign=pl.lit(ENTERED, pl.Int8))
    ended = was.join(now, on=names, how="anti").drop("value").join(told.select(*GROUP, "value"), on=GROUP, how="left")
    ended = ended.select(was.columns).with_columns(sign=pl.lit(LEFT, pl.Int8))
    return pl.concat([begun, ended]).sort(*names, "sign")
