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
import polars as pl
import pyarrow as pa

from streaming.elements import bounds_of, from_ipc, stream_number
from streaming.engine import tracks
from streaming.engine.admission import Sample
from streaming.engine.assembling import AssemblerInput, assembled
from streaming.engine.fragments import Spent, costs_of, failures_of, refusals_of
from streaming.engine.layout import Layout
from streaming.engine.store import Store
from streaming.engine.watching import reported, watch
from streaming.history.writer import Turn
from streaming.operators.encounters import Ordering
from streaming.operators.watermarks import Progress
from streaming.results import Fragment
from streaming.servers import belated, home
from streaming.servers.answers.tuples import Results
from streaming.servers.control.border import Border
from streaming.servers.control.entries import ControlEntries, Entry
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.elements import no_elements, tracked_schema
from streaming.servers.home import Home
from streaming.servers.region import server as regional
from streaming.servers.region.place import RegionPlace
from streaming.servers.region.state import ObjectChanges, ObjectInput
from streaming.servers.routing import Routed
from streaming.servers.runs_codec import first_number
from streaming.servers.ways.encounters import region as encounters
from streaming.servers.ways.encounters.event_times import EventTimes
from streaming.servers.ways.encounters.ordering import Late, released_schema
from streaming.servers.ways.moving import participant
from streaming.servers.ways.moving.focals import newly_followed
from streaming.servers.ways.moving.partial import Tracks
from streaming.servers.ways.moving.participant import IndexedObjects
from streaming.servers.ways.rules.measures import measures_of
from streaming.servers.ways.rules.steps import steps_of
from streaming.servers.ways.rules.watched import Heard, WatchedAnswers, concern_rules
from streaming.servers.ways.sketches import asked_leaves, observing
from streaming.servers.ways.sketches import region as sketching
from streaming.servers.ways.sketches.asked_leaves import concern_sketches
from streaming.servers.ways.sketches.region import Sketchlet
from streaming.servers.ways.stream_joins import join_input
from streaming.servers.ways.stream_joins import region as stream_join
from streaming.servers.ways.time_joins import region as time_join
from streaming.servers.ways.time_joins.region import TimeJoins
from streaming.servers.ways.time_joins.reports import reports_schema
from streaming.spaces import Space
from streaming.state.versions import Attempt

# The tables with elements of the batch, all with `tracked_schema`.
ELEMENTS = ("arrivals", "departures", "passing", "copies", "removed_copies", "superseded_copies", "focals", "steps")
TABLES = (*ELEMENTS, "belated", "reports", "released", "observed", "silences", *tracks.TABLES)
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
class RegionInput:
    """The input that one home server sends to one region in one micro-batch.

    Parameters
    ----------
    region : int
    head : mapping
        For region 0, counters. While there are joins over event time, or encounters, how far the home server is with
        each stream. JSON can hold it.
    tables : mapping of str to pyarrow.Table
        The tables of `home.HomeOutput` that have rows for this region, by the names in `TABLES`.
    """

    region: int
    head: Mapping[str, Any]
    tables: Mapping[str, pa.Table]


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

    For joins with streams and for what the assembler answers (distributed queries, encounters, rules, and, now and
    then, queries of sketches), regions read what the others leave. When the region map changes, or the driving stream
    of a join over event time, they read what the others were left with; what they make of it is large, and is saved
    when its turn comes.
    """
    before = layout.store.registry(batch)
    after, applied = layout.store.applied(batch, entries)
    together = any(len(known.distributed_ids) or known.reach or known.orderings for known in (before, after))
    together = together or concern_rules(before, after, applied)
    together = together or concern_sketches(before, after, applied)
    rescaled = before.region_map != after.region_map
    divided = rescaled or before.by_partner != after.by_partner
    return MustSave(together or divided, together, rescaled)


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
        _keep_answers(assembling, store.registry(batch + 1))
        store.commit(batch, layout.shape, assembling)


def _keep_answers(assembling: Attempt, registry: Registry, asked: bool = False, ruled: bool = False) -> None:
    """Keep what the assembler knows of sketches and of rules, unless it was asked now: it is not in every batch."""
    if registry.sketch_plans and not asked:
        assembling.keep("told")
    if len(registry.watched) and not ruled:
        assembling.keep("rules")


def _save_home(store: Store, partition: int, batch: int, state: Home, saving: Saving, more_blocks: int = 0) -> None:
    """Save the state of a home server, whose batch read some blocks that `saving` does not count yet."""
    attempt = store.attempt(batch, f"home-{partition}", saving.since)
    attempt.save(f"home/{partition}", state)
    attempt.end(saving.positions, saving.blocks.get(partition, 0) + more_blocks)


def _save_region(store: Store, number: int, attempt: Attempt, registry: Registry) -> None:
    """Save what a region left, and with the first one the registry; then the region has ended (`Store.ended`)."""
    names = [f"region/{number}", *([f"time_join/{number}"] if registry.report_reach else [])]
    names += [f"sketch/{number}"] if registry.sketched else []
    names += [f"watching/{number}"] if len(registry.watched) else []
    for name in names:
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
    newest_us = int(elements["heard_us"].to_numpy().max(initial=0))
    head = {"elements": elements.num_rows, "stale": list(outbox.stale.items()), "newest_us": newest_us}
    head |= {"spells": outbox.spells}
    tables = {"belated": belated.routed(state.entries, outbox.stale_elements, old, after)} if after.stored else {}
    if was.tracking is not None or len(after.tracks):
        state, tracked, of_tracks = tracks.followed(layout, partition, batch, state, elements, control)
        tables, head = tables | tracked, head | of_tracks
    store.leave(f"home/{partition}", batch, state)
    if saving:
        _save_home(store, partition, batch, state, saving, blocks)
    progress = [[stream, *told] for stream, told in state.progress.items()]
    common: dict[str, Any] = {"progress": progress} if progress else {}
    if after.orderings:
        told = [[*name, *known.progress] for name, known in state.orderings.ordered.items()]
        common |= {"turn": state.orderings.turn, "orderings": told}
        head["late"] = [[*name, *late] for name, late in outbox.late.items()]
    routed = {name: getattr(outbox, name, None) or tables.get(name) for name in TABLES}
    regions = range(after.region_map.regions)
    return [_region_input(number, routed, common | (head if number == 0 else {})) for number in regions]


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
    store, began, before_s = layout.store, Spent.now(), 0.0
    attempt = store.attempt(batch, f"region-{number}", saving.since if saving else None)
    before = store.registry(batch)
    after, applied = store.applied(batch, entries)
    tables = {name: _together(inputs, name, store.space) for name in (*ELEMENTS, "belated")}
    sent = ObjectInput(*(tables[column.name] for column in fields(ObjectInput)))
    was, regions = store.region(number, batch), after.region_map.regions
    if rescaling := layout.rescaling(batch, after):
        was = rescaling.region(number, was)
    store.keep_pages(number, batch, after)
    control = ControlStep(before, after, applied, max(was.now_us, applied.now_us))
    border = Border(control, was.left_out, layout.watched(number, batch))
    if rescaling:
        border.leave_out(rescaling.left_out_elsewhere(number))
    changed = ObjectChanges.of(was, sent, control)
    state, results = border.passed(partial(regional.step, changed, sent.passing))
    turn = Turn(store.epoch(), number, regions, batch, state.now_us)
    layout.history.store(turn, [sent.passing, sent.arrivals, tables["belated"]], after.stored, applied.dropped.values())
    if before.reach or after.reach:
        results = results.plus(_stream_joins(layout, number, attempt, tables, border))
    if before.report_reach or after.report_reach:
        results = results.plus(_time_joins(layout, number, batch, inputs, border))
    asked = concern_sketches(before, after, applied)
    due = asked_leaves.due(control, store.told_answers(batch).pace) if asked else None
    if before.sketched or after.sketched:
        _sketch(layout, number, batch, inputs, control, due or ())
    if due is not None:
        results = results.plus(_ask(layout, number, attempt, border, due))
    times = None
    if before.orderings or after.orderings:
        times = _event_times(layout, batch, inputs)
        results = results.plus(_encounters(layout, number, attempt, inputs, border, times))
    if len(before.tracks) or len(after.tracks):
        tracked = tracks.told(inputs, border, store.space)
        results, before_s = results.plus(tracked), sum(tracked.seconds.values())  # home servers took it
    distributed = bool(len(before.distributed_ids) or len(after.distributed_ids))
    followed, measures, heard = None, None, Heard(changed.known, [tables[name] for name in OF_OBJECTS])
    if distributed:
        followed = _tracks(layout, batch, control, tables["focals"])
        told, were, members = _participate(layout, number, attempt, changed, border, followed)
        results = results.plus(told)
        measures = measures_of(were, members, control, changed, heard, batch)
    ruled = concern_rules(before, after, applied)
    if len(before.watched) or len(after.watched):
        found = WatchedAnswers.of(results, control, batch, changed.was.now_us, heard)
        steps = border.passed(partial(steps_of, tables["steps"], changed, batch=batch))
        found = reported(found.lacks(border.left_out, after.watched), measures, steps, inputs, batch)
        watch(layout, number, attempt, found, control, ruled)
    has_assembler = distributed or asked or ruled or times is not None
    store.leave(f"region/{number}", batch, replace(state, left_out=border.left_out))
    if saving:
        _save_region(store, number, attempt, after)
    counters = dict(results.counters)
    counters["elements"] = sum(sent.head.get("elements", 0) for sent in inputs)
    stale: Counter[int] = Counter()
    for one in inputs:
        stale.update(dict(one.head.get("stale", ())))
    counters["stale"] = stale.total()
    layout.known.count(results.seconds)
    fragment = Fragment(
        turn.epoch,
        batch,
        number,
        regions + has_assembler,
        results.changes,
        results.snapshots,
        applied.snapshots,
        applied.acks if number == 0 else (),
        counters,
        max(sent.head.get("newest_us", 0) for sent in inputs),
        failures_of(results, border, after) + (refusals_of(after) if number == 0 else ()),
        results.shared,
        stale=dict(stale),
        costs=costs_of(results.seconds, control, began.since(before_s), results.snapshots),
    )
    fragments = [fragment]
    if saving and store.ended(batch, layout.shape):
        assembling = store.attempt(batch, "assembler", saving.since)
        if has_assembler:
            known = AssemblerInput(followed, times, due, ruled)
            fragments.append(assembled(layout, assembling, control, known, began, results.seconds))
        _keep_answers(assembling, after, asked, ruled)
        store.commit(batch, layout.shape, assembling)
    return fragments


def _stream_joins(layout: Layout, number: int, attempt: Attempt, tables: Tables, border: Border) -> Results:
    """Run a region's joins with streams; return their results."""
    store, control, batch = layout.store, border.control, attempt.batch
    place = RegionPlace(number, control.after.region_map)
    reach = control.after.reach
    joined = join_input.JoinInput.of(tables, reach)
    if reach.exceeds(control.before.reach):
        joined = replace(joined, found=join_input.found_elements(place, store.regions(batch), reach))
    was = store.stream_joins(number, batch)
    if rescaling := layout.rescaling(batch, control.after):
        was = rescaling.joined(number, was, partial(store.stream_joins, batch=batch, keep=False))
    state, results = border.passed(lambda control: stream_join.step(was, joined, control, place))
    if control.after.reach:
        attempt.save(f"stream_join/{number}", state)
    return results


def _time_joins(layout: Layout, number: int, batch: int, inputs: Inputs, border: Border) -> Results:
    """Run a region's joins over event time; return their results."""
    store, control = layout.store, border.control
    before, after = control.before, control.after
    place, following = RegionPlace(number, after.region_map), first_number(batch)
    if not before.report_reach:
        was = TimeJoins.empty(store.space, following)
    elif layout.rescaling(batch, after) or before.by_partner != after.by_partner:
        states = [store.time_joins(other, batch, keep=False) for other in range(before.region_map.regions)]
        if before.region_map == after.region_map:
            was = time_join.driven(states, place, before, after)
        else:
            was = time_join.divided(states, place, before, after, following)
    else:
        was = store.time_joins(number, batch)
    tables = [sent.tables["reports"] for sent in inputs if "reports" in sent.tables]
    reports = pa.concat_tables(tables or [reports_schema(store.space).empty_table()])
    homes = [{stream: Progress(*told) for stream, *told in sent.head.get("progress", ())} for sent in inputs]
    state, results = border.passed(lambda control: time_join.step(was, reports, homes, control, place))
    store.leave(f"time_join/{number}", batch, state)
    return results


def _sketch(layout: Layout, number: int, batch: int, inputs: Inputs, control: ControlStep, due: Sequence[int]) -> None:
    """Sketch what home servers observed in a region, before the queries that are due are answered."""
    store, before, after = layout.store, control.before, control.after
    place, following = RegionPlace(number, after.region_map), first_number(batch)
    if not before.sketched:
        was = Sketchlet()
    elif layout.rescaling(batch, after):
        states = [store.sketchlet(other, batch, keep=False) for other in range(before.region_map.regions)]
        was = sketching.divided(states, place, following)
    else:
        was = store.sketchlet(number, batch)
    asked = {stream_number(after.sketch_plans[query].stream) for query in due}
    tables = [sent.tables["observed"] for sent in inputs if "observed" in sent.tables]
    observed = pa.concat_tables([observing.NOTHING, *tables], promote_options="default")
    store.leave(f"sketch/{number}", batch, sketching.step(was, observed, after, following, asked))


def _ask(layout: Layout, number: int, attempt: Attempt, border: Border, due: Sequence[int]) -> Results:
    """Find the leaves of a region that the queries of sketches which are due need; return what that cost as results."""
    store = layout.store
    sketchlet = store.left(f"sketch/{number}", attempt.batch) if border.control.after.sketched else Sketchlet()
    found = border.passed(partial(asked_leaves.step, sketchlet, due))
    attempt.save(f"asked/{number}", replace(found, lacking=frozenset(border.left_out)))
    return Results.nothing(store.space, seconds=dict(found.seconds))


def _event_times(layout: Layout, batch: int, inputs: Inputs) -> EventTimes:
    """Return how far the home servers, and the queries for encounters, are."""
    homes = [{Ordering(*told[:3]): Progress(*told[3:]) for told in sent.head.get("orderings", ())} for sent in inputs]
    return EventTimes(layout.store.clocks(batch), homes, max(sent.head.get("turn", 0) for sent in inputs))


def _encounters(
    layout: Layout, number: int, attempt: Attempt, inputs: Inputs, border: Border, times: EventTimes
) -> Results:
    """Run a region's part of encounters; return its results, which tell of reports that came too late."""
    store, control, batch = layout.store, border.control, attempt.batch
    place, following = RegionPlace(number, control.after.region_map), first_number(batch)
    if layout.rescaling(batch, control.after):
        states = [store.encounters(other, batch, keep=False) for other in range(control.before.region_map.regions)]
        was = encounters.divided(states, place, control.before, following)
    else:
        was = store.encounters(number, batch)
    tables = [sent.tables["released"] for sent in inputs if "released" in sent.tables]
    reports = pa.concat_tables([released_schema(store.space).empty_table(), *tables])
    late = [(Ordering(*told[:3]), Late(*told[3:])) for sent in inputs for told in sent.head.get("late", ())]
    indexed = partial(layout.known.indexed_of_query, store.space, number)
    step = partial(
        encounters.step, was, reports, late=late, times=times, place=place, indexed=indexed, following=following
    )
    state, results, spans = border.passed(step)
    layout.known.forget(number, control.after.encounters)
    border.lost -= {query for query in border.lost if border.control.before.assembled(query)}
    attempt.save(f"spans/{number}", replace(spans, lacking=np.array(sorted(border.left_out), dtype=np.int64)))
    if control.after.orderings:
        attempt.save(f"encounters/{number}", state)
    return results


def _participate(
    layout: Layout, number: int, attempt: Attempt, changed: ObjectChanges, border: Border, tracks: Tracks
) -> tuple[Results, pl.DataFrame, pl.DataFrame]:
    """Run a region's part of the distributed queries.

    Return the results that need no assembler, and the members of aggregates before and after.
    """
    store = layout.store
    were = store.members(number, attempt.batch)
    if rescaling := layout.rescaling(attempt.batch, border.control.after):
        were = rescaling.members(number, partial(store.members, batch=attempt.batch, keep=False))
    indexed = IndexedObjects.of(changed, store.space, layout.known.indices.get(number))
    layout.known.indices[number] = indexed.after
    step = partial(participant.step, changed, tracks=tracks, members=were, indexed=indexed)
    members, results, sent = border.passed(step)
    border.lost -= {query for query in border.lost if border.control.before.assembled(query)}
    attempt.save(f"partial/{number}", replace(sent, lacking=np.array(sorted(border.left_out), dtype=np.int64)))
    if len(border.control.after.distributed_ids):
        attempt.save(f"participant/{number}", members)
    return results, were, members


def _tracks(layout: Layout, batch: int, control: ControlStep, heard: pa.Table) -> Tracks:
    """Return where the focal objects are; every region and the assembler compute the same, each process once."""
    known = layout.known.tracks
    if known and known[0] == batch and known[1].before is control.before and known[1].after is control.after:
        return known[2]
    state = layout.store.assembly(batch)
    found = newly_followed(control, layout.store.regions(batch))
    elements, lost = state.following.followed(found, heard, control)
    keys = heard["key_hash"].to_numpy()
    tracks = Tracks(state.focals, replace(state.following, elements=elements), lost, keys, frozenset(state.left_out))
    layout.known.tracks = batch, control, tracks
    return tracks


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


def _region_input(number: int, outbox: Mapping[str, Routed | None], head: Mapping[str, Any]) -> RegionInput:
    """Return the input of one region, given what is sent to all."""
    tables = {}
    for name, sent in outbox.items():
        table = sent.to(number) if sent else None
        if table is not None and table.num_rows:
            tables[name] = table
    return RegionInput(number, head, tables)


def _together(inputs: Iterable[RegionInput], name: str, space: Space) -> pa.Table:
    """Return the rows of one table from all inputs."""
    tables = [sent.tables[name] for sent in inputs if name in sent.tables]
    return pa.concat_tables(tables) if tables else no_elements(space)
