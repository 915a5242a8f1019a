"""The spans of a hub: a batch is distributed, and its frames are sent to connections."""

import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import count

from streaming.traces import PUBLISH, Sampled, Span, Traces
from webapp.hub.assembly import Batch
from webapp.hub.subscriptions import AnswerSubscription, Subscriber

DISTRIBUTE, SEND = "web.distribute", "web.send"
_sends = count()


class HubTraces:
    """Records the spans of the sampled elements of a batch, in a hub.

    Parameters
    ----------
    traces : Traces
    batch : Batch
    hub : str
        The unique name of the hub.
    """

    def __init__(self, traces: Traces, batch: Batch, hub: str) -> None:
        self._traces, self._span = traces, Span(DISTRIBUTE, batch.number, place=hub)
        # The elements by the region that published them, each once.
        self._elements: dict[int, list[Sampled]] = {}
        self._by_query: dict[int, list[Sampled]] = defaultdict(list)
        known: set[int] = set()
        for fragment in batch.fragments if traces.on else ():
            found = traces.sampled_results(fragment)
            self._elements[fragment.region] = [one for one in found if one.number not in known]
            known.update(one.number for one in found)
            for one in found:
                for query in one.queries:
                    self._by_query[query].append(one)

    def distributed(self, began_ns: int) -> None:
        """Record that the batch is distributed, which the hub began to read at a time."""
        for region, elements in self._elements.items():
            before = Span(PUBLISH, self._span.batch, region)
            self._traces.record(self._span, before, elements, began_ns)

    def delivered(self, subscriber: Subscriber, subscriptions: Sequence[AnswerSubscription]) -> None:
        """Record, once the frame that a connection has just got is sent, that it has answers of some queries."""
        if not self._by_query:
            return
        found = {one.number: one for each in subscriptions for one in self._by_query.get(each.query, ())}
        if found:
            subscriber.when_sent(partial(self._sent, list(found.values()), time.time_ns()))

    def _sent(self, elements: Sequence[Sampled], since_ns: int) -> None:
        span = Span(SEND, self._span.batch, place=f"{self._span.place} {next(_sends)}")
        self._traces.record(span, self._span, elements, since_ns)
