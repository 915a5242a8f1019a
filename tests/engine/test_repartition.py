"""Another number of partitions: no block is lost or read twice, and every answer stays as it is."""

import numpy as np
import pytest

from streaming.elements import partition_of, to_ipc
from streaming.engine.batch import IngestBlock, Saving, home_task, region_task
from streaming.engine.layout import Layout
from streaming.engine.repartition import divided
from streaming.engine.store import Store
from streaming.history import HistoryWriter
from streaming.logs import Log, read_fragment
from streaming.operators.region_map import RegionMap
from streaming.servers.home import COLUMNS, Home, no_columns
from streaming.servers.sorted_runs import SortedRuns
from streaming.spaces import EARTH
from tests.engine.test_intervals import REGIONS, SHIPS, Machine, often, sail
from tests.engine.test_state_survives import PLANS, Reader

SECOND_US = 1_000_000


class PowerCut(Exception):
    """The engine ends here."""


class World:
    """Ships, what gateways with some number of partitions have appended of them, and what one process says of it."""

    def __init__(self, redis_client):
        self.client, self.rng, self.made = redis_client, np.random.default_rng(3), []
        self.places = self.rng.uniform(-10, 10, (SHIPS, 2))
        self.registrations = [
            {"op": "register", "query": number, "revision": 1, "plan": plan}
            for number, plan in enumerate(PLANS)
            if plan.get("kind") != "encounter"  # how far event time is depends on the number of home servers
        ]

    def sail(self, partitions, steps):
        log = Log(self.client, "earth", partitions)
        for _ in range(steps):
            elements = sail(self.rng, self.places, len(self.made))
            self.made.append(elements)
            log.ingest(elements, "ships", len(self.made) * SECOND_US)

    def register(self):
        log, known = Log(self.client, "earth", 1), RegionMap.grid(EARTH, REGIONS)
        log.send("regions", map=known.split(0, 1, -40.0).document())
        for entry in self.registrations:
            log.send(**entry)

    def truth(self, root):
        """Return the answers of one home server and one region, which have read all elements in their order."""
        layout, reader = Layout(Store(root, EARTH), 1, HistoryWriter(root / "history", EARTH)), Reader()
        for batch, table in enumerate(self.made):
            block = IngestBlock("ships", (batch + 1) * SECOND_US, to_ipc(table))
            control, saving = [] if batch else self.registrations, Saving(batch - 1)
            inputs = home_task(layout, 0, batch, [block], control, saving)
            reader.publish(region_task(layout, 0, batch, inputs, control, saving))
        return present(reader)


def present(reader):
    """Return the members of all answers with their ranks."""
    told = reader.client.answers.items()
    return {
        query: {key: (*member, reader.client.ranks[query][key]) for key, member in answer.items()}
        for query, answer in told
    }


def told(log):
    """Return the answers that a client holds who reads all results; the numbers of batches may have gaps."""
    reader, gaps = Reader(), 0
    fragments = [read_fragment(entry.fields, EARTH) for entry in log.event_log.read(log.names.results)]
    for fragment in sorted(fragments, key=lambda fragment: (fragment.batch, fragment.region)):
        if fragment.batch > reader.done + 1:
            gaps += 1
            reader.done = fragment.batch - 1
        reader.publish([fragment])
    return present(reader), gaps


def read_all(machine):
    names, event_log = machine.log.names, machine.log.event_log
    newest = {str(number): event_log.newest(names.ingest(number)) for number in range(machine.partitions)}
    newest["control"] = event_log.newest(names.control)
    while not newest.items() <= machine.point.positions.items():
        machine.interval(trouble=False)


@pytest.mark.long
@pytest.mark.parametrize(("was", "now"), [(2, 3), (3, 1), (1, 4)])
def test_answers_stay_exact_as_the_number_of_partitions_changes_with_blocks_unread(
    tmp_path, redis_client, redis_server, monkeypatch, was, now
):
    often(monkeypatch)
    monkeypatch.setattr("streaming.engine.repartition.READ_AT_ONCE", 5)
    world = World(redis_client)
    world.register()
    world.sail(was, 40)
    machine = Machine(tmp_path / "engine", redis_server, 1, was)
    machine.interval(trouble=False)
    world.sail(was, 20)
    world.sail(now, 10)  # the gateway has started anew before the engine
    world.sail(was, 5)  # and another gateway after it
    world.sail(now, 10)
    machine = Machine(tmp_path / "engine", redis_server, 2, now)
    assert machine.log.event_log.length(machine.log.names.ingest(now)) == 0
    read_all(machine)
    answers, gaps = told(machine.log)
    assert answers == world.truth(tmp_path / "truth") and gaps == 1
    assert machine.log.backlog() == 0
    homes = [machine.layout(0, anew=True).store.home(number, machine.point.batch + 1) for number in range(now)]
    for number, home in enumerate(homes):
        keys = home.entries.keys(*home.entries.whole())
        assert (partition_of(keys, now) == number).all() and len(home.entries) == len(keys)


def test_homes_are_divided_whole_and_what_is_stored_of_them_is_never_taken_for_something_else():
    rng = np.random.default_rng(1)
    keys, homes = np.unique(rng.integers(-(2**62), 2**62, 100)), []
    of = partition_of(keys, 2)
    for number in range(2):
        mine = keys[of == number]
        columns = {name: np.arange(len(mine), dtype=kind) for name, kind in COLUMNS.items()}
        entries = SortedRuns(no_columns(), following=7).put(mine, columns, mine[:0], len(mine))
        homes.append(Home(entries, now_us=5 + number, forgotten_us=3 + number))
    divided_again = list(divided(list(divided(homes, 3)), 2))
    for before, after in zip(homes, divided_again, strict=True):
        rows, again = (home.entries.take(*home.entries.whole(), ["", *COLUMNS]) for home in (before, after))
        assert all((rows[name] == again[name]).all() for name in rows)
        assert (after.now_us, after.forgotten_us, len(after.entries)) == (6, 3, len(before.entries))
        assert min(run.number for run in after.entries.parts) > max(run.number for run in before.entries.parts)


@pytest.mark.long
def test_a_cut_of_power_while_the_state_is_divided_loses_nothing(tmp_path, redis_client, redis_server, monkeypatch):
    often(monkeypatch)
    monkeypatch.setattr("streaming.engine.repartition.READ_AT_ONCE", 3)
    world = World(redis_client)
    world.register()
    world.sail(2, 30)
    machine = Machine(tmp_path / "engine", redis_server, 1, 2)
    machine.interval(trouble=False)
    world.sail(2, 25)
    publish, left = Log.publish, [2]

    def cut(log, fragments):
        left[0] -= 1
        if left[0] == 0:
            raise PowerCut
        publish(log, fragments)

    monkeypatch.setattr(Log, "publish", cut)
    with pytest.raises(PowerCut):
        Machine(tmp_path / "engine", redis_server, 2, 3)
    with monkeypatch.context() as cutting:
        cutting.setattr("streaming.engine.repartition.divided", lambda *_: (_ for _ in ()).throw(PowerCut))
        with pytest.raises(PowerCut):
            Machine(tmp_path / "engine", redis_server, 3, 3)
    world.sail(3, 10)
    machine = Machine(tmp_path / "engine", redis_server, 4, 3)
    read_all(machine)
    assert told(machine.log)[0] == world.truth(tmp_path / "truth")
