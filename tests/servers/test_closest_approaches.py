"""Closest approaches equal brute force after every batch: through edits, restarts, splits, and on all borders."""

import json
import random
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyproj
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.elements import stream_number
from streaming.errors import InvalidPlan
from streaming.operators.closest import Closest, Motions
from streaming.operators.elements import Elements
from streaming.operators.stream_join import StreamJoins
from streaming.plans import parse_plan, plan_document
from streaming.results import ENTERED, LEFT, PASSED, REASONS, STAYED
from streaming.spaces import EARTH, Dimension, Space
from tests import draws
from tests.draws import examples, rngs
from tests.servers.harness import Client, Engine, one

GEOD = pyproj.Geod(ellps="WGS84")
SECOND_US = 1_000_000
KEYS, STREAMS = ("a", "b", "c", "d"), ("s", "t")
LAYOUTS = [(1, 1), (2, 4), (2, 6)]
# Four regions meet at the first; the others are at the antimeridian and at a pole.
MIDDLES = [(0.0, 0.0), (0.0, 0.0), (0.0, 60.0), (180.0, 0.0), (10.0, 89.5)]


def closest_approach(within_m=1_000.0, within_s=600.0, stream="s", **more):
    return {"stream": stream, "kind": "closest_approach", "within_m": within_m, "within_s": within_s} | more


def box_at(place):
    return (*place, 0.0, *place, 0.0)


def place_after(told, seconds):
    """Return where an object is some seconds after its report, straight from the definition."""
    (lon, lat), properties = told["place"], told["properties"]
    speed, course = properties.get("speed_mps", 0.0), properties.get("course_deg")
    length = np.asarray(seconds) * (0.0 if course is None else speed)
    lon, lat, _ = GEOD.fwd(
        np.full(length.shape, lon), np.full(length.shape, lat), np.full(length.shape, course or 0.0), length
    )
    return lon, lat


def distances(one_, other, seconds):
    """Return how far two objects are from each other some seconds after the later report."""
    latest = max(one_["time_us"], other["time_us"])
    ways = [place_after(told, seconds + (latest - told["time_us"]) / SECOND_US) for told in (one_, other)]
    return GEOD.inv(*ways[0], *ways[1])[2]


def brute_force(one_, other, within_s):
    """Return when two objects are closest, in seconds after the later report, and how far they are then.

    It looks at ever finer times. The first are from a minute before to a minute after the horizon.
    """
    low, high = -60.0, within_s + 60.0
    for _ in range(6):
        seconds = np.linspace(low, high, 161)
        far = distances(one_, other, seconds)
        best = int(far.argmin())
        low, high = seconds[max(0, best - 1)], seconds[min(160, best + 1)]
    return seconds[best], far[best]


def velocity_of(told):
    """Return how fast an object goes to the east and to the north."""
    course, speed = (told["properties"].get(name) for name in ("course_deg", "speed_mps"))
    way = np.radians(course or 0.0)
    return (0.0 if course is None else speed or 0.0) * np.array([np.sin(way), np.cos(way)])


def slow(one_, other):
    """Tell whether two objects keep their distance."""
    far = distances(one_, other, np.array([0.0, 30.0, 60.0]))
    east, north = velocity_of(one_) - velocity_of(other)
    return np.hypot(east, north) < 0.3 or (np.ptp(far) < 15.0 and np.ptp(np.diff(far)) < 0.1)


def judged(one_, other, plan, now_us):
    """Return True or False if a pair certainly is, or is not, in the answer of a plan; None if it is near a limit."""
    for told, where in ((one_, plan.get("where")), (other, plan["join"].get("where"))):
        if where and told["properties"]["kind"] != "ship":
            return False
    if abs(one_["time_us"] - other["time_us"]) > plan["gap_s"] * SECOND_US:
        return False
    if plan.get("area") and not inside(one_["place"], plan["area"]):
        return False
    if any(moves(told) and told["properties"]["speed_mps"] > 350 for told in (one_, other)):
        return False
    if not moves(one_) and not moves(other):
        return False
    if slow(one_, other):
        return None
    after_s, distance = brute_force(one_, other, plan["within_s"])
    left_s = (max(one_["heard_us"], other["heard_us"]) - now_us) / SECOND_US + after_s
    gaps = [plan["within_m"] - distance, after_s, plan["within_s"] - after_s, left_s]
    if min(gaps[0] / 5.0, *gaps[1:]) < -1.0:
        return False
    return True if min(gaps[0] / 5.0, *gaps[1:]) > 1.0 else None


def moves(told):
    properties = told["properties"]
    return properties.get("course_deg") is not None and properties.get("speed_mps", 0.0) > 0


def inside(place, area):
    return area["lo"][0] <= place[0] <= area["hi"][0] and area["lo"][1] <= place[1] <= area["hi"][1]


class World:
    """The oracle, and the engine beside it."""

    def __init__(self, root, rng, layout=None):
        self.rng, self.client = rng, Client()
        self.engine = Engine(Path(root), *(layout or rng.choice(LAYOUTS)))
        self.objects, self.plans, self.revision = {}, {}, 0
        self.now_us, self.ttl_s = 1_000 * SECOND_US, {}
        self.elements, self.control, self.versions = [], [], {}
        self.middle = rng.choice(MIDDLES)
        # Not each report of a pair that stays is told, so a snapshot may have newer ones.
        self.client.quiet = {1, 2, 3, 4}

    def move(self):
        rng, stream, key = self.rng, self.rng.choice(STREAMS), self.rng.choice(KEYS)
        time_us = self.now_us - rng.randint(0, 100) * SECOND_US
        time_us = self.versions[stream, key] = max(time_us, self.versions.get((stream, key), 0) + 1)
        middle = self.middle
        place = (middle[0] + rng.uniform(-0.1, 0.1) + 180) % 360 - 180, middle[1] + rng.uniform(-0.1, 0.1)
        properties = {"kind": rng.choice(["ship", "ship", "bus"])}
        if rng.random() < 0.95:
            properties["speed_mps"] = rng.choice([0, 5, 20.5, 20.5, 100, 340, 400])
        if rng.random() < 0.95:
            towards = GEOD.inv(*place, *middle)[0] % 360
            properties["course_deg"] = rng.choice([towards, towards + rng.uniform(-20, 20), rng.uniform(0, 360)])
        told = {"place": place, "properties": properties, "time_us": time_us, "heard_us": self.now_us}
        self.objects[stream, key] = told
        self.elements.append((stream, self.now_us, one(stream, key, time_us, box_at(place), properties)))

    def register(self):
        rng, query = self.rng, self.rng.randint(1, 4)
        self.revision += 1
        where = {"where": "kind = 'ship'"}
        join = {"stream": rng.choice(STREAMS)} | rng.choice([{}, {}, where])
        more = rng.choice([{}, {}, where]) | {"gap_s": rng.choice([0, 60, 300]), "mirrored": rng.random() < 0.3}
        if rng.random() < 0.2:
            more["area"] = {"lo": [-0.05, -0.1], "hi": [0.1, 60.1]}
        limits = rng.choice([500, 5_000, 20_000]), rng.choice([60, 600])
        self.plans[query] = closest_approach(*limits, rng.choice(STREAMS), join=join, **more)
        self.control.append({"op": "register", "query": query, "revision": self.revision, "plan": self.plans[query]})

    def silence(self):
        self.now_us += self.rng.randint(1, 60) * SECOND_US
        self.control.append({"op": "tick", "now_us": self.now_us})

    def live(self):
        stream = self.rng.choice(STREAMS)
        self.ttl_s[stream] = self.rng.choice([None, 30])
        self.control.append({"op": "stream", "stream": stream, "ttl_s": self.ttl_s[stream]})

    def present(self):
        for (stream, key), told in list(self.objects.items()):
            limit = self.ttl_s.get(stream)
            if limit is not None and told["heard_us"] < self.now_us - limit * SECOND_US:
                del self.objects[stream, key]
        return self.objects.items()

    def cut(self):
        """Run what has come as a batch; return how many pairs had to be in the answers."""
        asked = [{"op": "snapshot", "query": query} for query in self.plans]
        self.client.receive(self.engine.run_or_die(self.elements, [*self.control, *asked], self.rng, 0.2))
        self.elements, self.control = [], []
        present = self.present()
        return sum(self.check(query, plan, present) for query, plan in self.plans.items())

    def check(self, query, plan, present):
        told, seen = {}, 0
        for (stream, key), one_ in present:
            for (other_stream, other_key), other in present:
                streams = (stream, other_stream) == (plan["stream"], plan["join"]["stream"])
                if streams and (stream, key) != (other_stream, other_key):
                    told[key, other_key] = judged(one_, other, plan, self.now_us)
        answer = set(self.client.answers[query])
        assert answer <= set(told), (plan, answer - set(told))
        once = plan["stream"] == plan["join"]["stream"] and not plan["mirrored"]
        for pair, holds in told.items():
            back = told.get(pair[::-1]) if once else False
            if holds is None or back is None:
                continue
            ways = [pair in answer, once and pair[::-1] in answer]
            if holds and back:
                assert sum(ways) == 1, (plan, pair, "a pair is told one way")
            else:
                assert ways[0] == holds, (plan, pair, holds)
            seen += holds
        return seen


EVENTS = {"move": 12, "register": 2, "silence": 2, "live": 0.3}


def play(rng, batches=8):
    """Play a random history; return how many pairs there were, and the signs and reasons that were told."""
    with tempfile.TemporaryDirectory() as root:
        world, seen = World(root, rng), 0
        for _ in range(batches):
            if rng.random() < 0.2:
                world.engine.restart()
            draws.play(world, EVENTS, rng, 14)
            seen += world.cut()
    return seen, {(row["sign"], REASONS[row["reason"]]) for row in world.client.told}


@pytest.mark.long
@given(rngs())
@examples(9)
def test_answers_equal_brute_force_after_every_batch_and_restart(rng):
    play(rng)


# Histories that between them make every kind of tuple.
TELLING = 26, 95


def test_the_histories_make_every_kind_of_tuple():
    told = [play(random.Random(seed)) for seed in TELLING]
    assert sum(seen for seen, _ in told) > 20
    reasons = {"moved", "partner_moved", "edited"}
    wanted = {(ENTERED, reason) for reason in {*reasons, "registered"}} | {(LEFT, reason) for reason in reasons}
    assert wanted | {(LEFT, "passed"), (STAYED, "moved")} <= set.union(*(kinds for _, kinds in told))


@pytest.mark.long
@given(rngs())
@examples(5)
def test_the_answers_do_not_depend_on_cuts_restarts_and_regions(rng):
    with tempfile.TemporaryDirectory() as root:
        worlds = [
            World(Path(root) / "one", random.Random(0), (1, 1)),
            World(Path(root) / "many", random.Random(0), (2, 6)),
        ]
        middle = rng.choice(MIDDLES)
        for world in worlds:
            world.middle = middle
        for event in draws.happening(rng, EVENTS, 80):
            details = rng.getrandbits(32)
            for world in worlds:  # the same happens to both
                world.rng = random.Random(details)
                getattr(world, event)()
            if event == "silence" or rng.random() < 0.3:
                run(worlds[1])
                if rng.random() < 0.2:
                    worlds[1].engine.restart()
            if event == "silence":
                run(worlds[0])
        for world in worlds:
            run(world)
        one_, other = (
            {query: set(found) for query, found in world.client.answers.items() if found} for world in worlds
        )
        assert one_ == other


def run(world):
    """Run what has come as a batch, without a look at the answers."""
    world.client.receive(world.engine.run(world.elements, world.control))
    world.elements, world.control = [], []


def ship(key, place, course_deg, time_s, speed_mps=10.0):
    properties = {"course_deg": course_deg, "speed_mps": speed_mps}
    return one("s", key, time_s * SECOND_US, box_at(place), properties)


class Sea:
    """An engine with the ships of one query, whose clock is that of the reports."""

    def __init__(self, root, **plan):
        self.engine, self.client, self.at = Engine(root, 2, 4, rescaled=0.0), Client(), 0
        self.client.quiet = {1}
        self.control = [{"op": "register", "query": 1, "revision": 1, "plan": closest_approach(**plan)}]

    def hear(self, now_s, *ships):
        """Take reports at a time of the clock; return what was told."""
        elements = [("s", now_s * SECOND_US, table) for table in ships]
        control = [*self.control, {"op": "tick", "now_us": now_s * SECOND_US}]
        self.client.receive(self.engine.run(elements, control))
        told, self.at, self.control = self.client.told[self.at :], len(self.client.told), []
        return told


# A degree of longitude at the equator, in metres.
DEGREE_M = 111_319.49


def test_a_pair_tells_where_and_when_it_will_be_closest_and_leaves_when_that_time_has_passed(tmp_path):
    sea, east = Sea(tmp_path), 4_000 / DEGREE_M
    (told,) = sea.hear(1_000, ship("a", (0.0, 0.0), 90, 1_000), ship("b", (east, 0.002), 270, 1_000))
    assert told["sign"] == ENTERED
    # They approach each other at 20 m/s, 4 km apart, on ways that are 221 m from each other.
    assert told["closest_s"] == pytest.approx(200.0, abs=0.01)
    assert told["closest_us"] == pytest.approx(1_200 * SECOND_US, abs=SECOND_US / 100)
    assert told["distance"] == pytest.approx(0.002 * 110_574, abs=0.1)
    places = sorted([told["closest_places"][:2], told["closest_places"][2:]], key=lambda place: place[1])
    assert np.allclose(places, [[east / 2, 0.0], [east / 2, 0.002]], atol=1e-6)
    assert sea.hear(1_199) == []
    (told,) = sea.hear(1_201)
    assert (told["sign"], told["reason"], told["closest_us"]) == (LEFT, PASSED, None)


def test_a_pair_that_keeps_course_and_speed_is_told_once_and_one_that_turns_again(tmp_path):
    sea, east = Sea(tmp_path), 4_000 / DEGREE_M
    sea.hear(1_003, ship("a", (0.0, 0.0), 90, 1_003), ship("b", (east, 0.002), 270, 1_003))
    later = 200 / DEGREE_M
    assert sea.hear(1_023, ship("a", (later, 0.0), 90, 1_023)) == []
    (told,) = sea.hear(1_043, ship("a", (2 * later, 0.0), 88, 1_043))
    assert told["sign"] == STAYED and told["distance"] < 0.002 * 110_574 - 10
    (told,) = sea.hear(1_063, ship("a", (3 * later, 0.0), 270, 1_063))
    assert told["sign"] == LEFT and REASONS[told["reason"]] in ("moved", "partner_moved")


def test_ships_that_move_apart_are_no_pair_even_before_the_clock_is_set(tmp_path):
    sea, west = Sea(tmp_path), -40 / DEGREE_M  # two seconds ago they were closest
    ships = ship("a", (0.0, 0.0), 90, 1_003), ship("b", (west, 0.002), 270, 1_003)
    sea.client.receive(sea.engine.run([("s", 1_003 * SECOND_US, table) for table in ships], sea.control))
    assert sea.client.told == []


def test_a_rule_over_both_ways_has_an_alarm_for_both_ships_until_they_have_passed(tmp_path):
    sea, east = Sea(tmp_path, mirrored=True), 4_000 / DEGREE_M
    rule = {"stream": "s", "kind": "rule", "when": {"query": 1}}
    sea.control.append({"op": "register", "query": 2, "revision": 1, "plan": rule})
    sea.hear(1_003, ship("a", (0.0, 0.0), 90, 1_003), ship("b", (east, 0.002), 270, 1_003))
    sea.hear(1_005)
    assert set(sea.client.answers[2]) == {"a", "b"}
    sea.hear(1_205)
    sea.hear(1_207)
    assert set(sea.client.answers[2]) == set()


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_pair_that_has_passed_and_reports_in_the_same_batch_is_told_once(tmp_path, mirrored):
    sea, east, ways = Sea(tmp_path, mirrored=mirrored), 4_000 / DEGREE_M, 1 + mirrored
    sea.hear(1_003, ship("a", (0.0, 0.0), 90, 1_003), ship("b", (east, 0.002), 270, 1_003))
    beside = (east / 2 + 20 / DEGREE_M, 0.0)
    assert [row["sign"] for row in sea.hear(1_205, ship("a", beside, 90, 1_205))] == [LEFT] * ways
    # A ship that turns round and meets the other one again has never left.
    sea.hear(1_300, ship("a", (0.0, 0.0), 90, 1_300), ship("b", (east, 0.002), 270, 1_300))
    told = sea.hear(1_505, ship("a", (0.0, 0.0), 90, 1_505), ship("b", (east, 0.002), 270, 1_505))
    assert [row["sign"] for row in told] == [STAYED] * ways
    assert sea.hear(1_506) == []


def test_an_old_report_counts_no_more(tmp_path):
    sea, east = Sea(tmp_path, gap_s=60), 4_000 / DEGREE_M
    sea.hear(1_000, ship("a", (0.0, 0.0), 90, 1_000))
    assert len(sea.hear(1_060, ship("b", (east, 0.0), 270, 1_060))) == 1
    (told,) = sea.hear(1_061, ship("b", (east, 0.0), 270, 1_061))
    assert told["sign"] == LEFT


def elements_of(motions, times_s):
    """Return elements of one stream with such places, courses and speeds, shape (N, 4)."""
    motions = np.asarray(motions, dtype=np.float64)
    numbers = motions[:, 2:].T
    height = np.zeros((len(motions), 1))
    bounds = np.hstack([motions[:, :2], height, motions[:, :2], height])
    times_us = (np.asarray(times_s) * SECOND_US).astype(np.int64)
    stream = np.full(len(motions), stream_number("s"))
    none = pa.nulls(len(motions), pa.string())
    told = pa.array(
        [json.dumps({"course_deg": course, "speed_mps": speed}) for course, speed in motions[:, 2:].tolist()]
    )
    keys = pa.array(map(str, range(len(motions))), pa.string())
    cold = pa.table({"key": keys, "geometry": none.cast(pa.binary()), "properties": told})
    return Elements(stream, bounds, cold.take, False, times_us, times_us, lambda rows, _: numbers[:, rows])


LONGITUDES, LATITUDES = st.floats(-0.5, 0.5), st.floats(-0.5, 0.5)
ANYWHERE = st.tuples(LONGITUDES, LATITUDES, st.floats(0, 360), st.sampled_from([0.0, 3.0, 12.0, 90.0, 340.0]))


def plans_of_many_limits():
    """Return plans of the same two streams whose limits all differ."""
    where, mirrored = {"where": "speed_mps > 11"}, {"mirrored": True}
    return [
        closest_approach(200 + 700 * number, 60 + 80 * number, gap_s=40 * number, **more)
        for number, more in enumerate([{}, mirrored, where, where | mirrored, {"join": {"stream": "s"} | where}, {}])
    ]


@given(st.lists(st.tuples(ANYWHERE, st.integers(0, 300)), min_size=2, max_size=12))
@examples(40)
def test_queries_of_many_limits_find_together_what_each_finds_alone(ships):
    motions, times_s = zip(*ships, strict=True)
    plans = [parse_plan(plan, EARTH) for plan in plans_of_many_limits()]
    elements, keys, rows = elements_of(motions, times_s), np.arange(len(ships)) - 3, np.arange(len(ships))

    def found(joins):
        return joins.pairs(elements, keys, rows, rows)

    together = found(StreamJoins(plans, EARTH))
    for number, plan in enumerate(plans):
        mine, alone = together.take(together.query == number), found(StreamJoins([plan], EARTH))
        for name in ("row", "partner", "reach", "other", "due_us"):
            both = [getattr(one, name)[np.lexsort((one.partner, one.row))] for one in (mine, alone)]
            assert np.array_equal(*both), (number, name)


@given(
    ANYWHERE, ANYWHERE, st.sampled_from([0.0, 60.0, 89.9, -75.0]), st.sampled_from([0.0, 179.9]), st.integers(0, 300)
)
@examples(60)
def test_the_closed_form_equals_ever_finer_times(one_, other, lat, lon, late_s):
    both = np.add([one_, other], (lon, lat, 0.0, 0.0))
    both[:, 0] = (both[:, 0] + 180) % 360 - 180
    both[:, 1] = np.clip(both[:, 1], -90, 90)
    names = "course_deg", "speed_mps"
    told = [
        {"place": tuple(row[:2]), "properties": dict(zip(names, row[2:], strict=True)), "time_us": time_s * SECOND_US}
        for row, time_s in zip(both, (0, late_s), strict=True)
    ]
    if slow(*told):
        return
    row, partner = np.arange(1), np.arange(1, 2)
    found, back = (Closest.of(elements_of(both, (0, late_s)), *sides) for sides in ((row, partner), (partner, row)))
    assert np.array_equal([found.after_s, found.distance_m], [back.after_s, back.distance_m], equal_nan=True)
    after_s, distance = brute_force(*told, 3_600.0)
    if -50 < after_s < 3_650 and -50 < found.after_s[0] < 3_650:
        assert found.distance_m[0] == pytest.approx(distance, abs=1.0, rel=1e-4)


@given(ANYWHERE, st.sampled_from([0.0, 60.0, 80.0, 89.9, -75.0]), st.sampled_from([0.0, 179.9]))
@examples(60)
def test_the_box_about_a_way_contains_it(motion, lat, lon):
    lon, lat, course, speed = np.add(motion, (lon, lat, 0.0, 0.0))
    lat = min(lat, 90.0)
    ((west, south, _, east, north, _),) = Motions.of(elements_of([[lon, lat, course, speed]], [0]), np.arange(1)).ways(
        7_200.0, 3
    )
    seconds = np.linspace(0, 7_200, 500)
    lons, lats, _ = GEOD.fwd(*(np.full(500, number) for number in (lon, lat, course)), speed * seconds)
    assert (lats >= south - 1e-9).all() and (lats <= north + 1e-9).all()
    turned = np.stack([lons - 360, lons, lons + 360])
    assert ((turned >= west - 1e-9) & (turned <= east + 1e-9)).any(0).all()


def test_a_plan_is_what_its_document_says():
    for more in ({}, {"join": {"stream": "t", "where": "kind = 'ship'"}, "gap_s": 0, "mirrored": True}):
        plan = parse_plan(closest_approach(where="kind = 'ship'", **more), EARTH)
        assert parse_plan(plan_document(plan, EARTH), EARTH) == plan


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"within_s": 0}, "within_s must be"),
        ({"within_s": 3_601}, "within_s must be"),
        ({"within_m": 0}, "within_m must be"),
        ({"gap_s": -1}, "gap_s must be"),
        ({"mirrored": 1}, "mirrored must be"),
        ({"emit": "all"}, "emit must be"),
        ({"join": {"layer": "ports"}}, "closest approach"),
        ({"join": {"stream": "s", "predicate": "dwithin", "distance": 1}}, "closest approach"),
        ({"transform": []}, "a closest approach"),
    ],
)
def test_what_a_plan_cannot_be(more, rule):
    with pytest.raises(InvalidPlan, match=rule):
        parse_plan(closest_approach() | more, EARTH)


def test_a_space_without_longitudes_has_no_courses():
    plane = Space("plane", (Dimension("x", "m", 0, 10), Dimension("y", "m", 0, 10)))
    with pytest.raises(InvalidPlan, match="longitude and latitude"):
        parse_plan(closest_approach(), plane)
