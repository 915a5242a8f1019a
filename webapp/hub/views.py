"""Views: continuous queries that live as long as the connection that opened them."""

from django.conf import settings

from streaming.logs import control_entry
from streaming.results import VIEW_NUMBERS
from webapp.hub.line import Line
from webapp.liveness import VIEWS_KEY, WEBS_KEY, alive_key, views_key
from webapp.models.queries import clock_revision


class Views:
    """The views of one web process, in the engine and in the set from which they are retired if the process dies."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self._plans: dict[int, dict] = {}
        self._revisions: dict[int, int] = {}

    async def heartbeat(self) -> None:
        """Say that this process lives, and what it keeps."""
        async with self.line.redis.pipeline() as pipeline:
            pipeline.set(alive_key(self.line.id), "alive", ex=settings.WEB_PROCESS_TTL_S)
            pipeline.sadd(WEBS_KEY, self.line.id)
            if self._plans:
                pipeline.sadd(views_key(self.line.id), *self._plans)
            await pipeline.execute()

    async def number(self) -> int:
        """Return the number of a new view."""
        return VIEW_NUMBERS + await self.line.redis.incr(VIEWS_KEY)

    async def register(self, view: int, plan: dict) -> None:
        """Register a view, or its new plan."""
        self._plans[view] = plan
        await self.line.redis.sadd(views_key(self.line.id), view)
        await self.line.send([self._entry("register", view, plan=plan)])

    async def cancel(self, view: int) -> None:
        """End a view."""
        if self._plans.pop(view, None) is not None:
            await self.line.send([self._entry("cancel", view)])
            self._revisions.pop(view, None)
            await self.line.redis.srem(views_key(self.line.id), view)

    async def register_again(self) -> None:
        """Tell an engine that knows nothing of this process's views."""
        await self.line.send([self._entry("register", view, plan=plan) for view, plan in self._plans.items()])

    async def leave(self) -> None:
        """End all views, and this process's registration."""
        await self.line.send([self._entry("cancel", view) for view in self._plans])
        self._plans.clear()
        await self.line.redis.delete(alive_key(self.line.id), views_key(self.line.id))
        await self.line.redis.srem(WEBS_KEY, self.line.id)

    def _entry(self, op, view, **entry):
        self._revisions[view] = max(self._revisions.get(view, 0) + 1, clock_revision())
        return control_entry(op, query=view, revision=self._revisions[view], **entry)
