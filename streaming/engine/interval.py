"""An interval: what one task runs in one micro-batch of Spark, which are the batches of some minutes.

Spark needs some 100 ms of processor time to plan, start and commit a micro-batch, whatever it does. So a micro-batch of
Spark is no batch of Lookout, but an *interval* of many: its tasks run batch after batch, and save their states once a
second. Between, the states are in memory only. If a task or the whole engine ends, the batches since the last saved one
run again, cut as before. Spark's real-time mode works in a similar way; it cannot run Python.
"""

import os
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson

from streaming.engine.admission import MOST_ENTRIES, Sample, admitted, most_next
from streaming.engine.batch import IngestBlock, Saving, home_task, must_save, region_task, save
from streaming.engine.batch_traces import EngineTraces
from streaming.engine.cuts import CONTROL, CUTS, DEFINITIONS, Cut, CutLog, Point, Positions, logs_read
from streaming.engine.driving import told_joins
from streaming.engine.exchange import Exchange, TaskPlace
from streaming.engine.figures import TaskFigures
from streaming.engine.layout import Layout
from streaming.engine.object_report import told_objects
from streaming.engine.read_ahead import ReadAhead
from streaming.engine.ways import WAYS
from streaming.eventlog import Entry, next_ends
from streaming.logs import Log
from streaming.operators.region_map import RegionMap
from streaming.results import Fragment
from streaming.servers.control.entries import ControlEntries
from streaming.servers.way import RegionInput
from streaming.traces import OFF, Traces

# Elements that come between two intervals wait for up to a second. This is so seldom that 99 of 100 elements do not.
INTERVAL_S = 300.0
# A crash makes about as much run again.
SAVE_EVERY_S = 1.0
# How often a task reports what its regions have done.
TELL_LOADS_S = 0.5
# Over what time it counts elements and processor time per second, at least.
RATES_S = 2.0
# In how many places elements came lately, at most about.
TOLD_PLACES = 256
# How often it reports a sample of the objects of its regions.
TELL_OBJECTS_S = 5.0
# A batch may read so many times as many blocks of a partition while they have fewer than so many elements together.
MOST_TIMES, SMALL_ELEMENTS = 16, 8_192
# How many definitions of streams a batch reads at most; one that reads so many reads no elements.
MOST_DEFINITIONS = 10_000
# While there is a file of this name in the state folder, intervals end, and none begins.
STOPPING = "stopping"
_CHECK_S = 0.2
_WAIT_S = 5.0


@dataclass(frozen=True)
class BatchPace:
    """How fast batches follow each other.

    Parameters
    ----------
    batch_s : float
        The least time from the beginning of a batch to that of the next one, in seconds.
    max_blocks : int
        How many blocks a batch reads from each partition at most, if they are not small.
    interval_s : float
        How long an interval lasts, in seconds. It has a batch at least.
    """

    batch_s: float
    max_blocks: int
    interval_s: float = INTERVAL_S

    def blocks(self, read: int, elements: int) -> int:
        """Return how many blocks the next batch may read from each partition, given what the last one has read.

        A batch takes time of its own, however little it reads. While blocks are small, more are read. Otherwise,
        many streams with few elements each, or slow batches, would leave the engine further and further behind.

        Examples
        --------
        >>> [BatchPace(0.1, 64).blocks(64, elements) for elements in (64_000, 3_200, 64, 0)]
        [64, 163, 1024, 1024]
        """
        small = SMALL_ELEMENTS * read // max(1, elements)
        return min(max(self.max_blocks, small), MOST_TIMES * self.max_blocks)


class RegionLoads:
    """What the regions of a task have done since a region map is in force; see `region_reports.Load`.

    Parameters
    ----------
    number : int
        Of the region map.
    """

    def __init__(self, number: int = -1) -> None:
        self.number = number
        self._of: dict[int, list[float]] = {}
        self._before: dict[int, list[float]] = {}
        self._rates: dict[int, list[float]] = {}
        self._before_s = time.monotonic()

    def add(self, region: int, inputs: Sequence[RegionInput], cpu_s: float, objects: int) -> None:
        """Count the batch of a region, which took some processor time and left so many objects."""
        arrived = sum(table.num_rows for sent in inputs if (table := sent.tables.get("arrivals")) is not None)
        elements, before_s, _ = self._of.get(region, (0, 0.0, 0))
        self._of[region] = [elements + arrived, before_s + cpu_s, objects]

    def told(self) -> dict[int, list[float]]:
        """Return the number of the map, the load of each region and the time, as `Log.report_regions` takes them."""
        now_us, span_s = time.time_ns() // 1000, time.monotonic() - self._before_s
        if span_s > RATES_S:
            for region, load in self._of.items():
                before = self._before.get(region, (0, 0.0))
                self._rates[region] = [(load[0] - before[0]) / span_s, (load[1] - before[1]) / span_s]
            self._before, self._before_s = dict(self._of), time.monotonic()
        rates = {region: self._rates.get(region, (0.0, 0.0)) for region in self._of}
        return {region: [self.number, *load, *rates[region], now_us] for region, load in self._of.items()}


class Interval:
    """The batches of one interval, as one attempt of a task runs them.

    The first attempt begins where the interval does, and a later one behind the newest saved batch.

    Parameters
    ----------
    layout : Layout
    log : Log
        The logs of the space, over a connection of this process.
    place : TaskPlace
        The servers that the task runs.
    point : Point
        Where the interval begins.
    pace : BatchPace
    traces : Traces
        Where spans of sampled elements go.
    """

    def __init__(
        self, layout: Layout, log: Log, place: TaskPlace, point: Point, pace: BatchPace, traces: Traces = OFF
    ) -> None:
        self._layout, self._log, self._place, self._pace = layout, log, place, pace
        self._interval, point = point, self._begin(point)
        self._batch, self._positions = point.batch, point.positions
        self._saved_batch, self._unconfirmed = point.batch, False
        before = layout.store.blocks(point.batch) or (0,) * place.partitions
        self._read = {partition: before[partition] for partition in place.homes}
        self._unsaved = dict.fromkeys(place.homes, 0)
        self._names = logs_read(log.names, place.partitions)
        self._cuts = CutLog(log.event_log, log.names.cuts, layout.store.epoch())
        self._exchange = Exchange(log.event_log, log.names, place, point.batch)
        own = {str(partition): self._names[str(partition)] for partition in place.homes}
        self._ahead = ReadAhead(log.event_log, own, point.positions, pace.max_blocks, log.report_ahead)
        if point.batch > self._interval.batch:
            self._exchange.tell_saved(point.batch)  # the attempt before may have ended before it did
        self._coordinates = place.task == 0
        self._began_s, self._heard_s, self._saved_s = time.monotonic(), 0.0, time.monotonic()
        self._loads, self._told_s, self._told_map = RegionLoads(), 0.0, -1
        self._sampled_s = -TELL_OBJECTS_S
        self._figures, self._traces = TaskFigures(log.task_report(place.task)), EngineTraces(traces)
        self._written_before = layout.store.written_bytes
        self._known_control: tuple[list[Any], ControlEntries] = [], ControlEntries([], layout.store.space)
        self._most_control, self._most_blocks = MOST_ENTRIES, pace.max_blocks

    def _begin(self, point: Point) -> Point:
        store = self._layout.store
        saved = store.newest_saved(self._log.newest_whole_batch(store.epoch()))
        if saved is None or saved.batch <= point.batch:
            return point
        return Point(saved.batch, {**point.positions, **saved.positions})

    def run(self) -> int:
        """Run batches until the interval ends, then save the states; return how many batches the interval has."""
        self._ahead.start()
        try:
            for cut in self._decided():
                if cut.closes:
                    break
                self._run_batch(cut)
            self._await_saved()
        finally:
            self._ahead.close()
            self._layout.history.settle()
        if self._saved_batch != self._batch:
            own = self._place.own_regions(self._region_map(self._batch))
            save(self._layout, self._batch, self._place.homes, own, self._saving(self._positions))
        return self._batch - self._interval.batch

    def _run_batch(self, cut: Cut) -> None:
        layout, batch, figures, control = self._layout, cut.batch, self._figures, self._control(cut)
        self._prepare(cut, control)
        saving = self._saving(cut.positions) if cut.saved else None
        read = [self._run_home(partition, cut, control, saving) for partition in self._place.homes]
        if blocks := sum(count for count, _ in read):
            self._most_blocks = self._ahead.most = self._pace.blocks(blocks, sum(elements for _, elements in read))
        with figures.stage("exchange"):
            received = self._exchange.receive(batch, self._region_map(batch))
        with figures.stage("region"):
            fragments = [
                part for region, inputs in received.items() for part in self._step(cut, region, inputs, saving)
            ]
        with figures.stage("publish") as began_ns:
            # All at once: nobody can use the fragment of one region before those of the others.
            self._log.publish(fragments)
            self._traces.publish(fragments, began_ns)
            self._log.report_read(self._read, batch)
        if any(fragment.counters.get(left) for fragment in fragments for left in ("unjoined", "waiting")):
            # Without an entry there would be no further batch while nothing comes.
            self._log.send("proceed")
        figures.end_batch(fragments)
        figures.queries.add(fragments, layout.known.seconds)
        layout.known.seconds = {}
        self._report_regions(batch)
        self._batch, self._positions = batch, cut.positions
        if cut.saved:
            self._end_saved()

    def _run_home(self, partition: int, cut: Cut, control: ControlEntries, saving: Saving | None) -> tuple[int, int]:
        """Run a home server, and send what it told; return how many blocks it has read, and how many elements."""
        figures, batch, blocks = self._figures, cut.batch, self._blocks(partition, cut)
        with figures.stage("home") as began_ns:
            inputs = home_task(self._layout, partition, batch, blocks, control, saving)
        self._traces.home(batch, partition, inputs, began_ns)
        figures.read(inputs, min((block.heard_us for block in blocks), default=0))
        with figures.stage("exchange") as began_ns:
            self._exchange.send(batch, partition, inputs, self._region_map(batch))
        self._traces.send(batch, inputs, began_ns)
        self._read[partition] += len(blocks)
        self._unsaved[partition] += len(blocks)
        return len(blocks), inputs[0].head["elements"]

    def _prepare(self, cut: Cut, control: ControlEntries) -> None:
        """Wait for what must have happened before a batch."""
        must = must_save(self._layout, cut.batch, control)
        if must.rescaled:
            self._layout.history.settle()  # other tasks may merge what this one has stored
        if cut.saved or must.before:
            with self._figures.stage("save"):
                self._await_saved()

    def _step(self, cut: Cut, region: int, inputs: Sequence[RegionInput], saving: Saving | None) -> list[Fragment]:
        """Run the server of a region, and count what it took; return its fragments."""
        began_s, began_ns = time.thread_time(), time.time_ns()
        made = region_task(self._layout, region, cut.batch, inputs, self._control(cut), saving)
        self._traces.evaluate(inputs, made, began_ns)
        self._loads.add(region, inputs, time.thread_time() - began_s, made[0].counters["objects"])
        return made

    def _region_map(self, batch: int) -> RegionMap:
        """Return the region map that is in force in a batch, whose home servers have run."""
        return self._layout.store.registry(batch + 1).region_map

    def _report_regions(self, batch: int) -> None:
        """Tell now and then, and after a change of the map, what the regions have done."""
        registry = self._layout.store.registry(batch + 1)
        region_map = registry.region_map
        if self._loads.number != region_map.number:
            self._loads = RegionLoads(region_map.number)
        elif time.monotonic() < self._told_s + TELL_LOADS_S:
            return
        self._told_s = time.monotonic()
        written_bytes = self._layout.store.written_bytes - self._written_before
        more: dict[str, Any] = {f"task:{self._place.task}": self._figures.told(written_bytes)}
        more |= {f"worker:{self._place.task}": f"{socket.gethostname()}:{os.getpid()}"}
        if self._told_s > self._sampled_s + TELL_OBJECTS_S:
            self._sampled_s = self._told_s
            own = self._place.own_regions(region_map)
            regions = (self._layout.store.left(f"region/{region}", batch) for region in own)
            more[f"objects:{self._place.task}"] = told_objects(regions, self._place.tasks)
        homes = [self._layout.store.left(f"home/{partition}", batch) for partition in self._place.homes]
        for name, told in (row for way in WAYS for row in way.reported(homes, registry).items()):
            more[f"{name}:{self._place.task}"] = told
        if self._coordinates:
            more["joins"] = told_joins(registry)
            sample = self._layout.known.sample or Sample.none(region_map.space)
            places = sample.thinned(TOLD_PLACES).bounds[:, : region_map.space.n]
            told = {"map": region_map.document(), "places": np.ascontiguousarray(places), "tasks": self._place.tasks}
            more |= told
        self._log.report_regions(self._loads.told(), **more)

    def _saving(self, positions: Positions) -> Saving:
        return Saving(self._saved_batch, positions, dict(self._unsaved))

    def _end_saved(self) -> None:
        """Go on although other tasks may still be saving: their states are needed for the next saved batch only."""
        self._saved_batch, self._unconfirmed = self._batch, True
        self._unsaved = dict.fromkeys(self._unsaved, 0)
        if self._layout.store.is_saved(self._batch):
            self._exchange.tell_saved(self._batch)

    def _await_saved(self) -> None:
        """Wait until all tasks have saved the last batch that had to be saved."""
        if self._unconfirmed:
            self._exchange.await_saved(self._saved_batch)
            self._unconfirmed = False

    def _control(self, cut: Cut) -> ControlEntries:
        """Return the control entries of a batch; the coordinator knows them since it has decided about it."""
        # Another attempt may have decided about this batch differently.
        if self._known_control[0] != self._span(cut):
            entries = self._control_entries([*self._entries(DEFINITIONS, cut), *self._entries(CONTROL, cut)])
            self._known_control = self._span(cut), entries
        return self._known_control[1]

    def _span(self, cut: Cut) -> list[Any]:
        return [(self._positions[name], cut.positions[name]) for name in (DEFINITIONS, CONTROL)]

    def _entries(self, name: str, cut: Cut) -> list[Entry]:
        after, upto = self._positions[name], cut.positions[name]
        return self._log.event_log.read(self._names[name], after, upto) if after != upto else []

    def _control_entries(self, entries: Iterable[Entry]) -> ControlEntries:
        return ControlEntries([orjson.loads(entry.fields[b"entry"]) for entry in entries], self._layout.store.space)

    def _admitted(self, cut: Cut) -> Cut:
        """Return a cut with all definitions, and as many of the other control entries as it can take; see `admission`.

        No element is read before what its stream is. So where definitions are left, no element is read.
        """
        first, found = self._entries(DEFINITIONS, cut), self._entries(CONTROL, cut)
        if len(first) >= MOST_DEFINITIONS:
            cut = replace(cut, positions={**self._positions, **{n: cut.positions[n] for n in (DEFINITIONS, CONTROL)}})
        entries, count = self._control_entries([*first, *found]), len(found)
        if found:
            store, place = self._layout.store, self._place
            sample = self._layout.known.sample or Sample.none(store.space)
            own = sum(len(store.home(partition, cut.batch).entries) for partition in place.homes)
            objects = own * place.partitions // len(place.homes)
            count = max(1, admitted(entries, store.registry(cut.batch), sample, objects) - len(first))
            self._most_control = most_next(count)
        if count < len(found):
            cut = replace(cut, positions={**cut.positions, CONTROL: found[count - 1].position})
        self._known_control = self._span(cut), entries.first(len(first) + count)
        return cut

    def _blocks(self, partition: int, cut: Cut) -> list[IngestBlock]:
        name = str(partition)
        upto = cut.positions[name]
        entries = self._ahead.taken(name, upto) if upto != self._positions[name] else ()
        return [IngestBlock.of(fields, self._place.partitions) for _, fields, _ in entries]

    def _decided(self) -> Iterator[Cut]:
        """Yield the decisions about this interval, up to its end."""
        stale = Cut(self._interval.batch, {}, closes=True).number
        position, known = self._positions[CUTS], False
        while True:
            if self._coordinates and known:
                self._cuts.append(self._decision())
            found = self._cuts.after(position) if self._coordinates else self._cuts.wait(position, _WAIT_S)
            if not found and not self._coordinates:
                self._exchange.check()
            known = True
            for cut in found:
                position = cut.positions[CUTS]
                if cut.number > stale:
                    yield cut

    def _decision(self) -> Cut:
        """Return the next decision: wait for entries, and for the pace."""
        time.sleep(max(0.0, self._heard_s + self._pace.batch_s - time.monotonic()))
        after = {self._names[name]: self._positions[name] for name in self._names}
        most = dict.fromkeys(after, self._most_blocks) | {self._names[CONTROL]: self._most_control}
        most[self._names[DEFINITIONS]] = MOST_DEFINITIONS
        only_saved = Cut(self._batch + 1, self._positions)
        while True:
            over = self._is_over()
            if over and self._batch > self._interval.batch:
                return Cut(self._batch, self._positions, closes=True)
            ends = next_ends(self._log.event_log, after, most, _CHECK_S, *self._log.progress())
            due = time.monotonic() > self._saved_s + SAVE_EVERY_S and self._saved_batch != self._batch
            if ends != after:
                break
            if due or over:
                return self._with_save(only_saved)
        self._heard_s = time.monotonic()
        cut = self._admitted(Cut(self._batch + 1, {name: ends[key] for name, key in self._names.items()}))
        must = must_save(self._layout, cut.batch, self._control(cut))
        if must.before and self._saved_batch != self._batch:
            return self._with_save(only_saved)  # it reads the states of other tasks, so they have to be saved before it
        return self._with_save(cut) if due or must.after else cut

    def _with_save(self, cut: Cut) -> Cut:
        self._saved_s = time.monotonic()
        return replace(cut, saved=True)

    def _is_over(self) -> bool:
        lasts = time.monotonic() < self._began_s + self._pace.interval_s
        return not lasts or (self._layout.store.root / STOPPING).exists()
