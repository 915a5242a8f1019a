"""The viewport of one connection: one continuous range query per stream, which moves with the map."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webapp.consumers.monitor import Monitor


class Viewport:
    """Keeps the views of a connection; its methods are called one at a time."""

    def __init__(self, monitor: "Monitor") -> None:
        self.monitor = monitor
        self.views: dict[str, int] = {}
        self.plans: dict[str, dict] = {}
        self.format = ""

    async def show(self, reference, plans: dict[str, dict], form: str) -> None:
        """Make the views those of the given plans, by stream.

        The client learns the numbers before the first answer. A view that stays is edited, so that its answer follows
        by changes; a new one, or one in another format, starts with a snapshot.
        """
        hub = self.monitor.hub
        for stream in set(self.views) - set(plans):
            await self._end(stream)
        fresh = [stream for stream in plans if stream not in self.views]
        for stream in fresh:
            self.views[stream] = await hub.views.number()
        self.monitor.say({"type": "view.status", "id": reference, "views": self.views})
        for stream, plan in plans.items():
            if self.plans.get(stream) != plan:
                await hub.views.register(self.views[stream], plan)
            if stream in fresh or form != self.format:
                await self.monitor.subscribe(self.views[stream], form)
        self.plans, self.format = dict(plans), form

    async def close(self) -> None:
        """End all views."""
        for stream in list(self.views):
            await self._end(stream)

    async def _end(self, stream):
        view = self.views.pop(stream)
        self.plans.pop(stream, None)
        self.monitor.subscriptions.pop(view, None)
        self.monitor.hub.unsubscribe(self.monitor, view)
        await self.monitor.hub.views.cancel(view)
