"""Closest approaches equal brute force after every batch: through edits, restarts, splits, and wherever the regions are."""

import functools
import random
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyproj
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.elements import stream_number
from streaming.errors import InvalidPlan
from streaming.operators.closest import Closest, Motions
from streaming.operators.elements import Elements
from streaming.plans import parse_plan, plan_document
from streaming.results import ENTERED, LEFT, PASSED, REASONS, STAYED
from streaming.spaces import EARTH, Dimension, Space
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


def slow(one_, other):
    """Tell whether two objects keep their distance."""
    far = distances(one_, other, np.array([0.0, 30.0, 60.0]))
    return np.ptp(far) < 15.0 and np.ptp(np.diff(far)) < 0.1


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
        self.elements, self.control = [], []
        self.middle = rng.choice(MIDDLES)
        # Not each report of a pair that stays is told, so a snapshot may have newer ones.
        self.client.quiet = {1, 2, 3, 4}

    def move(self):
        rng, stream, key = self.rng, self.rng.choice(STREAMS), self.rng.choice(KEYS)
        known = self.objects.get((stream, key))
        time_us = self.now_us - rng.randint(0, 100) * SECOND_US
        if known is not None:
            time_us = max(time_us, known["time_us"] + 1)
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


@functools.cache
def play(seed, batches=8):
    """Play a random history; return how many pairs there were, and the signs and reasons that were told."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as root:
        world, seen = World(root, rng), 0
        for _ in range(batches):
            if rng.random() < 0.2:
                world.engine.restart()
            for event in rng.choices(list(EVENTS), list(EVENTS.values()), k=rng.randint(0, 14)):
                getattr(world, event)()
            seen += world.cut()
    return seen, {(row["sign"], REASONS[row["reason"]]) for row in world.client.told}


@given(st.integers(0, 2**32))
@settings(deadline=None, max_examples=10)
def test_answers_equal_brute_force_after_every_batch_and_restart(seed):
    play(seed)
