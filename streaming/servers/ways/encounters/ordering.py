"""Reports in the order of event time, as a home server releases them.

A home server knows all reports of an object. It holds them until no report that is on time can come before them, and
then releases them in the order of event time. A released report is sent to the regions that it reaches, and to those to
which the object's report before it was sent: there, it ends the time in which that report is valid. So every region
knows of each report that it has until when it is valid, and this does not depend on where batches are cut.

References
----------
T. Akidau et al., "The Dataflow Model", PVLDB 8(12), 2015, section 2.3: watermarks; late data.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_of, partition_of
from streaming.operators.encounters import Ordering
from streaming.operators.runs import first_of_runs, last_of_runs
from streaming.operators.watermarks import LONG_AGO_US, Progress, seen_before, slowest
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.elements import taken
from streaming.servers.region_bits import EVERYWHERE, bits_of, regions_of
from streaming.servers.report_queue import ReportQueue, arrivals, waiting_schema
from streaming.servers.sorted_runs import SortedRuns
from streaming.spaces import Space

LAST_COLUMNS = {"time_us": np.int64, "copies": np.int64}


class Late(NamedTuple):
    """How many reports of an ordering came too late in a batch, and how far the latest was behind the newest."""

    reports: int
    behind_us: int


@dataclass(frozen=True)
class Ordered:
    """How far a home server is with an ordering.

    Parameters
    ----------
    queue : ReportQueue
        The reports that it holds. Reports before its `until_us` were released.
    last : SortedRuns
        With `LAST_COLUMNS`, by `key_hash`: the last released report of each object, and the bits of the regions that
        it was sent to.
    progress : Progress
    since_us : int
        When the ordering began, by the engine's clock.
    forgotten_us : int
        The event time at which the server last looked for objects to forget.
    """

    queue: ReportQueue
    last: SortedRuns
    progress: Progress
    since_us: int
    forgotten_us: int = LONG_AGO_US

    @classmethod
    def new(cls, space: Space, now_us: int, following: int) -> "Ordered":
        """Return an ordering that begins now; numbers of runs and batches begin with `following`."""
        queue = ReportQueue(waiting_schema(space), following=following)
        return cls(queue, SortedRuns(no_last(), following=following), Progress(LONG_AGO_US, 0), now_us)


@dataclass(frozen=True)
class Orderings:
    """State of a home server: its orderings, while there are any.

    Parameters
    ----------
    ordered : mapping of Ordering to Ordered
    turn : int
        The number of batches in which there were orderings without a break; all home servers have the same.
    """

    ordered: Mapping[Ordering, Ordered] = field(default_factory=dict)
    turn: int = 0


@dataclass(frozen=True)
class Released:
    """What a home server releases in a batch.

    Parameters
    ----------
    reports : pyarrow.Table
        With `released_schema`.
    region : ndarray of int64, shape (N,)
        The region to which each is sent.
    late : mapping of Ordering to Late
    """

    reports: pa.Table
    region: np.ndarray
    late: Mapping[Ordering, Late] = field(default_factory=dict)


def no_last() -> dict[str, np.ndarray]:
    """Return the columns of the last released reports, without rows."""
    return {name: np.empty(0, dtype=kind) for name, kind in LAST_COLUMNS.items()}


@lru_cache(maxsize=64)
def released_schema(space: Space) -> pa.Schema:
    """Return the columns of released reports: `waiting_schema`, and two more.

    `reaches` (int8) is 1 in the regions that the report reaches, and 0 in those to which it is sent only because it
    ends the time in which the object's report before it is valid. `ordering` (int32) is the position of its ordering
    among those of the registry.
    """
    schema = waiting_schema(space)
    for name, kind in (("reaches", pa.int8()), ("ordering", pa.int32())):
        schema = schema.append(pa.field(name, kind, nullable=False))
    return schema


def step(
    was: Orderings, elements: pa.Table, control: ControlStep, now_us: int, following: int
) -> tuple[Orderings, Released]:
    """Take the elements of a batch, and release the reports that are due.

    Parameters
    ----------
    was : Orderings
    elements : pyarrow.Table
        With `elements.tracked_schema`, in the order of arrival.
    control : ControlStep
    now_us : int
        The latest tick.
    following : int
        An ordering that begins numbers its runs from here on.
    """
    needed, space, turn = control.after.orderings, control.after.space, was.turn + 1
    arrived = elements.append_column(
        waiting_schema(space).field("arrival"), pa.array(arrivals(turn, elements.num_rows))
    )
    stream, ordered, tables, regions, lates = elements["stream"].to_numpy(), {}, [], [], {}
    for place, (ordering, gap_us) in enumerate(needed.items()):
        known = was.ordered.get(ordering)
        if known is None or ordering.stream in control.applied.dropped:
            known = Ordered.new(space, now_us, following)
        held, late = _held(known, taken(arrived, np.flatnonzero(stream == ordering.stream)), ordering)
        due, queue = held.queue.taken(_until(held, ordering, now_us))
        ordered[ordering], released, region = _sent(replace(held, queue=queue), due, gap_us, control.after)
        tables.append(_with_ordering(released, place, space))
        regions.append(region)
        if late.reports:
            lates[ordering] = late
    return Orderings(ordered, turn), Released(pa.concat_tables(tables), np.concatenate(regions), lates)


def _held(known: Ordered, reports: pa.Table, ordering: Ordering) -> tuple[Ordered, Late]:
    """Hold the reports that are on time; also return how many are late."""
    if not reports.num_rows:
        return known, Late(0, 0)
    time_us = reports["time_us"].to_numpy()
    seen_us = seen_before(time_us, known.progress.newest_us)
    on_time = (seen_us - ordering.lateness_us <= time_us) & (time_us >= known.queue.until_us)
    late = Late(int((~on_time).sum()), int((seen_us - time_us)[~on_time].max(initial=0)))
    queue = known.queue.put(reports if not late.reports else reports.filter(pa.array(on_time)))
    progress = Progress(int(seen_us[-1]), max(known.progress.heard_us, int(reports["heard_us"].to_numpy().max())))
    return replace(known, queue=queue, progress=progress), late


def _until(held: Ordered, ordering: Ordering, now_us: int) -> int:
    """Return the time before which reports are released: all that are held, if nothing has come for long."""
    newest_us, heard_us = held.progress.newest_us, held.progress.heard_us
    silent = now_us - max(heard_us, held.since_us) > ordering.idle_us
    return newest_us + 1 if silent and newest_us > LONG_AGO_US else newest_us - ordering.lateness_us


def _sent(held: Ordered, due: pa.Table, gap_us: int, registry: Registry) -> tuple[Ordered, pa.Table, np.ndarray]:
    """Send the reports that are due; return the ordering after it, the reports and their regions."""
    if not due.num_rows:
        return _settled(held, gap_us), due, np.empty(0, dtype=np.int64)
    key, time_us, arrival = (due[name].to_numpy() for name in ("key_hash", "time_us", "arrival"))
    order = np.lexsort((arrival, time_us, key))
    # Only a home server that took objects over from one that was further has reports before released ones.
    order = order[time_us[order] >= _last_times(held.last, key[order])]
    due, key, time_us = due.take(pa.array(order)), key[order], time_us[order]
    region_map = registry.region_map
    reached = registry.encounter_reach.regions(bounds_of(due["bounds"]), due["stream"].to_numpy(), region_map)
    first, last = first_of_runs(key), last_of_runs(key)
    objects = key[last]
    before = np.roll(reached, 1, axis=0)
    before[first], known = _sent_before(held.last, objects, time_us[first], gap_us, region_map.regions)
    row, region = np.nonzero(reached | before)
    columns = {"time_us": time_us[last], "copies": bits_of(reached[last])}
    table = held.last.put(objects, columns, objects[:0], int((~known).sum()))
    sent = due.take(pa.array(row)).append_column("reaches", pa.array(reached[row, region].astype(np.int8)))
    return _settled(replace(held, last=table), gap_us), sent, region


def _last_times(last: SortedRuns, key: np.ndarray) -> np.ndarray:
    """Return the times of the last released reports of objects (N,), which are ascending; LONG_AGO_US without one."""
    objects = key[last_of_runs(key)]
    part, row = last.find(objects)
    time_us = np.full(len(objects), LONG_AGO_US)
    time_us[part >= 0] = last.take(part[part >= 0], row[part >= 0], ["time_us"])["time_us"]
    return time_us[np.cumsum(first_of_runs(key)) - 1]


def _sent_before(
    last: SortedRuns, objects: np.ndarray, time_us: np.ndarray, gap_us: int, regions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Tell to which regions (K, regions) the reports before were sent, if they may be valid; and which are known."""
    part, row = last.find(objects)
    known = part >= 0
    found = last.take(part[known], row[known])
    sent = np.zeros((len(objects), regions), dtype=bool)
    sent[known] = regions_of(found["copies"], regions) & (found["time_us"] + gap_us >= time_us[known])[:, None]
    return sent, known


def _settled(held: Ordered, gap_us: int) -> Ordered:
    """Merge what is due, and forget the objects whose last reports are no longer valid; not in every batch."""
    last, until_us = held.last, held.queue.until_us
    if until_us - held.forgotten_us < gap_us:
        return replace(held, last=last.settled())
    part, row = last.select(lambda run: run.columns["time_us"] + gap_us < until_us)
    if len(part):
        last = last.without(np.sort(last.keys(part, row)), newest=False)
    return replace(held, last=last.settled(), forgotten_us=until_us)


def everywhere(was: Orderings) -> Orderings:
    """Return the state as if all last reports had been sent to every region, since there is another region map."""
    ordered = {
        name: replace(known, last=known.last.with_column("copies", EVERYWHERE)) for name, known in was.ordered.items()
    }
    return replace(was, ordered=ordered)


def divided(states: Sequence[Orderings], partitions: int) -> Iterator[Orderings]:
    """Yield the states of other home servers, which know the same reports.

    Parameters
    ----------
    states : sequence of Orderings
        They have seen the same batches.
    partitions : int
        How many home servers there will be.
    """
    names = states[0].ordered
    used = [max(known.queue.following, known.last.following) for state in states for known in state.ordered.values()]
    following = max(used, default=0)
    for number in range(partitions):
        ordered = {
            name: _part_of([state.ordered[name] for state in states], number, partitions, following) for name in names
        }
        yield Orderings(ordered, states[0].turn)


def _part_of(parts: Sequence[Ordered], number: int, partitions: int, following: int) -> Ordered:
    """Return one of the home servers into which those with an ordering are divided."""
    progress = slowest([{0: part.progress} for part in parts])[0]
    waiting = pa.concat_tables([part.queue.waiting() for part in parts])
    waiting = waiting.filter(pa.array(partition_of(waiting["key_hash"].to_numpy(), partitions) == number))
    until_us = min(part.queue.until_us for part in parts)
    queue = replace(parts[0].queue, batches=(), until_us=until_us, following=following).put(waiting)
    whole = [part.last.whole() for part in parts]
    key = np.concatenate([part.last.keys(*rows) for part, rows in zip(parts, whole, strict=True)])
    found = [part.last.take(*rows) for part, rows in zip(parts, whole, strict=True)]
    order = np.argsort(key, kind="stable")
    order = order[partition_of(key[order], partitions) == number]
    columns = {name: np.concatenate([columns[name] for columns in found])[order] for name in LAST_COLUMNS}
    last = SortedRuns(no_last(), following=following).put(key[order], columns, key[:0], len(order))
    since_us, forgotten_us = (min(getattr(part, name) for part in parts) for name in ("since_us", "forgotten_us"))
    return Ordered(queue, last.settled(), progress, since_us, forgotten_us)


def _with_ordering(released: pa.Table, place: int, space: Space) -> pa.Table:
    schema = released_schema(space)
    if not released.num_rows:
        return schema.empty_table()
    return released.append_column("ordering", pa.array(np.full(released.num_rows, place, np.int32))).cast(schema)
