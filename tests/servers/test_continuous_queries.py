"""Range queries kept by home and regional servers equal brute force after every batch, however the input is cut."""

import tempfile
from pathlib import Path

import numpy as np
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.elements import wrapped
from streaming.plans import plan_document
from tests import strategies
from tests.oracle import satisfies
from tests.servers.harness import Client, Engine, one

SECOND_US = 1_000_000
KEYS = ("a", "b", "c", "d")

updates = st.tuples(
    st.just("element"),
    st.sampled_from(strategies.STREAMS),
    st.sampled_from(KEYS),
    st.integers(0, 9),
    strategies.boxes(),
    strategies.properties,
)
registrations = st.tuples(st.just("register"), st.integers(1, 4), strategies.plans())
cancellations = st.tuples(st.just("cancel"), st.integers(1, 4))
lives = st.fixed_dictionaries({}, optional={stream: st.sampled_from([5, 20]) for stream in strategies.STREAMS})
silences = st.tuples(st.just("silence"), st.integers(1, 15))
cuts = st.just(("cut",))
restarts = st.just(("restart",))
histories = st.lists(
    st.one_of(updates, updates, updates, registrations, registrations, cancellations, silences, cuts, cuts, restarts),
    max_size=30,
)


class World:
    """The oracle: what is true, kept one element at a time."""

    def __init__(self, ttl):
        self.newest, self.plans, self.ttl, self.now_us = {}, {}, ttl, 0

    def update(self, stream, key, version, box, text):
        known = self.newest.get((stream, key))
        if known is None or version >= known[0]:
            self.newest[stream, key] = (version, box, text, self.now_us)

    def answer(self, plan):
        limit = self.ttl.get(plan.stream)
        return {
            key: (box, text)
            for (stream, key), (_, box, text, heard_us) in self.newest.items()
            if satisfies(plan, stream, box, text) and (limit is None or heard_us >= self.now_us - limit * SECOND_US)
        }


def play(history, ttl, engine):
    """Play a history through the engine, comparing with the oracle after every batch; return the client."""
    world, client, elements, revision = World(ttl), Client(), [], 0
    control = [{"op": "stream", "stream": stream, "ttl_s": ttl_s} for stream, ttl_s in ttl.items()]

    def cut():
        ids = sorted({*world.plans, *client.answers})
        asked = [{"op": "snapshot", "query": query} for query in ids]
        client.receive(engine.run(elements, [*control, *asked]))
        elements.clear(), control.clear()
        for query in ids:
            expected = world.answer(world.plans[query]) if query in world.plans else {}
            assert client.answers[query] == expected, query

    for event, *details in history:
        revision += 1
        if event == "element":
            stream, key, version, box, properties = details
            (box,) = wrapped(np.array([box]), engine.space).tolist()
            elements.append((stream, world.now_us, one(stream, key, version, box, properties)))
            world.update(stream, key, version, box, orjson.dumps(properties).decode())
        elif event == "register":
            query, plan = details
            world.plans[query] = plan
            control.append({"op": "register", "query": query, "revision": revision, "plan": plan_document(plan)})
        elif event == "cancel":
            world.plans.pop(details[0], None)
            control.append({"op": "cancel", "query": details[0], "revision": revision})
        elif event == "silence":
            world.now_us += details[0] * SECOND_US
            control.append({"op": "tick", "now_us": world.now_us})
        elif event == "cut":
            cut()
        elif event == "restart":
            engine.restart()
    cut()
    return client


@settings(deadline=None, max_examples=150)
@given(histories, lives, st.sampled_from([(1, 1), (2, 4), (3, 6)]))
def test_answers_equal_the_oracle_after_every_batch_and_restart(history, lives, layout):
    with tempfile.TemporaryDirectory() as root:
        play(history, lives, Engine(Path(root), *layout))
