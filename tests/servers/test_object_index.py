"""The index over a region's objects finds what brute force finds, after any number of changes."""

import math

import numpy as np
import pytest

from streaming.elements import box_elements
from streaming.operators.boxes import with_turns
from streaming.servers import sorted_runs
from streaming.servers.elements import tracked_schema
from streaming.servers.region import object_index
from streaming.servers.region.object_index import ObjectIndex
from streaming.servers.region.objects import ObjectTable
from streaming.spaces import EARTH
from tests.servers.harness import Engine, one
from tests.servers.test_distributed import PLANE


@pytest.fixture(autouse=True, scope="module")
def _small_runs():
    """Merge runs of a few rows, so that every merge occurs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_runs, "LEAST_SWEPT", 16)
        patch.setattr(sorted_runs, "LEAST_CHUNK", 8)
        yield


def arrived(names, places, space):
    """Return elements with `tracked_schema`, ordered by key: points, or boxes at the antimeridian."""
    n = space.n
    boxes = [[*place, *[-math.inf] * (n - 2), *place, *[math.inf] * (n - 2)] for place in places.tolist()]
    if space is EARTH:  # some are wide, also across the end of the circle
        boxes = [[*b[:n], b[n] + (4.0 if b[1] > 5 else 0.0), *b[n + 1 :]] for b in boxes]
    table = box_elements("ships", names, [1] * len(names), boxes, [{}] * len(names), space=space)
    for name in ("stream", "heard_us"):
        table = table.append_column(tracked_schema(space).field(name), [np.zeros(len(names), dtype=np.int64)])
    return table.take(np.argsort(table["key_hash"].to_numpy())).combine_chunks()


@pytest.mark.long
@pytest.mark.parametrize("space", [PLANE, EARTH], ids=["plane", "earth"])
@pytest.mark.seeds(320)
def test_a_box_finds_the_objects_that_are_in_it_now(space, seed):
    rng, objects, index = np.random.default_rng(seed), ObjectTable.empty(space), None
    forgets = rng.random() < 0.5
    corner = np.array([0, 0]) if space is PLANE else np.array([176, 82])
    for _ in range(12):
        names = [str(name) for name in rng.permutation(60)[: rng.choice([0, 1, 5, 30])]]
        places = corner + rng.integers(0, 9, (len(names), 2)).astype(np.float64)
        places[:, 0] -= 360 * (places[:, 0] >= 180)
        objects = objects.updated(arrived(names, places, space)) if names else objects
        keys = objects.whole.key_hash
        objects = objects.without(keys[rng.random(len(keys)) < rng.choice([0.0, 0.05, 0.5])])
        check(ObjectIndex.of(objects, space, index), objects, corner, rng, space)
        objects = objects.settled()
        index = None if forgets else ObjectIndex.of(objects, space, index)


def check(index, objects, corner, rng, space):
    low = corner + rng.integers(0, 9, (5, 2)).astype(np.float64)
    boxes = np.hstack([low, low + rng.integers(0, 3, (5, 2))])
    number, plane = with_turns(np.arange(5), boxes, space)
    near, n = index.look(plane), space.n
    assert sorted(near.keys.tolist()) == sorted(set(near.keys.tolist()))
    found = set(zip(near.keys[near.row].tolist(), number[near.box].tolist(), strict=True))
    expected, whole = set(), objects.whole
    for key, bounds in zip(whole.key_hash.tolist(), whole.bounds.tolist(), strict=True):
        for box, (west, south, east, north) in enumerate(boxes.tolist()):
            turns = (0,) if space is PLANE else (-360, 0, 360)
            across = any(bounds[0] <= east + turn and west + turn <= bounds[n] for turn in turns)
            if across and bounds[1] <= north and south <= bounds[n + 1]:
                expected.add((key, box))
    assert found == expected
    position = np.searchsorted(whole.key_hash, near.keys)
    assert np.array_equal(near.elements.bounds, whole.bounds[position])


def test_versions_of_objects_share_the_grids_of_their_runs(tmp_path, monkeypatch):
    made = []
    real = object_index.ElementGrid
    monkeypatch.setattr(
        object_index, "ElementGrid", lambda bounds, space: (made.append(len(bounds)), real(bounds, space))[1]
    )
    engine = Engine(tmp_path, 1, 1)

    def ship(key, version, x):
        return "ships", 0, one("ships", str(key), version, [x, 1.0, -math.inf, x, 1.0, math.inf], {})

    plan = {"stream": "ships", "around": {"key": "1", "radius": 5000}}
    control = [{"op": "register", "query": 1, "revision": 1, "plan": plan}]
    engine.run([ship(key, 1, key / 100) for key in range(100)], control)
    engine.run([ship(1, 2, 0.02)], [])
    made.clear()
    for version in range(3, 8):
        engine.run([ship(1, version, version / 100)], [])
    assert made and max(made) < 20
