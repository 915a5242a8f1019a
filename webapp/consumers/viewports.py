"""The viewport of one connection: one continuous range query per stream, which moves with the map."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from webapp.consumers.hubs import Hubs
from webapp.hub import Hub


@dataclass
class View:
    """The view of one stream, in the hub of its space."""

    number: int
    hub: Hub
    plan: dict = field(default_factory=dict)


class Viewport:
    """Keeps the views of a connection; its methods are called one at a time.

    Parameters
    ----------
    hubs : Hubs
    say : function of a message
        Tells the client.
    """

    def __init__(self, hubs: Hubs, say: Callable[[dict[str, Any]], None]) -> None:
        self.hubs, self.say = hubs, say
        self.views: dict[str, View] = {}
        self.format = ""

    async def show(self, reference, plans: Mapping[str, tuple[str, dict]], form: str) -> None:
        """Make the views those of the given (space, plan), by stream.

        The client learns the numbers before the first answer. A view that stays is edited, so that its answer follows
        by changes; a new one, or one in another format, starts with a snapshot.
        """
        hubs = {stream: await self.hubs.of(space) for stream, (space, _) in plans.items()}
        for stream in [stream for stream, view in self.views.items() if hubs.get(stream) is not view.hub]:
            self._end(stream)
        fresh = [stream for stream in plans if stream not in self.views]
        for stream in fresh:
            self.views[stream] = View(hubs[stream].views.number(), hubs[stream])
        numbers = {stream: view.number for stream, view in self.views.items()}
        self.say({"type": "view.status", "id": reference, "views": numbers})
        for stream, (_, plan) in plans.items():
            view = self.views[stream]
            if view.plan != plan:
                view.hub.views.register(view.number, plan)
                view.plan = plan
            if stream in fresh or form != self.format:
                await self.hubs.subscribe([view.number], form, view.hub)
        self.format = form

    def close(self) -> None:
        """End all views."""
        for stream in list(self.views):
            self._end(stream)

    def _end(self, stream):
        view = self.views.pop(stream)
        self.hubs.unsubscribe(view.number)
        view.hub.views.cancel(view.number)
