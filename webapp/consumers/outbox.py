"""What waits to be sent to one client, within bounds: a slow client is merged forward, never waited for."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import islice

from webapp.hub.subscriptions import Subscription

# More replies than this that nobody reads end the connection.
MAX_REPLIES = 1_000
# Of more statuses than this that wait, only the queries are kept; how they stand is looked up when there is room.
MAX_STATUSES = 1_000
LOOKED_UP_AT_ONCE = 100
STATUS, MARK = "query.status", "mark"


class Unread(Exception):
    """A client sends requests but reads no replies."""


@dataclass(eq=False)
class Item:
    """One frame that waits; an answer belongs to a subscription, and a mark is about the answers before it."""

    frame: str | bytes
    subscription: Subscription | None = None
    mark: bool = False


class Outbox:
    """A bounded queue with its own sender.

    Parameters
    ----------
    send : async function of a frame
        Returns when the connection has room again.
    look_up : async function of a list of int
        Returns the frames that tell how these queries stand.
    recover : async function of a list of Subscription
        Asks for snapshots in place of lost answers; called once all that waited has been sent. For half of them at the
        most, and for twice as many once these have come, since large answers that come together may be lost together.
    max_bytes : int
        Of answers that wait. A single larger answer still goes through.
    """

    def __init__(
        self,
        send: Callable[[str | bytes], Awaitable[None]],
        look_up: Callable[[list[int]], Awaitable[list[str]]],
        recover: Callable[[list[Subscription]], Awaitable[None]],
        max_bytes: int,
    ) -> None:
        self._send, self._look_up, self._recover, self._max_bytes = send, look_up, recover, max_bytes
        # What waits, in its order, under a name by which it can be replaced: a reply and an answer are their own.
        self._items: OrderedDict[Hashable, Item] = OrderedDict()
        self._due: dict[int, None] = {}
        # Answers that were lost; of which snapshots have been asked for; for how many that is done at once.
        self._lost: dict[Subscription, None] = {}
        self._asked: set[Subscription] = set()
        self._at_once = 1
        self._bytes = self._replies = self._statuses = 0
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

    def status(self, query: int, frame: str) -> None:
        """Queue how a query stands, in place of what still waits of that query."""
        if query in self._due:
            return
        if self._items.pop((STATUS, query), None):
            self._statuses -= 1
        if self._statuses >= MAX_STATUSES:
            self.statuses([query])
            return
        self._statuses += 1
        self._append(Item(frame), (STATUS, query))

    def statuses(self, queries: Iterable[int]) -> None:
        """Queue how queries will stand when their turn comes; all of them come before what is queued after them."""
        self._due |= dict.fromkeys(queries)
        if STATUS not in self._items:
            self._append(Item(""), STATUS)

    def broadcast(self, slot: str, frame: str) -> None:
        """Queue a message that replaces the one of the same slot, where that still waits."""
        if slot in self._items:
            self._items[slot].frame = frame
        else:
            self._append(Item(frame), slot)

    def mark(self, slot: str, frame: str) -> None:
        """Queue what is true of the answers that are queued before it, in place of the one of the same slot."""
        self._items.pop((MARK, slot), None)
        self._append(Item(frame, mark=True), (MARK, slot))

    def answer(self, subscription: Subscription, frame: str | bytes) -> None:
        """Queue an answer; where there is no room, drop all answers that wait and have them replaced by snapshots."""
        if subscription in self._lost:
            return
        if self._bytes and self._bytes + len(frame) > self._max_bytes:
            self._overflow(subscription)
            return
        self._bytes += len(frame)
        self._asked.discard(subscription)
        self._append(Item(frame, subscription))

    async def run(self) -> None:
        """Send what waits, for ever."""
        while True:
            await self._filled.wait()
            while self._items:
                await self._send_next()
            self._filled.clear()
            await self._ask_again()

    async def _ask_again(self):
        """Ask for snapshots of answers that were lost, once those have come that were asked for."""
        self._asked = {subscription for subscription in self._asked if not subscription.closed}
        if not self._lost or self._asked:
            return
        some = list(islice(self._lost, self._at_once))
        for subscription in some:
            del self._lost[subscription]
        self._asked, self._at_once = set(some), 2 * self._at_once
        await self._recover(some)

    async def _send_next(self):
        name, item = self._items.popitem(last=False)
        if name == STATUS:
            await self._send_due()
        elif item.subscription is None:
            self._replies -= name is item
            self._statuses -= isinstance(name, tuple) and not item.mark
            await self._send(item.frame)
        else:
            self._bytes -= len(item.frame)
            if not item.subscription.closed:
                await self._send(item.frame)

    async def _send_due(self):
        """Send how the queries stand that were only noted, some at a time."""
        while self._due:
            some = list(islice(self._due, LOOKED_UP_AT_ONCE))
            # What changes from here on is told once more.
            for query in some:
                del self._due[query]
            for frame in await self._look_up(some):
                await self._send(frame)

    def _append(self, item, name=None):
        self._items[name or item] = item
        self._filled.set()

    def _overflow(self, subscription):
        answers = [item.subscription for item in self._items.values() if item.subscription is not None]
        lost = dict.fromkeys([*answers, subscription])
        for subscription in lost:
            subscription.lose()
        self._lost |= lost
        self._asked -= lost.keys()
        self._at_once = max(1, len(lost) // 2)
        kept = [(name, item) for name, item in self._items.items() if item.subscription is None and not item.mark]
        self._items = OrderedDict(kept)
        self._bytes = 0
        self._filled.set()
