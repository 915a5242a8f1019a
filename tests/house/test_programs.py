"""When the supervisor takes a program for ready, and how an engine ends that is not."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from bench.live import PATIENCE_S, ROOT
from streaming.engine.report import forget
from streaming.logs import Log
from webapp.live.programs import Installation, engine_programs


@pytest.fixture
def ready(redis_server, redis_client, tmp_path):
    """Return the functions by which engine and gateway are asked whether they are ready."""
    place = Installation(tmp_path, redis_server, "127.0.0.1", 8000)
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


@pytest.mark.long
def test_an_engine_that_still_starts_ends_as_soon_as_it_is_told(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as redis_that_loads:
        redis_that_loads.settimeout(PATIENCE_S)
        url = f"redis://127.0.0.1:{redis_that_loads.getsockname()[1]}/0"
        environment = os.environ | {"LOOKOUT_HOME": str(tmp_path), "LOOKOUT_REDIS_URL": url}
        engine = subprocess.Popen([sys.executable, "-m", "streaming.engine"], cwd=ROOT, env=environment)
        try:
            connection, _ = redis_that_loads.accept()
            engine.terminate()
            assert engine.wait(PATIENCE_S) == -signal.SIGTERM
            connection.close()
        finally:
            engine.kill()
            engine.wait()
