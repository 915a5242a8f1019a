"""One micro-batch, from the entries of the logs to fragments; what Spark's tasks run, without Spark.

A task of the home stage turns the blocks of one ingest partition into *inputs* of the regions; a task of the region
stage turns a region's inputs into a fragment. Both read and write their server's versioned state.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from streaming.elements import from_ipc, stream_number, to_ipc
from streaming.engine.store import Store
from streaming.history.writer import HistoryWriter, Turn
from streaming.operators.partitioners import GridPartitioner
from streaming.results import Fragment
from streaming.servers import home
from streaming.servers.assembler import server as assembler
from streaming.servers.assembler.all_regions import AllRegions
from streaming.servers.control.border import Border
from streaming.servers.control.step import ControlStep
from streaming.servers.elements import tracked_schema
from streaming.servers.focals import newly_followed
from streaming.servers.participant import server as participant
from streaming.servers.participant.partial import Tracks
from streaming.servers.region import server as regional
from streaming.servers.region import stream_join
from streaming.servers.region.state import ObjectChanges, ObjectInput

TABLES = ("arrivals", "departures", "passing", "copies", "removed_copies", "superseded_copies", "focals")


# What a query costs a region in a batch is told from here on.
COST_REPORTED_S = 0.05


@dataclass(frozen=True)
class Layout:
    """How an engine is laid out.

    Parameters
    ----------
    store : Store
    partitions, regions : int
        Of the ingest log, and of the space.
    history : HistoryWriter
        Of what regions store.
    """

    store: Store
    partitions: int
    regions: int
    history: HistoryWriter

    @property
    def partitioner(self) -> GridPartitioner:
        """The global index."""
        return GridPartitioner(self.store.space, self.regions)


@dataclass(frozen=True)
class IngestBlock:
    """An entry of the ingest log: elements (Arrow IPC) of one stream, and when they were heard."""

    stream: str
    heard_us: int
    payload: bytes


@dataclass(frozen=True)
class RegionInput:
    """What one home task says to one region in one micro-batch.

    Parameters
    ----------
    region : int
    head : bytes
        JSON: control entries and counters.
    arrivals, departures, passing, copies, removed_copies, superseded_copies, focals : bytes
        The tables of `home.HomeOutput` for this region, as Arrow IPC; empty where they have no rows.
    """

    region: int
    head: bytes
    arrivals: bytes = b""
    departures: bytes = b""
    passing: bytes = b""
    copies: bytes = b""
    removed_copies: bytes = b""
    superseded_copies: bytes = b""
    focals: bytes = b""


def home_task(
    layout: Layout, partition: int, batch: int, blocks: Iterable[IngestBlock], entries: Sequence[Mapping[str, Any]]
) -> list[RegionInput]:
    """Run the home server of one ingest partition; return an input for every region.

    Parameters
    ----------
    layout : Layout
    partition, batch : int
    blocks : iterable of IngestBlock
        The partition's, in the order of the log.
    entries : sequence of mapping
        The batch's control entries, which partition 0 hands on to the regions.
    """
    store = layout.store
    before = store.registry(batch)
    after, applied = store.applied(batch, entries)
    elements = _tracked(blocks, store.space)
    control = ControlStep(before, after, applied, applied.now_us)
    state, outbox = home.step(store.home(partition, batch), elements, layout.partitioner, control)
    store.save_home(partition, batch, state)
    heard = elements["heard_us"].to_numpy()
    head = {
        "control": entries if partition == 0 else [],
        "elements": elements.num_rows,
        "stale": list(outbox.stale.items()),
        "newest_us": int(heard.max()) if len(heard) else 0,
    }
    return [
        _region_input(number, outbox, head if number == 0 else {"control": head["control"]})
        for number in range(layout.regions)
    ]


def region_task(layout: Layout, number: int, batch: int, inputs: Sequence[RegionInput]) -> list[Fragment]:
    """Run a regional server on what all home tasks send to it; return what it says of the batch.

    Whichever region ends last runs the assembler of distributed queries, too, if there are any.
    """
    store, began = layout.store, perf_counter()
    heads = [orjson.loads(sent.head) for sent in inputs]
    entries = [entry for head in heads for entry in head["control"]]
    before = store.registry(batch)
    after, applied = store.applied(batch, entries)
    tables = {name: _opened(inputs, name, store.space) for name in TABLES}
    sent = ObjectInput(*(tables[field.name] for field in fields(ObjectInput)))
    was = store.region(number, batch)
    control = ControlStep(before, after, applied, max(was.now_us, applied.now_us))
    border = Border(control, was.left_out)
    changed = ObjectChanges.of(was, sent, control)
    state, results = border.passed(partial(regional.step, changed, sent.passing))
    turn = Turn(store.epoch(), number, layout.regions, batch, state.now_us)
    layout.history.store(turn, [sent.passing, sent.arrivals], after.stored, applied.dropped.values())
    if before.reach or after.reach:
        results = results.plus(_stream_joins(layout, number, batch, tables, border))
    distributed = bool(len(before.distributed_ids) or len(after.distributed_ids))
    if distributed:
        tracks = _tracks(layout, batch, control, tables["focals"])
        results = results.plus(_participate(layout, number, batch, changed, border, tracks))
    # The others take this for the end of the region's work.
    store.save_region(number, batch, replace(state, left_out=border.left_out))
    if number == 0 and after is not before:
        store.save_registry(batch, after)
    counters = dict(results.counters)
    counters["elements"] = sum(head.get("elements", 0) for head in heads)
    stale: Counter[int] = Counter()
    for head in heads:
        stale.update(dict(head.get("stale", ())))
    counters["stale"] = stale.total()
    fragment = Fragment(
        turn.epoch,
        batch,
        number,
        layout.regions + distributed,
        results.changes,
        results.snapshots,
        applied.snapshots,
        applied.acks,
        counters,
        max(head.get("newest_us", 0) for head in heads),
        _failures(results.failures, border, after) + (_refusals(after) if number == 0 else ()),
        results.shared,
        stale=dict(stale),
        costs=_costs(results.seconds, after, perf_counter() - began),
    )
    if distributed and store.ended(batch, layout.regions):
        return [fragment, _assemble(layout, batch, control, tracks, began, results.seconds)]
    return [fragment]


def _failures(warnings, border, registry):
    """Return failures as a fragment has them."""
    lost = {query: error for query, error in border.errors.items() if query in border.lost}
    return _by_error(border.errors | warnings, registry) + _by_error(lost, registry, lost=True)


def _refusals(registry):
    return _by_error(registry.refused, registry, refused=True)


def _by_error(errors, registry, **more):
    """Return failures by their errors; one is written once, however many queries share it."""
    queries = {}
    for query, error in errors.items():
        queries.setdefault(error, []).append([query, registry.registrations[query].revision])
    return tuple({"error": error, "queries": alike} | more for error, alike in queries.items())


def _costs(seconds, registry, whole_s):
    """Return what queries cost as a fragment has it: milliseconds of those that cost much, and of the region's step."""
    dear = {query: cost for query, cost in seconds.items() if cost >= COST_REPORTED_S}
    costs = [[query, registry.registrations[query].revision, round(1000 * cost)] for query, cost in dear.items()]
    return {"ms": round(1000 * whole_s), "queries": costs} if costs else {}


def _stream_joins(layout, number, batch, tables, border):
    """Run a region's joins with streams; return what they say."""
    store, control = layout.store, border.control
    place = stream_join.RegionPlace(number, layout.partitioner)
    reach = control.after.reach
    joined = stream_join.JoinInput.of(tables, reach)
    if reach.exceeds(control.before.reach):
        joined = replace(joined, found=place.found(store.regions(batch, layout.regions), reach))
    was = store.stream_joins(number, batch)
    state, results = border.passed(lambda control: stream_join.step(was, joined, control, place))
    store.save_stream_joins(number, batch, state)
    return results


def _participate(layout, number, batch, changed, border, tracks):
    """Run a region's part of distributed queries; return what it says by itself."""
    store = layout.store
    were = store.members(number, batch)
    step = partial(participant.step, changed, tracks=tracks, members=were)
    members, results, sent = border.passed(step)
    border.lost.difference_update(filter(border.control.before.assembled, list(border.lost)))
    lacking = np.array(sorted(border.left_out), dtype=np.int64)
    store.save_partial(number, batch, members, replace(sent, lacking=lacking))
    return results


def _assemble(layout, batch, control, tracks, began, seconds):
    """Run the assembler of distributed queries on what all regions sent to it; return what it says of the batch.

    What a query costs here adds to what it cost the region that ended last: `seconds`, by query, since that `began`.
    """
    store, regions = layout.store, layout.regions
    partials = [store.partial(number, batch) for number in range(regions)]
    before, after = partial(store.regions, batch, regions), list(store.regions(batch + 1, regions))
    all_regions = AllRegions(before, after, store.space)
    was = store.assembly(batch)
    border = Border(control, was.left_out)
    border.leave_out(assembler.lacking(partials, control))
    state, results, sent = border.passed(lambda control: assembler.step(was, partials, control, tracks, all_regions))
    store.save_assembly(batch, replace(state, left_out=border.left_out))
    seconds = {query: seconds.get(query, 0.0) + cost for query, cost in results.seconds.items()}
    return Fragment(
        store.epoch(),
        batch,
        regions,
        regions + 1,
        results.changes,
        results.snapshots,
        control.applied.snapshots,
        counters=results.counters,
        failures=_failures(results.failures, border, control.after),
        sent=sent,
        aggregates=results.aggregates,
        costs=_costs(seconds, control.after, perf_counter() - began),
    )


def _tracks(layout, batch, control, heard):
    """Return where focal objects are, which every region and the assembler find out alike."""
    state = layout.store.assembly(batch)
    found = newly_followed(control, layout.store.regions(batch, layout.regions))
    elements, lost = state.following.followed(found, heard, control)
    keys = heard["key_hash"].to_numpy()
    return Tracks(state.focals, replace(state.following, elements=elements), lost, keys, frozenset(state.left_out))


def _tracked(blocks, space):
    """Return the elements of blocks, with their stream's number and the time at which they were heard."""
    schema = tracked_schema(space)
    tables = [schema.empty_table()]
    for block in blocks:
        elements = from_ipc(block.payload)
        for value in (stream_number(block.stream), block.heard_us):
            name = schema.names[elements.num_columns]
            elements = elements.append_column(schema.field(name), pa.array(np.full(elements.num_rows, value)))
        tables.append(elements)
    return pa.concat_tables(tables).combine_chunks()


def _region_input(number, outbox, head):
    """Write the input of one region."""
    tables = []
    for name in TABLES:
        table, region_of = getattr(outbox, name)
        rows = np.flatnonzero(region_of == number)
        tables.append(to_ipc(table.take(rows)) if len(rows) else b"")
    return RegionInput(number, orjson.dumps(head), *tables)


def _opened(inputs, name, space):
    """Return one table of all inputs."""
    tables = [from_ipc(payload) for payload in (getattr(sent, name) for sent in inputs) if payload]
    return pa.concat_tables([tracked_schema(space).empty_table(), *tables])
