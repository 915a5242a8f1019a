"""What a region tells of its objects stands for all that it has now, by stream, however they came."""

import random
from base64 import b64decode

import numpy as np
import pytest

from streaming.elements import point_elements, stream_number
from streaming.engine.object_report import told_objects
from streaming.operators.box_sample import together, unpacked
from streaming.servers.region import object_sample as sampling
from streaming.servers.region.object_sample import object_sample
from streaming.spaces import EARTH
from tests.servers.harness import Engine

SHIPS, BUSES = 900, 40


def table(stream, step, keys, lon):
    places = [(lon + number / 1000, 1.0) for number in range(len(keys))]
    return (stream, step, point_elements(stream, keys, [step] * len(keys), places, [{}] * len(keys), EARTH))


@pytest.mark.parametrize("looked_at", [10**6, 300])
def test_a_sample_counts_the_objects_that_there_are_and_has_their_newest_places(tmp_path, monkeypatch, looked_at):
    monkeypatch.setattr(sampling, "LOOKED_AT", looked_at)
    engine, rng = Engine(tmp_path, 1, 1, rescaled=0.0), random.Random(1)
    ships, buses = [f"ship {n}" for n in range(SHIPS)], [f"bus {n}" for n in range(BUSES)]
    engine.run([table("ships", 0, ships, 10.0), table("buses", 0, buses, 50.0)], [])
    for step in range(1, 20):  # a few ships report again and again
        engine.run([table("ships", step, rng.sample(ships[:50], 20), 10.0)], [])
    engine.run([table("ships", 30, ships, 20.0)], [])
    (region,) = engine.layout.store.regions(engine.batch)
    found = object_sample(region.objects)
    factor = 1.0 if looked_at > SHIPS else 1.4
    for stream, count in (("ships", SHIPS), ("buses", BUSES)):
        assert count / factor**2 <= found[stream_number(stream)].count <= count * factor**2
    assert (found[stream_number("ships")].bounds[:, 0] >= 20.0).all()


def test_what_tasks_tell_stands_for_the_objects_of_all_regions(tmp_path):
    engine = Engine(tmp_path, 1, 4, rescaled=0.0)
    keys = [f"ship {n}" for n in range(SHIPS)]
    places = [(lon, lat) for lon, lat in np.random.default_rng(1).uniform(-80, 80, (SHIPS, 2))]
    engine.run([("ships", 0, point_elements("ships", keys, [0] * SHIPS, places, [{}] * SHIPS, EARTH))], [])
    regions = list(engine.layout.store.regions(engine.batch))
    assert len(regions) == 4 and len({len(region.objects) for region in regions}) > 1
    told = [told_objects(regions[:2], 2), told_objects(regions[2:], 2)]
    samples = together(unpacked(b64decode(one)) for one in told)
    assert samples[stream_number("ships")].count == pytest.approx(SHIPS)
    assert max(map(len, told)) < 30_000
