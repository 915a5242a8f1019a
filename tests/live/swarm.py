"""A seeded swarm that moves about, sent as GeoJSON lines over TCP; it knows the newest line of each of its objects."""

import asyncio
import contextlib
import time

import numpy as np
import orjson

from tests.live.truth import decoded, newest

DECODER = {"kind": "geojson", "key": "id", "time": "time"}
STEP_S, REACH_DEG = 0.1, 2


class Swarm:
    """Objects on a random walk within two degrees of 0, 0, where the four regions of the tests meet.

    Parameters
    ----------
    stream : str
    port : int
        Of a TCP listener that reads GeoJSON lines.
    count, seed : int
    """

    def __init__(self, stream: str, port: int, count: int = 200, seed: int = 1) -> None:
        self.stream, self.port, self.count = stream, port, count
        self.random = np.random.default_rng(seed)
        self.places = self.random.uniform(-REACH_DEG, REACH_DEG, (count, 2))
        self.lines: dict[int, bytes] = {}
        self.sent = 0

    @contextlib.asynccontextmanager
    async def moving(self):
        """Move and send until the block ends; all that was said has been sent then."""
        ended = asyncio.Event()
        task = asyncio.create_task(self._run(ended))
        try:
            yield self
        finally:
            ended.set()
            await task

    def objects(self) -> dict[str, dict]:
        """Return the newest version of each object, as `truth.newest` does."""
        return newest(decoded(DECODER, self.stream, b"".join(self.lines.values())))

    async def _run(self, ended):
        """Send until told to end; each step says everything, so the next connection makes up for a lost one."""
        while True:
            with contextlib.suppress(ConnectionError):
                return await self._send(ended)
            await asyncio.sleep(STEP_S)

    async def _send(self, ended):
        """Send on one connection, until told to end, and at least once."""
        _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while True:
            writer.write(b"".join(self.step()))
            await writer.drain()
            if ended.is_set():
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), STEP_S)
        writer.close()
        await writer.wait_closed()

    def step(self) -> list[bytes]:
        """Move each object and return its line."""
        self.places += self.random.normal(0, 0.02, self.places.shape)
        self.places = np.clip(self.places, -REACH_DEG, REACH_DEG)
        now_ms = time.time_ns() // 1_000_000
        speeds = self.random.uniform(0, 20, self.count).round(1)
        for key in range(self.count):
            self.lines[key] = _line(key, now_ms, self.places[key].round(5).tolist(), float(speeds[key]))
        self.sent += self.count
        return list(self.lines.values())


def _line(key, time_ms, place, speed_mps):
    feature = {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": place},
        "properties": {"id": f"o{key}", "time": time_ms, "speed_mps": speed_mps},
    }
    return orjson.dumps(feature) + b"\n"
