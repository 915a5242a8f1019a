"""The hubs of a web process, one for each space."""

import asyncio
import contextlib
import logging
import time
from collections import defaultdict
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from django.conf import settings

from streaming.logs import read_fragment
from streaming.spaces import Space
from webapp.hub.assembly import Batch
from webapp.hub.complaints import Complaints
from webapp.hub.engine_link import EngineLink
from webapp.hub.reports import Reports
from webapp.hub.roles import Roles
from webapp.hub.shipping import ResumePoint, assembly_of, missed
from webapp.hub.subscriptions import SNAPSHOT, Encoded, Subscriber, Subscription, due, encode, held_text, resumed
from webapp.hub.views import Views
from webapp.redis import NOT_NOW

logger = logging.getLogger(__name__)

# Batches with more rows than this are encoded in a thread, so that they do not block the connections.
ROWS_IN_LOOP = 5_000
READ_COUNT = 64
READ_WAIT_S = 1.0
RETRY_S = 0.5
HOUSEKEEPING_S = 0.5
LONGEST_PATIENCE_S = 30.0


class Hub:
    """Reads the result log of a space, splits batches by query, and gives the frames to the subscribers.

    It runs while connections are attached to it. Call its methods only in the event loop in which it runs. While Redis
    does not answer, callers do not wait: the hub sends their requests, and reads the log on, once Redis answers.

    Parameters
    ----------
    space : Space

    Attributes
    ----------
    told : ResumePoint or None
        The last batch that was distributed.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.link = EngineLink(space)
        self.told: ResumePoint | None = None
        self.subscriptions: dict[int, list[Subscription]] = defaultdict(list)
        self.roles = Roles(self.link, self.subscriptions)
        self.complaints = Complaints()
        self.subscribers: set[Subscriber] = set()
        self._tasks: list[asyncio.Task] = []
        self._changing = asyncio.Lock()  # held while the hub starts or stops
        # Held while a batch is distributed: a client that catches up finishes between two batches.
        self._turn = asyncio.Lock()

    async def attach(self, subscriber: Subscriber) -> None:
        """Add a connection; the first one starts the hub. Return once the hub has tried to read the result log."""
        self.subscribers.add(subscriber)
        async with self._changing:
            if not self._tasks:
                self._start()
        await self._tried.wait()

    async def detach(self, subscriber: Subscriber) -> None:
        """Remove a connection and its subscriptions; the last one stops the hub."""
        self.subscribers.discard(subscriber)
        for query in list(self.subscriptions):
            self.unsubscribe(subscriber, query)
        async with self._changing:
            if not self.subscribers and self._tasks:
                await self._stop()

    async def subscribe(
        self, subscriber: Subscriber, queries: Iterable[int], form: str, held: ResumePoint | None = None
    ) -> dict[int, Subscription]:
        """Subscribe a connection to the answers of queries; return the new subscriptions by query.

        A new subscription replaces the connection's former one to the same query. Its answer starts with a snapshot,
        then all changes follow. If the client already holds the answers at the end of batch `held`, and the result log
        still has all later batches, the answer starts with the changes since that batch instead.

        Parameters
        ----------
        subscriber : Subscriber
        queries : iterable of int
        form : {"json", "arrow"}
        held : ResumePoint, optional
        """
        made = {query: Subscription(subscriber, query, form) for query in queries}
        for query, subscription in made.items():
            self.unsubscribe(subscriber, query)
            self.subscriptions[query].append(subscription)
            subscription.sent_before = self.roles.count_from(query)
        if held is None or not await self._resume(made.values(), held):
            self.ask(made.values())
        return made

    async def _resume(self, subscriptions, held):
        """Continue answers from the batch that the client holds; return whether that worked.

        Most of the missed batches are sent while the hub distributes new ones, the rest between two batches.
        """
        going_on = [s for s in subscriptions if not s.closed]
        told, batches = self.told, await self._missed(held)
        if batches is None:
            return False
        for subscription in going_on:
            subscription.live = subscription.catching_up = True
            subscription.subscriber.deliver(subscription, resumed(subscription.query, held))
        await self._make_up(batches, going_on)
        async with self._turn:
            held = _later(held, told)
            rest = await self._missed(held)
            await self._make_up(rest or (), going_on)
            for subscription in going_on:
                if rest is None:
                    subscription.lose()
                elif subscription.live:
                    subscription.catching_up, subscription.held = False, _later(held, self.told).batch
        return rest is not None

    async def _make_up(self, batches, subscriptions):
        """Send subscriptions the changes of batches that they missed."""
        for batch in batches:
            await self._tell(batch, {s: [s.change] for s in subscriptions if s.live})
            await asyncio.sleep(0)  # let other tasks run: encoding takes milliseconds

    async def _missed(self, held):
        """Return the batches after the one that a client holds, up to `told`; None if they are not all available."""
        try:
            return await missed(self.link.event_log, self.link.names.results, self.space, held, self.told)
        except NOT_NOW:
            return None

    def unsubscribe(self, subscriber: Subscriber, query: int) -> None:
        """End a subscription, if there is one."""
        self.roles.leave(subscriber, query)
        kept = []
        for subscription in self.subscriptions.get(query, ()):
            subscription.closed = subscription.closed or subscription.subscriber is subscriber
            kept += [] if subscription.closed else [subscription]
        if kept:
            self.subscriptions[query] = kept
        else:
            self.subscriptions.pop(query, None)

    def ask(self, subscriptions: Iterable[Subscription], resync: bool = False) -> None:
        """Ask the engine for snapshots for subscriptions; `resync` says that they follow a loss."""
        wanted = [s for s in subscriptions if not s.closed]
        for subscription in wanted:
            subscription.waiting, subscription.asked = True, time.monotonic()
            subscription.resync = subscription.resync or resync
        for query in sorted({s.query for s in wanted}):
            self.link.ask_snapshot(query)

    def broadcast(self, slot: str, text: str) -> None:
        """Send a text to every connection; it replaces an unsent one of the same slot."""
        for subscriber in self.subscribers:
            subscriber.broadcast(slot, text)

    def _start(self):
        self.link.open()
        self._tried = asyncio.Event()
        self._position = self.told = self._marked = None
        self._away = False
        self.views = Views(self.link)
        self.reports = Reports(self.link, self.broadcast)
        rounds = (
            (1.0, self.complaints.tell),
            (0.0, self._read),
            (0.0, self.link.flush_next),
            (HOUSEKEEPING_S, self._remind),
            (1.0, self._report),
            (1.0, self.roles.publish),
            (settings.WEB_PROCESS_TTL_S / 3, self.views.heartbeat),
        )
        self._tasks = [asyncio.create_task(self._every(seconds, step)) for seconds, step in rounds]

    async def _stop(self):
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.views.leave()
        with contextlib.suppress(*NOT_NOW):
            await self.link.flush()
        await self.link.close()

    async def _begin(self):
        """Find the last whole batch of the result log; ask again for snapshots, which may have passed unread."""
        try:
            await self.views.heartbeat()
            begun = await assembly_of(self.link.event_log, self.link.names.results, self.space)
            self._assembly, self._position, self.told = begun
        finally:
            self._tried.set()
        waiting = [s for group in self.subscriptions.values() for s in group if s.waiting]
        for subscription in waiting:
            subscription.patience_s = Subscription.patience_s
        self.ask(waiting)

    async def _read(self):
        """Read new entries of the result log, and distribute the batches that they complete."""
        if self._position is None:
            await self._begin()
        log = self.link.names.results
        found = await self.link.event_log.poll({log: self._position}, READ_COUNT, READ_WAIT_S)
        self._away = False
        if log not in found:
            return
        self._position = found[log][-1].position
        try:
            for entry in found[log]:
                await self._take(read_fragment(entry.fields, self.space))
        except Exception:
            self._assembly.lose()
            raise

    async def _take(self, fragment):
        batch = self._assembly.add(fragment)
        if batch is not None:
            self.reports.observe(batch)
            self.roles.observe(batch)
            await self.distribute(batch)

    async def distribute(self, batch: Batch) -> None:
        """Give the frames of a batch to the subscribers; encode each frame once."""
        async with self._turn:
            everyone = [s for subscriptions in self.subscriptions.values() for s in subscriptions]
            if batch.new_epoch or batch.gap:
                self._recover(batch, everyone)
            await self._tell(batch, {s: due(s, batch.number, batch.snapshot_queries) for s in everyone})
            self.told = ResumePoint(batch.epoch, batch.number)
            self._ask_of_known(batch.acknowledged)

    async def _tell(self, batch, wanted):
        """Encode the frames of a batch, and deliver to each subscription those that it wants."""
        frames = {frame for some in wanted.values() for frame in some}
        if not frames:
            return
        arguments = (batch, frames, time.time_ns() // 1000, self.space)
        encoded = await asyncio.to_thread(encode, *arguments) if batch.size > ROWS_IN_LOOP else encode(*arguments)
        for subscription, some in wanted.items():
            self._deliver(subscription, encoded, some)
        self.complaints.note(encoded.errors)

    def _deliver(self, subscription, encoded: Encoded, frames):
        for wanted in frames:
            if wanted in encoded.lost:
                subscription.put_off()
            still = subscription.waiting if wanted.kind == SNAPSHOT else subscription.live
            if subscription.closed or not still or wanted not in encoded.frames:
                continue
            if wanted.kind == SNAPSHOT:
                subscription.live, subscription.waiting, subscription.resync = True, False, False
                subscription.patience_s = Subscription.patience_s
            subscription.subscriber.deliver(subscription, encoded.frames[wanted])

    def _ask_of_known(self, queries):
        """Ask again for snapshots of queries that the engine has just registered: it ignored earlier requests."""
        waiting = [s for query in queries for s in self.subscriptions.get(query, ()) if s.waiting]
        self.ask(waiting)

    async def _report(self):
        await self.reports.publish()
        await self.mark()

    async def mark(self) -> None:
        """Tell every connection up to which batch it has all changes of its queries, if a new batch was distributed."""
        async with self._turn:
            if self.told is None or self.told == self._marked:
                return
            self._marked = self.told
            behind = defaultdict(list)
            everyone = (s for group in self.subscriptions.values() for s in group)
            for subscription in (s for s in everyone if not s.live or s.catching_up):
                behind[subscription.subscriber].append(subscription.query)
            for subscriber in self.subscribers:
                subscriber.mark(self.space.name, held_text(self.space.name, self.told, behind[subscriber]))

    def _recover(self, batch, everyone):
        """Ask for snapshots of all answers, after batches were lost or the engine started with a new state."""
        for subscription in everyone:
            subscription.lose()
        if batch.new_epoch:
            self.views.register_again()
        self.ask(everyone, resync=True)

    async def _remind(self):
        """Ask again for snapshots that are overdue; wait twice as long for the next time."""
        now = time.monotonic()
        late = [s for group in self.subscriptions.values() for s in group if s.waiting and now - s.asked > s.patience_s]
        for subscription in late:
            subscription.patience_s = min(2 * subscription.patience_s, LONGEST_PATIENCE_S)
        self.ask(late)

    async def _every(self, seconds, step):
        """Repeat a step until cancelled. Log failures and try again; log a Redis that does not answer only once."""
        task = asyncio.current_task()
        while not task.cancelling():  # a cancellation can get lost in a read to which Redis replies at that moment
            try:
                await step()
                pause_s = seconds
            except NOT_NOW as error:
                if not self._away:
                    logger.warning("the hub of %s goes on once Redis answers: %s", self.space.name, error)
                self._away, pause_s = True, RETRY_S
            except Exception:
                logger.exception("a step of the hub failed")
                pause_s = max(seconds, RETRY_S)
            await asyncio.sleep(pause_s)


def _later(one: ResumePoint, other: ResumePoint) -> ResumePoint:
    return max(one, other, key=lambda held: held.batch)


_HUBS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Space, Hub]] = WeakKeyDictionary()


def current_hub(space: Space) -> Hub:
    """Return the hub of a space in the running event loop."""
    hubs = _HUBS.setdefault(asyncio.get_running_loop(), {})
    return hubs.get(space) or hubs.setdefault(space, Hub(space))
