"""Clients that come back get the changes that they missed, all that come at the same time together."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from webapp.bus.redis import NOT_NOW
from webapp.hub.late import LateClients
from webapp.hub.recent import KeptBatch, RecentBatches
from webapp.hub.shipping import ResumePoint
from webapp.hub.subscriptions import AnswerSubscription, Due, resumed

logger = logging.getLogger(__name__)

Tell = Callable[[KeptBatch, Due], Awaitable[None]]
# So many missed batches may be sent while no new batch is distributed.
MOST_IN_TURN = 2


@dataclass(eq=False)
class _Return:
    """Subscriptions of a client that comes back, the batch that it holds, and whether its answers continue."""

    subscriptions: Sequence[AnswerSubscription]
    held: ResumePoint
    continued: asyncio.Future[bool]


class CatchUp:
    """Continues the answers of clients that come back. Each missed batch is netted and encoded once for all of them.

    Parameters
    ----------
    recent : RecentBatches
    turn : asyncio.Lock
        Held while a new batch is distributed.
    tell : async function of a batch and of what subscriptions get of it
    late : LateClients
        Counts what is kept no longer.
    """

    def __init__(self, recent: RecentBatches, turn: asyncio.Lock, tell: Tell, late: LateClients) -> None:
        self.recent, self.turn, self.tell, self.late = recent, turn, tell, late
        self._coming: list[_Return] = []
        self._task: asyncio.Task | None = None

    async def resume(self, subscriptions: Sequence[AnswerSubscription], held: ResumePoint) -> bool:
        """Continue answers after the batch that a client holds; return whether that worked.

        Most of the missed batches are sent while the hub distributes new ones, the rest between two batches.
        """
        coming = _Return(subscriptions, held, asyncio.get_running_loop().create_future())
        self._coming.append(coming)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return await coming.continued

    async def go_on(self, late: Iterable[AnswerSubscription]) -> list[AnswerSubscription]:
        """Continue answers of a client that has read all before: send the next batch of the one furthest behind.

        So a burst comes in slices, as fast as the client reads.

        Returns
        -------
        list of AnswerSubscription
            Those that are not behind any more. Snapshots make their answers whole if something was lost for good.
        """
        whole = []
        async with self.turn:
            for subscription in sorted(late, key=lambda one: one.behind or 0):
                if (kept := self._next(subscription)) is not None:
                    await self._tell_late(subscription, kept)
                    break
                if subscription.behind is not None:
                    subscription.live, subscription.behind = True, None
                    whole.append(subscription)
        return whole

    def _next(self, subscription: AnswerSubscription) -> KeptBatch | None:
        """Return the first kept batch that a subscription that is behind has to get; None if there is none."""
        self.late.count(subscription, self.recent.first)
        told, behind = self.recent.told, subscription.behind
        missed = () if told is None or behind is None else self.recent.after(told.epoch, behind) or ()
        return next((kept for kept in missed if subscription.query in kept.batch.changed), None)

    async def _tell_late(self, subscription: AnswerSubscription, kept: KeptBatch) -> None:
        """Send a subscription that is behind the changes of a batch."""
        subscription.live, subscription.behind = True, None
        due = Due(kept.batch.number)
        due.add_alone(subscription)
        await self.tell(kept, due)
        if subscription.live:  # it was not lost once more
            subscription.live, subscription.behind = False, kept.batch.number

    def close(self) -> None:
        """Stop; clients that wait are gone."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        """Bring up to date all clients that are there, then those that have come in the meantime."""
        while self._coming:
            group, self._coming = self._coming, []
            going_on: list[_Return] = []
            try:
                going_on += [coming for coming in group if await self._reaches(coming.held)]
                continued = not going_on or await self._bring(going_on)
            except Exception:
                logger.exception("clients that came back could not be brought up to date")
                continued = False
            if not continued:
                for subscription in _all(going_on):
                    subscription.lose()
            for coming in (coming for coming in group if not coming.continued.done()):
                coming.continued.set_result(continued and coming in going_on)

    async def _reaches(self, held: ResumePoint) -> bool:
        try:
            return await self.recent.reaches(held)
        except NOT_NOW:
            return False

    async def _bring(self, group: Sequence[_Return]) -> bool:
        """Send clients what they missed; return whether all of it was available."""
        epoch, position = group[0].held.epoch, min(coming.held.batch for coming in group)
        for coming in group:
            _begin(coming)
            await asyncio.sleep(0)
        by_query = defaultdict(list)
        for subscription in _all(group):
            by_query[subscription.query].append(subscription)
        while (missed := self.recent.after(epoch, position)) is not None and len(missed) > MOST_IN_TURN:
            for kept in missed:
                await self._make_up(kept, by_query)
                await asyncio.sleep(0)  # let other tasks run: encoding takes milliseconds
            position = missed[-1].batch.number
        async with self.turn:
            missed = self.recent.after(epoch, position)
            for kept in missed or ():
                await self._make_up(kept, by_query)
            for subscription in _all(group):
                subscription.catching_up = False
        return missed is not None

    async def _make_up(self, kept: KeptBatch, by_query: Mapping[int, Sequence[AnswerSubscription]]) -> None:
        """Send subscriptions the changes of a batch that they missed."""
        due = Due(kept.batch.number)
        for query in sorted(kept.batch.changed & by_query.keys()):
            for subscription in by_query[query]:
                if subscription.live and subscription.held < kept.batch.number:
                    due.add_change(subscription)
        await self.tell(kept, due)


def _begin(coming: _Return) -> None:
    for subscription in (s for s in coming.subscriptions if not s.closed):
        subscription.live = subscription.catching_up = True
        subscription.held = subscription.before = coming.held.batch
        subscription.subscriber.deliver(subscription, resumed(subscription.query, coming.held))


def _all(group: Iterable[_Return]) -> list[AnswerSubscription]:
    return [subscription for coming in group for subscription in coming.subscriptions]
