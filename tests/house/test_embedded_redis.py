"""The embedded Redis keeps what it replied to, however it ends."""

import asyncio
import contextlib
import subprocess
from dataclasses import replace

import pytest
import redis

from bench.live import PATIENCE_S
from bench.ports import free_port
from webapp.live.programs import REDIS_SERVER, Installation, redis_program


@pytest.fixture
def place(tmp_path):
    (tmp_path / "redis").mkdir()
    return Installation(tmp_path, f"redis://:secret@127.0.0.1:{free_port()}/0", "127.0.0.1", 0)


@contextlib.contextmanager
def running(place):
    """Run the embedded Redis until the block ends, then kill it."""
    program = redis_program(place)
    server = subprocess.Popen(list(map(str, program.command)), stdout=subprocess.DEVNULL)
    try:
        asyncio.run(_until(program.ready))
        with redis.Redis.from_url(place.redis_url) as client:
            yield client
    finally:
        server.kill()
        server.wait()


async def _until(ready):
    async with asyncio.timeout(PATIENCE_S):
        while not await ready():
            await asyncio.sleep(0.02)


def test_redis_takes_as_much_memory_as_the_settings_say(place):
    with running(replace(place, redis_bytes=100 << 20)) as client:
        memory = client.info("memory")
        assert (memory["maxmemory"], memory["maxmemory_policy"]) == (100 << 20, "noeviction")


def test_what_redis_replied_to_is_there_after_a_kill(place):
    with running(place) as client:
        entry = client.xadd("log", {"said": "yes"})
    with running(place) as client:
        assert [name for name, _ in client.xrange("log")] == [entry]


def test_the_snapshot_of_a_release_before_is_taken_over(place):
    folder = place.home / "redis"
    server = [REDIS_SERVER, "--port", str(free_port()), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    before = subprocess.Popen(server, stdout=subprocess.DEVNULL)
    with redis.Redis(port=int(server[2]), retry=redis.retry.Retry(redis.backoff.ConstantBackoff(0.05), 200)) as client:
        client.set("kept", 1)
        client.save()
    before.kill()
    before.wait()
    for _ in range(2):
        with running(place) as client:
            assert client.incr("kept") >= 2
    with running(place) as client:
        assert client.get("kept") == b"3"
