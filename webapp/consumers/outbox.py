"""What waits to be sent to one client, within bounds: a slow client is merged forward, never waited for."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from webapp.hub.subscriptions import Subscription

# More replies than this that nobody reads end the connection.
MAX_REPLIES = 1_000


class Unread(Exception):
    """A client sends requests but reads no replies."""


@dataclass(eq=False)
class Item:
    """One frame that waits; an answer belongs to a subscription."""

    frame: str | bytes
    subscription: Subscription | None = None
    slot: str = ""


class Outbox:
    """A bounded queue with its own sender.

    Parameters
    ----------
    send : async function of a frame
        Returns when the connection has room again.
    recover : async function of a list of Subscription
        Asks for snapshots in place of lost answers; called once all that waited has been sent.
    max_bytes : int
        Of answers that wait. A single larger answer still goes through.
    """

    def __init__(
        self,
        send: Callable[[str | bytes], Awaitable[None]],
        recover: Callable[[list[Subscription]], Awaitable[None]],
        max_bytes: int,
    ) -> None:
        self._send, self._recover, self._max_bytes = send, recover, max_bytes
        self._items: deque[Item] = deque()
        self._slots: dict[str, Item] = {}
        self._lost: dict[Subscription, None] = {}
        self._bytes = self._replies = 0
        self._filled = asyncio.Event()

    def reply(self, frame: str) -> None:
        """Queue a message that must arrive.

        Raises
        ------
        Unread
            When too many wait already.
        """
        if self._replies >= MAX_REPLIES:
            raise Unread(f"at most {MAX_REPLIES} replies may wait to be read")
        self._replies += 1
        self._append(Item(frame))

    def broadcast(self, slot: str, frame: str) -> None:
        """Queue a message that replaces the one of the same slot, where that still waits."""
        if slot in self._slots:
            self._slots[slot].frame = frame
            return
        self._slots[slot] = Item(frame, slot=slot)
        self._append(self._slots[slot])

    def answer(self, subscription: Subscription, frame: str | bytes) -> None:
        """Queue an answer; where there is no room, drop all answers that wait and have them replaced by snapshots."""
        if subscription in self._lost:
            return
        if self._bytes and self._bytes + len(frame) > self._max_bytes:
            self._overflow(subscription)
            return
        self._bytes += len(frame)
        self._append(Item(frame, subscription))

    async def run(self) -> None:
        """Send what waits, for ever."""
        while True:
            await self._filled.wait()
            while self._items:
                await self._send_next()
            self._filled.clear()
            if self._lost:
                lost, self._lost = list(self._lost), {}
                await self._recover(lost)

    async def _send_next(self):
        item = self._items.popleft()
        self._slots.pop(item.slot, None)
        if item.subscription is None:
            self._replies -= not item.slot
            await self._send(item.frame)
        else:
            self._bytes -= len(item.frame)
            if not item.subscription.closed:
                await self._send(item.frame)

    def _append(self, item):
        self._items.append(item)
        self._filled.set()

    def _overflow(self, subscription):
        answers = [item.subscription for item in self._items if item.subscription is not None]
        for lost in [*answers, subscription]:
            lost.lose()
            self._lost[lost] = None
        self._items = deque(item for item in self._items if item.subscription is None)
        self._bytes = 0
        self._filled.set()
