"""The index over a region's objects finds what brute force finds, after any number of changes."""

import math
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.servers.participant.object_index import ObjectIndex
from streaming.servers.region.objects import Objects
from tests.servers.harness import Engine, one
from tests.servers.test_distributed import PLANE


def objects_at(keys, places):
    """Objects with some keys, ascending, that are points."""
    columns = {
        name: np.zeros(len(keys), dtype=np.int64) for name in ("stream", "time_us", "heard_us", "segment", "row")
    }
    return Objects(key_hash=keys, bounds=np.hstack([places, places]), **columns)


@given(st.integers(0, 2**32 - 1), st.sampled_from([30, 300]))
def test_a_box_finds_the_objects_that_are_in_it_now(seed, count):
    rng = np.random.default_rng(seed)
    keys = np.sort(rng.permutation(1000)[:count])
    objects = objects_at(keys, rng.integers(0, 9, (count, 2)).astype(np.float64))
    index = ObjectIndex.of(objects, PLANE)
    for _ in range(6):
        stays = rng.random(len(objects)) < 0.98
        moves = rng.random(len(objects)) < rng.choice([0.0, 0.03, 0.5])
        places = np.where(moves[:, None], rng.integers(0, 9, (len(objects), 2)), objects.bounds[:, :2])
        new = np.setdiff1d(rng.integers(0, 1000, 3), objects.key_hash)
        touched = np.sort(np.r_[objects.key_hash[moves | ~stays], new])
        kept = replace(objects, bounds=np.hstack([places, places])).take(stays)
        objects = kept.merged(objects_at(new, rng.integers(0, 9, (len(new), 2)).astype(np.float64)))
        index = index.advanced(objects, touched)
        assert index.covers(objects.take(np.arange(len(objects))))
        assert not index.covers(objects.take(np.arange(1, len(objects))))
        assert not index.covers(
            replace(objects, bounds=objects.bounds + (objects.key_hash == objects.key_hash[0])[:, None])
        )
        low = rng.integers(0, 9, (5, 2)).astype(np.float64)
        boxes = np.hstack([low, low + rng.integers(0, 3, (5, 2))])
        box, row = index.look(boxes)
        at = objects.bounds[:, None, :2]
        expected = np.argwhere(((boxes[:, :2] <= at) & (at <= boxes[:, 2:])).all(2))
        assert sorted(zip(row.tolist(), box.tolist(), strict=True)) == sorted(map(tuple, expected.tolist()))


def test_batches_that_move_few_objects_make_no_index_anew(tmp_path, monkeypatch):
    made, real = [], ObjectIndex.of.__func__
    monkeypatch.setattr(ObjectIndex, "of", classmethod(lambda cls, *asked: (made.append(1), real(cls, *asked))[1]))
    engine = Engine(tmp_path, 1, 1)

    def ship(key, version, x):
        return "ships", 0, one("ships", str(key), version, [x, 1.0, -math.inf, x, 1.0, math.inf], {})

    plan = {"stream": "ships", "around": {"key": "1", "radius": 5000}}
    control = [{"op": "register", "query": 1, "revision": 1, "plan": plan}]
    engine.run([ship(key, 1, key / 100) for key in range(100)], control)
    engine.run([ship(5, 2, 0.02)], [])
    made.clear()
    for version in range(3, 8):
        engine.run([ship(5, version, version / 100)], [])
    assert not made
