"""A flood of registrations is spread over batches, and no first answer or snapshot changes by it."""

import random

import numpy as np
import orjson
import pytest

from streaming.elements import point_elements, stream_number
from streaming.engine import admission
from streaming.engine.admission import Sample, admitted, shares
from streaming.history import StoredTables, stored
from streaming.keys import STREAMS_KEY
from streaming.kinds.registry import KINDS
from streaming.logs import read_fragment
from streaming.plans import parse_plan
from streaming.results import REASONS
from streaming.servers.control.entries import ControlEntries
from streaming.servers.control.registry import Registry
from streaming.spaces import EARTH
from tests.engine.test_intervals import Machine, answers, one_by_one, sail
from tests.entries import control_entries

EVERYTHING = {"stream": "ships", "area": {"lo": [-180, -90], "hi": [180, 90]}}
NOTHING = {"stream": "ships", "area": {"lo": [100, 0], "hi": [101, 1]}}
QUERIES = 300


def entries_of(plans, first=0):
    entries = [
        {"op": "register", "query": query, "revision": 1, "plan": plan} for query, plan in enumerate(plans, first)
    ]
    return ControlEntries(entries, EARTH)


def ships(count=500, stream="ships"):
    places = np.random.default_rng(1).uniform(-10, 10, (count, 2))
    bounds = np.full((count, 6), np.inf)
    bounds[:, [0, 1]] = bounds[:, [3, 4]] = places
    bounds[:, 2] = -np.inf
    return Sample.none(EARTH).after(np.full(count, stream_number(stream)), bounds)


def test_a_batch_reads_many_registrations_with_small_answers_and_few_with_large_ones(monkeypatch):
    monkeypatch.setattr(admission, "BUDGET_S", 0.1)
    registry, sample = Registry(EARTH), ships()
    small = admitted(entries_of([NOTHING] * 5_000), registry, sample, 1_000_000)
    assert small == int(admission.BUDGET_S / admission.REGISTER_S)
    assert admitted(entries_of([EVERYTHING] * 100), registry, sample, 1_000_000) == 1
    assert admitted(entries_of([EVERYTHING] * 1_000), registry, sample, 1_000) == pytest.approx(small / 76, rel=0.1)
    assert admitted(entries_of([*[NOTHING] * 40, EVERYTHING, NOTHING]), registry, sample, 1_000_000) == 40
    assert admitted(entries_of([{"stream": "ships"}] * 5_000), registry, sample, 10) == small


def test_a_batch_reads_fewer_corridors_the_more_vertices_they_have():
    def corridors(vertices, objects):
        line = np.column_stack([np.linspace(-10, 10, vertices), np.linspace(-10, 10, vertices)]).tolist()
        plan = {"stream": "ships", "area": {"corridor": {"line": line, "width_m": 100_000}}}
        return admitted(entries_of([plan] * 500), Registry(EARTH), ships(), objects)

    one_s = 999 * admission.VERTEX_S + 3_000 * (admission.MEMBER_S + 999 * admission.MEMBER_VERTEX_S)
    assert corridors(999, 3_000) == pytest.approx(admission.BUDGET_S / one_s, abs=1)
    assert corridors(999, 3_000) < corridors(2, 3_000) / 2


def test_other_entries_cost_little_and_snapshots_what_their_answers_have():
    registry, _ = Registry(EARTH).apply(entries_of([EVERYTHING, NOTHING]))
    ticks = ControlEntries([{"op": "tick", "now_us": 1}] * 1_000, EARTH)
    assert admitted(ticks, registry, ships(), 1_000_000) == 1_000
    asked = [{"op": "snapshot", "query": query} for query in (1, 1, 7, 1, 0, 1)]
    assert admitted(ControlEntries(asked, EARTH), registry, ships(), 1_000_000) == 4
    assert admitted(ControlEntries(asked, EARTH), registry, Sample.none(EARTH), 1_000_000) == 6


def test_shares_are_those_of_brute_force_and_ranges_that_move_count_what_lies_about_an_object():
    sample, rng = ships(), random.Random(1)
    corners = [(rng.uniform(-10, 5), rng.uniform(-10, 5), rng.uniform(1, 8)) for _ in range(50)]
    plans = [
        parse_plan({"stream": "ships", "compare": {"lo": [x, y], "hi": [x + side, y + side]}}) for x, y, side in corners
    ]
    lon, lat = sample.bounds[:, 0], sample.bounds[:, 1]
    expected = [np.mean((lon >= x) & (lon <= x + s) & (lat >= y) & (lat <= y + s)) for x, y, s in corners]
    assert shares(plans, sample, EARTH).tolist() == pytest.approx(expected)
    moving = [parse_plan({"stream": "ships", "around": {"key": "a", "radius": r}}) for r in (1, 300_000, 9_000_000)]
    near, middling, all_of_them = shares(moving, sample, EARTH)
    assert near < 0.02 and 0.02 < middling < 0.3 and all_of_them == 1
    assert shares([parse_plan({"stream": "buses"} | {"area": EVERYTHING["area"]})], sample, EARTH) == [0]


PLANS = {
    "range": EVERYTHING,
    "moving_range": {"stream": "ships", "around": {"key": "a", "half_widths": [1, None]}},
    "knn": {"stream": "ships", "kind": "knn", "k": 3, "around": {"at": [1, 2]}},
    "join": {"stream": "ships", "kind": "join", "join": {"layer": "ports"}},
    "window_join": {"stream": "ships", "kind": "window_join", "window_s": 60, "join": {"stream": "ships"}},
    "interval_join": {
        "stream": "ships",
        "kind": "interval_join",
        "lower_s": 0,
        "upper_s": 60,
        "join": {"stream": "ships"},
    },
    "encounter": {"stream": "ships", "kind": "encounter", "for_s": 60, "join": {"stream": "ships"}},
    "sketch": {"stream": "ships", "kind": "sketch", "ask": [{"question": "count"}]},
    "rule": {"stream": "ships", "kind": "rule", "when": {"query": 1}},
    "aggregate": {
        "stream": "ships",
        "around": {"at": [0, 0], "polygon": [[0, 0], [3, 0], [0, 4]]},
        "aggregate": {"function": "count"},
    },
    "closest_approach": {"stream": "ships", "kind": "closest_approach", "within_m": 500, "within_s": 600},
    "approach": {"stream": "ships", "kind": "approach", "target": {"lo": [0, 0], "hi": [2, 2]}, "within_s": 600},
    "track": {"stream": "ships", "kind": "track", "area": {"lo": [0, 0], "hi": [2, 2]}},
}


def test_every_kind_has_a_share():
    plans = [parse_plan(PLANS[kind.name]) for kind in KINDS]
    share = shares(plans, ships(), EARTH)
    assert ((share >= 0) & (share <= 1)).all() and len(share) == len(KINDS)


def test_the_answers_of_nearest_neighbours_count_as_small():
    nearest = [parse_plan(plan) for plan in (PLANS["knn"], PLANS["knn"] | {"around": {"key": "a"}})]
    assert (shares(nearest, ships(), EARTH) < 0.02).all()


def test_a_rule_costs_what_the_answers_that_it_names_cost():
    registry, _ = Registry(EARTH).apply(entries_of([EVERYTHING, NOTHING], first=1))
    for query, most in ((1, 1), (2, 20)):
        rule = {"stream": "ships", "kind": "rule", "when": {"all": [{"query": query}, {"not": {"query": 7}}]}}
        assert admitted(entries_of([rule] * 20, first=10), registry, ships(), 1_000_000) == most


def test_a_sample_keeps_the_newest_elements_of_all_streams():
    sample = ships(100_000)
    assert len(sample) <= admission.SAMPLED
    for number in range(10):
        sample = sample.after(np.full(300, number), np.zeros((300, 6)))
    assert len(sample) == admission.SAMPLED and {9, 8, 7} <= set(sample.stream.tolist())


def feed(log):
    """Append ships that sail, and a flood of registrations and requests in the middle of them."""
    rng, chance, places = np.random.default_rng(5), random.Random(5), np.zeros((60, 2))
    for step in range(30):
        log.send("tick", now_us=step * 1_000_000)
        log.ingest(sail(rng, places, step), "ships", step * 1_000_000)
        for query in range(QUERIES) if step == 15 else ():
            x, y, side = chance.randint(-10, 8), chance.randint(-10, 8), chance.choice([1, 4, 20])
            plan = {"stream": "ships", "area": {"lo": [x, y], "hi": [x + side, y + side]}}
            log.send("register", query=query, revision=1, plan=plan)
            if chance.random() < 0.1:
                log.send("snapshot", query=chance.randint(0, query))
            if chance.random() < 0.05:
                log.send("cancel", query=chance.randint(0, query), revision=2)
    log.send("tick", now_us=100_000_000)


def run(root, url, budget_s, monkeypatch):
    """Run a history to its end with a budget for registrations; return the machine and all fragments."""
    monkeypatch.setattr(admission, "BUDGET_S", budget_s)
    monkeypatch.setattr("streaming.engine.interval.SAVE_EVERY_S", 0.1)
    machine = Machine(root, url, 0)
    machine.log.clear()
    machine.resume()
    feed(machine.log)
    names, event_log = machine.log.names, machine.log.event_log
    end = {"control": event_log.newest(names.control), "0": event_log.newest(names.ingest(0))}
    while not end.items() <= machine.point.positions.items():
        machine.interval(trouble=False)
    entries = event_log.read(names.results)
    return machine, [read_fragment(entry.fields, EARTH) for entry in entries]


def members(log):
    """Return the members of all answers in the end."""
    return {query: answer for query, (answer, _) in answers(log)[-1].items()}


@pytest.mark.long
def test_a_flood_of_registrations_is_spread_over_batches_that_bring_other_answers_too(
    tmp_path, redis_client, redis_server, monkeypatch
):
    machine, fragments = run(tmp_path / "all", redis_server, 1e9, monkeypatch)
    together, last = members(machine.log), machine.point.batch
    acked = [ack for fragment in fragments for ack in fragment.acks]
    most = max(len(fragment.acks) for fragment in fragments)
    assert most > 50
    machine, fragments = run(tmp_path / "few", redis_server, 20 * admission.REGISTER_S, monkeypatch)
    few = [fragment for fragment in fragments if fragment.acks]
    assert [ack for fragment in sorted(few, key=lambda one: one.batch) for ack in fragment.acks] == acked
    assert max(len(fragment.acks) for fragment in few) <= 21 and len(few) >= QUERIES / 21
    assert machine.point.batch > last
    # Elements that came after the flood are in answers before its end.
    flood = range(min(one.batch for one in few) + 1, max(one.batch for one in few))
    moved = {one.batch for one in fragments if (one.changes["reason"].to_numpy() == REASONS.index("moved")).any()}
    assert moved & set(flood)
    assert members(machine.log) == together
    told = answers(machine.log)
    assert told == one_by_one(tmp_path / "truth", redis_server, machine.layout(0).store.epoch())


SOME = point_elements("ships", list("abc"), np.full(3, 1), np.zeros((3, 2)), [{}] * 3)


def stored_keys(machine):
    """Return the keys of the ships that are stored once all elements are read."""
    ends = {str(n): machine.log.event_log.newest(machine.log.names.ingest(n)) for n in range(machine.partitions)}
    while not ends.items() <= machine.point.positions.items():
        machine.interval(trouble=False)
    tables = StoredTables(machine.root / "layers", machine.root / "history", EARTH)
    return sorted(tables.query_by_box(stored("ships")).rows["key"].to_pylist())


@pytest.mark.parametrize("most", [1, 3])
def test_a_stream_is_stored_from_its_first_element_though_registrations_and_definitions_wait(
    tmp_path, redis_client, redis_server, monkeypatch, most
):
    monkeypatch.setattr("streaming.engine.interval.MOST_DEFINITIONS", most)
    monkeypatch.setattr(admission, "BUDGET_S", 10 * admission.REGISTER_S)
    machine = Machine(tmp_path / "engine", redis_server, 0)
    for query in range(QUERIES):
        machine.log.send("register", query=query, revision=1, plan=EVERYTHING)
    for stream in ("planes", "ships"):
        machine.log.send("stream", stream=stream, stored=True)
    machine.log.ingest(SOME, "ships", 1)
    assert stored_keys(machine) == list("abc")


def test_an_engine_without_a_state_stores_what_is_published_as_stored(tmp_path, redis_client, redis_server):
    ships = {"name": "ships", "space": "earth", "ttl_s": 9, "stored": True}
    published = {"ships": orjson.dumps(ships), "fish": orjson.dumps(ships | {"space": "sea"}), "broken": b"{"}
    redis_client.hset(STREAMS_KEY, mapping=published)
    machine = Machine(tmp_path / "engine", redis_server, 0)
    machine.log.ingest(SOME, "ships", 1)
    assert stored_keys(machine) == list("abc")
    machine.resume()
    told = {"op": "stream", "stream": "ships", "ttl_s": 9, "stored": True, "sketch": None}
    assert control_entries(redis_client) == [told]
