"""The hub of a space: splits each batch by query for all connections of a web process."""

import asyncio
import contextlib
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Sequence

from django.conf import settings

from streaming.logs import read_fragment
from streaming.results import Fragment
from streaming.spaces import Space
from streaming.trace_opening import open_traces
from webapp.bus.redis import NOT_NOW
from webapp.hub.assembly import Batch
from webapp.hub.catch_up import CatchUp
from webapp.hub.clocks import Clocks
from webapp.hub.complaints import Complaints
from webapp.hub.directory import Directory
from webapp.hub.encoding import Encoded, encode, left_out
from webapp.hub.engine_link import EngineLink
from webapp.hub.figures import HubFigures
from webapp.hub.late import LateClients, tell_missed
from webapp.hub.recent import KeptBatch, RecentBatches
from webapp.hub.regions import RegionFollowers
from webapp.hub.reports import Reports
from webapp.hub.roles import Roles
from webapp.hub.shipping import ResumePoint, assembly_of
from webapp.hub.snapshot_requests import SnapshotRequests
from webapp.hub.subscriptions import (
    SNAPSHOT,
    AnswerSubscription,
    Due,
    FrameOf,
    JoinedOf,
    Subscriber,
    all_due,
    held_text,
)
from webapp.hub.traces import HubTraces
from webapp.hub.views import Views

logger = logging.getLogger(__name__)

# Batches with more rows than this are encoded in a thread, so that they do not block the connections.
ROWS_IN_LOOP = 5_000
READ_COUNT = 64
READ_WAIT_S = 1.0
RETRY_S = 0.5
HOUSEKEEPING_S = 0.5
# How often clients learn how the engine is. Beside a thousand clients, these messages are as many as all answers.
STATUS_S = 2.0
# How often clients learn how far they hold answers that do not change. The result log reaches back much longer.
HELD_S = 10.0


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
        self.subscriptions = Directory()
        self.roles = Roles(self.link, self.subscriptions)
        self.regions = RegionFollowers(self.link)
        self.complaints = Complaints()
        self.clocks = Clocks(self.link)
        self.subscribers: set[Subscriber] = set()
        self.figures = HubFigures(self.link, self.subscribers)
        self._traces, self._read_ns = open_traces(settings.TRACE_RATIO, "web"), 0
        self._tasks: list[asyncio.Task] = []
        self._changing = asyncio.Lock()  # held while the hub starts or stops
        # Held while a batch is distributed: a client that catches up finishes between two batches.
        self._turn = asyncio.Lock()
        self.late = LateClients()
        self.recent = RecentBatches(self.link, dropped=self.late.note_dropped)
        self.catch_up = CatchUp(self.recent, self._turn, self._tell, self.late)
        self.requests = SnapshotRequests(self.link, self._waiting_for)

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
        self.regions.leave(subscriber)
        for query in self.subscriptions.queries_of(subscriber):
            self.unsubscribe(subscriber, query)
        async with self._changing:
            if not self.subscribers and self._tasks:
                await self._stop()

    async def subscribe(
        self,
        subscriber: Subscriber,
        queries: Iterable[int],
        form: str,
        held: ResumePoint | None = None,
        joined: bool = False,
        once: Collection[int] = (),
    ) -> dict[int, AnswerSubscription]:
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
        joined : bool
            The changes of a batch come in one frame with those of the connection's other answers that ask for it.
        once : collection of int
            The queries whose answers are told once; see `LateClients`.
        """
        made = {q: AnswerSubscription(subscriber, q, form, joined=joined, once=q in once) for q in queries}
        self.late.subscriptions.update(s for s in made.values() if s.once)
        for query, subscription in made.items():
            self.unsubscribe(subscriber, query)
            self.subscriptions.add(subscription)
            subscription.sent_before = self.roles.count_from(query)
        if held is None or not await self.catch_up.resume(list(made.values()), held):
            self.late.lose(made.values() if held else ())
            self.ask(made.values())
        return made

    async def go_on(self, late: Sequence[AnswerSubscription]) -> None:
        """Send a client that has read all before the next changes that it missed, of an answer that is told once."""
        self.ask(await self.catch_up.go_on(late))

    def unsubscribe(self, subscriber: Subscriber, query: int) -> None:
        """End a subscription, if there is one."""
        self.roles.leave(subscriber, query)
        self.subscriptions.end(subscriber, query)

    def ask(self, subscriptions: Iterable[AnswerSubscription], resync: bool = False, again: bool = False) -> None:
        """Ask the engine for snapshots for subscriptions.

        Parameters
        ----------
        subscriptions : iterable of AnswerSubscription
        resync : bool
            The snapshots follow a loss.
        again : bool
            Earlier requests may have been ignored or answered unread, so they are repeated.
        """
        wanted = [s for s in subscriptions if not s.closed]
        for subscription in wanted:
            subscription.waiting = True
            subscription.resync = subscription.resync or resync
        self.requests.ask(sorted({s.query for s in wanted}), again)

    def _waiting_for(self, query: int) -> Hashable:
        """Return a user who waits for a snapshot of a query; None if nobody does."""
        return next((s.subscriber.owner for s in self.subscriptions.get(query, ()) if s.waiting), None)

    def broadcast(self, slot: str, text: str) -> None:
        """Send a text to every connection; it replaces an unsent one of the same slot."""
        for subscriber in self.subscribers:
            subscriber.broadcast(slot, text)

    def report(self, slot: str, text: str) -> None:
        """Send a regular report to every connection: with its next message, or when the next report comes."""
        for subscriber in self.subscribers:
            subscriber.report(slot, text)

    def _start(self) -> None:
        self.link.open()
        self._tried = asyncio.Event()
        self.told = None
        self._position: str | None = None
        self._marked: ResumePoint | None = None
        self._away = False
        self.views = Views(self.link)
        self.reports = Reports(self.link, self.report, self.broadcast, self.roles.rescale, self.roles.drive)
        rounds = (
            (1.0, self.complaints.tell),
            (0.0, self._read),
            (0.0, self.link.flush_next),
            (HOUSEKEEPING_S, self._remind),
            (STATUS_S, self.reports.publish),
            (STATUS_S, self.figures.publish),
            (HELD_S, self.mark),
            (1.0, self.roles.publish),
            (1.0, self.regions.publish),
            (settings.WEB_PROCESS_TTL_S / 3, self.views.heartbeat),
        )
        self._tasks = [asyncio.create_task(self._every(seconds, step)) for seconds, step in rounds]

    async def _stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        self.catch_up.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.views.leave()
        with contextlib.suppress(*NOT_NOW):
            await self.link.flush()
        await self.link.close()

    async def _begin(self) -> None:
        """Find the last whole batch of the result log; ask again for snapshots, which may have passed unread."""
        try:
            await self.views.heartbeat()
            begun = await assembly_of(self.link.event_log, self.link.names.results, self.space)
            self._assembly, self._position, self.told = begun
            self.recent.begin(self.told)
        finally:
            self._tried.set()
        self.ask([s for s in self.subscriptions.everyone() if s.waiting], again=True)

    async def _read(self) -> None:
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
                self._read_ns = time.time_ns()
                await self._take(read_fragment(entry.fields, self.space))
        except Exception:
            self._assembly.lose()
            raise

    async def _take(self, fragment: Fragment) -> None:
        batch = self._assembly.add(fragment)
        if batch is not None:
            self.reports.observe(batch)
            self.roles.observe(batch)
            self.clocks.observe(batch)
            await self.distribute(batch)

    async def distribute(self, batch: Batch) -> None:
        """Give the frames of a batch to the subscribers of the answers that it changes; encode each frame once."""
        async with self._turn:
            if batch.new_epoch or batch.gap:
                self._recover(batch)
            snapshots = batch.snapshot_queries
            if batch.newest_us:
                self.requests.pace(self._read_ns / 1e9 - batch.newest_us / 1e6)
            self.requests.settle(batch.snapshot_counts)
            touched = [query for query in sorted(batch.changed | snapshots) if query in self.subscriptions]
            everyone = [subscription for query in touched for subscription in self.subscriptions[query]]
            kept, traces = self.recent.add(batch), HubTraces(self._traces, batch, self.link.id)
            for due in all_due(everyone, batch.number, snapshots).light_first(batch.rows_of):
                await self._tell(kept, due, batch, traces)
            traces.distributed(self._read_ns)
            self.told = ResumePoint(batch.epoch, batch.number)
            self._ask_of_known(batch.acknowledged)

    async def _tell(
        self, kept: KeptBatch, due: Due, batch: Batch | None = None, traces: HubTraces | None = None
    ) -> None:
        """Deliver to subscriptions what they get of a batch, and encode the frames that are not kept.

        Parameters
        ----------
        kept : KeptBatch
        due : Due
        batch : Batch, optional
            The batch with its snapshots, if snapshots are due.
        traces : HubTraces, optional
            The spans of a batch that is new.
        """
        frames = {frame for some in due.alone.values() for frame in some}
        missing = frames - kept.frames.keys()
        joined = {joint: JoinedOf(tuple([s.query for s in group]), joint[1]) for joint, group in due.joined.items()}
        to_encode = missing.union(joined.values())
        encoded = await self._encode(batch or kept.batch, to_encode) if to_encode else Encoded()
        self.recent.keep_frames(kept, missing, encoded)
        encoded.frames.update({frame: told for frame in frames - missing if (told := kept.frames[frame])})
        for joint, group in due.joined.items():
            self._deliver_joined(group, encoded, joined[joint], traces)
        for subscription, some in due.alone.items():
            self._deliver(subscription, encoded, some, traces)
        for query in {frame.query for frame in encoded.lost}:
            self.requests.put_off(query)
        self.complaints.note(encoded.errors)

    async def _encode(self, batch: Batch, frames: set[FrameOf | JoinedOf]) -> Encoded:
        arguments = (batch, frames, time.time_ns() // 1000, self.space)
        return await asyncio.to_thread(encode, *arguments) if batch.size > ROWS_IN_LOOP else encode(*arguments)

    def _deliver(
        self,
        subscription: AnswerSubscription,
        encoded: Encoded,
        frames: Sequence[FrameOf],
        traces: HubTraces | None = None,
    ) -> None:
        for wanted in frames:
            if wanted in encoded.lost:
                subscription.put_off()
            still = subscription.waiting if wanted.kind == SNAPSHOT else subscription.live
            if subscription.closed or not still or wanted not in encoded.frames:
                continue
            if wanted.kind == SNAPSHOT:
                subscription.live, subscription.waiting, subscription.resync = True, False, False
                tell_missed(subscription)
            subscription.subscriber.deliver(subscription, encoded.frames[wanted])
            self.figures.count(encoded.frames[wanted])
            if traces:
                traces.delivered(subscription.subscriber, [subscription])

    def _deliver_joined(
        self, group: list[AnswerSubscription], encoded: Encoded, name: JoinedOf, traces: HubTraces | None
    ) -> None:
        """Deliver the changes of several answers of a connection in one frame."""
        if encoded.lost:
            for subscription in (s for s in group if s.change in encoded.lost):
                subscription.put_off()
        frame, gone = encoded.frames.get(name), [s.query for s in group if s.closed or not s.live]
        if frame is not None and gone:
            frame, group = left_out(frame, gone), [s for s in group if s.query not in gone]
        if frame is not None:
            group[0].subscriber.deliver_joined(group, frame)
            self.figures.count(frame)
            if traces:
                traces.delivered(group[0].subscriber, group)

    def _ask_of_known(self, queries: Iterable[int]) -> None:
        """Ask again for snapshots of queries that the engine has just registered: it ignored earlier requests."""
        self.ask([s for query in queries for s in self.subscriptions.get(query, ()) if s.waiting], again=True)

    async def mark(self) -> None:
        """Tell every connection up to which batch it has all changes of its queries, if a new batch was distributed."""
        async with self._turn:
            if self.told is None or self.told == self._marked:
                return
            self._marked = self.told
            behind = defaultdict(list)
            for subscription in self.subscriptions.everyone():
                if not subscription.live or subscription.catching_up:
                    behind[subscription.subscriber].append(subscription.query)
            nobody = held_text(self.space.name, self.told, [])
            for subscriber in self.subscribers:
                some = behind.get(subscriber)
                text = held_text(self.space.name, self.told, some) if some else nobody
                subscriber.mark(self.space.name, text)

    def _recover(self, batch: Batch) -> None:
        """Ask for snapshots of all answers, after batches were lost or the engine started with a new state."""
        self.late.lose(s for s in self.late.subscriptions if s.live or s.behind is not None)
        self.late.forget()
        for subscription in self.subscriptions.everyone():
            subscription.lose()
        if batch.new_epoch:
            self.views.register_again()
        self.ask(self.subscriptions.everyone(), resync=True, again=True)

    async def _remind(self) -> None:
        self.requests.remind()

    async def _every(self, seconds: float, step: Callable[[], Awaitable[None]]) -> None:
        """Repeat a step until cancelled. Log failures and try again; log a Redis that does not answer only once."""
        task = asyncio.current_task()
        assert task is not None
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
