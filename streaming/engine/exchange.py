"""The exchange of inputs between the tasks of an interval.

Home servers send inputs to the regions. What goes to a region of another task goes through that task's inbox, which is
a log. It keeps the inputs since the last saved batch. So if Spark starts a task again, the new attempt finds there what
the other tasks have sent, and they need not repeat anything.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from streaming.elements import from_ipc, to_ipc
from streaming.eventlog import FIRST, EventLog
from streaming.eventlog.protocol import Fields
from streaming.keys import LogNames
from streaming.operators.region_map import RegionMap
from streaming.servers.way import RegionInput

_WAIT_S = 5.0
_AT_ONCE = 64
# What an entry with an input has besides its tables.
_HEAD = {b"batch", b"partition", b"region", b"head"}


@dataclass(frozen=True)
class TaskPlace:
    """Which servers a task of an interval runs.

    Parameters
    ----------
    task, tasks : int
        The number of the task, and of all tasks.
    partitions : int
        How many home servers there are, one for each partition of the ingest log.
    """

    task: int
    tasks: int
    partitions: int

    @property
    def homes(self) -> range:
        """The partitions whose home servers the task runs."""
        return range(self.task, self.partitions, self.tasks)

    def own_regions(self, region_map: RegionMap) -> list[int]:
        """Return the regions whose servers the task runs."""
        return [region for region in range(region_map.regions) if self.task_of(region, region_map) == self.task]

    def task_of(self, region: int, region_map: RegionMap) -> int:
        """Return the task that runs a region's server."""
        return region_map.places[region] % self.tasks


class Superseded(Exception):
    """Another attempt runs the task, so this one can end."""


class Exchange:
    """Sends and receives inputs, for one task and one interval.

    Parameters
    ----------
    event_log : EventLog
    names : LogNames
    place : TaskPlace
    after : int
        The saved batch behind which the attempt begins. What it and earlier ones have left in the inbox is removed.

    Notes
    -----
    Spark does not end the process of an attempt that it has given up. So each attempt leaves a mark in the inbox, and
    one that finds the mark of a later attempt ends with `Superseded`. Until then it does no harm: it sends what the
    other one sends.
    """

    def __init__(self, event_log: EventLog, names: LogNames, place: TaskPlace, after: int) -> None:
        self._event_log, self._names, self._place = event_log, names, place
        self._inbox = names.exchange(place.task)
        self._inputs: dict[int, dict[tuple[int, int], RegionInput]] = defaultdict(dict)
        self._saved, self._received = after, after
        # The batch of each entry of the inbox that was read and is kept, and the position behind it.
        self._kept: deque[tuple[int, str]] = deque()
        self._position = self._begin(after)
        self._mark, self._marked = event_log.append(self._inbox, {"batch": after, "attempt": 1}), False

    def _begin(self, after: int) -> str:
        """Remove what is not needed after a saved batch; return the position behind it."""
        position = FIRST
        for entry in self._event_log.read(self._inbox, only=("batch",)):
            if int(entry.fields[b"batch"]) > after:
                break
            position = entry.position
        if position != FIRST:
            self._event_log.trim({self._inbox: position})
        return position

    def send(self, batch: int, partition: int, inputs: Iterable[RegionInput], region_map: RegionMap) -> None:
        """Send the inputs that a home server made in a batch, in which a region map is in force."""
        sent: list[tuple[str, Fields]] = []
        for made in inputs:
            if (task := self._place.task_of(made.region, region_map)) == self._place.task:
                self._inputs[batch][made.region, partition] = made
            else:
                tables = {name: to_ipc(table) for name, table in made.tables.items()}
                head: dict[str, Any] = {
                    "batch": batch,
                    "partition": partition,
                    "region": made.region,
                    "head": orjson.dumps(made.head),
                }
                sent.append((self._names.exchange(task), {**head, **tables}))
        if sent:
            self._event_log.append_all(sent)

    def receive(self, batch: int, region_map: RegionMap) -> dict[int, list[RegionInput]]:
        """Return the inputs of the task's regions in a batch, in the order of the partitions; wait for them."""
        partitions, own = range(self._place.partitions), self._place.own_regions(region_map)
        while len(self._inputs[batch]) < len(own) * len(partitions):
            self._poll()
        inputs, self._received = self._inputs.pop(batch, {}), batch
        return {region: [inputs[region, partition] for partition in partitions] for region in own}

    def tell_saved(self, batch: int) -> None:
        """Tell all tasks that the state after a batch is whole: another task may read it now."""
        inboxes = map(self._names.exchange, range(self._place.tasks))
        self._event_log.append_all((inbox, {"batch": batch, "saved": 1}) for inbox in inboxes)

    def await_saved(self, batch: int) -> None:
        """Wait until the state after a batch is whole."""
        while self._saved < batch:
            self._poll()

    def check(self) -> None:
        """Raise `Superseded` if another attempt runs the task."""
        self._poll(0.0)

    def _poll(self, wait_s: float = _WAIT_S) -> None:
        for entry in self._event_log.poll({self._inbox: self._position}, _AT_ONCE, wait_s).get(self._inbox, ()):
            self._position = entry.position
            content = entry.fields
            batch = int(content[b"batch"])
            self._kept.append((batch, entry.position))
            if b"attempt" in content:
                if self._marked:
                    raise Superseded(f"task {self._place.task} runs in another attempt")
                self._marked = entry.position == self._mark
            elif b"saved" in content:
                self._saved = max(self._saved, batch)
                self._trim()
            elif batch > self._received:  # else another attempt has sent it again
                region, partition = int(content[b"region"]), int(content[b"partition"])
                tables = {name.decode(): from_ipc(rows) for name, rows in content.items() if name not in _HEAD}
                self._inputs[batch][region, partition] = RegionInput(region, orjson.loads(content[b"head"]), tables)

    def _trim(self) -> None:
        """Remove what was kept for an attempt that would begin before the last saved batch."""
        position = None
        while self._kept and self._kept[0][0] <= self._saved:
            _, position = self._kept.popleft()
        if position:
            self._event_log.trim({self._inbox: position})
