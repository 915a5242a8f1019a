"""One batch, from log entries to fragments, as home servers and regional servers run it; without Spark.

A home server turns the blocks of one ingest partition into *inputs* for the regions. A regional server turns a region's
inputs into a fragment. Each reads the state that the batch before has left, and leaves a new one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_of, from_ipc, stream_number
from streaming.engine.admission import Sample
from streaming.engine.assembling import assembled
from streaming.engine.fragments import Spent, costs_of, failures_of, refusals_of
from streaming.engine.layout import Layout
from streaming.engine.quarantine import home_place
from streaming.engine.store import Store
from streaming.engine.ways import WAYS
from streaming.history.writer import Turn
from streaming.operators.region_map import MOST_REGIONS
from streaming.results import Fragment
from streaming.servers import belated, home
from streaming.servers.control.border import Border
from streaming.servers.control.entries import ControlEntries, Entry
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.elements import no_elements, tracked_schema
from streaming.servers.home import Home
from streaming.servers.home_turn import HomeTurn, Sent
from streaming.servers.region import server as regional
from streaming.servers.region.state import ObjectChanges, ObjectInput, Region
from streaming.servers.way import AssemblerTurn, RegionInput, RegionTurn, Way
from streaming.spaces import Space
from streaming.state.versions import Attempt

# The tables with elements of the batch, all with `tracked_schema`.
ELEMENTS = ("arrivals", "departures", "passing", "copies", "removed_copies", "superseded_copies", "focals")
# The tables with the newest elements of objects.
OF_OBJECTS = ("arrivals", "departures", "copies", "removed_copies")
Inputs = Sequence["RegionInput"]
Tables = Mapping[str, pa.Table]


@dataclass(frozen=True)
class IngestBlock:
    """An entry of the ingest log: elements of one stream (Arrow IPC), and when the gateway received them.

    A block whose elements were divided for another number of partitions has no payload: see `repartition`.
    """

    stream: str
    heard_us: int
    payload: bytes

    @classmethod
    def of(cls, fields: Mapping[bytes, bytes], partitions: int) -> "IngestBlock":
        """Return the block in the fields of an entry, for so many partitions."""
        mine = int(fields.get(b"partitions", partitions)) == partitions
        return cls(fields[b"stream"].decode(), int(fields[b"heard_us"]), fields[b"block"] if mine else b"")


@dataclass(frozen=True)
class Saving:
    """How the states after a batch are saved.

    Parameters
    ----------
    since : int
        The batch that was saved before.
    positions : mapping of str to str
        The position in each log up to which the batch reads; kept with the state.
    blocks : mapping of int to int
        How many blocks the batches that were not saved have read since then, by partition.
    """

    since: int
    positions: Mapping[str, str] = field(default_factory=dict)
    blocks: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class MustSave:
    """Whether regions read what others have before or after a batch, so it is saved; and whether the map changes."""

    before: bool
    after: bool
    rescaled: bool


def must_save(layout: Layout, batch: int, entries: Sequence[Entry] | ControlEntries) -> MustSave:
    """Tell what must be saved for a batch.

    In some ways of evaluation, regions read what the others leave, and so does the assembler. When the region map
    changes, they read what the others were left with; what they make of it is large, and is saved when its turn comes.
    """
    before = layout.store.registry(batch)
    after, applied = layout.store.applied(batch, entries)
    control = ControlStep(before, after, applied, applied.now_us)
    rescaled = before.region_map != after.region_map
    before_it, after_it = any(way.reads_before(control) for way in WAYS), any(way.reads_after(control) for way in WAYS)
    return MustSave(before_it or rescaled, after_it, rescaled)


def save(layout: Layout, batch: int, homes: Iterable[int], regions: Iterable[int], saving: Saving) -> None:
    """Save what some servers have left after a batch that was not saved while it ran.

    Parameters
    ----------
    layout : Layout
    batch : int
    homes, regions : iterable of int
        The partitions and the regions of the servers. They all ran the batch in this process.
    saving : Saving
    """
    store = layout.store
    for partition in homes:
        _save_home(store, partition, batch, store.left(f"home/{partition}", batch), saving)
    for number in regions:
        attempt = store.attempt(batch, f"region-{number}", saving.since)
        _save_region(store, number, attempt, store.registry(batch + 1))
    if store.ended(batch, layout.shape):
        assembling = store.attempt(batch, "assembler", saving.since)
        _keep(assembling, store.registry(batch + 1), WAYS)
        store.commit(batch, layout.shape, assembling)


def _keep(assembling: Attempt, registry: Registry, ways: Iterable[Way]) -> None:
    """Keep what the assembler knows of ways that have not asked it in a batch."""
    for name in (name for way in ways for name in way.kept_by_assembler(registry)):
        assembling.keep(name)


def _save_home(store: Store, partition: int, batch: int, state: Home, saving: Saving, more_blocks: int = 0) -> None:
    """Save the state of a home server, whose batch read some blocks that `saving` does not count yet."""
    attempt = store.attempt(batch, f"home-{partition}", saving.since)
    attempt.save(f"home/{partition}", state)
    attempt.end(saving.positions, saving.blocks.get(partition, 0) + more_blocks)


def _save_region(store: Store, number: int, attempt: Attempt, registry: Registry) -> None:
    """Save what a region left, and with the first one the registry; then the region has ended (`Store.ended`)."""
    names = ["region", *(name for way in WAYS for name in way.left_by_regions(registry))]
    for name in (f"{name}/{number}" for name in names):
        attempt.save(name, store.left(name, attempt.batch))
    if number == 0:
        store.save_registry(attempt, registry)
    attempt.end()


def home_task(
    layout: Layout,
    partition: int,
    batch: int,
    blocks: Iterable[IngestBlock],
    entries: Sequence[Entry] | ControlEntries,
    saving: Saving | None = None,
) -> list[RegionInput]:
    """Run the home server of one ingest partition; return an input for every region.

    Parameters
    ----------
    layout : Layout
    partition, batch : int
    blocks : iterable of IngestBlock
        The blocks of the partition, in the order of the log.
    entries : ControlEntries or sequence of mapping
        The control entries of the batch.
    saving : Saving, optional
        How the batch is saved; by default, its state is kept in memory alone.

    Returns
    -------
    list of RegionInput
        In the order of the regions.
    """
    blocks = list(blocks)
    elements = _tracked(blocks, layout.store.space)
    if elements.num_rows:
        columns = elements["stream"].to_numpy(), bounds_of(elements["bounds"])
        layout.known.sample = (layout.known.sample or Sample.none(layout.store.space)).after(*columns)
    return home_step(layout, partition, batch, elements, entries, saving, len(blocks))


def home_step(
    layout: Layout,
    partition: int,
    batch: int,
    elements: pa.Table,
    entries: Sequence[Entry] | ControlEntries,
    saving: Saving | None = None,
    blocks: int = 0,
) -> list[RegionInput]:
    """Run a home server on elements that were read; see `home_task`.

    Parameters
    ----------
    elements : pyarrow.Table
        With `tracked_schema`, in one piece, in the order of the log.
    blocks : int
        From how many blocks they were read.
    """
    store = layout.store
    before, (after, applied) = store.registry(batch), store.applied(batch, entries)
    was = store.home(partition, batch)
    control = ControlStep(before, after, applied, max(was.now_us, applied.now_us))
    if rescaling := layout.rescaling(batch, after):
        was = rescaling.home(was, partition, layout.partitions)
    elements, old = belated.apart(elements)
    state, outbox = home.step(was, elements, control)
    watched = partial(layout.watched, home_place(partition), batch)
    turn = HomeTurn(batch, elements, outbox.accepted, state, control, rescaling is not None, watched)
    parts = {}
    for way in WAYS:
        kept = way.in_home(turn)
        if way.home_part is not None and kept is not None:
            parts[way.home_part.name] = kept
    state = replace(state, parts=parts)
    store.leave(f"home/{partition}", batch, state)
    if saving:
        _save_home(store, partition, batch, state, saving, blocks)
    sent: dict[str, Sent] = {**outbox.tables, **turn.tables}
    if after.stored:
        sent["belated"] = belated.routed(state.entries, outbox.stale_elements, old, after)
    newest_us = int(elements["heard_us"].to_numpy().max(initial=0))
    head = {"elements": elements.num_rows, "stale": list(outbox.stale.items()), "newest_us": newest_us, **turn.head}
    heads = (turn.head_of_all | (head if number == 0 else {}) for number in range(after.region_map.regions))
    return [_region_input(number, sent, head) for number, head in enumerate(heads)]


def region_task(
    layout: Layout,
    number: int,
    batch: int,
    inputs: Inputs,
    entries: Sequence[Entry] | ControlEntries,
    saving: Saving | None = None,
) -> list[Fragment]:
    """Run a regional server on its inputs from all home servers; return its fragment.

    If there are distributed queries, the region that ends last also runs the assembler and adds its fragment. Such a
    batch must be saved (`must_save`).

    Parameters
    ----------
    layout : Layout
    number, batch : int
        The region, and the batch.
    inputs : sequence of RegionInput
        In the order of the partitions.
    entries : ControlEntries or sequence of mapping
        The control entries of the batch. In a process, all its servers should get the same object.
    saving : Saving, optional
        How the batch is saved; by default, its state is kept in memory alone.
    """
    began = Spent.now()
    turn, state = _begun(layout, number, batch, inputs, entries, saving)
    control, store = turn.control, layout.store
    at_home_s = 0.0
    for way in (way for way in WAYS if way.concerns(control)):
        told = way.in_region(turn)
        turn.results = turn.results.plus(told)
        at_home_s += sum(told.seconds.values()) if way.followed_at_home else 0.0
    store.leave(f"region/{number}", batch, replace(state, left_out=turn.border.left_out))
    if saving:
        _save_region(store, number, turn.attempt, control.after)
    layout.known.count(turn.results.seconds)
    assembling = [way for way in WAYS if way.assembles(control)]
    fragments = [_fragment(turn, store.epoch(), bool(assembling), began.since(at_home_s))]
    if saving and store.ended(batch, layout.shape):
        attempt = store.attempt(batch, "assembler", saving.since)
        if assembling:
            watched = partial(layout.watched, MOST_REGIONS, batch)
            fragments.append(assembled(layout, AssemblerTurn(turn, control, attempt, watched), assembling, began))
        _keep(attempt, control.after, (way for way in WAYS if way not in assembling))
        store.commit(batch, layout.shape, attempt)
    return fragments


def _begun(
    layout: Layout,
    number: int,
    batch: int,
    inputs: Inputs,
    entries: Sequence[Entry] | ControlEntries,
    saving: Saving | None,
) -> tuple[RegionTurn, Region]:
    """Run what a regional server does for all ways of evaluation; return its turn, and its state after the batch."""
    store = layout.store
    attempt = store.attempt(batch, f"region-{number}", saving.since if saving else None)
    before, (after, applied) = store.registry(batch), store.applied(batch, entries)
    tables = {name: _together(inputs, name, store.space) for name in (*ELEMENTS, "belated")}
    sent = ObjectInput(*(tables[column.name] for column in fields(ObjectInput)))
    was, rescaling = store.region(number, batch), layout.rescaling(batch, after)
    if rescaling:
        was = rescaling.region(number, was)
    store.keep_pages(number, batch, after)
    control = ControlStep(before, after, applied, max(was.now_us, applied.now_us))
    border = Border(control, was.left_out, layout.watched(number, batch))
    if rescaling:
        border.leave_out(rescaling.left_out_elsewhere(number))
    changed = ObjectChanges.of(was, sent, control)
    state, results = border.passed(partial(regional.step, changed, sent.passing))
    elements = [sent.passing, sent.arrivals, tables["belated"]]
    turn = Turn(store.epoch(), number, after.region_map.regions, batch, state.now_us)
    layout.history.store(turn, elements, after.stored, applied.dropped.values())
    known = rescaling, layout.known.indices, layout.known.kept
    return RegionTurn(number, batch, inputs, tables, border, changed, store, attempt, *known, results), state


def _fragment(turn: RegionTurn, epoch: str, has_assembler: bool, spent: Spent) -> Fragment:
    """Return the fragment of a region, given what its turn has taken."""
    control, results, first = turn.control, turn.results, turn.number == 0
    stale: Counter[int] = Counter()
    for one in turn.inputs:
        stale.update(dict(one.head.get("stale", ())))
    elements = sum(sent.head.get("elements", 0) for sent in turn.inputs)
    return Fragment(
        epoch,
        turn.batch,
        turn.number,
        control.after.region_map.regions + has_assembler,
        results.changes,
        results.snapshots,
        control.applied.snapshots,
        control.applied.acks if first else (),
        results.counters | {"elements": elements, "stale": stale.total()},
        max(sent.head.get("newest_us", 0) for sent in turn.inputs),
        failures_of(results, turn.border, control.after) + (refusals_of(control.after) if first else ()),
        results.shared,
        stale=dict(stale),
        costs=costs_of(results.seconds, control, spent, results.snapshots),
    )


def _tracked(blocks: Iterable[IngestBlock], space: Space) -> pa.Table:
    """Return the elements of blocks, with the number of their stream and the time when the gateway received them."""
    schema = tracked_schema(space)
    tables = []
    for block in blocks:
        if not block.payload:
            continue
        elements = from_ipc(block.payload)
        for value in (stream_number(block.stream), block.heard_us):
            name = schema.names[elements.num_columns]
            elements = elements.append_column(schema.field(name), pa.array(np.full(elements.num_rows, value)))
        tables.append(elements)
    # In one piece: each `take` would put the pieces of a column together again.
    return pa.concat_tables(tables or [no_elements(space)]).combine_chunks()


def _region_input(number: int, sent: Mapping[str, Sent], head: Mapping[str, Any]) -> RegionInput:
    """Return the input of one region, given what is sent to all."""
    tables = ((name, rows.to(number)) for name, rows in sent.items())
    return RegionInput(number, head, {name: table for name, table in tables if table.num_rows})


def _together(inputs: Iterable[RegionInput], name: str, space: Space) -> pa.Table:
    """Return the rows of one table from all inputs."""
    tables = [sent.tables[name] for sent in inputs if name in sent.tables]
    return pa.concat_tables(tables) if tables else no_elements(space)
