"""The other user: a websocket client, as its own process, that tells each second how old the answers were.

It connects again if the server closes the connection. Two ages are told. A row has the age at which its frame came,
since the element was heard. An answer has, at each instant, the age of its newest row; so it grows while nothing comes.
"""

import argparse
import asyncio
import contextlib
import json
import time

import numpy as np
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from bench.client import SNAPSHOTS_S
from streaming.results import MOVED, read_frame

INSTANT_S, SECOND_S = 0.05, 1.0
AGAIN_S = 0.5


class Watcher:
    """What has come since it was told last.

    Attributes
    ----------
    rows_ms, answer_ms : list of float
        The ages of rows, and those of the answer at instants.
    resyncs, connections : int
        Snapshots in place of changes, and how often it has connected.
    """

    def __init__(self) -> None:
        self.newest_us = time.time_ns() // 1000
        self.resyncs = self.connections = 0
        self.rows_ms: list[float] = []
        self.answer_ms: list[float] = []

    def take(self, frame: str | bytes, now_us: int) -> int | None:
        """Take a frame; return the query of which it is a snapshot, if it is one."""
        if isinstance(frame, str):
            return None
        head, rows = read_frame(frame)
        self.resyncs += bool(head.get("resync"))
        if head["type"] == "answer.changes":
            moved_us = rows["time_us"].to_numpy()[rows["reason"].to_numpy() == MOVED]
            self.newest_us = max(self.newest_us, int(moved_us.max(initial=0)))
            self.rows_ms += np.round((now_us - moved_us) / 1000, 1).tolist()
        return head["query"] if head["type"] == "answer.snapshot" else None

    def look(self, now_us: int) -> None:
        """Note how old the answer is now."""
        self.answer_ms.append(round((now_us - self.newest_us) / 1000, 1))

    def tell(self) -> dict:
        """Return what has come, and begin anew."""
        told = {"rows_ms": self.rows_ms, "answer_ms": self.answer_ms}
        self.rows_ms, self.answer_ms = [], []
        return {"at_s": time.time(), "resyncs": self.resyncs, "connections": self.connections, **told}


async def watch(url: str, token: str, queries: list[int]) -> None:
    """Print ``measuring`` once all queries have sent their snapshots, then a JSON object each second, until ended."""
    watcher, ready = Watcher(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(_listen(url, token, queries, watcher, ready))
        async with asyncio.timeout(SNAPSHOTS_S):
            await ready.wait()
        print("measuring", flush=True)
        due_s = time.monotonic() + SECOND_S
        while True:
            await asyncio.sleep(INSTANT_S)
            watcher.look(time.time_ns() // 1000)
            if time.monotonic() >= due_s:
                print(json.dumps(watcher.tell()), flush=True)
                due_s += SECOND_S


async def _listen(url, token, queries, watcher, ready):
    """Connect, subscribe and take what comes, again and again."""
    wanted = {"type": "query.subscribe", "format": "arrow", "joined": True, "queries": queries}
    while True:
        with contextlib.suppress(OSError, TimeoutError, WebSocketException):
            headers = {"Authorization": f"Token {token}"}
            async with connect(url, additional_headers=headers, max_size=None, compression=None) as socket:
                watcher.connections += 1
                await socket.send(json.dumps(wanted))
                waiting = set(queries)
                async for frame in socket:
                    waiting.discard(watcher.take(frame, time.time_ns() // 1000))
                    if not waiting:
                        ready.set()
        await asyncio.sleep(AGAIN_S)


def main() -> None:
    """Watch the queries of a user until ended."""
    parser = argparse.ArgumentParser(prog="python -m bench.attacks.watcher", description=main.__doc__)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--queries", type=int, nargs="+", required=True)
    arguments = parser.parse_args()
    asyncio.run(watch(arguments.url, arguments.token, arguments.queries))


if __name__ == "__main__":
    main()
