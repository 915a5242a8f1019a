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
from streaming.servers.region.watched import NEVER_US, NO_QUERY, STEPS, reported_at


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
    registry, queries = control.after, stepped(control)
    if not steps.num_rows or not len(queries):
        return pl.DataFrame(schema=STEPS)
    objects = Objects.arrived(steps, -1)
    key, version, time_us = (
        objects.key_hash,
        steps["version"].to_numpy(),
        reported_at(objects.time_us, objects.heard_us),
    )
    answer = registry.columns.answer[find(registry.columns.query, queries)[0]]
    row, number, paired = _matched(steps, objects, np.unique(answer), control)
    order = np.argsort(answer, kind="stable")
    start = np.searchsorted(answer[order], number, "left")
    of, place = expand(start, np.searchsorted(answer[order], number, "right") - start)
    gone = _gone(key, changed)
    count = len(key)
    heard_us = np.r_[objects.heard_us, np.full(len(gone), NEVER_US)]
    known = changed.known.found(gone)[0]
    silent_us = known.heard_us + registry.ttl_of(known.stream)
    rows = np.r_[np.arange(count + len(gone)), row[of]]
    columns = {
        "key": np.r_[key, gone],
        "version": np.r_[version, np.full(len(gone), NEVER_US)],
        "heard_us": heard_us,
        "time_us": np.r_[time_us, np.minimum(silent_us, control.now_us)],
    }
    told = {name: column[rows] for name, column in columns.items()}
    told["query"] = np.r_[np.full(count + len(gone), NO_QUERY), queries[order[place]]]
    told["paired"] = np.r_[np.zeros(count + len(gone), dtype=bool), paired[of]]
    told |= {"batch": np.full(len(rows), batch), "count": np.ones(len(rows), dtype=np.int64)}
    names = [name for name in STEPS if name != "count"]
    return (
        pl.DataFrame({name: told[name] for name in STEPS}, schema=STEPS)
        .group_by(names)
        .agg(pl.col("count").sum())
        .select(list(STEPS))
    )


def stepped(control: ControlStep) -> np.ndarray:
    """Return the numbers of the queries whose steps are told in a micro-batch, int64, ascending: those that stay."""
    stays = np.intersect1d(control.before.stepping, control.after.stepping)
    return np.setdiff1d(stays, control.applied.changed)


def _matched(
    steps: pa.Table, objects: Objects, answers: np.ndarray, control: ControlStep
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which rows are in which answers, and whether with a partner."""
    registry = control.after
    elements = Elements(objects.stream, objects.bounds, lambda rows: steps.take(pa.array(rows)))
    pairs = registry.queries.only(answers).match(elements, registry.features, Failures())
    return pairs.row, pairs.query, pairs.partner != 0


def _gone(key: np.ndarray, changed: ObjectChanges) -> np.ndarray:
    """Return those of some objects that are in no region any more."""
    keys = np.unique(key)
    return keys[np.isin(changed.fates(keys), (EXPIRED, DROPPED))]
