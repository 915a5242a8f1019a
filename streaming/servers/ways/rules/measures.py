"""What a region tells of the members of aggregates that rules look at: who enters, leaves, or has another value.

The assembler of rules computes the value of each second from them (`numbers`).
"""

import numpy as np
import polars as pl

from streaming.operators.runs import find
from streaming.results import EDITED, MOVED
from streaming.servers.control.step import ControlStep
from streaming.servers.region.state import ObjectChanges
from streaming.servers.ways.rules.watched import MEASURES, Heard, happened


def measures_of(
    were: pl.DataFrame, are: pl.DataFrame, control: ControlStep, changed: ObjectChanges, heard: Heard, batch: int
) -> pl.DataFrame:
    """Return what a micro-batch changed in the members of aggregates in a region.

    Parameters
    ----------
    were, are : polars.DataFrame
        The members before and after it, with the columns `aggregates.MEMBERS`.
    control : ControlStep
    changed : ObjectChanges
    heard : Heard
    batch : int

    Returns
    -------
    polars.DataFrame
        With the columns `MEASURES`.
    """
    before, after = control.before.valued, control.after.valued
    if not len(after):
        return pl.DataFrame(schema=MEASURES)
    known, new = np.intersect1d(before, after), np.setdiff1d(after, before)
    whole = are.filter(pl.col("query").is_in(new.tolist())).with_columns(here=pl.lit(True), whole=pl.lit(True))
    ours = pl.col("query").is_in(known.tolist())
    were, are = were.filter(ours), are.filter(ours)
    put = are.join(were, on=list(are.columns), how="anti", nulls_equal=True)
    gone = were.join(are, on=["query", "key"], how="anti")
    told = pl.concat(
        [
            whole,
            gone.with_columns(here=pl.lit(False), whole=pl.lit(False)),
            put.with_columns(here=pl.lit(True), whole=pl.lit(False)),
        ]
    )
    query, key = (told[name].to_numpy() for name in ("query", "key"))
    reason = changed.fates(key)
    renewed = np.union1d(control.applied.changed, control.applied.cancelled)
    reason = np.where(find(renewed, query)[1], np.int8(EDITED), reason)
    clock_us = changed.was.now_us or control.now_us
    told_us = _reported_us(key, reason, changed)
    time_us = happened(told_us, key, reason, clock_us, heard, control.after)
    told = told.with_columns(time_us=pl.Series(time_us, dtype=pl.Int64), batch=pl.lit(batch))
    return told.select(list(MEASURES)).cast(MEASURES)


def _reported_us(key: np.ndarray, reason: np.ndarray, changed: ObjectChanges) -> np.ndarray:
    """Return the times of the newest reports of objects (K,) that reported, in microseconds; otherwise 0."""
    objects, found = changed.known.found(key)
    told_us = np.zeros(len(key), dtype=np.int64)
    told_us[found] = objects.time_us
    told_us[~find(changed.touched, key)[1] | (reason != MOVED)] = 0
    departures = changed.departures.sort_by("key_hash")
    place, departed = find(departures["key_hash"].to_numpy(), key)
    told_us[departed] = departures["time_us"].to_numpy()[place[departed]]
    return told_us
