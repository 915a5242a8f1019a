"""How much the engine writes for each batch, beside the size of what the batch brings.

The kernel counts the bytes that a process makes it write to storage (``write_bytes`` of /proc/PID/io): state, logs of
Spark, and whatever is merged later, once for each page that becomes dirty. A memory file system is not counted.
"""

import contextlib
import time
from pathlib import Path

import redis

from bench.measure import cores_of, loaded
from bench.meter import Meter
from bench.processes import cpu_s, processes, program_of
from bench.scenarios import Case
from bench.stack import Stack
from streaming.elements import from_ipc
from streaming.eventlog import RedisEventLog
from streaming.keys import LogNames

# Merges come once in a while, so this is measured for longer than other things.
LONGER = 2


def measure(stack: Stack, case: Case, seconds: float) -> dict[str, float | None]:
    """Put a stack under the load of a case and return how much was written for each batch."""
    with loaded(stack, case):
        size = element_bytes(stack.redis_url)
        before, cores, began_s = written_bytes(stack.home), cpu_s(stack.home), time.monotonic()
        with Meter(stack.redis_url) as meter:
            time.sleep(LONGER * seconds)
        after, spent_s = written_bytes(stack.home), time.monotonic() - began_s
        work = meter.work
        written = sum(after[pid] - before.get(pid, 0) for pid in after)
        engine = cores_of(cores, cpu_s(stack.home), spent_s).get("engine", 0.0)
    batches = work.batches_per_s * spent_s
    updates = work.elements_per_s / work.batches_per_s if batches else 0.0
    return {
        "objects": case.objects,
        "batches/s": work.batches_per_s,
        "updates/batch": updates,
        "KiB of updates/batch": updates * size / 1024,
        "KiB written/batch": written / batches / 1024 if batches else None,
        "times the updates": written / (batches * updates * size) if batches * updates * size else None,
        "engine cores": engine,
    }


def written_bytes(home: Path) -> dict[int, int]:
    """Return how many bytes each living process of the engine has written to storage, by process id."""
    written = {}
    for process in processes(home):
        with contextlib.suppress(OSError, ProcessLookupError):
            if program_of(process) == "engine":
                written[process.pid] = process.io_counters().write_bytes
    return written


def element_bytes(redis_url: str) -> float:
    """Return how many bytes an element of the newest block of the ingest log takes in memory."""
    with redis.Redis.from_url(redis_url) as client:
        fields = RedisEventLog(client).read_back(LogNames("earth").ingest(0), limit=1)[0].fields
    return from_ipc(fields[b"block"]).nbytes / int(fields[b"count"])
