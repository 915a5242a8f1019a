import asyncio
import functools
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager

import numpy as np
import orjson
import pytest
import redis

from bench.ports import free_port
from streaming import redis_memory
from streaming.elements import from_ipc
from streaming.eventlog import RedisEventLog
from streaming.gateway.config import GatewayConfig
from streaming.gateway.gateway import Gateway
from streaming.gateway.writer import BlockWriter
from streaming.keys import HEALTH_KEY, STREAMS_CHANNEL, STREAMS_KEY, LogNames
from streaming.logs import Log
from streaming.redis_memory import Pressure, share_of
from tests.conftest import REDIS_SERVER
from tests.gateway.scenes import PATIENCE_S, SteppedClock, control, definition, elements, feature, ingested, send, until

FAST = GatewayConfig(report_s=0.05, reread_s=0.2, backoff_s=0.02, longest_backoff_s=0.1, queue_rows=64, block_rows=16)
ROOM = 200_000
GARBAGE = os.urandom(1 << 20).replace(b"\n", b" ")


def define(client, *definitions):
    """Write definitions and tell of them, as the web application does."""
    for document in definitions:
        client.hset(STREAMS_KEY, document["name"], orjson.dumps(document))
    client.publish(STREAMS_CHANNEL, "")


def health(client, name):
    """Return what the gateway says of a stream; an empty dict before it says anything."""
    return orjson.loads(client.hget(HEALTH_KEY, name) or b"{}")


def drained(client):
    """Empty the ingest log, as the engine does behind its commit; return the blocks that were in it."""
    log, blocks = RedisEventLog(client), []
    for name in (LogNames("earth").ingest(partition) for partition in range(2)):
        if entries := log.read(name):
            log.trim({name: entries[-1].position})
            blocks += [from_ipc(entry.fields[b"block"]) for entry in entries]
    return blocks


def waiting(client):
    """Return how many elements are in the ingest log."""
    log = RedisEventLog(client)
    names = (LogNames("earth").ingest(partition) for partition in range(2))
    return sum(int(entry.fields[b"count"]) for name in names for entry in log.read(name, only=("count",)))


@asynccontextmanager
async def gateway_at(url, config=FAST):
    """Run a gateway until the block ends."""
    stop = asyncio.Event()
    gateway = Gateway(url, config)
    running = asyncio.create_task(gateway.run(stop))
    try:
        yield gateway
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE_S):
            await running


async def port_of(gateway, name):
    """Return the port of a listening stream once it listens."""
    return await until(lambda: name in gateway.streams and gateway.streams[name].transport.port)


async def test_a_recording_arrives_whole_at_the_log(redis_server, redis_client, tmp_path):
    path = tmp_path / "recording"
    path.write_bytes(b"".join(feature(f"k{number % 7}", number) for number in range(500)).rstrip())
    define(redis_client, definition("s", {"kind": "file", "path": str(path), "speed": 0}))
    async with gateway_at(redis_server):
        await until(lambda: ingested(redis_client, "s").num_rows == 500)
        await until(lambda: health(redis_client, "s").get("state") == "finished")
    assert health(redis_client, "s")["elements"] == 500
    assert sorted(ingested(redis_client, "s")["version"].to_pylist()) == [number * 1_000_000 for number in range(500)]
    assert control(redis_client, "stream") == [
        {"op": "stream", "stream": "s", "ttl_s": 60, "stored": False, "sketch": None}
    ]


async def test_a_file_waits_for_the_engine_and_nothing_of_it_is_lost(redis_server, redis_client, tmp_path):
    path = tmp_path / "recording"
    path.write_bytes(b"".join(feature("k", number) for number in range(20_000)))
    define(redis_client, definition("s", {"kind": "file", "path": str(path), "speed": 0}))
    config = GatewayConfig(report_s=0.05, waiting_backlog=4, queue_rows=256, block_rows=128)
    arrived, deepest = [], 0
    async with gateway_at(redis_server, config) as gateway:
        while len(arrived) < 20_000:
            deepest = max(deepest, await until(gateway.intakes["earth"].log.backlog))
            for block in drained(redis_client):
                arrived += block["version"].to_pylist()
    assert sorted(arrived) == [number * 1_000_000 for number in range(20_000)]
    assert deepest <= 5
    assert health(redis_client, "s")["merged"] == 0


@pytest.mark.parametrize("live", [False, True])
async def test_feeds_are_held_back_long_before_redis_is_full_and_go_on_when_there_is_room(
    redis_server, redis_client, tmp_path, live, caplog, monkeypatch
):
    monkeypatch.setattr(redis_memory, "FRESH_S", 0.0)  # this Redis fills a thousand times as fast as one of 2 GB
    path = tmp_path / "recording"
    lines = b"".join(feature("k", number) for number in range(20_000))
    path.write_bytes(lines)
    feed = {"kind": "tcp_listener", "port": 0} if live else {"kind": "file", "path": str(path), "speed": 0}
    define(redis_client, definition("s", feed))
    # The queue of a live feed has room for all, so that nothing is replaced by what is newer.
    config = GatewayConfig(
        report_s=0.05, waiting_backlog=10**9, live_backlog=10**9, queue_rows=32_768 if live else 256, block_rows=128
    )
    bound, arrived, stops = config.live_memory if live else config.waiting_memory, [], 0

    def share():
        return share_of(redis_client.info("memory"))

    def stands(drained):
        return share() > bound - 0.05 or drained + waiting(redis_client) == 20_000

    async def looked_again():
        before = redis_client.hget(gateway_key, "at_us")
        await until(lambda: redis_client.hget(gateway_key, "at_us") != before)

    gateway_key, used = LogNames("earth").gateway, redis_client.info("memory")["used_memory"]
    redis_client.config_set("maxmemory", round((used + ROOM) / bound))
    try:
        async with gateway_at(redis_server, config) as gateway:
            if live:
                await send(await port_of(gateway, "s"), lines.rstrip())
            while len(arrived) < 20_000:
                await until(functools.partial(stands, len(arrived)))
                for _ in range(4):
                    await looked_again()
                    assert share() < bound + 0.1
                stops += len(arrived) + waiting(redis_client) < 20_000
                arrived += [version for block in drained(redis_client) for version in block["version"].to_pylist()]
    finally:
        redis_client.config_set("maxmemory", 0)
    assert sorted(arrived) == [number * 1_000_000 for number in range(20_000)]
    assert stops > 1 and health(redis_client, "s")["merged"] == 0
    assert ("the elements wait until there is room" in caplog.text) == live
    assert "cannot be written" not in caplog.text


async def test_a_live_feed_conflates_while_the_engine_is_away(redis_server, redis_client):
    define(redis_client, definition("s", {"kind": "tcp_listener", "port": 0}))
    config = GatewayConfig(report_s=0.05, live_backlog=-1, queue_rows=64, block_rows=16)
    random = np.random.default_rng(1)
    keys = [f"k{key}" for key in random.integers(0, 20, 5_000)]
    sent = list(zip(keys, random.permutation(5_000).tolist(), strict=True))
    async with gateway_at(redis_server, config) as gateway:
        _, writer = await asyncio.open_connection("127.0.0.1", await port_of(gateway, "s"))
        writer.write(b"".join(feature(*arrival) for arrival in sent))
        await writer.drain()
        writer.close()
        await until(lambda: health(redis_client, "s").get("elements") == 5_000)
        assert ingested(redis_client, "s").num_rows == 0
    written = ingested(redis_client, "s")
    newest = {}
    for key, version in zip(written["key"].to_pylist(), written["version"].to_pylist(), strict=True):
        newest[key] = max(newest.get(key, 0), version // 1_000_000)
    oracle = {}
    for key, version in sent:
        oracle[key] = max(oracle.get(key, 0), version)
    assert newest == oracle
    assert written.num_rows + health(redis_client, "s")["merged"] == 5_000


@pytest.mark.parametrize("kind", ["tcp_listener", "udp_listener"])
async def test_garbage_is_counted_and_the_stream_goes_on(redis_server, redis_client, kind):
    define(redis_client, definition("s", {"kind": kind, "port": 0}))
    async with gateway_at(redis_server) as gateway:
        port = await port_of(gateway, "s")
        if kind == "tcp_listener":
            for content in (GARBAGE + b"\n" + feature("a", 1), feature("b", 2)):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(content)
                await writer.drain()
                writer.close()
        else:
            loop = asyncio.get_running_loop()
            sender, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=("127.0.0.1", port))
            for start in range(0, len(GARBAGE), 32_768):
                sender.sendto(GARBAGE[start : start + 32_768])
                await asyncio.sleep(0)
            for content in (feature("a", 1), feature("b", 2).rstrip()):
                sender.sendto(content)
            sender.close()
        await until(lambda: set(ingested(redis_client, "s")["key"].to_pylist()) == {"a", "b"})
        told = await until(lambda: health(redis_client, "s").get("malformed") and health(redis_client, "s"))
        assert sum(told["malformed"].values()) >= 1
        samples = [last["sample"] for last in told["last_malformed"].values()]
        assert all(len(sample) <= 200 and sample.isprintable() for sample in samples)
        assert (told["state"], told["error"]) == ("running", None)


async def test_a_client_connects_again_after_its_server_died(redis_server, redis_client):
    served = []

    async def serve(reader, writer):
        served.append(feature("k", len(served)))
        writer.write(served[-1] + b'{"half of a line')
        await writer.drain()
        writer.close()

    port = free_port()
    define(redis_client, definition("s", {"kind": "tcp_client", "host": "127.0.0.1", "port": port}))
    async with gateway_at(redis_server):
        await until(lambda: health(redis_client, "s").get("state") == "retrying")
        assert "connect" in health(redis_client, "s")["error"].lower()
        server = await asyncio.start_server(serve, "127.0.0.1", port)
        await until(lambda: ingested(redis_client, "s").num_rows >= 3)
        server.close()
    assert set(ingested(redis_client, "s")["version"].to_pylist()) >= {0, 1_000_000, 2_000_000}


async def test_a_stream_that_fails_does_not_touch_the_others(redis_server, redis_client, tmp_path):
    good = definition("good", {"kind": "tcp_listener", "port": 0})
    missing = definition("missing", {"kind": "file", "path": str(tmp_path / "absent")})
    wrong = definition("wrong", {"kind": "file", "path": "a", "sped": 1})
    define(redis_client, good, missing, wrong, {"name": "empty", "space": "earth"})
    async with gateway_at(redis_server) as gateway:
        _, writer = await asyncio.open_connection("127.0.0.1", await port_of(gateway, "good"))
        writer.write(feature("k", 1))
        await until(lambda: ingested(redis_client, "good").num_rows == 1)
        await until(lambda: "absent" in (health(redis_client, "missing").get("error") or ""))
        await until(lambda: "got sped" in (health(redis_client, "wrong").get("error") or ""))
        await until(lambda: health(redis_client, "missing").get("state") == "retrying")
        for name in ("wrong", "empty"):
            await until(lambda name=name: health(redis_client, name).get("state") == "failed")
        (tmp_path / "absent").write_bytes(feature("k", 1))
        await until(lambda: health(redis_client, "missing").get("state") == "finished")
        writer.close()


async def test_definitions_that_change_start_stop_and_restart_their_streams_alone(redis_server, redis_client):
    steady, changing = (definition(name, {"kind": "tcp_listener", "port": 0}) for name in ("steady", "changing"))
    define(redis_client, steady, changing)
    async with gateway_at(redis_server) as gateway:
        _, writer = await asyncio.open_connection("127.0.0.1", await port_of(gateway, "steady"))
        await port_of(gateway, "changing")
        before = gateway.streams["steady"]

        define(redis_client, changing | {"ttl_s": 5})
        await until(lambda: [entry["ttl_s"] for entry in control(redis_client, "stream")].count(5))
        define(redis_client, changing | {"enabled": False})
        await until(lambda: "changing" not in gateway.streams)
        await until(lambda: health(redis_client, "changing").get("state") == "stopped")
        assert control(redis_client, "drop_stream") == []

        redis_client.hdel(STREAMS_KEY, "changing")
        redis_client.publish(STREAMS_CHANNEL, "changing")
        await until(lambda: control(redis_client, "drop_stream") == [{"op": "drop_stream", "stream": "changing"}])
        await until(lambda: not redis_client.hexists(HEALTH_KEY, "changing"))
        define(redis_client, changing)
        await port_of(gateway, "changing")

        assert gateway.streams["steady"] is before
        writer.write(feature("k", 1))
        await until(lambda: ingested(redis_client, "steady").num_rows == 1)
        writer.close()


async def test_counters_go_on_when_a_stream_is_restarted(redis_server, redis_client, tmp_path):
    path = tmp_path / "recording"
    path.write_bytes(feature("k", 1) * 3)
    stream = definition("s", {"kind": "file", "path": str(path)})
    define(redis_client, stream)
    async with gateway_at(redis_server):
        await until(lambda: health(redis_client, "s").get("elements") == 3)
        define(redis_client, stream | {"ttl_s": 7})
        await until(lambda: health(redis_client, "s").get("elements") == 6)


async def test_definitions_are_read_again_without_being_told(redis_server, redis_client):
    async with gateway_at(redis_server) as gateway:
        stream = definition("s", {"kind": "tcp_listener", "port": 0})
        redis_client.hset(STREAMS_KEY, "s", orjson.dumps(stream))
        assert await port_of(gateway, "s")


async def test_a_stream_without_a_definition_that_can_be_read_says_so(redis_server, redis_client):
    redis_client.hset(STREAMS_KEY, "s", b"{")
    async with gateway_at(redis_server):
        await until(lambda: "a definition must be JSON" in (health(redis_client, "s").get("error") or ""))


async def test_a_stream_removed_while_the_gateway_was_down_is_dropped(redis_server, redis_client):
    redis_client.hset(HEALTH_KEY, "gone", orjson.dumps({"space": "earth"}))
    async with gateway_at(redis_server):
        await until(lambda: control(redis_client, "drop_stream") == [{"op": "drop_stream", "stream": "gone"}])
        await until(lambda: not redis_client.hexists(HEALTH_KEY, "gone"))


async def test_a_gateway_without_streams_gives_signs_of_life(redis_server, redis_client):
    async with gateway_at(redis_server, GatewayConfig(report_s=0.005)):
        first = await until(lambda: redis_client.hgetall(LogNames("earth").gateway))
        await until(lambda: redis_client.hgetall(LogNames("earth").gateway)[b"at_us"] > first[b"at_us"])


async def test_ticks_stop_while_the_engine_is_down_and_go_on_after(redis_server, redis_client):
    async with gateway_at(redis_server, GatewayConfig(report_s=0.005)) as gateway:
        await until(lambda: len(control(redis_client, "tick")) == 11)
        rounds = []
        gateway._write_health = lambda: rounds.append(asyncio.sleep(0)) or rounds[-1]
        await until(lambda: len(rounds) > 3)
        ticks = control(redis_client, "tick")
        assert len(ticks) == 11
        assert [tick["now_us"] for tick in ticks] == sorted(tick["now_us"] for tick in ticks)
        redis_client.delete(LogNames("earth").control)
        await until(lambda: control(redis_client, "tick"))


def test_the_clock_of_an_engine_that_has_taken_every_tick_goes_on(redis_server, redis_client):
    clock = SteppedClock()
    gateway = Gateway(redis_server, GatewayConfig(), clock)
    for _ in range(20):
        gateway.intakes["earth"].live(clock.now_us())
    # An engine trims what it has taken when it takes more: these may all have been taken.
    assert len(control(redis_client, "tick")) == 11
    clock.time_us += 5_000_000
    gateway.intakes["earth"].live(clock.now_us())
    assert len(control(redis_client, "tick")) == 12
    gateway.client.close()


async def test_blocks_that_could_not_be_written_stay_in_their_queue():
    client = redis.Redis(port=free_port(), retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0))
    writer = BlockWriter(Log(client, "earth", 2), FAST)
    queue = writer.queue("s", live=False)
    await queue.put(elements(["a", "b"], [1, 2]), 1)
    with pytest.raises(redis.ConnectionError):
        await writer.round(Pressure(0, 0.0))
    assert queue.take(10)[0]["key"].to_pylist() == ["a", "b"]
    client.close()


async def test_a_lost_redis_is_waited_for_and_nothing_is_lost(tmp_path):
    port = free_port()
    url = f"redis://127.0.0.1:{port}/0"

    def serve():
        command = [REDIS_SERVER, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        return server

    server = serve()
    retry = redis.retry.Retry(redis.backoff.ConstantBackoff(0.02), 200)
    client = redis.Redis.from_url(url, retry=retry)
    stream = definition("s", {"kind": "tcp_listener", "port": 0})
    define(client, stream)
    async with gateway_at(url) as gateway:
        _, writer = await asyncio.open_connection("127.0.0.1", await port_of(gateway, "s"))
        server.terminate()
        await asyncio.to_thread(server.wait)
        writer.write(b"".join(feature(f"k{number}", number) for number in range(50)))
        await until(lambda: gateway.health["s"].elements == 50)
        server = serve()
        await asyncio.to_thread(define, client, stream)
        await until(lambda: ingested(client, "s").num_rows == 50)
        writer.close()
    client.close()
    server.terminate()
    server.wait()


def test_the_process_writes_what_is_queued_and_ends_when_told(redis_server, redis_client, tmp_path):
    path = tmp_path / "feeds" / "recording"
    path.parent.mkdir()
    path.write_bytes(b"".join(feature("k", number) for number in range(100)))
    define(
        redis_client, definition("s", {"kind": "file", "path": str(path), "speed": 0, "loop": True, "restamp": True})
    )
    environment = os.environ | {"LOOKOUT_REDIS_URL": redis_server, "LOOKOUT_HOME": str(tmp_path)}
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "flights.csv.gz").touch()
    process = subprocess.Popen([sys.executable, "-m", "streaming.gateway"], env=environment)
    try:
        asyncio.run(until(lambda: ingested(redis_client, "s").num_rows))
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
    assert health(redis_client, "s")["state"] == "stopped"
    assert health(redis_client, "s")["elements"] == ingested(redis_client, "s").num_rows
