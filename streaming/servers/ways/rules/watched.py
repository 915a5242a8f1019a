"""What a region tells the assembler of the answers that rules watch: who entered and who left, and what they measure.

The assembler looks at rules when the clock is set. Until then a region keeps what it has to tell.

When that happened follows from the reports, and not from how they were cut into micro-batches: an object that reports
enters or leaves at the time of its report, but not more than `UNDERWAY_US` before the gateway heard it; an object that
is silent leaves when its time-to-live has passed. What the object did not do itself happens at the clock.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from streaming.operators.runs import find
from streaming.operators.schedules import NEVER_US
from streaming.results import ENTERED, EXPIRED, FILTERED, HANDOFF, LEFT, MOVED, QUIET_HANDOFF
from streaming.results.netting import fanned_out
from streaming.servers.answers.tuples import Results
from streaming.servers.control.registry import Applied, Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.region.objects import ObjectTable
from streaming.state.codec import HEAD, Codec, Parts, Tables, array_of, frame_of_table, table_of_frame

# So long a report may be on its way to the gateway, and again from there.
UNDERWAY_US = 500_000
COLUMNS = ("query", "sign", "key_hash", "partner_hash", "time_us")
SCHEMA = pa.schema([*((name, pa.int8() if name == "sign" else pa.int64()) for name in COLUMNS), ("batch", pa.int64())])
# Changes of the members of aggregates. `here` tells whether the object is a member from then on; `whole` is true of all
# members of an aggregate that a rule begins to look at.
MEASURES = pl.Schema(
    {
        "query": pl.Int64,
        "key": pl.Int64,
        "value": pl.Float64,
        "group": pl.String,
        "time_us": pl.Int64,
        "batch": pl.Int64,
        "here": pl.Boolean,
        "whole": pl.Boolean,
    }
)

# The reports of objects that reported several times in a micro-batch, *steps*: a row for each answer in which one has
# the object, with how many partners, or 1 without; and a row with `NO_QUERY` for each one.
STEPS = pl.Schema(
    {
        **dict.fromkeys(("query", "key", "batch", "version", "heard_us", "time_us", "count"), pl.Int64),
        "paired": pl.Boolean,
    }
)
NO_QUERY = -1
# Silences that reports of objects ended; see `silences.SILENCES`.
ENDED_SILENCES = pl.Schema(dict.fromkeys(("stream", "key_hash", "from_us", "to_us", "step", "batch"), pl.Int64))
# From when to when streams were heard; see `silences.HeardStreams`.
SPELLS = pl.Schema(dict.fromkeys(("stream", "from_us", "to_us"), pl.Int64))
# The frames that add up from micro-batch to micro-batch.
FRAMES = ("measures", "steps", "silences", "spells")

# What an object does itself by a report.
OF_REPORTS = (MOVED, FILTERED, HANDOFF, QUIET_HANDOFF)


@dataclass(frozen=True)
class Heard:
    """When objects were heard.

    Parameters
    ----------
    known : ObjectTable
        The objects of the region.
    elements : sequence of pyarrow.Table
        What came in the micro-batch, with `tracked_schema`.
    """

    known: ObjectTable
    elements: Sequence[pa.Table]

    def in_batch(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return when objects (K,) were heard in the micro-batch, in microseconds, and which of them were."""
        key, heard_us = (
            np.concatenate([table[name].to_numpy() for table in self.elements]) for name in ("key_hash", "heard_us")
        )
        order = np.argsort(key, kind="stable")
        place, found = find(key[order], keys)
        return heard_us[order[place[found]]], found


def concern_rules(before: Registry, after: Registry, applied: Applied) -> bool:
    """Tell whether the assembler looks at rules in a micro-batch.

    It does when the clock is set, when the clock of a rule is asked for, when queries or regions change, and in each
    one if it assembles an answer that a rule watches.
    """
    if not len(before.watched) and not len(after.watched):
        return False
    touched = bool(len(applied.changed) or len(applied.cancelled) or applied.snapshots or applied.dropped)
    touched = touched or bool(applied.clocks)
    return touched or bool(applied.now_us) or before.region_map != after.region_map or after.watches_assembled


@dataclass(frozen=True)
class WatchedAnswers:
    """Changes of answers that rules watch, and whole answers, of one region, under the numbers of the queries.

    Parameters
    ----------
    changes, snapshots : pyarrow.Table
        With `SCHEMA`. As in a fragment, an object that went to another region left here and entered there.
    measures : polars.DataFrame
        With `MEASURES`.
    steps : polars.DataFrame
        With `STEPS`.
    silences : polars.DataFrame
        With `ENDED_SILENCES`.
    spells : polars.DataFrame
        With `SPELLS`.
    heard_us : int
        Up to when the reports were heard that were read last; `NEVER_US` if none were read.
    lacking : ndarray of int64
        The queries that rules watch and that are left out in the newest micro-batch, since they failed; ascending.
    """

    changes: pa.Table = field(default_factory=SCHEMA.empty_table)
    snapshots: pa.Table = field(default_factory=SCHEMA.empty_table)
    measures: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=MEASURES))
    steps: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=STEPS))
    silences: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=ENDED_SILENCES))
    spells: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SPELLS))
    heard_us: int = NEVER_US
    lacking: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def of(
        cls, results: Results, control: ControlStep, batch: int, clock_us: int, heard: Heard | None = None
    ) -> "WatchedAnswers":
        """Return what the results of a server in a micro-batch tell of the answers that rules watch.

        Parameters
        ----------
        results : Results
        control : ControlStep
        batch : int
        clock_us : int
            The clock before the micro-batch.
        heard : Heard, optional
            When the objects of the region were heard. Without it, everything happens at the clock.
        """
        queries = control.after.watched
        names, shared = queries, {}
        if results.shared:
            several = {answer: np.array(members, dtype=np.int64) for answer, members in results.shared.items()}
            mine = {answer: members[find(queries, members)[1]].tolist() for answer, members in several.items()}
            shared = {answer: tuple(members) for answer, members in mine.items() if members}
            names = np.union1d(queries, np.array(list(shared), dtype=np.int64))
        told = _of_members(results.changes)
        changes = _chosen(told, names, batch)
        if changes.num_rows:
            reason = told["reason"].to_numpy()[find(names, told["query"].to_numpy())[1]]
            told_us, key = changes["time_us"].to_numpy(), changes["key_hash"].to_numpy()
            time_us = happened(told_us, key, reason, clock_us or control.now_us, heard, control.after)
            changes = changes.set_column(COLUMNS.index("time_us"), SCHEMA.field("time_us"), pa.array(time_us))
        return cls(fanned_out(changes, shared), _chosen(_of_members(results.snapshots), queries, batch))

    def after(self, earlier: "WatchedAnswers") -> "WatchedAnswers":
        """Return these changes after those of earlier micro-batches."""
        changes = pa.concat_tables([earlier.changes, self.changes])
        frames = {of: pl.concat([getattr(one, of) for one in (earlier, self)]) for of in FRAMES}
        return replace(self, changes=changes, **frames)

    def lacks(self, left_out: Collection[int], watched: np.ndarray) -> "WatchedAnswers":
        """Return the same with the queries that a server leaves out, given those that rules watch, ascending."""
        return replace(self, lacking=np.intersect1d(np.array(list(left_out), dtype=np.int64), watched))


def _of_members(table: pa.Table) -> pa.Table:
    """Return the tuples that say who is in an answer: not those of updates, and not those that say where a query is."""
    return table.filter(pa.array(np.isin(table["sign"].to_numpy(), (ENTERED, LEFT))))


def happened(
    told_us: np.ndarray, key: np.ndarray, reason: np.ndarray, clock_us: int, heard: Heard | None, registry: Registry
) -> np.ndarray:
    """Return when objects entered or left answers, in microseconds, int64 of shape (K,).

    Parameters
    ----------
    told_us : ndarray of int64, shape (K,)
        The times of their newest elements.
    key : ndarray of int64, shape (K,)
        Their `key_hash`.
    reason : ndarray of int8, shape (K,)
    clock_us : int
    heard : Heard or None
    registry : Registry
    """
    time_us = np.maximum(told_us, clock_us)
    if heard is None:
        return time_us
    reported = np.flatnonzero(np.isin(reason, OF_REPORTS))
    heard_us, found = heard.in_batch(key[reported])
    reported = reported[found]
    time_us[reported] = reported_at(told_us[reported], heard_us)
    silent = np.flatnonzero(reason == EXPIRED)
    if len(silent):
        objects, found = heard.known.found(key[silent])
        time_us[silent[found]] = objects.heard_us + registry.ttl_of(objects.stream)
    return time_us


def reported_at(told_us: np.ndarray, heard_us: np.ndarray) -> np.ndarray:
    """Return when reports (K,) count, given their times and when they were heard, in microseconds."""
    at_us: np.ndarray = np.maximum(told_us, heard_us - UNDERWAY_US)
    return at_us


def _chosen(table: pa.Table, queries: np.ndarray, batch: int) -> pa.Table:
    mine = find(queries, table["query"].to_numpy())[1]
    chosen = table.select(COLUMNS).filter(pa.array(mine))
    return chosen.append_column(SCHEMA.field("batch"), pa.array(np.full(chosen.num_rows, batch))).cast(SCHEMA)


def _encoded(state: WatchedAnswers) -> Parts:
    numbers = pa.table({"query": state.lacking}), pa.table({"heard_us": [state.heard_us]})
    frames = (table_of_frame(getattr(state, of)) for of in FRAMES)
    return {HEAD: Tables([state.changes, state.snapshots, *frames, *numbers])}


def _decoded(parts: Parts) -> WatchedAnswers:
    changes, snapshots, *tables, lacking, heard = parts[HEAD].tables()
    frames: dict[str, Any] = dict(zip(FRAMES, map(frame_of_table, tables), strict=True))
    numbers: dict[str, Any] = {"heard_us": heard["heard_us"][0].as_py(), "lacking": array_of(lacking["query"])}
    return WatchedAnswers(changes, snapshots, **frames, **numbers)


WATCHED = Codec(lambda batch: WatchedAnswers(), _encoded, _decoded)
