"""The viewport of one connection: one continuous range query per stream, whose area follows the map."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from webapp.consumers.hubs import Hubs
from webapp.hub import Hub


@dataclass
class View:
    """The view of one stream: its query number, the hub of its space, and its plan."""

    number: int
    hub: Hub
    plan: dict = field(default_factory=dict)


class Viewport:
    """Keeps the views of a connection. Do not call its methods concurrently.

    Parameters
    ----------
    hubs : Hubs
    say : function of a message
        Sends a message to the client.
    """

    def __init__(self, hubs: Hubs, say: Callable[[dict[str, Any]], None]) -> None:
        self.hubs, self.say = hubs, say
        self.views: dict[str, View] = {}
        self.form = "", False

    async def show(self, reference, plans: Mapping[str, tuple[str, dict]], form: str, joined: bool = False) -> None:
        """Open, edit and end views so that there is one for each given stream.

        The client gets the query numbers before the first answer. A view that stays gets the new plan by an edit, so
        its answer continues with changes. A new view, or one in another format, starts with a snapshot.

        Parameters
        ----------
        reference : str, int or None
            The id of the message that asked for it.
        plans : mapping of str to (str, dict)
            Space and plan by stream; empty to end all views.
        form : {"json", "arrow"}
        joined : bool
            See `Hub.subscribe`.
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
            if stream in fresh or (form, joined) != self.form:
                await self.hubs.subscribe([view.number], form, view.hub, joined=joined)
        self.form = form, joined

    def close(self) -> None:
        """End all views."""
        for stream in list(self.views):
            self._end(stream)

    def _end(self, stream):
        view = self.views.pop(stream)
        self.hubs.unsubscribe(view.number)
        view.hub.views.cancel(view.number)
