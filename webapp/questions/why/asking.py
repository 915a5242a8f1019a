"""What the engine is asked for an explanation: the answer of a plan or of a saved query, once."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson

from webapp.hub import Hub
from webapp.hub.subscriptions import AnswerSubscription

# The engine answers within a batch or two. What it has not answered by then is told as not known.
ANSWER_S = 5.0

Row = dict[str, Any]


class SnapshotSubscriber:
    """A subscriber that waits for one snapshot, and for itself; see `hub.subscriptions.Subscriber`."""

    def __init__(self) -> None:
        self.owner = self
        self.rows: asyncio.Future[list[Row]] = asyncio.get_running_loop().create_future()

    def deliver(self, subscription: AnswerSubscription, frame: str | bytes) -> None:
        """Take the snapshot."""
        if not self.rows.done():
            self.rows.set_result(orjson.loads(frame)["rows"])

    def deliver_joined(self, subscriptions: Any, frame: str | bytes) -> None:
        """Nothing is joined."""

    def when_sent(self, tell: Callable[[], None]) -> None:
        """Nothing is sent."""


async def answer_of(hub: Hub, query: int) -> list[Row] | None:
    """Return the rows of the answer of a query or a view; None if the engine does not answer in time."""
    once = SnapshotSubscriber()
    await hub.subscribe(once, [query], "json")  # type: ignore[arg-type]
    try:
        with suppress(TimeoutError):
            return await asyncio.wait_for(once.rows, ANSWER_S)
        return None
    finally:
        hub.unsubscribe(once, query)  # type: ignore[arg-type]


async def answer_to(hub: Hub, plan: dict[str, Any]) -> list[Row] | None:
    """Return the rows of the answer of a plan that is not saved; None if the engine does not answer in time."""
    view = hub.views.number()
    hub.views.register(view, plan)
    try:
        return await answer_of(hub, view)
    finally:
        hub.views.cancel(view)
