"""One query more: how long a user waits for its first answer, and what it costs the engine.

A websocket client registers ranges, one after the other, and subscribes to each. The first answer has come when the
first rows of the query arrive. The processor time of a process is what it spends while queries are registered, less
what it spends in as much time without them, divided by the number of queries.
"""

import argparse
import asyncio
import contextlib
import json
import time
from itertools import pairwise

import numpy as np
import psutil
from websockets.asyncio.client import ClientConnection, connect

from bench.measure import loaded
from bench.meter import Meter
from bench.processes import processes, program_of
from bench.scenarios import STREAM, Case
from bench.stack import Stack, child, said, told
from streaming.results import read_frame

PERIOD_S, PATIENCE_S = 1.0, 120.0
# As large a part of the world as 1 %, which is not the box of any other query.
BOX_DEG = (36.0, 18.0)


def measure(stack: Stack, case: Case, seconds: float) -> dict[str, float | None]:
    """Put a stack under the load of a case, register queries, and return what they took."""
    count = max(2, round(seconds / PERIOD_S))
    with loaded(stack, case):
        arguments = ("bench.registering", stack.socket_url, stack.made["token"], "--queries", str(count))
        with child(*arguments) as client:
            said(client, "connected")
            idle_s = _spent(stack, count * PERIOD_S)
            with Meter(stack.redis_url) as quiet:
                time.sleep(count * PERIOD_S)
            before, began_s = _cpu(stack), time.monotonic()
            client.stdin.write("go\n")
            client.stdin.flush()
            with Meter(stack.redis_url) as busy:
                waits_ms = told(client)["waits_ms"]
            spent_s = time.monotonic() - began_s
            after = _cpu(stack)
    extra_ms = {
        pid: 1000 * (after[pid] - before.get(pid, 0.0) - idle_s.get(pid, 0.0) * spent_s) / count for pid in after
    }
    return {
        "queries before": case.queries,
        "first answer p50 ms": float(np.median(waits_ms)),
        "longest ms": max(waits_ms),
        "CPU ms, busiest process": max(extra_ms.values(), default=None),
        "CPU ms, engine": sum(extra_ms.values()),
        "longest batch ms": longest_ms(busy.told),
        "longest without ms": longest_ms(quiet.told),
    }


def longest_ms(batches: list[tuple[int, int, dict]]) -> float | None:
    """Return the longest time from one batch to the next, given the time and the batch of each fragment.

    Examples
    --------
    >>> longest_ms([(0, 1, {}), (10, 1, {}), (210, 2, {}), (300, 3, {})])
    200
    """
    done = sorted({batch: time_ms for time_ms, batch, *_ in batches}.values())
    return max((later - earlier for earlier, later in pairwise(done)), default=None)


def _cpu(stack):
    """Return the processor seconds of each process of the engine."""
    spent = {}
    for process in processes(stack.home):
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if program_of(process) == "engine":
                spent[process.pid] = sum(process.cpu_times()[:2])
    return spent


def _spent(stack, seconds):
    """Return the cores that each process of the engine keeps busy when nothing is registered."""
    before, began_s = _cpu(stack), time.monotonic()
    time.sleep(seconds)
    spent_s = time.monotonic() - began_s
    return {pid: (cpu - before.get(pid, 0.0)) / spent_s for pid, cpu in _cpu(stack).items()}


async def register(url: str, token: str, count: int) -> list[float]:
    """Register queries, one in a period, and return for how many milliseconds each waited for its first rows."""
    headers = {"Authorization": f"Token {token}"}
    async with connect(url, additional_headers=headers, max_size=None, compression=None) as socket:
        print("connected", flush=True)
        await asyncio.to_thread(input)
        waits_ms = []
        for number, corner in enumerate(np.random.default_rng(11).uniform([-180, -80], [140, 60], (count, 2))):
            began_s = time.monotonic()
            async with asyncio.timeout(PATIENCE_S):
                await _first_rows(socket, f"one more {number}", corner)
            waits_ms.append(1000 * (time.monotonic() - began_s))
            await asyncio.sleep(max(0.0, PERIOD_S - waits_ms[-1] / 1000))
    return waits_ms


async def _first_rows(socket: ClientConnection, name: str, corner: np.ndarray) -> None:
    """Register a range and subscribe to it; return when its first rows have come."""
    box = {"lo": corner.tolist(), "hi": (corner + BOX_DEG).tolist()}
    await socket.send(
        json.dumps({"type": "query.register", "id": name, "name": name, "plan": {"stream": STREAM, "compare": box}})
    )
    query = None
    async for frame in socket:
        if isinstance(frame, bytes):
            head, rows = read_frame(frame)
            if head.get("query") == query and len(rows):
                await socket.send(json.dumps({"type": "query.unsubscribe", "query": query}))
                return
            continue
        message = json.loads(frame)
        if message["type"] == "error":
            raise RuntimeError(f"the server refuses: {message}")
        if message["type"] == "query.status" and message.get("id") == name and query is None:
            query = message["query"]
            await socket.send(json.dumps({"type": "query.subscribe", "query": query, "format": "arrow"}))


def main() -> None:
    """Print ``connected``, wait for a line, and print the waits as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.registering", description=main.__doc__)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--queries", type=int, required=True)
    arguments = parser.parse_args()
    waits_ms = asyncio.run(register(arguments.url, arguments.token, arguments.queries))
    print(json.dumps({"waits_ms": waits_ms}))


if __name__ == "__main__":
    main()
