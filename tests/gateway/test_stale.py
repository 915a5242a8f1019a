"""How many elements of each stream the engine found stale reaches the streams' health."""

import asyncio

from streaming.elements import from_ipc, stream_number
from streaming.eventlog import RedisEventLog
from streaming.keys import STREAMS_CHANNEL, STREAMS_KEY, LogNames
from streaming.logs import Log
from tests.gateway.scenes import definition, elements, feature, until
from tests.gateway.test_gateway import define, gateway_at, health, port_of
from tests.servers.harness import Engine


def taken(client):
    """Return what stands in the ingest log, as an engine reads it, and empty it."""
    blocks = []
    for partition in range(2):
        name = LogNames("earth").ingest(partition)
        for _, fields, _ in RedisEventLog(client).read(name):
            blocks.append((fields[b"stream"].decode(), int(fields[b"heard_us"]), from_ipc(fields[b"block"])))
        client.delete(name)
    return blocks


def test_the_engine_counts_stale_elements_by_stream(tmp_path, redis_client):
    engine, log = Engine(tmp_path), Log(redis_client, "earth", 2)
    tables = [("s", elements(["a", "b", "a"], [5, 5, 4])), ("t", elements(["c", "c", "c"], [3, 2, 1]))]
    # The keys of one batch lie in two partitions, whose counts add up.
    fragments = engine.run([(stream, 1, table) for stream, table in tables], [])
    assert [fragment.stale for fragment in fragments][1:] == [{}, {}, {}]
    assert fragments[0].stale == {stream_number("s"): 1, stream_number("t"): 2}
    assert fragments[0].counters["stale"] == 3
    log.publish(fragments)
    log.publish(engine.run([("s", 2, elements(["a", "b"], [5, 4]))], []))
    assert log.stale() == {stream_number("s"): 2, stream_number("t"): 2}
    log.forget_stale(stream_number("s"))
    assert log.stale() == {stream_number("t"): 2}
    log.forget_stale()
    assert log.stale() == {}


async def test_stale_elements_are_part_of_a_streams_health(redis_server, redis_client, tmp_path):
    engine, log = Engine(tmp_path), Log(redis_client, "earth", 2)
    redis_client.hset(LogNames("earth").stale, stream_number("s"), 7)  # of an earlier gateway
    define(redis_client, definition("s", {"kind": "tcp_listener", "port": 0}))
    async with gateway_at(redis_server) as gateway:
        _, writer = await asyncio.open_connection("127.0.0.1", await port_of(gateway, "s"))
        writer.write(b"".join(feature("k", time_s) for time_s in (10, 9, 11, 8)))
        await writer.drain()
        await until(lambda: health(redis_client, "s").get("elements") == 4)
        await until(lambda: gateway.intakes["earth"].writer.queues["s"].rows == 0)
        await asyncio.sleep(0.1)
        assert health(redis_client, "s")["stale"] == 0
        log.publish(engine.run(taken(redis_client), []))
        await until(lambda: health(redis_client, "s")["stale"] == 2)
        redis_client.hdel(STREAMS_KEY, "s")
        redis_client.publish(STREAMS_CHANNEL, "s")
        await until(lambda: log.stale() == {})
        writer.close()
