"""The subscriptions of a hub, found by query and by connection."""

from collections.abc import Collection, Iterator, Mapping

from webapp.hub.subscriptions import AnswerSubscription, Subscriber


class Directory(Mapping[int, Collection[AnswerSubscription]]):
    """The open subscriptions by query. What it takes to add or to end one does not depend on how many there are."""

    def __init__(self) -> None:
        self._of_query: dict[int, dict[Subscriber, AnswerSubscription]] = {}
        self._of_subscriber: dict[Subscriber, dict[int, AnswerSubscription]] = {}

    def add(self, subscription: AnswerSubscription) -> None:
        """Add a subscription. Its connection must not have another one to the same query."""
        subscriber, query = subscription.subscriber, subscription.query
        self._of_query.setdefault(query, {})[subscriber] = subscription
        self._of_subscriber.setdefault(subscriber, {})[query] = subscription

    def end(self, subscriber: Subscriber, query: int) -> None:
        """Close and remove the subscription of a connection to a query, if there is one."""
        subscription = self._of_query.get(query, {}).pop(subscriber, None)
        if subscription is None:
            return
        subscription.closed = True
        del self._of_subscriber[subscriber][query]
        if not self._of_query[query]:
            del self._of_query[query]
        if not self._of_subscriber[subscriber]:
            del self._of_subscriber[subscriber]

    def queries_of(self, subscriber: Subscriber) -> list[int]:
        """Return the queries that a connection has subscribed."""
        return list(self._of_subscriber.get(subscriber, ()))

    def find(self, subscriber: Subscriber, query: int) -> AnswerSubscription:
        """Return the subscription of a connection to a query; raise KeyError if there is none."""
        return self._of_query[query][subscriber]

    def everyone(self) -> Iterator[AnswerSubscription]:
        """Return all subscriptions."""
        return (subscription for group in self._of_query.values() for subscription in group.values())

    def __getitem__(self, query: int) -> Collection[AnswerSubscription]:
        """Return the subscriptions to a query; raise KeyError if there are none."""
        return self._of_query[query].values()

    def __iter__(self) -> Iterator[int]:
        """Return the queries that have subscriptions."""
        return iter(self._of_query)

    def __len__(self) -> int:
        """Return how many queries have subscriptions."""
        return len(self._of_query)
