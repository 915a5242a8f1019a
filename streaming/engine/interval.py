"""An interval: what one task runs in one micro-batch of Spark, which are the batches of about a second.

Spark needs some 100 ms of processor time to plan, start and commit a micro-batch, whatever it does. So a micro-batch of
Spark is no batch of Lookout, but an *interval* of many: its tasks run batch after batch, and save their states when it
ends. Until then, the states are in memory only. If a task or the whole engine ends before that, the batches since the
last saved one run again, cut as before. Spark's real-time mode works in the same way; it cannot run Python.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import orjson

from streaming.engine.admission import MOST_ENTRIES, Sample, admitted, most_next
from streaming.engine.batch import IngestBlock, Layout, Saving, home_task, must_save, region_task, save
from streaming.engine.cuts import CONTROL, CUTS, Cut, CutLog, Point
from streaming.engine.exchange import Exchange, TaskPlace
from streaming.eventlog import next_ends
from streaming.logs import Log
from streaming.servers.control.entries import ControlEntries

# A crash makes as much run again at most, and the batch after it waits for the next micro-batch of Spark.
INTERVAL_S = 1.0
# An interval ends early if nothing has come for so long. Then the engine waits without a task.
IDLE_S = 0.2
_WAIT_S = 5.0


@dataclass(frozen=True)
class Pace:
    """How fast batches follow each other.

    Parameters
    ----------
    batch_s : float
        The least time from the beginning of a batch to that of the next one, in seconds.
    max_blocks : int
        How many blocks a batch reads from each partition at most.
    """

    batch_s: float
    max_blocks: int


class Interval:
    """The batches of one interval, as one task runs them.

    Parameters
    ----------
    layout : Layout
    log : Log
        The logs of the space, over a connection of this process.
    place : TaskPlace
        The servers that the task runs.
    point : Point
        Where the interval begins.
    pace : Pace
    """

    def __init__(self, layout: Layout, log: Log, place: TaskPlace, point: Point, pace: Pace) -> None:
        self._layout, self._log, self._place, self._pace = layout, log, place, pace
        self._batch, self._positions = point.batch, point.positions
        self._saved_batch = point.batch
        self._read = dict.fromkeys(place.homes, 0)
        self._before = layout.store.blocks(point.batch) or (0,) * place.partitions
        self._names = {CONTROL: log.names.control}
        self._names |= {str(number): log.names.ingest(number) for number in range(place.partitions)}
        self._cuts = CutLog(log.event_log, log.names.cuts, layout.store.epoch())
        self._exchange = Exchange(log.event_log, log.names, place, point.batch)
        self._coordinates = place.task == 0
        self._first, self._began_s, self._heard_s = point.batch, time.monotonic(), 0.0
        self._known_control = (-1, ""), ControlEntries([], layout.store.space)
        self._most_control = MOST_ENTRIES

    def run(self) -> int:
        """Run batches until the interval ends, then save the states; return the number of batches."""
        for cut in self._decided():
            if cut.closes:
                break
            self._run_batch(cut)
        if self._saved_batch != self._batch:
            saving = Saving(self._saved_batch, self._positions, self._read)
            save(self._layout, self._batch, self._place.homes, self._place.own_regions, saving)
        return self._batch - self._first

    def _run_batch(self, cut):
        place, layout, batch = self._place, self._layout, cut.batch
        control = self._control(cut)
        saving = Saving(self._saved_batch, cut.positions, self._read) if cut.saved else None
        read = {}
        for partition in place.homes:
            blocks = self._blocks(partition, cut)
            read[partition] = len(blocks)
            self._exchange.send(batch, partition, home_task(layout, partition, batch, blocks, control, saving))
        fragments = []
        for region, inputs in self._exchange.receive(batch).items():
            fragments += region_task(layout, region, batch, inputs, control, saving)
        # All at once: nobody can use the fragment of one region before those of the others.
        self._log.publish(fragments)
        self._read = {partition: self._read[partition] + count for partition, count in read.items()}
        total = {partition: self._before[partition] + count for partition, count in self._read.items()}
        self._log.report_read(total, batch)
        self._batch, self._positions = batch, cut.positions
        if cut.saved:
            self._end_saved(fragments)

    def _end_saved(self, fragments):
        """Wait until the states after the newest batch can be read."""
        store, batch = self._layout.store, self._batch
        if store.is_saved(batch):
            self._exchange.tell_saved(batch)
        else:
            self._exchange.await_saved(batch)
        self._before = store.blocks(batch)
        self._saved_batch, self._read = batch, dict.fromkeys(self._read, 0)

    def _control(self, cut):
        """Return the control entries of a batch; the coordinator knows them since it has decided about it."""
        # Another attempt may have decided about this batch differently.
        of = cut.batch, cut.positions[CONTROL]
        if self._known_control[0] != of:
            self._known_control = of, self._control_entries(self._entries(CONTROL, cut))
        return self._known_control[1]

    def _control_entries(self, entries):
        return ControlEntries([orjson.loads(entry.fields[b"entry"]) for entry in entries], self._layout.store.space)

    def _admitted(self, cut):
        """Return a cut with as many of the control entries as the batch can take; see `admission`."""
        found = self._entries(CONTROL, cut)
        entries, count = self._control_entries(found), len(found)
        if found:
            store, place = self._layout.store, self._place
            sample = self._layout.known.sample or Sample.none(store.space)
            own = sum(len(store.home(partition, cut.batch).entries) for partition in place.homes)
            objects = own * place.partitions // len(place.homes)
            count = admitted(entries, store.registry(cut.batch), sample, objects)
            self._most_control = most_next(count)
        if count < len(found):
            cut = replace(cut, positions={**cut.positions, CONTROL: found[count - 1].position})
        self._known_control = (cut.batch, cut.positions[CONTROL]), entries.first(count)
        return cut

    def _blocks(self, partition, cut):
        return [
            IngestBlock(fields[b"stream"].decode(), int(fields[b"heard_us"]), fields[b"block"])
            for _, fields, _ in self._entries(str(partition), cut)
        ]

    def _entries(self, name, cut):
        after, upto = self._positions[name], cut.positions[name]
        if after == upto:
            return []
        return self._log.event_log.read(self._names[name], after, upto)

    def _decided(self) -> Iterator[Cut]:
        """Yield the decisions about this interval, up to its end."""
        stale, position, known = Cut(self._batch, {}, closes=True).number, self._positions[CUTS], False
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

    def _decision(self):
        """Return the next decision: wait for entries, and for the pace."""
        time.sleep(max(0.0, self._heard_s + self._pace.batch_s - time.monotonic()))
        closing = Cut(self._batch, self._positions, closes=True)
        after = {self._names[name]: self._positions[name] for name in self._names}
        most = dict.fromkeys(after, self._pace.max_blocks) | {self._names[CONTROL]: self._most_control}
        while True:
            over_s = min(self._began_s + INTERVAL_S, self._heard_s + IDLE_S) - time.monotonic()
            if over_s <= 0 and self._batch > self._first:
                return closing
            ends = next_ends(self._log.event_log, after, most, max(over_s, IDLE_S / 10), self._log.kept())
            if ends != after:
                break
        self._heard_s = time.monotonic()
        cut = self._admitted(Cut(self._batch + 1, {name: ends[key] for name, key in self._names.items()}))
        if not must_save(self._layout, cut.batch, self._control(cut)):
            return cut
        return replace(cut, saved=True) if self._saved_batch == self._batch else closing
