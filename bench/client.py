"""A websocket client that runs as its own process: it subscribes in Arrow, and measures the age of rows on receipt."""

import argparse
import asyncio
import contextlib
import json
import time

import numpy as np
from websockets.asyncio.client import ClientConnection, connect

from streaming.results import MOVED, read_frame

SNAPSHOTS_S = 60.0


async def measure(url: str, token: str, queries: list[int], seconds: float) -> dict:
    """Subscribe to queries, and return figures of the rows that arrive in a span of time.

    The span begins once each query has sent its snapshot.

    Parameters
    ----------
    url, token : str
        Of the websocket, and of the user who subscribes.
    queries : list of int
    seconds : float
        The length of the span.

    Returns
    -------
    dict
        What `figures` returns, and ``resyncs``: how many snapshots replaced changes that were merged or lost.
    """
    headers = {"Authorization": f"Token {token}"}
    async with connect(url, additional_headers=headers, max_size=None, compression=None) as socket:
        wanted = {"type": "query.subscribe", "format": "arrow", "joined": True}
        await socket.send(json.dumps(wanted | {"queries": queries}))
        async with asyncio.timeout(SNAPSHOTS_S):
            await _snapshots(socket, set(queries))
        print("measuring", flush=True)
        ages, resyncs = await _ages(socket, seconds)
    return figures(ages) | {"resyncs": resyncs}


async def _snapshots(socket: ClientConnection, waiting: set[int]) -> None:
    """Read frames until each query has sent its snapshot."""
    while waiting:
        frame = await socket.recv()
        if isinstance(frame, bytes):
            head, _ = read_frame(frame)
            if head["type"] == "answer.snapshot":
                waiting.discard(head["query"])
        elif (message := json.loads(frame))["type"] == "error":
            raise RuntimeError(f"the server refuses: {message}")


async def _ages(socket: ClientConnection, seconds: float) -> tuple[np.ndarray, int]:
    """Return the ages on receipt, in microseconds, of the rows whose reason is `MOVED`, and the number of resyncs."""
    ages, resyncs = [np.empty(0, dtype=np.int64)], 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            async for frame in socket:
                received_us = time.time_ns() // 1000
                if isinstance(frame, bytes):
                    head, rows = read_frame(frame)
                    resyncs += bool(head.get("resync"))
                    if head["type"] == "answer.changes":
                        time_us, reason = rows["time_us"].to_numpy(), rows["reason"].to_numpy()
                        ages.append(received_us - time_us[reason == MOVED])
    return np.concatenate(ages), resyncs


def figures(ages_us: np.ndarray) -> dict[str, float | int | None]:
    """Return the number of rows, and the median, 99th percentile and maximum of their ages in ms; None without rows.

    Examples
    --------
    >>> figures(np.arange(0, 101_000, 1000))
    {'rows': 101, 'p50_ms': 50.0, 'p99_ms': 99.0, 'longest_ms': 100.0}
    """
    if not len(ages_us):
        return {"rows": 0, "p50_ms": None, "p99_ms": None, "longest_ms": None}
    p50, p99, longest = (round(float(age), 1) for age in np.percentile(ages_us / 1000, [50, 99, 100]))
    return {"rows": len(ages_us), "p50_ms": p50, "p99_ms": p99, "longest_ms": longest}


def main() -> None:
    """Print ``measuring`` when the span begins, and the figures as JSON when it ends."""
    parser = argparse.ArgumentParser(prog="python -m bench.client", description=main.__doc__)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--queries", type=int, nargs="+", required=True)
    arguments = parser.parse_args()
    print(json.dumps(asyncio.run(measure(arguments.url, arguments.token, arguments.queries, arguments.seconds))))


if __name__ == "__main__":
    main()
