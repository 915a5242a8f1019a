"""When the supervisor takes a program for ready."""

import pytest

from streaming.engine.report import forget
from streaming.logs import Log
from webapp.live.programs import Place, engine_programs


@pytest.fixture
def ready(redis_server, redis_client, tmp_path):
    """Return the functions by which engine and gateway are asked whether they are ready."""
    place = Place(tmp_path, redis_server, "earth", "127.0.0.1", 8000)
    return {program.name: program.ready for program in engine_programs(place)}


async def test_the_engine_is_ready_once_this_run_has_reported_a_batch(ready, redis_client):
    log = Log(redis_client, "earth", 2)
    redis_client.hset(log.names.engine, mapping={"at_us": 1, "batch": 7})
    assert not await ready["engine"]()
    forget(log)
    assert not await ready["engine"]()
    redis_client.hset(log.names.engine, "at_us", 2)
    assert not await ready["engine"]()
    redis_client.hset(log.names.engine, mapping={"at_us": 3, "batch": 7})
    assert await ready["engine"]()


async def test_the_gateway_is_ready_once_it_gives_signs_of_life(ready, redis_client):
    names = Log(redis_client, "earth", 2).names
    redis_client.hset(names.gateway, "at_us", 1)
    assert not await ready["gateway"]()
    redis_client.hset(names.gateway, "at_us", 2)
    assert await ready["gateway"]()
