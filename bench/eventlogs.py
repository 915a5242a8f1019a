"""Compare the logs in Redis with those in Kafka: ``python -m bench.eventlogs redis://... kafka://...``.

One program appends, and another thread reads as a hub does. Printed are medians, and their ratios.
"""

import argparse
import os
import threading
import time
import uuid
from collections.abc import Callable

import numpy as np
import redis

from streaming.eventlog import FIRST, Bound, BoundedEntry, EventLog, Stamp, open_log

KEPT = Bound(64_000_000, 300_000)
Append = Callable[[EventLog, str, int, bytes], object]


def plain(log: EventLog, name: str, number: int, block: bytes) -> None:
    """Append an entry, as the gateway does."""
    log.append(name, {"at_ns": time.monotonic_ns(), "n": number, "block": block})


def stamped(log: EventLog, name: str, number: int, block: bytes) -> None:
    """Append an entry that takes effect once, as the engine does with results."""
    fields = {"at_ns": time.monotonic_ns(), "n": number, "block": block}
    log.append_once(Stamp("p", "e", number), [BoundedEntry(name, fields, KEPT)])


def delays_ms(log: EventLog, append: Append, entries: int, size: int) -> tuple[np.ndarray, float]:
    """Append entries; return the times until each was read, and how many entries a second were appended."""
    name, block, delays = f"bench:{uuid.uuid4().hex}", os.urandom(size), []

    def read():
        position = FIRST
        while len(delays) < entries:
            for entry in log.poll({name: position}, 64, 1.0).get(name, ()):
                position = entry.position
                delays.append((time.monotonic_ns() - int(entry.fields[b"at_ns"])) / 1e6)

    append(log, name, 0, block)
    reading = threading.Thread(target=read)
    reading.start()
    began_s = time.monotonic()
    for number in range(1, entries):
        append(log, name, number, block)
    rate = (entries - 1) / (time.monotonic() - began_s)
    reading.join()
    log.delete([name])
    return np.array(delays[entries // 10 :]), rate


def main() -> None:
    """Measure both kinds of append on both kinds of log."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("redis_url")
    parser.add_argument("log_url")
    parser.add_argument("--entries", type=int, default=400)
    parser.add_argument("--bytes", type=int, default=50_000)
    given = parser.parse_args()
    client = redis.Redis.from_url(given.redis_url)
    logs = {"redis": open_log(client), "kafka": open_log(client, given.log_url)}
    for append in (plain, stamped):
        medians = {}
        for kind, log in logs.items():
            delays, rate = delays_ms(log, append, given.entries, given.bytes)
            medians[kind] = np.median(delays)
            p99 = np.percentile(delays, 99)
            print(f"{append.__name__:8} {kind}: {medians[kind]:.2f} ms, p99 {p99:.2f} ms, {rate:.0f} entries/s")
        print(f"{append.__name__:8} kafka takes {medians['kafka'] / medians['redis']:.1f} times as long")


if __name__ == "__main__":
    main()
