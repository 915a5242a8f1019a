"""Pages whose maps are panned: each is a websocket connection that moves its viewport twice a second.

A viewport is a range of its own. It goes straight on, a tenth of its width at a time, and turns at the edge of the
world. A pan is answered when the rows come that entered the answer because the viewport moved; they all lie in its new
area. If one answer serves several pans, it answers all of them.
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
from bench.scenarios import STREAM, Case
from bench.stack import Stack, child, said, told
from streaming.elements import bounds_of
from streaming.results import EDITED, ENTERED, MOVED, read_frame

PERIOD_S, STEP = 0.5, 0.1
# Longitude and latitude of a viewport, in degrees.
EXTENT = np.array([36.0, 18.0])
OPEN_S = 120.0
# Rows tell where objects are; a viewport's plan may be a little larger than the area.
SLACK_DEG = 1e-6


def measure(stack: Stack, case: Case, seconds: float) -> dict[str, float | None]:
    """Put a stack under the load of a case, pan many maps, and return how late their answers were."""
    with loaded(stack, case):
        options = ("--clients", str(case.clients), "--seconds", str(seconds))
        with child("bench.panning", stack.socket_url, stack.made["token"], *options) as client:
            said(client, "measuring")
            before, began_s = cpu_s(stack.home), time.monotonic()
            with Meter(stack.redis_url) as meter:
                measured = told(client)
            cores = cores_of(before, cpu_s(stack.home), time.monotonic() - began_s)
    return {
        "pages": case.clients,
        "queries": case.queries,
        "elements/s": meter.work.elements_per_s,
        "batches/s": meter.work.batches_per_s,
        "answers p50 ms": measured["answers"]["p50_ms"],
        "answers p99 ms": measured["answers"]["p99_ms"],
        "pans": measured["pans"]["rows"],
        "pan p50 ms": measured["pans"]["p50_ms"],
        "pan p99 ms": measured["pans"]["p99_ms"],
        "unanswered": measured["unanswered"],
        "engine cores": cores.get("engine"),
        "web cores": cores.get("web"),
    }


class Page:
    """A viewport that is panned.

    Parameters
    ----------
    corner : ndarray of float64, shape (2,)
        Its lower left corner, in degrees.
    """

    def __init__(self, corner: np.ndarray) -> None:
        self.corner, self.step = corner.copy(), STEP * EXTENT[0]
        self.waiting: list[tuple[float, np.ndarray]] = []
        self.pans_us: list[float] = []
        self.ages: list[np.ndarray] = [np.empty(0, dtype=np.int64)]
        self.view: int | None = None
        self.opened = asyncio.Event()

    def area(self) -> dict[str, list[float]]:
        """Return the area as the server wants it."""
        return {"lo": self.corner.tolist(), "hi": (self.corner + EXTENT).tolist()}

    def pan(self, now_s: float) -> None:
        """Move on, and wait for the answer."""
        if not -180 <= self.corner[0] + self.step <= 180 - EXTENT[0]:
            self.step = -self.step
        self.corner[0] += self.step
        self.waiting.append((now_s, self.corner.copy()))

    def entered(self, places: np.ndarray, now_s: float) -> None:
        """Take the places, float64 of shape (N, 2), of the objects that entered because the viewport moved."""
        for position, (_, corner) in enumerate(self.waiting):
            inside = (places >= corner - SLACK_DEG) & (places <= corner + EXTENT + SLACK_DEG)
            if inside.all():
                self.pans_us += [1e6 * (now_s - sent_s) for sent_s, _ in self.waiting[: position + 1]]
                del self.waiting[: position + 1]
                return

    def take(self, frame: str | bytes, now_s: float, now_us: int) -> None:
        """Take a frame from the server."""
        if isinstance(frame, str):
            message = json.loads(frame)
            if message["type"] == "error":
                raise RuntimeError(f"the server refuses: {message}")
            if message["type"] == "view.status":
                self.view = message["views"][STREAM]
            return
        head, rows = read_frame(frame)
        if head.get("query") != self.view:
            return
        self.opened.set()
        if head["type"] == "answer.change":
            reason, sign = rows["reason"].to_numpy(), rows["sign"].to_numpy()
            self.ages.append(now_us - rows["time_us"].to_numpy()[reason == MOVED])
            places = bounds_of(rows["bounds"])[:, :2][(reason == EDITED) & (sign == ENTERED)]
            if len(places):
                self.entered(places, now_s)

    def forget(self) -> None:
        """Begin to measure."""
        self.pans_us, self.ages = [], [np.empty(0, dtype=np.int64)]


async def pan(url: str, token: str, clients: int, seconds: float) -> dict:
    """Open pages and pan them for a span of time; return how late their answers were.

    Returns
    -------
    dict
        The `client.figures` of ``answers`` and of ``pans``, and how many pans of the span were ``unanswered``.
    """
    corners = np.random.default_rng(12).uniform([-180, -80], [180, 80] - EXTENT, (clients, 2))
    pages, measuring = [Page(corner) for corner in corners], asyncio.Event()
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_page(url, token, page, n * PERIOD_S / clients, measuring))
            for n, page in enumerate(pages)
        ]
        async with asyncio.timeout(OPEN_S):
            await asyncio.gather(*(page.opened.wait() for page in pages))
        measuring.set()
        await asyncio.sleep(2 * PERIOD_S)
        for page in pages:
            page.forget()
        print("measuring", flush=True)
        await asyncio.sleep(seconds)
        ended_s = time.monotonic()
        for task in tasks:
            task.cancel()
    return {
        "answers": figures(np.concatenate([ages for page in pages for ages in page.ages])),
        "pans": figures(np.array([us for page in pages for us in page.pans_us])),
        "unanswered": sum(ended_s - sent_s > 2.0 for page in pages for sent_s, _ in page.waiting),
    }


async def _page(url, token, page, delay_s, measuring):
    headers = {"Authorization": f"Token {token}"}
    async with connect(url, additional_headers=headers, max_size=None, compression=None) as socket:
        show = {"type": "view.subscribe", "id": "view", "streams": [STREAM], "format": "arrow"}
        await socket.send(json.dumps({**show, "area": page.area()}))

        async def move():
            await measuring.wait()
            due_s = time.monotonic() + delay_s
            while True:
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
                page.pan(time.monotonic())
                await socket.send(json.dumps({**show, "area": page.area()}))
                due_s += PERIOD_S

        moving = asyncio.create_task(move())
        try:
            async for frame in socket:
                page.take(frame, time.monotonic(), time.time_ns() // 1000)
            raise RuntimeError(f"the server closed the connection: {socket.close_code} {socket.close_reason}")
        finally:
            moving.cancel()


def main() -> None:
    """Print ``measuring`` when the span begins, and the figures as JSON when it ends."""
    parser = argparse.ArgumentParser(prog="python -m bench.panning", description=main.__doc__)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    arguments = parser.parse_args()
    print(json.dumps(asyncio.run(pan(arguments.url, arguments.token, arguments.clients, arguments.seconds))))


if __name__ == "__main__":
    main()
