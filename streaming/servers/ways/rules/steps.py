"""The steps of objects that reported several times in a micro-batch: in which answers each of their reports has them.

Answers are those after a micro-batch, of which the newest report of an object decides. Rules ask for how long an object
was in an answer, whatever else came with its reports, as after a stall. So regions match all reports of such objects
with the queries that rules watch, as far as the objects are in their answers by their own reports alone.
"""

import numpy as np
import polars as pl
import pyarrow as pa

from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.runs import expand, find
from streaming.results import DROPPED, EXPIRED
from streaming.servers.control.step import ControlStep
from streaming.servers.region.objects import Objects
from streaming.servers.region.state import ObjectChanges
from streaming.servers.ways.rules.stepping import stepped
from streaming.servers.ways.rules.watched import NEVER_US, NO_QUERY, STEPS, reported_at


def steps_of(steps: pa.Table, changed: ObjectChanges, control: ControlStep, batch: int) -> pl.DataFrame:
    """Return the steps of objects in a region.

    Parameters
    ----------
    steps : pyarrow.Table
        Those of the reports that lie in the region, with `tracked_schema`; see `home.HomeOutput`.
    changed : ObjectChanges
    control : ControlStep
    batch : int

    Returns
    -------
    polars.DataFrame
        With `STEPS`. An object that fell silent, or whose stream ended, has one step more, in no answer.
    """
    queries = stepped(control)
    if not steps.num_rows or not len(queries):
        return pl.DataFrame(schema=STEPS)
    objects = Objects.arrived(steps, -1)
    rows, number, paired = _matched(steps, objects, queries, control)
    gone, silent_us = _gone(objects.key_hash, changed, control)
    never_us = np.full(len(gone), NEVER_US)
    columns = {
        "key": np.r_[objects.key_hash, gone],
        "version": np.r_[steps["version"].to_numpy(), never_us],
        "heard_us": np.r_[objects.heard_us, never_us],
        "time_us": np.r_[reported_at(objects.time_us, objects.heard_us), silent_us],
    }
    each = np.arange(len(columns["key"]))
    told = {name: column[np.r_[each, rows]] for name, column in columns.items()}
    told["query"] = np.r_[np.full(len(each), NO_QUERY), number]
    told["paired"] = np.r_[np.zeros(len(each), dtype=bool), paired]
    found = pl.DataFrame(told).with_columns(batch=pl.lit(batch, pl.Int64))
    counted = found.group_by(name for name in STEPS if name != "count").agg(count=pl.len().cast(pl.Int64))
    return counted.select(list(STEPS))


def _matched(
    steps: pa.Table, objects: Objects, queries: np.ndarray, control: ControlStep
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which rows are in the answers of which queries, and whether with a partner."""
    registry = control.after
    answer = registry.columns.answer[find(registry.columns.query, queries)[0]]
    elements = Elements(objects.stream, objects.bounds, lambda rows: steps.take(pa.array(rows)))
    pairs = registry.queries.only(np.unique(answer)).match(elements, registry.features, Failures())
    order = np.argsort(answer, kind="stable")
    start = np.searchsorted(answer[order], pairs.query, "left")
    of, place = expand(start, np.searchsorted(answer[order], pairs.query, "right") - start)
    return pairs.row[of], queries[order[place]], pairs.partner[of] != 0


def _gone(key: np.ndarray, changed: ObjectChanges, control: ControlStep) -> tuple[np.ndarray, np.ndarray]:
    """Return those of some objects that are in no region any more, and since when."""
    keys = np.unique(key)
    known, _ = changed.known.found(keys[np.isin(changed.fates(keys), (EXPIRED, DROPPED))])
    silent_us = known.heard_us + control.after.ttl_of(known.stream)
    return known.key_hash, np.minimum(silent_us, control.now_us)
