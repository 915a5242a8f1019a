"""Regions follow the load: what is split, moved and merged, when, and what waits."""

import numpy as np
import orjson
import pytest

from streaming.engine.scaling import RegionWatch, Scaler, Thresholds
from streaming.keys import PARTITIONERS_KEY
from streaming.logs import Log
from streaming.operators.region_map import RegionMap
from streaming.region_reports import Load, RegionChanges, loads_of
from streaming.settings import EngineSettings
from streaming.spaces import EARTH

LIMITS = Thresholds(observations=3, idle_observations=4, cool_down_s=10.0)
RNG = np.random.default_rng(1)
# Nine of ten elements come from one hundredth of the globe.
CROWD = np.column_stack([RNG.uniform(20, 38, 900), RNG.uniform(55, 73, 900), np.full(900, -np.inf)])
SPREAD = np.column_stack([RNG.uniform(-180, 180, 100), RNG.uniform(-90, 90, 100), np.full(100, -np.inf)])
PLACES = np.vstack([CROWD, SPREAD])


class Machine:
    """Two tasks whose regions take processor time for each element that comes to them."""

    def __init__(self, scaler, known, cores=1.0, places=PLACES, objects=1000, elements_per_s=0):
        self.scaler, self.known, self.cores, self.places, self.objects = scaler, known, cores, places, objects
        self.elements_per_s, self.now_s, self.changes = elements_per_s, 0.0, []
        self.begin()

    def begin(self):
        self.busy_s, self.came = np.zeros(self.known.regions), np.zeros(self.known.regions)

    def share(self):
        of = self.known.region_of(np.tile(self.places, 2))
        return np.bincount(of, minlength=self.known.regions) / len(of)

    def imbalance(self):
        tasks = np.bincount(np.array(self.known.places) % 2, weights=self.share(), minlength=2)
        return tasks.max() / tasks.mean()

    def run(self, seconds):
        for _ in range(seconds):
            self.now_s += 1
            self.busy_s, self.came = (
                was + each * self.share() for was, each in ((self.busy_s, self.cores), (self.came, self.elements_per_s))
            )
            loads = [Load(int(came), busy_s, self.objects) for came, busy_s in zip(self.came, self.busy_s, strict=True)]
            if later := self.scaler.observed(self.known, loads, self.places, self.now_s):
                self.changes.append((self.now_s, later.why))
                self.known = later
                self.begin()


@pytest.mark.parametrize("partitioner", ["kd", "quadtree", "geohash"])
def test_a_hot_spot_is_split_until_the_tasks_are_balanced(partitioner):
    machine = Machine(Scaler(2, partitioner, 2, LIMITS), RegionMap.grid(EARTH, 2), elements_per_s=5_000)
    assert machine.imbalance() > 1.8
    machine.run(400)
    assert machine.imbalance() < 1.3
    settled = len(machine.changes)
    machine.run(200)
    assert len(machine.changes) == settled
    gaps = np.diff([at_s for at_s, _ in machine.changes])
    assert (gaps >= LIMITS.cool_down_s).all()


def test_a_hot_spot_that_moves_is_followed_and_what_it_leaves_is_merged():
    machine = Machine(Scaler(2, "kd", 2, LIMITS), RegionMap.grid(EARTH, 2), elements_per_s=5_000)
    for step in range(5):
        machine.places = np.vstack([CROWD - [40.0 * step, 25.0 * step, 0.0], SPREAD[:20]])
        machine.run(200)
        assert machine.imbalance() < 1.3, step
    assert any("merged" in what for _, what in machine.changes)
    assert machine.known.regions <= 12


def test_a_busy_region_to_which_few_elements_come_is_not_split():
    machine = Machine(Scaler(2, "kd", 2, LIMITS), RegionMap.grid(EARTH, 2), places=CROWD, elements_per_s=900)
    machine.run(100)
    assert machine.imbalance() == 2.0 and not machine.changes
    machine.elements_per_s = 5_000
    machine.run(100)
    assert machine.changes and machine.imbalance() < 1.3


def test_a_region_moves_if_that_balances_the_tasks():
    known = RegionMap.grid(EARTH, 4)
    known = RegionMap(EARTH, known.tree, places=(0, 0, 0, 1))
    machine = Machine(Scaler(2, "kd", 2, LIMITS), known, places=SPREAD)
    machine.run(20)
    assert machine.changes[0][1].startswith("moved") and machine.imbalance() < 1.3


def test_a_reason_must_hold_and_idle_tasks_are_left_alone():
    machine = Machine(Scaler(2, "kd", 2, LIMITS), RegionMap.grid(EARTH, 2))
    for _ in range(20):
        machine.places = CROWD
        machine.run(2)
        machine.places = SPREAD
        machine.run(1)
    assert machine.changes == []
    machine = Machine(Scaler(2, "kd", 2, LIMITS), RegionMap.grid(EARTH, 2), cores=0.1)
    machine.run(100)
    assert machine.changes == []


def test_idle_regions_are_merged_down_to_the_least_number():
    machine = Machine(Scaler(2, "kd", 3, LIMITS), RegionMap.grid(EARTH, 8), cores=0.001)
    machine.run(300)
    assert machine.known.regions == 3 and len(machine.changes) == 5


def test_large_regions_are_split_and_are_not_merged_again():
    machine = Machine(Scaler(2, "kd", 1, LIMITS), RegionMap.grid(EARTH, 1), cores=0.001, objects=3_000_000)
    machine.run(4)
    assert machine.known.regions == 2
    machine.objects = 1_500_000
    machine.run(200)
    assert machine.known.regions == 2


def test_regions_that_get_very_many_elements_are_split_and_merged_once_they_get_few():
    machine = Machine(Scaler(2, "kd", 1, LIMITS), RegionMap.grid(EARTH, 1), cores=0.001, elements_per_s=500_000)
    machine.run(400)
    assert 500_000 * machine.share().max() <= LIMITS.most_elements_per_s
    assert all("very many elements" in why for _, why in machine.changes)
    settled, machine.elements_per_s = machine.known.regions, 350_000
    machine.run(400)
    assert 1 < machine.known.regions <= settled
    machine.elements_per_s = 80_000
    machine.run(400)
    assert machine.known.regions == 1


def test_a_crowd_at_one_point_and_a_grid_stay_and_a_task_that_starts_again_is_no_load():
    for partitioner, places in (("kd", np.zeros((100, 3))), ("grid", PLACES)):
        machine = Machine(Scaler(2, partitioner, 1, LIMITS), RegionMap.grid(EARTH, 1), places=places)
        machine.run(50)
        assert machine.changes == []
    machine = Machine(Scaler(2, "kd", 2, LIMITS), RegionMap.grid(EARTH, 2))
    for _ in range(20):
        machine.run(2)
        machine.busy_s = machine.busy_s * 0
    assert machine.changes == []


def test_what_the_tasks_report_becomes_the_entry_of_the_next_map(redis_client):
    log, known = Log(redis_client, "earth", 2), RegionMap.grid(EARTH, 2)
    watch = RegionWatch(EngineSettings(), log, 2)
    watch.look(0.0)  # nothing is reported yet
    log.send("tick", now_us=0)
    for second in range(9):
        log.report_regions({0: [0, 0, 0.05 * second, 100]}, map=known.document(), places=PLACES)
        log.report_regions({1: [0, 1_100 * second, 0.95 * second, 900]})
        watch.look(1.0 + second)
    entries = [orjson.loads(entry.fields[b"entry"]) for entry in log.event_log.read(log.names.control)]
    (document,) = [entry["map"] for entry in entries if entry["op"] == "regions"]
    later = RegionMap.of(EARTH, document)
    assert (later.number, later.regions, later.places) == (1, 3, (0, 1, 0))
    assert 55 < later.cells[2, 1] == later.cells[1, 4] < 73


def test_loads_of_another_map_are_not_compared():
    known = RegionMap.grid(EARTH, 2)
    told = {"load:0": [0, 5, 1.5, 7], "load:1": [0, 6, 2.5, 8]}
    assert loads_of(told, known) == [Load(5, 1.5, 7), Load(6, 2.5, 8)]
    assert loads_of({**told, "load:1": [3, 6, 2.5, 8]}, known) is None
    assert loads_of({"load:0": told["load:0"]}, known) is None


def told_of(log):
    entries = [orjson.loads(entry.fields[b"entry"]) for entry in log.event_log.read(log.names.control)]
    return [RegionMap.of(EARTH, entry["map"]) for entry in entries if entry["op"] == "regions"]


@pytest.mark.parametrize(("partitioner", "cells"), [("", 2), ("quadtree", 4)])
def test_the_first_elements_decide_where_a_new_state_is_cut_by_what_the_space_asks_for(
    redis_client, partitioner, cells
):
    log, known = Log(redis_client, "earth", 2), RegionMap.grid(EARTH, 2)
    log.send("tick", now_us=0)
    if partitioner:
        redis_client.hset(PARTITIONERS_KEY, "earth", partitioner)
    watch = RegionWatch(EngineSettings(first_elements=1000), log, 2)
    for second, elements in enumerate((499, 500, 501)):
        log.report_regions({n: [0, elements, 0.0, 1] for n in (0, 1)}, map=known.document(), places=PLACES)
        watch.look(float(second))
    (later,) = told_of(log)
    assert later.regions == cells and later.number == 1 and later.why.startswith(f"cut into {cells} regions")
    counts = np.bincount(later.region_of(np.tile(PLACES, 2)), minlength=cells)
    assert partitioner or abs(counts[0] - counts[1]) <= 2


def test_every_map_that_was_in_force_is_kept_once_with_its_reason(redis_client):
    log = Log(redis_client, "earth", 2)
    log.send("tick", now_us=0)
    maps = [RegionMap.grid(EARTH, 2)]
    maps.append(maps[0].split(1, 1, 10.0).after(maps[0], "by hand"))
    watch = RegionWatch(EngineSettings(scaling=False), log, 2)
    for known in (maps[0], maps[0], maps[1], maps[1]):
        log.report_regions({}, map=known.document(), places=[])
        watch.look(0.0)
    RegionWatch(EngineSettings(scaling=False), log, 2).look(0.0)  # an engine that takes over
    kept = RegionChanges(redis_client, "earth").newest()
    assert [RegionMap.of(EARTH, entry["map"]) for entry in kept] == maps[::-1]
    assert kept[0]["map"]["why"] == "by hand" and kept[0]["at_us"] >= kept[1]["at_us"]
    log.clear()
    assert RegionChanges(redis_client, "earth").newest() == []
