"""A feed whose truth is known: an element counts as soon as the ingest log has acknowledged its block."""

import threading
import time

import numpy as np
import orjson
import redis

from bench.live import Live
from bench.load import CONFIG
from streaming.elements import point_elements
from streaming.logs import Log
from streaming.redis_client import patient_client
from tests.chaos.pairs import JOINED_OBJECTS, Reported, fast_mps
from tests.chaos.workload import PAIRED
from tests.live.swarm import REACH_DEG

STEP_S, WALK_DEG, RETRY_S = 0.05, 0.005, 0.1
KINDS = ("ship", "bus", "plane")


class AcknowledgedFeed:
    """Objects on a random walk within two degrees of 0, 0, written as blocks into the ingest log by a thread.

    Each step reports other objects, so the last report of an object is seldom one of the last step: an element that is
    lost stays lost, and the oracle sees it. A block that is not acknowledged is written again until it is; a repeated
    element changes nothing. While the engine does not keep up, the feed waits, as the gateway does with a recording.

    Parameters
    ----------
    live : Live
    stream : str
    rate : int
        Elements a second.
    count, seed : int
        How many objects there are, with the keys ``f0``, ``f1``, ...

    Attributes
    ----------
    sent : int
        Acknowledged elements.
    joined : list of Reported
        All acknowledged reports of the stream `PAIRED`.
    """

    def __init__(self, live: Live, stream: str, rate: int, count: int = 2000, seed: int = 1) -> None:
        self.stream, self.rate, self.count, self.sent = stream, rate, count, 0
        self.joined: list[Reported] = []
        self._fast_mps = fast_mps(rate, count)
        self._log = Log(patient_client(live.redis_url), "earth", live.partitions, patient=True, url=live.log_url)
        self._random = np.random.default_rng(seed)
        self._places = self._random.uniform(-REACH_DEG, REACH_DEG, (count, 2)).round(6)
        self._speeds, self._times = np.zeros(count), np.zeros(count, dtype=np.int64)
        self._moving, self._ended = threading.Event(), threading.Event()
        self._still = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "AcknowledgedFeed":
        self._report(np.arange(self.count))
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ended.set()
        self._moving.set()
        self._thread.join()
        self._log.client.close()

    def move(self) -> None:
        """Begin to move, or go on."""
        self._still.clear()
        self._moving.set()

    def rest(self) -> None:
        """Stop, and return once everything is acknowledged."""
        self._moving.clear()
        self._still.wait()

    def objects(self) -> dict[str, dict]:
        """Return the newest acknowledged version of each object; only while the feed rests."""
        infinite = float("inf")
        return {
            f"f{number}": {
                "time_us": int(self._times[number]),
                "bounds": [*place, -infinite, *place, infinite],
                "properties": orjson.dumps(_properties(number, self._speeds[number])).decode(),
            }
            for number, place in enumerate(self._places.tolist())
        }

    def _run(self):
        rows, due_s = max(1, round(self.rate * STEP_S)), time.monotonic()
        while not self._ended.is_set():
            if not self._moving.is_set():
                self._still.set()
                self._moving.wait()
                due_s = time.monotonic()
                continue
            if not self._takes():
                time.sleep(RETRY_S)
                continue
            for part in np.array_split(np.arange(rows), -(-rows // self.count)):
                self._report(self._random.choice(self.count, len(part), replace=False))
            # Make up for a stall of up to a second.
            due_s = max(due_s + STEP_S, time.monotonic() - 1)
            time.sleep(max(0.0, due_s - time.monotonic()))
        self._still.set()

    def _takes(self):
        """Tell whether the engine keeps up, so that the gateway would write, too."""
        try:
            return CONFIG.takes(self._log.pressure(), live=False)
        except redis.RedisError:
            return False

    def _report(self, numbers):
        """Move some objects, and write their elements until that is acknowledged."""
        places = self._places[numbers] + self._random.normal(0, WALK_DEG, (len(numbers), 2))
        self._places[numbers] = np.clip(places, -REACH_DEG, REACH_DEG).round(6)
        self._speeds[numbers] = self._random.uniform(0, 20, len(numbers)).round(1)
        self._times[numbers] = now_us = time.time_ns() // 1000
        self._write(self.stream, numbers, now_us)
        self.sent += len(numbers)
        chosen = numbers[(numbers < JOINED_OBJECTS) & (self._speeds[numbers] > self._fast_mps)]
        if len(chosen):
            self._write(PAIRED, chosen, now_us)
            self.joined += [Reported(f"f{number}", now_us) for number in chosen.tolist()]

    def _write(self, stream, numbers, now_us):
        """Write elements of objects until that is acknowledged."""
        keys = [f"f{number}" for number in numbers.tolist()]
        properties = [_properties(number, self._speeds[number]) for number in numbers.tolist()]
        elements = point_elements(stream, keys, self._times[numbers], self._places[numbers], properties)
        while True:
            try:
                self._log.ingest(elements, stream, now_us)
                break
            except redis.RedisError:
                time.sleep(RETRY_S)


def _properties(number, speed_mps):
    return {"kind": KINDS[number % len(KINDS)], "speed_mps": float(speed_mps)}
