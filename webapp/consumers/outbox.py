"""A bounded queue of frames for one client: for a slow client frames are merged or dropped, and nobody waits for it."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from django.utils.translation import gettext

from webapp.hub.encoding import left_out
from webapp.hub.subscriptions import AnswerSubscription

# A connection with more unread replies than this ends.
MAX_REPLIES = 1_000
# Beyond this many waiting statuses, only query numbers are kept; the statuses are looked up when their turn comes.
MAX_STATUSES = 1_000
LOOKED_UP_AT_ONCE = 100
STATUS, MARK = "query.status", "mark"


class Unread(Exception):
    """A client sends requests but does not read the replies."""


@dataclass(eq=False)
class Item:
    """A waiting frame. Answers belong to subscriptions; a mark is about the answers queued before it.

    A frame with several subscriptions is a joined one. `since_s` is when it was queued, in monotonic seconds. The
    functions `then` are called once an answer is sent. `before` is the batch before that of an answer.
    """

    frame: str | bytes
    subscriptions: Sequence[AnswerSubscription] = ()
    mark: bool = False
    before: int = -1
    since_s: float = field(default_factory=time.monotonic)
    then: list[Callable[[], None]] = field(default_factory=list)


class Outbox:
    """A bounded queue of frames, and the loop that sends them.

    Parameters
    ----------
    send : async function of a frame
        Sends a frame; returns when the connection has room again.
    look_up : async function of a list of int
        Returns the status frames of these queries.
    recover : async function of a list of AnswerSubscription
        Asks for snapshots to replace lost answers. It is called when the queue is empty: first for at most half of the
        lost answers, then for twice as many once those snapshots have come, because large answers that arrive together
        may be lost together again.
    go_on : async function of a list of AnswerSubscription
        Queues the next changes of answers that are told once and are behind. It is called when the queue is empty.
    max_bytes : int
        Most bytes of waiting answers. A single larger answer is still sent.
    """

    def __init__(
        self,
        send: Callable[[str | bytes], Awaitable[None]],
        look_up: Callable[[list[int]], Awaitable[list[str]]],
        recover: Callable[[list[AnswerSubscription]], Awaitable[None]],
        go_on: Callable[[list[AnswerSubscription]], Awaitable[None]],
        max_bytes: int,
    ) -> None:
        self._send, self._look_up, self._recover, self._max_bytes = send, look_up, recover, max_bytes
        self._go_on = go_on
        # Waiting items in order, by the name under which a newer item replaces them. Replies and answers are never
        # replaced: they are their own names.
        self._items: OrderedDict[Hashable, Item] = OrderedDict()
        # Regular reports, which wait for a frame to go with; None where none waits since one was sent.
        self._reports: dict[Hashable, str | None] = {}
        self._due: dict[int, None] = {}
        # Subscriptions whose answers were lost; those whose snapshots were asked for; how many to ask for at once.
        self._lost: dict[AnswerSubscription, None] = {}
        self._asked: set[AnswerSubscription] = set()
        self._at_once = 1
        self._behind: dict[AnswerSubscription, None] = {}
        self._bytes = self._replies = self._statuses = 0
        self._filled = asyncio.Event()
        self._sends_since_s: float | None = None

    @property
    def waiting_bytes(self) -> int:
        """How many bytes of answers wait."""
        return self._bytes

    def waits_s(self) -> float:
        """Return for how many seconds the oldest frame waits that the client has not taken; 0 if none waits."""
        oldest = next(iter(self._items.values()), None)
        oldest_s = None if oldest is None else oldest.since_s
        since_s = oldest_s if self._sends_since_s is None else self._sends_since_s
        return 0.0 if since_s is None else time.monotonic() - since_s

    def reply(self, frame: str) -> None:
        """Queue a reply, which is never dropped.

        Raises
        ------
        Unread
            When `MAX_REPLIES` replies wait already.
        """
        if self._replies >= MAX_REPLIES:
            raise Unread(gettext("at most %(max_replies)s replies may wait to be read") % {"max_replies": MAX_REPLIES})
        self._replies += 1
        self._append(Item(frame))

    def status(self, query: int, frame: str) -> None:
        """Queue the status of a query; it replaces a waiting status of the same query."""
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
        """Queue queries whose statuses are looked up when their turn comes, before anything that is queued later."""
        self._due |= dict.fromkeys(queries)
        if STATUS not in self._items:
            self._append(Item(""), STATUS)

    def broadcast(self, slot: str, frame: str) -> None:
        """Queue a message; it replaces a waiting message of the same slot."""
        if slot in self._items:
            self._items[slot].frame = frame
        else:
            self._append(Item(frame), slot)

    def report(self, slot: str, frame: str) -> None:
        """Queue a regular report: it goes with the next frame, or when the next report of the slot comes.

        Frames that are sent together cost the system little more than one. The first report does not wait.
        """
        if self._reports.get(slot, "") is None:
            self._reports[slot] = frame
        else:
            self._reports[slot] = None
            self.broadcast(slot, frame)

    def mark(self, slot: str, frame: str) -> None:
        """Queue a message about the answers queued before it; it replaces a waiting mark of the same slot."""
        self._items.pop((MARK, slot), None)
        self._append(Item(frame, mark=True), (MARK, slot))

    def answer(self, subscription: AnswerSubscription, frame: str | bytes) -> None:
        """Queue an answer. If there is no room, drop all waiting answers; snapshots will replace them."""
        if subscription not in self._lost:
            self.changes([subscription], frame)

    def changes(self, subscriptions: Sequence[AnswerSubscription], frame: str | bytes) -> None:
        """Queue the changes of answers, none of which is lost; drop as `answer` does."""
        if self._bytes and self._bytes + len(frame) > self._max_bytes:
            self._overflow(subscriptions)
            return
        self._bytes += len(frame)
        self._asked.difference_update(subscriptions)
        self._append(Item(frame, subscriptions, before=subscriptions[0].before))

    def when_sent(self, tell: Callable[[], None]) -> None:
        """Call a function once the item that was queued last is sent, if that is an answer."""
        if self._items:
            next(reversed(self._items.values())).then.append(tell)

    async def run(self) -> None:
        """Send waiting frames, forever."""
        while True:
            await self._filled.wait()
            while self._items:
                await self._send_next()
                if not self._items:
                    self._add_reports()
            self._filled.clear()
            await self._continue_late()
            await self._ask_again()

    def _add_reports(self) -> None:
        """Queue the reports that wait for a frame, now that the last one is sent."""
        for slot, frame in self._reports.items():
            if frame is not None:
                self._reports[slot] = None
                self._append(Item(frame), slot)

    async def _continue_late(self) -> None:
        """Have the next changes queued of answers that are behind."""
        if self._behind:
            await self._go_on(list(self._behind))
            self._behind = {s: None for s in self._behind if s.behind is not None and not s.closed}
            if self._behind:
                self._filled.set()

    async def _ask_again(self) -> None:
        """Ask for snapshots of some lost answers, once all snapshots that were asked for have come."""
        self._asked = {subscription for subscription in self._asked if not subscription.closed}
        if not self._lost or self._asked:
            return
        some = list(islice(self._lost, self._at_once))
        for subscription in some:
            del self._lost[subscription]
        self._asked, self._at_once = set(some), 2 * self._at_once
        await self._recover(some)

    async def _send_next(self) -> None:
        name, item = self._items.popitem(last=False)
        self._sends_since_s = item.since_s
        await self._send_item(name, item)
        self._sends_since_s = None

    async def _send_item(self, name: Hashable, item: Item) -> None:
        if name == STATUS:
            await self._send_due()
        elif not item.subscriptions:
            self._replies -= name is item
            self._statuses -= isinstance(name, tuple) and not item.mark
            await self._send(item.frame)
        else:
            self._bytes -= len(item.frame)
            if frame := _open_part(item):
                await self._send(frame)
                for tell in item.then:
                    tell()

    async def _send_due(self) -> None:
        """Look up and send the statuses of queries of which only the number was kept, `LOOKED_UP_AT_ONCE` at a time."""
        while self._due:
            some = list(islice(self._due, LOOKED_UP_AT_ONCE))
            # Remove them first: a change during the look-up then queues the status once more.
            for query in some:
                del self._due[query]
            for frame in await self._look_up(some):
                await self._send(frame)

    def _append(self, item: Item, name: Hashable = None) -> None:
        self._items[name or item] = item
        self._filled.set()

    def _overflow(self, subscriptions: Sequence[AnswerSubscription]) -> None:
        # The oldest first: the last batch that was sent of each answer is the one before its first that waits.
        waiting = [(one, item.before) for item in self._items.values() for one in item.subscriptions]
        dropped = [*waiting, *((one, one.before) for one in subscriptions)]
        for subscription, before in dropped:
            subscription.fall_behind(before)
        everyone = dict.fromkeys(subscription for subscription, _ in dropped)
        lost = {subscription: None for subscription in everyone if subscription.behind is None}
        self._behind |= {subscription: None for subscription in everyone if subscription.behind is not None}
        self._lost |= lost
        self._asked -= lost.keys()
        self._at_once = max(1, len(lost) // 2)
        kept = [(name, item) for name, item in self._items.items() if not (item.subscriptions or item.mark)]
        self._items = OrderedDict(kept)
        self._bytes = 0
        self._filled.set()


def _open_part(item: Item) -> str | bytes | None:
    """Return the frame of an answer or of joined answers, without those that have ended; None if all have."""
    closed = {subscription.query for subscription in item.subscriptions if subscription.closed}
    if not closed:
        return item.frame
    return left_out(item.frame, closed) if len(closed) < len(item.subscriptions) else None
