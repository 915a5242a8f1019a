"""The viewport of one connection: one continuous range query per stream, whose area follows the map.

For a stream with watched objects there is one query more, which has these objects wherever they are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webapp.consumers.hubs import Hubs
from webapp.consumers.messages import Reference
from webapp.hub import Hub
from webapp.models import Stream
from webapp.queries import queries


@dataclass
class View:
    """The view of one stream: its query number, the hub of its space, and its plan."""

    number: int
    hub: Hub
    plan: dict


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
        self.views: dict[tuple[str, str], View] = {}  # by whether it is of "views" or of "watched", and by stream
        self.form = "", False

    async def show(
        self,
        reference: Reference,
        plans: Mapping[str, tuple[str, dict]],
        watched: Mapping[str, tuple[str, dict]],
        form: str,
        joined: bool = False,
    ) -> None:
        """Open, edit and end views so that there is one for each given stream, and one for the watched objects of each.

        The client gets the query numbers before the first answer. A view that stays gets the new plan by an edit, so
        its answer continues with changes. A new view, one that another connection has too, or one in another format,
        starts with a snapshot.

        Parameters
        ----------
        reference : str, int or None
            The id of the message that asked for it.
        plans, watched : mapping of str to (str, dict)
            Space and plan by stream; both empty to end all views.
        form : {"json", "arrow"}
        joined : bool
            See `Hub.subscribe`.
        """
        wanted = {("views", stream): plan for stream, plan in plans.items()}
        wanted |= {("watched", stream): plan for stream, plan in watched.items()}
        hubs = {name: await self.hubs.of(space) for name, (space, _) in wanted.items()}
        for name in [name for name, view in self.views.items() if hubs.get(name) is not view.hub]:
            self._end(name)
        fresh = {name for name, (_, plan) in wanted.items() if self._show(name, hubs[name], plan)}
        self.say({"type": "view.status", "id": reference, **self._numbers("views"), **self._numbers("watched")})
        for name in wanted:
            view = self.views[name]
            if name in fresh or (form, joined) != self.form:
                await self.hubs.subscribe([view.number], form, view.hub, joined=joined)
        self.form = form, joined

    def close(self) -> None:
        """End all views."""
        for name in list(self.views):
            self._end(name)

    def _numbers(self, what: str) -> dict[str, dict[str, int]]:
        """Return the numbers of the views by stream; of watched objects only if there are any."""
        numbers = {stream: view.number for (of, stream), view in self.views.items() if of == what}
        return {what: numbers} if numbers or what == "views" else {}

    def _show(self, name: tuple[str, str], hub: Hub, plan: dict) -> bool:
        """Open the view of a stream, or move it; return whether it has a new number."""
        before = self.views.get(name)
        if before is not None and before.plan == plan:
            return False
        number = hub.views.hold(plan) if before is None else hub.views.move(before.number, plan)
        self.views[name] = View(number, hub, plan)
        if before is not None and before.number != number:
            self.hubs.unsubscribe(before.number)
        return before is None or before.number != number

    def _end(self, name: tuple[str, str]) -> None:
        view = self.views.pop(name)
        self.hubs.unsubscribe(view.number)
        view.hub.views.let_go(view.number)


def view_plans(
    known: Mapping[str, Stream], streams: list[str], area: dict, whole: Sequence[str] = ()
) -> dict[str, tuple[str, dict]]:
    """Return the space and the plan of a view for each stream: of an area, or of all of the space for those in `whole`.

    Raises
    ------
    Refused
        Where the area is wrong.
    """
    seen = {name: queries.EVERYWHERE if name in whole else area for name in streams}
    return {name: (known[name].space_name, queries.view_plan(known[name], seen[name])) for name in streams}


def watch_plans(known: Mapping[str, Stream], watched: Mapping[str, list[str]]) -> dict[str, tuple[str, dict]]:
    """Return the space and the plan of a view of some objects, wherever they are, given their keys by stream."""
    return {name: (known[name].space_name, queries.watch_plan(known[name], keys)) for name, keys in watched.items()}
