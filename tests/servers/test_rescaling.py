"""Another region map moves state, and tells nobody anything: no tuple, no event, no other answer.

That answers stay right through splits and merges at random batches is shown by all histories of `harness.Engine`.
"""

import random

import numpy as np
import pytest

from streaming.elements import point_elements
from streaming.operators.region_map import RegionMap
from streaming.servers.control.border import LeftOut
from streaming.servers.rescaling import Rescaling
from streaming.spaces import EARTH
from tests.servers.harness import Client, Engine, another

SHIPS, AREA = 120, {"lo": [-5, -5], "hi": [5, 5]}
PLANS = (
    {"stream": "ships", "area": AREA},
    {"stream": "ships", "compare": {"lo": [-3, -9], "hi": [4, 2]}, "report": "outside"},
    {"stream": "ships", "around": {"key": "ship 1", "radius": 300_000}},
    {"stream": "ships", "kind": "knn", "around": {"key": "ship 0"}, "k": 9},
    {"stream": "ships", "around": {"key": "ship 1", "radius": 500_000}, "aggregate": {"function": "count"}},
    {"stream": "ships", "area": AREA, "aggregate": {"function": "avg", "property": "speed", "group_by": "flag"}},
    {"stream": "ships", "kind": "join", "join": {"stream": "ships", "predicate": "dwithin", "distance": 90_000}},
)


def ships(rng, numbers, version):
    """Return reports of ships near the point where four regions meet at first."""
    keys = [f"ship {number}" for number in numbers]
    properties = [{"speed": int(number) % 7, "flag": "fi" if number % 2 else "ee"} for number in numbers]
    return point_elements("ships", keys, np.full(len(keys), version), rng.uniform(-9, 9, (len(keys), 2)), properties)


def maps(count):
    """Yield region maps that follow each other, all with borders among the ships."""
    rng, known = random.Random(7), RegionMap.grid(EARTH, 4)
    for _ in range(count):
        known = another(known, rng)
        while known.regions < 6:
            place, axis = [rng.uniform(-9, 9) for _ in range(3)], rng.randrange(2)
            region = int(known.region_of(np.array([place * 2]))[0])
            if known.cells[region, axis] < place[axis]:
                known = known.split(region, axis, place[axis], rng.randrange(3))
        yield known


def told(client):
    """Return what a client was told, without reasons: which of two that moved is named depends on the borders."""
    return sorted(repr({**row, "reason": None}) for row in client.told)


def change(known, engine):
    return {"op": "regions", "map": known.after(engine.region_map).document()}


@pytest.fixture
def engine(tmp_path):
    engine, rng = Engine(tmp_path, 2, 4, rescaled=0.0), np.random.default_rng(1)
    control = [{"op": "stream", "stream": "ships", "ttl_s": 1000}, {"op": "tick", "now_us": 1}]
    control += [
        {"op": "register", "query": number, "revision": 1, "plan": plan} for number, plan in enumerate(PLANS, 1)
    ]
    engine.client = Client()
    engine.client.receive(engine.run([("ships", 1, ships(rng, range(SHIPS), 1))], control))
    for _ in range(3):  # until search regions have settled
        engine.client.receive(engine.run([], []))
    return engine


@pytest.mark.long
def test_another_map_tells_nobody_anything(engine):
    assert all(engine.client.answers[number] for number in range(1, len(PLANS) + 1))
    held = {query: dict(answer) for query, answer in engine.client.answers.items()}
    for known in maps(12):
        fragments = engine.run([], [change(known, engine)])
        assert len(fragments) == engine.region_map.regions + 1 and engine.region_map.tree == known.tree
        assert [fragment.changes.num_rows for fragment in fragments] == [0] * len(fragments)
        assert sum(fragment.counters.get("objects", 0) for fragment in fragments) == SHIPS
        engine.client.receive(fragments)
        # Whatever was cut and numbered anew, a snapshot is what the client holds.
        asked = [{"op": "snapshot", "query": number} for number in range(1, len(PLANS) + 1)]
        engine.client.receive(engine.run([], asked))
    assert engine.client.answers == held


@pytest.mark.long
def test_elements_of_the_same_batch_are_told_as_without_another_map(engine, tmp_path):
    other = Engine(tmp_path / "other", 2, 4, rescaled=0.0)
    rng, client, twin = np.random.default_rng(1), engine.client, Client()
    control = [{"op": "stream", "stream": "ships", "ttl_s": 1000}, {"op": "tick", "now_us": 1}]
    control += [{"op": "register", "query": n, "revision": 1, "plan": plan} for n, plan in enumerate(PLANS, 1)]
    twin.receive(other.run([("ships", 1, ships(rng, range(SHIPS), 1))], control))
    for _ in range(3):
        twin.receive(other.run([], []))
    for version, known in enumerate(maps(12), 2):
        rng = np.random.default_rng(version)
        table = ships(rng, rng.choice(SHIPS, 40, replace=False), version)
        client.told.clear()
        twin.told.clear()
        client.receive(engine.run([("ships", version, table)], [change(known, engine)]))
        twin.receive(other.run([("ships", version, table)], []))
        assert told(client) == told(twin) and client.told
    assert client.answers == twin.answers


def test_a_map_that_is_late_or_none_changes_nothing(engine):
    known = engine.region_map
    engine.run([], [change(known.split(0, 0, -5.0), engine)])
    newest = engine.region_map
    assert newest.regions == 5
    late = known.split(1, 1, 5.0).document()
    for document in (late, {"tree": "x"}, newest.split(0, 0, -7.0).document() | {"number": 9}):
        engine.run([], [{"op": "regions", "map": document}])
        assert engine.region_map == newest


def test_a_state_that_was_stored_has_the_map_in_force(engine):
    engine.run([], [change(engine.region_map.split(0, 0, -5.0, 7), engine)])
    known = engine.region_map
    engine.restart()
    assert engine.region_map == known and known.places[-1] == 7
    engine.client.receive(engine.run([], [{"op": "snapshot", "query": n} for n in range(1, len(PLANS) + 1)]))


def test_a_query_that_one_of_two_merged_regions_left_out_is_left_out_by_both(engine):
    store, known = engine.layout.store, engine.region_map
    regions = list(store.regions(engine.batch))
    regions[0].left_out[1] = regions[1].left_out[2] = regions[0].left_out[2] = LeftOut(1, 5, 5)
    rescaling = Rescaling(store.registry(engine.batch), known.merged(0, 1), regions)
    assert rescaling.region(0, regions[0]).left_out == {2: LeftOut(1, 5, 5)}
    assert rescaling.left_out_elsewhere(0) == [1] and rescaling.left_out_elsewhere(1) == []
