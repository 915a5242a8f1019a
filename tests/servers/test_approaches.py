"""Predicted entries equal brute force after every batch: through edits, restarts, and for areas of every shape."""

import tempfile
from pathlib import Path

import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import given

from streaming.errors import InvalidPlan
from streaming.plans import parse_plan, plan_document
from streaming.spaces import EARTH, Dimension, Space
from tests.draws import examples, rngs, times
from tests.servers.harness import Client, Engine, one

KEYS = ("a", "b", "c", "d", "e", "f")
GEOD = pyproj.Geod(ellps="WGS84")
TRIANGLE = {"type": "Polygon", "coordinates": [[[-0.4, 59.8], [0.4, 59.8], [0.0, 60.2], [-0.4, 59.8]]]}
BOX = {"lo": [-0.3, 59.9], "hi": [0.2, 60.1]}
# Both sides of the antimeridian.
ACROSS = {"lo": [179.8, -0.2], "hi": [180.3, 0.2]}
CIRCLE = {"circle": {"center": [0.0, 60.0], "radius_m": 15_000.0}}
CORRIDOR = {"corridor": {"line": [[-0.5, 60.1], [0.5, 59.9]], "width_m": 10_000.0}}
TARGETS = [TRIANGLE, BOX, ACROSS, CIRCLE, CORRIDOR]


def approach(target, within_s, **more):
    return {"stream": "s", "kind": "approach", "target": target, "within_s": within_s} | more


def box_at(place, height_m=0.0):
    return (*place, height_m, *place, height_m)


def distance_m(line, lon, lat):
    """Return the least distance of a place from a line of close vertices, in metres."""
    along = np.array(line)
    return min(GEOD.inv(along[:, 0], along[:, 1], np.full(len(along), lon), np.full(len(along), lat))[2])


def dense(one_end, other):
    """Return places of a line; at 340 m/s, those of ten minutes are 510 m apart."""
    return np.linspace(one_end, other, 400)


def gap_m(target, way):
    """Return how far a way of close places passes from a target; negative if it certainly meets it."""
    if "type" in target or "lo" in target:
        shape = shapely.box(*target["lo"], *target["hi"]) if "lo" in target else shapely.geometry.shape(target)
        lines = [shapely.LineString(np.add(way, (turn, 0))) for turn in (-360, 0, 360)]
        if any(line.intersects(shape) for line in lines):
            return -1.0
        return min(line.distance(shape) for line in lines) * 100_000
    if "circle" in target:
        inner = target["circle"]
        return distance_m(way, *inner["center"]) - inner["radius_m"]
    inner = target["corridor"]
    line = dense(*map(np.array, inner["line"]))
    return min(distance_m(line, *place) for place in way) - inner["width_m"] / 2


def way(place, speed, course, seconds):
    lon, lat, _ = GEOD.fwd(*place, course, speed * seconds)
    lon = place[0] + (lon - place[0] + 180) % 360 - 180
    return dense(np.array(place), np.array([lon, lat]))


def expected(objects, plan):
    """Return the keys that must be in the answer, and those that must not; what is near the border is in neither."""
    sure, never = set(), set()
    for key, (place, properties) in objects.items():
        speed, course = properties.get("speed_mps"), properties.get("course_deg")
        inside = gap_m(plan["target"], np.array([place, place]))
        moves = speed is not None and course is not None and 0 < speed <= 350
        matches = not plan.get("where") or properties["kind"] == "ship"
        if not moves or not matches or inside < -500:
            never.add(key)
        elif abs(inside) > 500 or inside == -1.0:
            gap = gap_m(plan["target"], way(place, speed, course, plan["within_s"]))
            if inside < 0 or gap > 800:
                never.add(key)
            elif gap < -800 or gap == -1.0:
                sure.add(key)
    return sure, never


class World:
    def __init__(self, root, rng):
        self.rng, self.client = rng, Client()
        self.engine = Engine(Path(root), *rng.choice([(1, 1), (2, 4)]))
        self.objects, self.plans, self.version = {}, {}, 0

    def step(self):
        rng, elements, control = self.rng, [], []
        for key in rng.sample(KEYS, rng.randint(0, len(KEYS))):
            self.version += 1
            lon, lat = rng.choice([(0.0, 60.0), (0.0, 60.0), (180.0, 0.0)])
            place = ((lon + rng.uniform(-1, 1) + 180) % 360 - 180, lat + rng.uniform(-0.5, 0.5))
            properties = {"kind": rng.choice(["ship", "bus"])}
            if rng.random() < 0.9:
                properties["speed_mps"] = rng.choice([0, 5, 20.5, 100, 340, 400])
            if rng.random() < 0.9:
                properties["course_deg"] = rng.uniform(0, 360)
            self.objects[key] = place, properties
            elements.append(("s", 0, one("s", key, self.version, box_at(place), properties)))
        for query in rng.sample(range(1, 6), rng.randint(0, 2)):
            self.version += 1
            where = rng.choice([{}, {"where": "kind = 'ship'"}])
            self.plans[query] = approach(rng.choice(TARGETS), rng.choice([60, 600]), **where)
            control.append({"op": "register", "query": query, "revision": self.version, "plan": self.plans[query]})
        self.client.receive(self.engine.run(elements, control))


@pytest.mark.long
@given(rngs())
@examples(10)
def test_answers_equal_brute_force_after_every_batch(rng):
    with tempfile.TemporaryDirectory() as root:
        world = World(root, rng)
        for _ in times(rng, 16):
            world.step()
            for query, plan in world.plans.items():
                sure, never = expected(world.objects, plan)
                answer = set(world.client.answers[query])
                assert sure <= answer and not answer & never, (plan, sure - answer, answer & never)
            if world.rng.random() < 0.2:
                world.engine.restart()


def test_an_object_that_turns_away_or_has_arrived_is_no_longer_in_the_answer():
    with tempfile.TemporaryDirectory() as root:
        engine, client = Engine(Path(root), 1, 1), Client()
        register = {"op": "register", "query": 1, "revision": 1, "plan": approach(BOX, 600)}
        steps = [((-0.5, 60.0), 90), ((-0.45, 60.0), 270), ((-0.4, 60.0), 90), ((-0.29, 60.0), 90)]
        answers = []
        for version, (place, course) in enumerate(steps, 1):
            element = one("s", "a", version, box_at(place), {"speed_mps": 20.0, "course_deg": course})
            client.receive(engine.run([("s", 0, element)], [register] if version == 1 else []))
            answers.append(set(client.answers[1]))
        assert answers == [{"a"}, set(), {"a"}, set()]


def test_an_aircraft_above_the_area_does_not_enter_it():
    low = {"lo": [-0.3, 59.9, 0.0], "hi": [0.2, 60.1, 1_000.0]}
    with tempfile.TemporaryDirectory() as root:
        engine, client = Engine(Path(root), 1, 1), Client()
        heading = {"speed_mps": 100.0, "course_deg": 90}
        elements = [("s", 0, one("s", str(m), 1, box_at((-0.5, 60.0), m), heading)) for m in (500.0, 5_000.0)]
        client.receive(
            engine.run(elements, [{"op": "register", "query": 1, "revision": 1, "plan": approach(low, 600)}])
        )
        assert set(client.answers[1]) == {"500.0"}


@pytest.mark.parametrize("target", TARGETS)
def test_a_plan_is_what_its_document_says(target):
    plan = parse_plan(approach(target, 60, where="kind = 'ship'"), EARTH)
    assert parse_plan(plan_document(plan, EARTH), EARTH) == plan


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"within_s": 0}, "within_s must be"),
        ({"within_s": 3_601}, "within_s must be"),
        ({"target": None}, "target must be the area"),
        ({"target": {"lo": [None, 0], "hi": [None, 1]}}, "target must have bounds"),
        ({"area": BOX}, "a predicted entry"),
    ],
)
def test_what_a_plan_cannot_be(more, rule):
    with pytest.raises(InvalidPlan, match=rule):
        parse_plan(approach(BOX, 60) | more, EARTH)


def test_a_space_without_longitudes_has_no_courses():
    plane = Space("plane", (Dimension("x", "m", 0, 10), Dimension("y", "m", 0, 10)))
    with pytest.raises(InvalidPlan, match="longitude and latitude"):
        parse_plan(approach({"lo": [1, 1], "hi": [2, 2]}, 60), plane)
