"""Many websocket clients with some subscriptions each: what they cost the web server, and how late the latest is.

The clients note when each frame came, and read the frames once the span is over. So they take little of the cores that
they share with the server.
"""

import argparse
import asyncio
import json
import time

import numpy as np
from websockets.asyncio.client import connect

from bench.client import figures
from bench.measure import cores_of, loaded
from bench.meter import Meter
from bench.processes import cpu_s
from bench.scenarios import Case
from bench.stack import Stack, child, said, told
from streaming.results import MOVED, read_frame

EACH = 24
# So many connect at once.
PORTION, CONNECT_S = 25, 180.0
SETTLE_S = 2.0


def measure(stack: Stack, case: Case, seconds: float) -> dict[str, float | None]:
    """Put a stack under the load of a case, with many clients, and return what they cost and when they heard."""
    with loaded(stack, case):
        options = ("--clients", str(case.clients), "--seconds", str(seconds))
        with child("bench.crowd", stack.socket_url, *options) as client:
            client.stdin.write(json.dumps(stack.made["users"]) + "\n")
            client.stdin.flush()
            said(client, "measuring")
            before, began_s = cpu_s(stack.home), time.monotonic()
            with Meter(stack.redis_url) as meter:
                said(client, "measured")
            cores = cores_of(before, cpu_s(stack.home), time.monotonic() - began_s)
            measured = told(client)
    return {
        "clients": case.clients,
        "subscriptions": measured["subscriptions"],
        "elements/s": meter.work.elements_per_s,
        "batches/s": meter.work.batches_per_s,
        "frames/s": measured["frames_per_s"],
        "web cores": cores.get("web"),
        "row p50 ms": measured["ages"]["p50_ms"],
        "row p99 ms": measured["ages"]["p99_ms"],
        "latest client, p50 ms": measured["late"]["p50_ms"],
        "latest client, longest ms": measured["late"]["longest_ms"],
        "resyncs": measured["resyncs"],
    }


async def listen(url: str, users: list[dict], clients: int, seconds: float) -> dict:
    """Connect clients and listen for a span of time.

    Parameters
    ----------
    url : str
    users : list of dict
        The token and the queries of each; the clients take turns to be one of them.
    clients : int
    seconds : float

    Returns
    -------
    dict
        See `summary`, and how many ``subscriptions`` there were.
    """
    rng, heard, connected = np.random.default_rng(13), [], asyncio.Semaphore(PORTION)
    chosen = [(user := users[n % len(users)], rng.permutation(user["queries"])[:EACH].tolist()) for n in range(clients)]
    ready = [asyncio.Event() for _ in range(clients)]
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_client(url, user["token"], queries, n, heard, connected, ready[n]))
            for n, (user, queries) in enumerate(chosen)
        ]
        async with asyncio.timeout(CONNECT_S):
            await asyncio.gather(*(event.wait() for event in ready))
        await asyncio.sleep(SETTLE_S)
        heard.clear()
        print("measuring", flush=True)
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
    print("measured", flush=True)
    return summary(heard, seconds) | {"subscriptions": sum(len(queries) for _, queries in chosen)}


async def _client(url, token, queries, number, heard, connected, ready):
    """Subscribe to queries, and note each binary frame with its time and the client's number."""
    headers, waiting = {"Authorization": f"Token {token}"}, set(queries)
    async with connected:
        connection = connect(
            url, additional_headers=headers, max_size=None, compression=None, open_timeout=CONNECT_S, ping_interval=None
        )
        socket = await connection.__aenter__()
        wanted = {"type": "query.subscribe", "queries": queries, "format": "arrow", "joined": True}
        await socket.send(json.dumps(wanted))
        while waiting:
            frame = await socket.recv()
            if isinstance(frame, bytes):
                waiting.discard(read_frame(frame)[0].get("query"))
    ready.set()
    try:
        async for frame in socket:
            if isinstance(frame, bytes):
                heard.append((time.time_ns() // 1000, number, frame))
        raise RuntimeError(f"the server closed client {number}: {socket.close_code} {socket.close_reason}")
    finally:
        await connection.__aexit__(None, None, None)


def summary(heard: list[tuple[int, int, bytes]], seconds: float) -> dict:
    """Return figures of frames, given when each was received (in microseconds) and by which client.

    Returns
    -------
    dict
        ``frames_per_s``; the `client.figures` of the ``ages`` of rows that moved, and of ``late``: for each batch, how
        long after the first client the latest one had it; ``resyncs``.
    """
    ages, spans, resyncs = [np.empty(0, dtype=np.int64)], {}, 0
    for received_us, _, frame in heard:
        head, rows = read_frame(frame)
        resyncs += bool(head.get("resync"))
        if head["type"] == "answer.changes":
            ages.append(received_us - rows["time_us"].to_numpy()[rows["reason"].to_numpy() == MOVED])
            first, last = spans.get(head["batch"], (received_us, received_us))
            spans[head["batch"]] = min(first, received_us), max(last, received_us)
    late = np.array([last - first for first, last in spans.values()])
    return {
        "frames_per_s": len(heard) / seconds,
        "ages": figures(np.concatenate(ages)),
        "late": figures(late),
        "resyncs": resyncs,
    }


def main() -> None:
    """Read users as JSON; print ``measuring`` and ``measured`` around the span, and then the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.crowd", description=main.__doc__)
    parser.add_argument("url")
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    arguments = parser.parse_args()
    print(json.dumps(asyncio.run(listen(arguments.url, json.loads(input()), arguments.clients, arguments.seconds))))


if __name__ == "__main__":
    main()
