"""What the tests of the gateway share: lines to send, waiting for conditions, and reading what was written."""

import asyncio
from contextlib import aclosing

import orjson
import pyarrow as pa

from bench.live import PATIENCE_S
from streaming.elements import element_schema, from_ipc, point_elements
from streaming.eventlog import RedisEventLog
from streaming.gateway.clock import SECOND_US, Clock
from streaming.keys import LogNames
from streaming.spaces import EARTH
from tests.entries import control_entries

DECODER = {"kind": "geojson", "key": "id", "time": "time"}


class SteppedClock(Clock):
    """A clock that goes forward only when somebody sleeps on it."""

    def __init__(self, now_us=1_700_000_000 * SECOND_US):
        self.time_us = now_us

    def now_us(self):
        return self.time_us

    async def sleep(self, seconds):
        self.time_us += round(seconds * SECOND_US)
        await asyncio.sleep(0)


def feature(key, time_s, lon=24.9, lat=60.1):
    """Return one GeoJSON line."""
    point = {"type": "Point", "coordinates": [lon, lat]}
    return orjson.dumps({"type": "Feature", "geometry": point, "properties": {"id": key, "time": time_s}}) + b"\n"


def elements(keys, versions):
    """Return elements of the stream `s` whose times are their versions."""
    return point_elements("s", keys, versions, [[24.9, 60.1]] * len(keys), [None] * len(keys))


def definition(name, transport, **others):
    """Return a definition of a stream of GeoJSON lines."""
    return {"name": name, "space": "earth", "enabled": True, "ttl_s": 60} | {
        "transport": transport,
        "decoder": DECODER,
        **others,
    }


async def until(condition):
    """Wait until a condition holds, and return what it gave."""
    async with asyncio.timeout(PATIENCE_S):
        while not (truth := condition()):
            await asyncio.sleep(0.005)
    return truth


async def first(transport, wanted):
    """Return a transport's chunks until they satisfy `wanted`."""
    chunks = []
    async with asyncio.timeout(PATIENCE_S), aclosing(transport.chunks()) as arriving:
        async for chunk in arriving:
            chunks.append(chunk)
            if wanted(chunks):
                return chunks
    return chunks


def payload(chunks):
    """Return the bytes of chunks."""
    return b"".join(chunk.payload for chunk in chunks)


def ingested(client, stream, partitions=2, space=EARTH):
    """Return the elements of a stream in the ingest log."""
    blocks = [
        from_ipc(fields[b"block"])
        for partition in range(partitions)
        for _, fields, _ in RedisEventLog(client).read(LogNames(space.name).ingest(partition))
        if fields[b"stream"].decode() == stream
    ]
    return pa.concat_tables([element_schema(space).empty_table(), *blocks])


def control(client, op, space="earth"):
    """Return the control entries of one kind."""
    return [entry for entry in control_entries(client, space) if entry["op"] == op]


async def send(port, *lines):
    """Send lines to a listening stream."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"".join(line + b"\n" for line in lines))
    await writer.drain()
    writer.close()
