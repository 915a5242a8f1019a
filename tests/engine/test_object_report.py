"""The tasks of an engine report samples of their objects, which the web application reads."""

import numpy as np
import orjson

from streaming.elements import point_elements, stream_number
from streaming.operators.region_map import RegionMap
from streaming.spaces import EARTH
from tests.engine.test_intervals import PARTITIONS, Machine
from webapp.queries import estimating

SHIPS = 300


def test_what_tasks_report_of_their_objects_is_what_the_web_application_knows(
    tmp_path, redis_client, redis_server, monkeypatch, settings
):
    settings.REDIS_URL = redis_server
    for name in ("TELL_LOADS_S", "TELL_OBJECTS_S"):
        monkeypatch.setattr(f"streaming.engine.interval.{name}", 0.0)
    machine, names = Machine(tmp_path, redis_server, seed=6), [f"ship {ship}" for ship in range(SHIPS)]
    places = np.random.default_rng(6).uniform(-10, 10, (SHIPS, 2))
    machine.log.ingest(point_elements("ships", names, [1] * SHIPS, places, [{}] * SHIPS), "ships", 0)
    machine.log.send("tick", now_us=1)
    machine.interval(trouble=False)
    objects = estimating._objects(EARTH)
    sample = objects[stream_number("ships")]
    document = orjson.loads(redis_client.hget(machine.log.names.engine, "map"))
    assert round(sample.count) == SHIPS and RegionMap.of(EARTH, document).regions > 1
    told = redis_client.hmget(machine.log.names.engine, [f"objects:{task}" for task in range(PARTITIONS)])
    assert all(told) and sum(map(len, told)) < 50_000
    assert set(map(tuple, sample.bounds[:, :2])) <= set(map(tuple, places))
