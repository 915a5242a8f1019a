"""The benchmark's websocket clients, against a real web server and the engine's tasks, in small."""

import asyncio
import os
import threading

import pytest

from bench import load, panning
from bench.stack import run
from streaming.logs import Log
from tests.webapp.conftest import Rig
from tests.webapp.site import Site

OBJECTS, ROWS, QUERIES, EACH = 2_000, 200, 40, 30
TURN_S = 0.1


class Served:
    """A site with the benchmark's queries: its websocket, its environment, and what `bench.prepare` made."""

    def __init__(self, site, environment, made):
        self.url, self.environment, self.made = f"ws://127.0.0.1:{site.place.port}/ws/monitor/", environment, made


@pytest.fixture(scope="module")
def served(redis_server, tmp_path_factory):
    """Run a web server and an engine under load."""
    import redis

    home, client, ended = tmp_path_factory.mktemp("home"), redis.Redis.from_url(redis_server), threading.Event()
    client.flushall()
    site = Site(home, redis_server)
    environment = {name: str(value) for name, value in (os.environ | site.environment).items()}
    made = run(environment, "bench.prepare", "make", "--queries", str(QUERIES), "--each", str(EACH))
    generator = load.Generator(Log(client, "earth", 2), load.make_blocks("bench", OBJECTS, ROWS, 2), "walk")

    def write():
        while not ended.wait(TURN_S):
            generator.write(2)

    with Rig(client, home / "engine"), site:
        assert run(environment, "bench.prepare", "register") == {"running": QUERIES}
        writing = threading.Thread(target=write)
        writing.start()
        try:
            yield Served(site, environment, made)
        finally:
            ended.set()
            writing.join()
    client.close()


@pytest.mark.long
def test_pans_are_answered_and_rows_that_move_have_ages(served):
    told = asyncio.run(panning.pan(served.url, served.made["token"], 4, 4.0))
    assert 4 * 4 <= told["pans"]["rows"] <= 4 * 10 and told["unanswered"] == 0
    assert told["answers"]["rows"] > 0 and 0 < told["answers"]["p50_ms"] < 60_000
