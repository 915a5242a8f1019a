"""The hubs that serve one connection, one for each space."""

from collections.abc import Collection, Iterable

from channels.db import database_sync_to_async

from streaming.plans import parse_plan
from webapp.hub import AnswerSubscription, Hub, ResumePoint, current_hub
from webapp.hub.subscriptions import Subscriber
from webapp.models.spaces import spaces_by_name


class Hubs:
    """Attaches a connection to the hubs of all spaces, and keeps its subscriptions.

    Parameters
    ----------
    subscriber : Subscriber
        The connection.

    Attributes
    ----------
    subscriptions : dict of int to AnswerSubscription
        The connection's subscriptions by query.
    """

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber = subscriber
        self.subscriptions: dict[int, AnswerSubscription] = {}
        self._hubs: dict[str, Hub] = {}
        self._home: dict[int, Hub] = {}

    async def follow(self) -> None:
        """Attach to the hubs of all present spaces; detach from hubs of spaces that are gone or have changed."""
        spaces = await database_sync_to_async(spaces_by_name)()
        for name in [name for name, hub in self._hubs.items() if spaces.get(name) != hub.space]:
            await self._hubs.pop(name).detach(self.subscriber)
        for name in [name for name in spaces if name not in self._hubs]:
            self._hubs[name] = current_hub(spaces[name])
            await self._hubs[name].attach(self.subscriber)

    async def of(self, space: str) -> Hub:
        """Return the hub of an existing space, and attach to it first if needed."""
        if space not in self._hubs:
            await self.follow()
        return self._hubs[space]

    async def leave(self) -> None:
        """Detach from all hubs."""
        while self._hubs:
            _, hub = self._hubs.popitem()
            await hub.detach(self.subscriber)

    async def subscribe(
        self,
        queries: Iterable[int],
        form: str,
        hub: Hub,
        held: ResumePoint | None = None,
        joined: bool = False,
        once: Collection[int] = (),
    ) -> None:
        """Subscribe to the answers of queries in a hub's space; see `Hub.subscribe`."""
        made = await hub.subscribe(self.subscriber, queries, form, held, joined, once)
        self._home |= dict.fromkeys(made, hub)
        self.subscriptions |= made

    def unsubscribe(self, query: int) -> None:
        """End a subscription, if there is one."""
        if self.subscriptions.pop(query, None):
            self._home.pop(query).unsubscribe(self.subscriber, query)

    def follow_roles(self, query: int, plan: dict) -> None:
        """Send the connection the roles of the servers of a query that it has subscribed."""
        hub = self._home[query]
        hub.roles.follow(self.subscriber, query, parse_plan(plan, hub.space))

    def leave_roles(self, query: int) -> None:
        """Stop sending the connection the roles of a query's servers."""
        if query in self._home:
            self._home[query].roles.leave(self.subscriber, query)

    async def follow_regions(self, space: str) -> None:
        """Send the connection the regions of an existing space."""
        (await self.of(space)).regions.follow(self.subscriber)

    def leave_regions(self, space: str) -> None:
        """Stop sending the connection the regions of a space."""
        if space in self._hubs:
            self._hubs[space].regions.leave(self.subscriber)

    def edited(self, query: int, plan: dict) -> None:
        """Give the hub the present plan of a query, if the connection has subscribed it."""
        if query in self._home:
            self._home[query].roles.edited(query, plan)

    def ask(self, subscriptions: Iterable[AnswerSubscription], resync: bool = False) -> None:
        """Ask the engines for snapshots for subscriptions; `resync` says that they follow a loss."""
        for hub in list(self._hubs.values()):
            hub.ask([s for s in subscriptions if self._home.get(s.query) is hub], resync)

    async def go_on(self, late: Iterable[AnswerSubscription]) -> None:
        """Continue answers that are told once and are behind."""
        by_hub: dict[Hub, list[AnswerSubscription]] = {}
        for subscription in late:
            if not subscription.closed and (hub := self._home.get(subscription.query)):
                by_hub.setdefault(hub, []).append(subscription)
        for hub, some in by_hub.items():
            await hub.go_on(some)
