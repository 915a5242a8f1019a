"""What clients that read slowly, or come back too late, do not get of answers that are told once."""

from collections import Counter, deque
from collections.abc import Iterable
from weakref import WeakSet

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from streaming.results import ENTERED, LEFT
from webapp.hub.assembly import Batch
from webapp.hub.subscriptions import AnswerSubscription

MISSED = "answer.missed"
# Of so many batches that are kept no longer it is known what they told.
MOST_NOTED = 10_000


class LateClients:
    """Counts what subscriptions to answers that are told once will not get.

    No snapshot brings back what such an answer told: a pair of a join over event time, an encounter that has ended. So
    a client that did not read gets all changes after the last one that it was sent (`CatchUp.go_on`), as far as batches
    are kept. What it does not get is counted.

    Attributes
    ----------
    subscriptions : WeakSet of AnswerSubscription
        The subscriptions to answers that are told once.
    """

    def __init__(self) -> None:
        self.subscriptions: WeakSet[AnswerSubscription] = WeakSet()
        # Of batches that are kept no longer: number, what each told by query, and the queries that nobody can count.
        self._dropped: deque[tuple[int, Counter[int], frozenset[int]]] = deque()
        self._known_after = -1  # what later batches told is known

    def note_dropped(self, batch: Batch) -> None:
        """Note what a batch told that is kept no longer, for clients that will not get it."""
        wanted = batch.changed.intersection(subscription.query for subscription in self.subscriptions)
        if wanted:
            self._dropped.append((batch.number, _told(batch, wanted - batch.lost), wanted & batch.lost))
        if len(self._dropped) > MOST_NOTED:
            self._known_after, _, _ = self._dropped.popleft()

    def count(self, subscription: AnswerSubscription, first: int) -> None:
        """Count what a subscription that is behind does not get, because the first batch that is kept is `first`."""
        behind = subscription.behind
        if behind is None or behind + 1 >= first:
            return
        for number, told, uncounted in self._dropped:
            if behind < number < first:
                subscription.missed += told[subscription.query]
                subscription.uncounted |= subscription.query in uncounted
        subscription.uncounted |= behind < self._known_after
        subscription.behind = first - 1

    def forget(self) -> None:
        """Forget the batches of an epoch that has ended, or of which some were lost; nobody is behind any more."""
        self._dropped.clear()
        self._known_after = -1

    def lose(self, subscriptions: Iterable[AnswerSubscription]) -> None:
        """Note that subscriptions lost batches, of which nobody can count what they told."""
        for subscription in subscriptions:
            subscription.uncounted |= subscription.once


def tell_missed(subscription: AnswerSubscription) -> None:
    """Send ``answer.missed``, if there is something that the client was not sent."""
    if subscription.missed or subscription.uncounted:
        told = {"type": MISSED, "query": subscription.query, "missed": subscription.missed}
        text = orjson.dumps(told | {"uncounted": subscription.uncounted}).decode()
        subscription.subscriber.deliver(subscription, text)


def _told(batch: Batch, queries: frozenset[int]) -> Counter[int]:
    """Return how many entries and exits a batch told, by query."""
    rows = batch.changes(queries)
    rows = rows.filter(pc.is_in(rows["sign"], value_set=pa.array([ENTERED, LEFT], pa.int8())))
    numbers, counts = np.unique(rows["query"].to_numpy(), return_counts=True)
    return Counter(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))
