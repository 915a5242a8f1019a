"""Joins of streams with last known elements equal brute force over all pairs, after every batch, however it is cut."""

import math
import random
import tempfile
from pathlib import Path

import numpy as np
import orjson
import pytest
import shapely
from hypothesis import given
from shapely import affinity

from streaming.elements import UNKNOWN, bounds_of, box_elements, wrapped
from streaming.kinds.join.partners import PREDICATES
from streaming.plans import parse_plan, plan_document
from streaming.results import (
    CANCELLED,
    DROPPED,
    EDITED,
    ENTERED,
    EXPIRED,
    LEFT,
    MOVED,
    PARTNER_MOVED,
    REGISTERED,
    STAYED,
)
from streaming.results.netting import net
from streaming.spaces import EARTH
from streaming.state.manifest import read_manifest
from tests import draws
from tests.draws import examples, rngs, seen_in
from tests.geodesy import apart_m
from tests.oracle import box_shape, boxes_meet, enlarge, filters_of, in_area, where_holds
from tests.servers.harness import Client, Engine
from tests.servers.test_joins import anywhere, close

SECOND_US = 1_000_000
KEYS = ("a", "b", "c")
STREAMS = ("ships", "ferries")
# Borders of regions are at multiples of 180, 120, 90 and 60 degrees.
LONGITUDES = (-180.0, -179.5, -120.5, -120.0, -0.5, 0.0, 0.5, 1.0, 59.5, 60.0, 179.0, 179.5)
LATITUDES = (-1.0, -0.25, 0.0, 0.5, 1.0)
LAYOUTS = [(1, 1), (2, 4), (2, 4), (3, 6), (2, 9)]


class Element:
    """What is known of an object."""

    def __init__(self, stream, key, box, text, geometry, heard_us):
        self.stream, self.key, self.box, self.text, self.heard_us = stream, key, box, text, heard_us
        self.shape = box_shape(box) if geometry is None else geometry


def random_geometry(rng):
    """A box, mostly a point, and a geometry now and then."""
    x, y = rng.choice(LONGITUDES), rng.choice(LATITUDES)
    wide, high = rng.choice([(0.0, 0.0), (0.0, 0.0), (0.5, 0.5), (1.0, 0.0), (2.0, 3.0), (130.0, 1.0), (355.0, 0.5)])
    low, top = rng.choice(
        [(-math.inf, math.inf), (-math.inf, math.inf), (0.0, 100.0), (5000.0, 5000.0), (UNKNOWN, UNKNOWN)]
    )
    geometry = shapely.Polygon([(x, y), (x + wide, y), (x, y + high)]) if wide and high and rng.random() < 0.5 else None
    return [x, y, low, x + wide, y + high, top], geometry


def random_plan(rng):
    predicate = rng.choice([*PREDICATES, "dwithin", "dwithin", "boxes"])
    predicate = "intersects" if predicate == "disjoint" else predicate
    join = {"stream": rng.choice(STREAMS), "predicate": predicate, "where": rng.choice(["", "", "speed_mps > 1"])}
    if predicate == "dwithin":
        join["distance"] = rng.choice([0.0, 40_000.0, 120_000.0])
    if rng.random() < 0.2:
        join["filters"] = [rng.choice([{"key": "a"}, {"box": {"lo": [0, 0], "hi": [2, 2]}}])]
    document = {"stream": rng.choice(STREAMS), "kind": "join", "join": join}
    document["where"] = rng.choice(["", "", "speed_mps > 1"])
    if rng.random() < 0.3:
        document["area"] = {"lo": [rng.choice([-1.0, 179.0]), -1.0], "hi": [rng.choice([1.0, 2.0]) + 180.0, 2.0]}
    if rng.random() < 0.3:
        steps = [{"enlarge_value": 0.5}, {"enlarge_m": 60_000.0}, {"enlarge_factor": 3.0}, {"enlarge_factor": 0.5}]
        document["transform"] = rng.sample(steps, rng.randint(1, 2))
    if rng.random() < 0.2:
        document["filters"] = [{"key": rng.choice(KEYS)}]
    return parse_plan(document)


def passes(where, filters, element):
    return where_holds(where, element.text) and all(
        entry.key == element.key if hasattr(entry, "key") else boxes_meet(element.box, entry.box, EARTH)
        for entry in filters
    )


def joined(plan, one, other):
    """Tell whether an element and a last known one are a pair of the join, straight from the definition."""
    partners, box = plan.partners, one.box
    if (one.stream, other.stream) != (plan.stream, partners.name) or (one.stream, one.key) == (other.stream, other.key):
        return False
    if not in_area(plan, box, shape=one.shape) or not passes(plan.where, filters_of(plan), one):
        return False
    if not passes(partners.where, partners.filters, other):
        return False
    for step in plan.transform:
        box = enlarge(box, step.by, step.amount, EARTH)
    shape = compared(plan, one)
    if partners.predicate == "dwithin":
        return boxes_meet(anywhere(box), other.box, EARTH) and close(shape, other.shape, partners.distance)
    if not boxes_meet(box, other.box, EARTH):
        return False
    turns = [affinity.translate(shape, turn) for turn in (-360, 0, 360)]
    return partners.predicate == "boxes" or any(getattr(turn, partners.predicate)(other.shape) for turn in turns)


def compared(plan, one):
    """What is compared: the element's shape, or its box where that is transformed."""
    box = one.box
    for step in plan.transform:
        box = enlarge(box, step.by, step.amount, EARTH)
    return box_shape(box) if plan.transform else one.shape


class World:
    """The oracle, and the engine beside it."""

    def __init__(self, root, rng):
        self.engine = Engine(Path(root), *rng.choice(LAYOUTS))
        self.client, self.rng = Client(), rng
        self.newest, self.plans, self.ttl_s, self.ended = {}, {}, {}, set()
        self.elements, self.control, self.revision, self.now_us = [], [], 0, 0
        self.last = {}

    def move(self):
        stream, key, (box, geometry) = self.rng.choice(STREAMS), self.rng.choice(KEYS), random_geometry(self.rng)
        properties = {"speed_mps": self.rng.randint(0, 3)}
        (box,) = wrapped(np.array([box]), EARTH).tolist()
        self.revision += 1
        wkb = None if geometry is None else [shapely.to_wkb(geometry)]
        table = box_elements(stream, [key], [self.revision], [box], [properties], wkb)
        self.elements.append((stream, self.now_us, table))
        text = orjson.dumps(properties).decode()
        self.newest[stream, key] = Element(stream, key, box, text, geometry, self.now_us)

    def register(self):
        self.revision += 1
        query = self.rng.randint(1, 3)
        self.plans[query] = random_plan(self.rng)
        document = plan_document(self.plans[query])
        self.control.append({"op": "register", "query": query, "revision": self.revision, "plan": document})

    def cancel(self):
        self.revision += 1
        query = self.rng.randint(1, 3)
        self.plans.pop(query, None)
        self.ended.add(query)
        self.control.append({"op": "cancel", "query": query, "revision": self.revision})

    def live(self):
        stream = self.rng.choice(STREAMS)
        self.ttl_s[stream] = self.rng.choice([None, 5])
        self.control.append({"op": "stream", "stream": stream, "ttl_s": self.ttl_s[stream]})

    def silence(self):
        self.now_us += self.rng.randint(1, 6) * SECOND_US
        self.control.append({"op": "tick", "now_us": self.now_us})

    def drop(self):
        """Drop a stream's objects, in a batch of its own: what comes with it is after it."""
        self.cut()
        stream = self.rng.choice(STREAMS)
        self.ttl_s.pop(stream, None)
        self.newest = {name: element for name, element in self.newest.items() if name[0] != stream}
        self.control.append({"op": "drop_stream", "stream": stream})
        self.cut()

    def present(self):
        for (stream, key), element in list(self.newest.items()):
            limit = self.ttl_s.get(stream)
            if limit is not None and element.heard_us < self.now_us - limit * SECOND_US:
                del self.newest[stream, key]
        return self.newest.values()

    def cut(self):
        asked = [{"op": "snapshot", "query": query} for query in (1, 2, 3)]
        told = len(self.client.told)
        self.client.receive(self.engine.run_or_die(self.elements, [*self.control, *asked], self.rng, 0.3))
        self.elements, self.control = [], []
        told = self.client.told[told:]
        pairs = {(row["query"], row["key_hash"], row["partner_hash"]) for row in told}
        assert len(pairs) == len(told), "a pair is told once a batch"
        self.last |= {(row["query"], row["key"], row["partner"]): row for row in told if row["sign"] != LEFT}
        present = self.present()
        for query in (1, 2, 3):
            self.check(query, self.plans.get(query), present)

    def check(self, query, plan, present):
        pairs = {(a.key, b.key): (a, b) for a in present for b in present if plan and joined(plan, a, b)}
        assert self.client.answers[query] == {names: (a.box, a.text) for names, (a, b) in pairs.items()}, (query, plan)
        for names, (a, b) in pairs.items():
            row = self.last[query, *names]
            assert row["partner_properties"] == b.text
            if plan.partners.predicate == "dwithin" and not plan.transform:
                assert row["distance"] == pytest.approx(apart_m(a.shape, b.shape), abs=2e-5)


EVENTS = {"move": 12, "register": 2, "cancel": 1, "live": 0.7, "silence": 1, "drop": 0.3}


def play(rng, batches=8):
    """Play a random history; return what was told."""
    with tempfile.TemporaryDirectory() as root:
        world = World(root, rng)
        for _ in range(batches):
            if rng.random() < 0.3:
                world.engine.restart()
            draws.play(world, EVENTS, rng, 12)
            world.cut()
    return world.client.told


@pytest.mark.long
@examples(5)
@given(rngs())
def test_answers_equal_the_oracle_after_every_batch_and_restart(rng):
    play(rng)


@pytest.mark.long
def test_a_history_with_edges_that_are_nearly_parallel_and_hundreds_of_degrees_long():
    play(random.Random(167563))


# Histories that between them make every kind of tuple.
TELLING = 11, 14, 32, 44


@pytest.mark.long
def test_the_histories_make_every_kind_of_tuple():
    reasons = {
        ENTERED: {MOVED, REGISTERED, EDITED},
        STAYED: {MOVED, PARTNER_MOVED},
        LEFT: {MOVED, EDITED, EXPIRED, CANCELLED, DROPPED},
    }
    wanted = {(sign, reason) for sign, found in reasons.items() for reason in found}
    plays = ({(row["sign"], row["reason"]) for row in play(random.Random(seed))} for seed in TELLING)
    assert wanted <= seen_in(plays, wanted)


@pytest.fixture
def engine(tmp_path):
    return Engine(tmp_path, 2, 4)


def points(stream, places, version=1):
    """Return elements at points, by key."""
    boxes = [[*place, -math.inf, *place, math.inf] for place in places.values()]
    return box_elements(stream, list(places), [version] * len(places), boxes, [{}] * len(places))


def near(distance, query=1, revision=1, **plan):
    """Return the control entry of a self-join by distance."""
    join = {"stream": "buses", "predicate": "dwithin", "distance": distance}
    plan = {"stream": "buses", "kind": "join", "join": join, **plan}
    return {"op": "register", "query": query, "revision": revision, "plan": plan}


def signs(client, start=0):
    """Return what was told since, by pair."""
    return [(row["sign"], row["reason"], row["key"], row["partner"]) for row in client.told[start:]]


def test_two_that_cross_a_border_of_regions_together_stay_a_pair(engine):
    client = Client()
    step = 0.00005  # 5.6 m on the equator, where four regions meet
    for version in range(12):
        at = (version - 6) * step
        buses = points("buses", {"a": (at, at), "b": (at - step, at)}, version)
        client.receive(engine.run([("buses", 0, buses)], [near(10)] if version == 0 else []))
        assert set(client.answers[1]) == {("a", "b"), ("b", "a")}
    assert {sign for sign, *_ in signs(client, 2)} == {STAYED}


def test_a_join_registered_in_mid_stream_finds_pairs_across_borders_at_once(engine):
    client = Client()
    client.receive(engine.run([("buses", 0, points("buses", {"a": (-0.00002, 1), "b": (0.00002, 1)}))], []))
    client.receive(engine.run([], [near(10)]))
    assert sorted(signs(client)) == [(ENTERED, REGISTERED, "a", "b"), (ENTERED, REGISTERED, "b", "a")]


def test_a_larger_distance_after_a_pause_fetches_what_was_not_sent_meanwhile(engine):
    client = Client()
    client.receive(engine.run([("buses", 0, points("buses", {"a": (-0.01, 1), "b": (0.01, 1)}))], [near(10)]))
    client.receive(engine.run([], [{"op": "cancel", "query": 1, "revision": 2}]))
    client.receive(engine.run([("buses", 0, points("buses", {"b": (0.02, 1)}, 2))], []))
    client.receive(engine.run([], [near(5_000, revision=3)]))
    assert set(client.answers[1]) == {("a", "b"), ("b", "a")}
    client.receive(engine.run([("buses", 0, points("buses", {"b": (0.5, 1)}, 3))], []))
    assert not client.answers[1]


def test_what_moved_away_while_nothing_was_joined_is_no_partner_where_it_was(engine):
    client = Client()
    client.receive(engine.run([("buses", 0, points("buses", {"a": (-0.01, 1), "b": (0.01, 1)}))], [near(5_000)]))
    assert set(client.answers[1]) == {("a", "b"), ("b", "a")}
    other = {"stream": "ferries", "kind": "join", "join": {"stream": "ferries"}}
    others = {"op": "register", "query": 2, "revision": 1, "plan": other}  # so that there is a state all the time
    client.receive(engine.run([], [{"op": "cancel", "query": 1, "revision": 2}, others]))
    client.receive(engine.run([("buses", 0, points("buses", {"b": (0.5, 1)}, 2))], []))
    client.receive(engine.run([], [near(5_000, revision=3)]))
    assert not client.answers[1]


def test_state_is_written_only_while_there_are_joins_with_streams(engine):
    engine.saved_every = 1

    def written(batch):
        states = read_manifest(engine.layout.store.files, batch).states
        return any(name.startswith("stream_join/") for name in states)

    engine.run([("buses", 0, points("buses", {"a": (1, 1)}))], [])
    engine.run([], [near(10)])
    engine.run([], [{"op": "cancel", "query": 1, "revision": 2}])
    engine.run([], [])
    assert [written(batch) for batch in (0, 1, 3)] == [False, True, False]


def test_with_emit_all_every_element_reports_its_pairs_and_partners_that_move_report_none(engine):
    client = []

    def run(places, version, control=()):
        tables = [("buses", 0, points("buses", place, version + n)) for n, place in enumerate(places)]
        rows = net(engine.run(tables, [*control])).to_pylist()
        client.extend((row["sign"], row["key"], row["partner"], row["time_us"]) for row in rows)

    control = near(10, emit="all")
    control["plan"]["join"]["filters"] = [{"key": "b"}]
    run([{"b": (0.00001, 1)}], 1, [control])
    # The last but one position is near, across the border; the last one is not.
    run([{"a": (-0.00001, 1)}, {"a": (-5, 1)}], 2)
    run([{"b": (-5, 1)}], 4)
    run([{"a": (-5, 1)}], 5)
    assert client == [(ENTERED, "a", "b", 2), (ENTERED, "a", "b", 5)]


@pytest.mark.long
@pytest.mark.parametrize("regions", [1, 9, 70])
def test_pairs_of_large_and_moving_boxes_equal_brute_force_in_few_and_in_many_regions(tmp_path, regions):
    rng, engine, client = np.random.default_rng(regions), Engine(tmp_path, 2, regions), Client()
    plan = {"stream": "buses", "kind": "join", "join": {"stream": "buses", "predicate": "boxes"}}
    newest, control = {}, [{"op": "register", "query": 1, "revision": 1, "plan": plan}]
    for version in range(3):
        keys = np.unique(rng.integers(0, 60, 30)).tolist()
        low = rng.uniform([-180, -90], [180, 60], (len(keys), 2))
        high = low + rng.choice([0.0, 0.0, 5.0, 30.0, 200.0], (len(keys), 1)) * [1, 0.1]
        free = np.full((len(keys), 1), math.inf)
        boxes = np.hstack([low, -free, high, free])
        table = box_elements("buses", [str(key) for key in keys], [version] * len(keys), boxes, [{}] * len(keys))
        newest |= dict(zip(table["key"].to_pylist(), bounds_of(table["bounds"]).tolist(), strict=True))
        client.receive(engine.run([("buses", 0, table)], control))
        control = []
        assert set(client.answers[1]) == {
            (one, other)
            for one in newest
            for other in newest
            if one != other and boxes_meet(newest[one], newest[other], EARTH)
        }
    assert client.answers[1]
