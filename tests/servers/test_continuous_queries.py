"""Range queries kept by home and regional servers equal brute force after every batch, however the input is cut."""

import math
import random
import tempfile
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given

from streaming.elements import UNKNOWN, wrapped
from streaming.plans import parse_plan, plan_document
from streaming.results import CANCELLED, DROPPED, EDITED, ENTERED, EXPIRED, LEFT, MOVED, REGISTERED, STAYED
from tests.draws import examples, rngs, seen_in, times
from tests.oracle import satisfies
from tests.servers.harness import Client, Engine, one

SECOND_US = 1_000_000
DAY_S = 24 * 3600
KEYS = ("a", "b", "c", "d", "e")
STREAMS = ("ships", "ships", "ships", "buses")
LONGITUDES = (-180.0, -179.0, -1.0, 0.0, 0.5, 1.0, 2.0, 179.5)
LATITUDES = (-1.0, 0.0, 0.5, 1.0, 2.0, 89.0)


def random_corners(rng):
    lo = [rng.choice(LONGITUDES), rng.choice(LATITUDES)]
    hi = [lo[0] + rng.choice([0.0, 1.0, 2.5, 20.0, 200.0, 360.0]), min(90.0, lo[1] + rng.choice([0.0, 1.0, 2.0, 80.0]))]
    if rng.random() < 0.7:
        return {"lo": lo, "hi": hi}
    low, high = rng.choice([(0.0, 500.0), (0.0, 500.0), (50.0, None), (None, 500.0)])
    return {"lo": [*lo, low], "hi": [*hi, high]}


def random_plan(rng):
    names = rng.choice([["area"], ["area"], ["compare"], ["area", "compare"]])
    steps = [{"enlarge_factor": rng.choice([0.5, 2.0])}, {"enlarge_value": 0.5}, {"enlarge_m": 60_000.0}]
    return parse_plan(
        {name: random_corners(rng) for name in names}
        | {
            "stream": rng.choice(STREAMS),
            "report": rng.choice(["inside", "inside", "outside"]),
            "transform": rng.sample(steps, rng.choice([0, 0, 1, 2])),
            "where": rng.choice(["", "", "", "kind = 'cargo'", "speed_mps > 3"]),
        }
    )


def random_box(rng):
    low = [rng.choice(LONGITUDES), rng.choice(LATITUDES), -math.inf]
    high = [low[0] + rng.choice([0.0, 0.0, 0.0, 0.5, 3.0]), min(90.0, low[1] + rng.choice([0.0, 0.0, 0.5])), math.inf]
    if rng.random() < 0.3:
        low[2] = high[2] = rng.choice([0.0, 100.0, 5000.0, UNKNOWN])
    return low + high


def random_event(rng, random_plan, random_box):
    kind = rng.choice(["element"] * 30 + ["register"] * 10 + ["cancel", "silence"] * 5 + ["drop"])
    properties = {"kind": rng.choice(["cargo", "tanker"]), "speed_mps": rng.randint(0, 6)}
    details = {
        "element": lambda: (rng.choice(STREAMS), rng.choice(KEYS), rng.randint(0, 9), random_box(rng), properties),
        "register": lambda: (rng.randint(1, 3), random_plan(rng)),
        "cancel": lambda: (rng.randint(1, 3),),
        "silence": lambda: (rng.choice([*range(1, 13), *range(1, 13), 2 * DAY_S]),),
        "drop": lambda: (rng.choice(STREAMS),),
    }
    return (kind, *details[kind]())


def random_history(rng, random_plan=random_plan, random_box=random_box):
    """Return batches, each (whether the engine restarts before it, events); updates' versions rise slowly."""
    start = [("register", query, random_plan(rng)) for query in (1, 2, 3)]
    batches = [
        (rng.random() < 0.3, [random_event(rng, random_plan, random_box) for _ in times(rng, 12)]) for _ in range(8)
    ]
    return [(False, start), *batches]


class World:
    """The oracle: what is true, kept one element at a time."""

    def __init__(self, ttl, space):
        self.newest, self.plans, self.ttl, self.space, self.now_us = {}, {}, dict(ttl), space, 0

    def update(self, stream, key, version, box, text):
        known = self.newest.get((stream, key))
        if known is None or version >= known[0]:
            self.newest[stream, key] = (version, box, text, self.now_us)

    def answer(self, plan):
        limit = self.ttl.get(plan.stream)
        return {
            key: (box, text)
            for (stream, key), (_, box, text, heard_us) in self.newest.items()
            if satisfies(plan, stream, box, text, self.space)
            and (limit is None or heard_us >= self.now_us - limit * SECOND_US)
        }

    def drop(self, dropped):
        """Let the objects of a stream go, those of the same batch as well, and its time-to-live."""
        self.ttl.pop(dropped, None)
        self.newest = {(stream, key): known for (stream, key), known in self.newest.items() if stream != dropped}

    def forget(self):
        """Forget what has expired and was silent for a day: an old version of it is new then."""
        for (stream, key), (*_, heard_us) in list(self.newest.items()):
            if self.ttl.get(stream) is not None and heard_us < self.now_us - DAY_S * SECOND_US:
                del self.newest[stream, key]

    def check(self, client, query, plan):
        assert client.answers[query] == self.answer(plan), query


def play_history(history, ttl, engine, make_world=World):
    """Play a history through the engine, comparing with the oracle after every batch; return the client."""
    world, client, elements, dropped, revision = make_world(ttl, engine.space), Client(), [], [], 0
    control = [{"op": "stream", "stream": stream, "ttl_s": ttl_s} for stream, ttl_s in ttl.items()]

    def cut():
        ids = sorted({*world.plans, *client.answers})
        asked = [{"op": "snapshot", "query": query} for query in ids]
        client.receive(engine.run(elements, [*control, *asked]))
        for stream in dropped:
            world.drop(stream)
        elements.clear(), control.clear(), dropped.clear()
        for query in ids:
            if query in world.plans:
                world.check(client, query, world.plans[query])
            else:
                assert not client.answers[query], query
        world.forget()

    def take(event, *details):
        if event == "element":
            stream, key, version, box, properties = details
            (box,) = wrapped(np.array([box]), engine.space).tolist()
            elements.append((stream, world.now_us, one(stream, key, version, box, properties, engine.space)))
            world.update(stream, key, version, box, orjson.dumps(properties).decode())
        elif event == "register":
            query, plan = details
            world.plans[query] = plan
            client.quiet = {number for number, known in world.plans.items() if known.emit == "membership"}
            document = plan_document(plan, engine.space)
            control.append({"op": "register", "query": query, "revision": revision, "plan": document})
        elif event == "cancel":
            world.plans.pop(details[0], None)
            control.append({"op": "cancel", "query": details[0], "revision": revision})
        elif event == "silence":
            world.now_us += details[0] * SECOND_US
            control.append({"op": "tick", "now_us": world.now_us})
        elif event == "drop":
            dropped.append(details[0])
            control.append({"op": "drop_stream", "stream": details[0]})

    for restarts, batch in history:
        if restarts:
            engine.restart()
        for event in batch:
            revision += 1
            take(*event)
        cut()
    return client


LAYOUTS = [(1, 1), (2, 4), (3, 6)]


def play(rng):
    """Play a random history; return the reasons and signs told."""
    lives = {stream: rng.choice([5, 20]) for stream in sorted(set(STREAMS)) if rng.random() < 0.7}
    with tempfile.TemporaryDirectory() as root:
        client = play_history(random_history(rng), lives, Engine(Path(root), *rng.choice(LAYOUTS)))
    return {(row["sign"], row["reason"]) for row in client.told}


@pytest.mark.long
@examples(18)
@given(rngs())
def test_answers_equal_the_oracle_after_every_batch_and_restart(rng):
    play(rng)


# Histories that between them make every kind of tuple.
TELLING = 13, 30


def test_the_histories_make_every_kind_of_tuple():
    left = {MOVED, EDITED, EXPIRED, DROPPED, CANCELLED}
    reasons = {ENTERED: {MOVED, REGISTERED, EDITED}, STAYED: {MOVED}, LEFT: left}
    wanted = {(sign, reason) for sign, found in reasons.items() for reason in found}
    assert wanted <= seen_in((play(random.Random(seed)) for seed in TELLING), wanted)
