"""An engine for every space: which the supervisor starts and ends, and with which settings."""

import asyncio
import contextlib
import os
import sys
from collections import defaultdict
from dataclasses import replace

import psutil
import pytest

from bench.live import PATIENCE_S
from bench.processes import alive
from streaming.keys import SPACES_KEY
from streaming.settings import EngineSettings
from streaming.spaces import EARTH, parse_space, space_text
from webapp.live import spaces
from webapp.live.programs import Installation, engine_program, standby_program
from webapp.live.spaces import Engines
from webapp.live.supervisor import Supervisor

PRICES, LAND = (
    parse_space({"name": name, "dimensions": [{"name": "x", "lo": 0, "hi": 9}]}) for name in ("prices", "land")
)


def settings_of(program, **environ):
    """Return the settings of an engine that the supervisor starts in an environment."""
    return EngineSettings.from_environ({**environ, **dict(program.variables)})


def test_each_engine_has_its_own_space_and_state_folder(tmp_path):
    place = Installation(tmp_path, "redis://127.0.0.1:1/0", "127.0.0.1", 8000)
    environ = {"LOOKOUT_HOME": str(tmp_path), "LOOKOUT_STATE_DIR": str(tmp_path / "fast"), "LOOKOUT_SPACE": "earth"}
    earth, prices = (settings_of(engine_program(place, space), **environ) for space in (EARTH, PRICES))
    assert (earth.space, earth.state_dir) == (EARTH, tmp_path / "fast")
    assert (prices.space, prices.state_dir) == (PRICES, tmp_path / "engine" / "prices")


@pytest.fixture
def engines(monkeypatch, redis_server, redis_client, tmp_path):
    """Return engines that sleep, and what there is of each: the processes by name."""
    monkeypatch.setattr(spaces, "POLL_S", 0.02)
    sleeper = (sys.executable, "-c", "import time; time.sleep(60)")
    monkeypatch.setattr(
        spaces, "engine_program", lambda place, space: replace(engine_program(place, space), command=sleeper)
    )
    monkeypatch.setattr(spaces, "standby_program", lambda space: replace(standby_program(space), command=sleeper))
    supervisor = Supervisor(logs=tmp_path, environment=dict(os.environ), say=lambda _: None, folder=tmp_path)

    async def up(program):
        supervisor.keep(program)

    return Engines(supervisor, Installation(tmp_path, redis_server, "127.0.0.1", 8000), up)


def running():
    """Return the numbers of the processes of the engines of each space, by its name."""
    found = defaultdict(set)
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if text := process.environ().get("LOOKOUT_SPACE"):
                found[parse_space(text).name].add(process.pid)
    return found


def two_of(*names):
    """Tell whether just these spaces have engines: one that evaluates, and one that stands by."""
    return {name: len(pids) for name, pids in running().items()} == dict.fromkeys(names, 2)


async def until(condition):
    async with asyncio.timeout(PATIENCE_S):
        while not (found := condition()):
            await asyncio.sleep(0.02)
    return found


async def test_engines_come_and_go_with_the_published_spaces(engines, redis_client):
    def publish(*published):
        redis_client.delete(SPACES_KEY)
        redis_client.hset(SPACES_KEY, mapping={space.name: space_text(space) for space in published})

    async with engines.supervisor:
        following = asyncio.create_task(engines.follow())
        publish(EARTH, PRICES)
        await until(lambda: two_of("prices"))
        prices = running()["prices"]
        publish(EARTH, PRICES, LAND)
        await until(lambda: two_of("prices", "land"))
        redis_client.delete(SPACES_KEY)  # a Redis that has lost its data says nothing of spaces
        publish(EARTH, LAND)
        await until(lambda: two_of("land"))
        await until(lambda: not any(map(alive, prices)))
        land = running()["land"]
        publish(EARTH, replace(LAND, dimensions=(*LAND.dimensions, replace(LAND.dimensions[0], name="y"))))
        await until(lambda: two_of("land") and not running()["land"] & land)
        following.cancel()
    assert not running()


async def test_a_redis_that_knows_no_spaces_ends_no_engine(engines, redis_client):
    async with engines.supervisor:
        await engines.reconcile({"prices": PRICES})
        await until(lambda: two_of("prices"))
        assert spaces._published(engines.place.redis_url) is None
        assert spaces._published("redis://127.0.0.1:1/0") is None
