"""Views: continuous queries that live as long as the connection that opened them."""

import secrets
from typing import Any

from django.conf import settings

from streaming.logs import WEBS_KEY, alive_key, figures_key, views_key
from streaming.results import VIEW_NUMBERS
from webapp.hub.engine_link import Command, EngineLink
from webapp.models.queries import clock_revision

# View numbers are random, so that processes need not agree on them; a collision among 2**52 is unlikely enough. The
# largest, `VIEW_NUMBERS` plus this, is still exact in JavaScript.
NUMBERS = 2**52


class Views:
    """Registers a hub's views in the engine, and in a Redis set by which they are cancelled if the process dies."""

    def __init__(self, link: EngineLink) -> None:
        self.link = link
        self._plans: dict[int, dict] = {}
        self._revisions: dict[int, int] = {}

    async def heartbeat(self) -> None:
        """Renew this hub's sign of life and its set of views; register the views again if they were retired."""
        async with self.link.redis.pipeline() as pipeline:
            pipeline.sadd(WEBS_KEY, self.link.id)
            pipeline.set(alive_key(self.link.id), "alive", ex=settings.WEB_PROCESS_TTL_S)
            if self._plans:
                pipeline.sadd(views_key(self.link.id), *self._plans)
            unknown, *_ = await pipeline.execute()
        if unknown:
            self.register_again()

    def number(self) -> int:
        """Return a random number for a new view, from `VIEW_NUMBERS` on."""
        return VIEW_NUMBERS + secrets.randbelow(NUMBERS)

    def register(self, view: int, plan: dict) -> None:
        """Register a view in the engine, or give it a new plan."""
        self._plans[view] = plan
        kept = views_key(self.link.id)
        self._send(view, lambda pipeline: pipeline.sadd(kept, view), self._entry("register", view, plan=plan))

    def cancel(self, view: int) -> None:
        """End a view."""
        if self._plans.pop(view, None) is not None:
            kept = views_key(self.link.id)
            self._send(view, self._entry("cancel", view), lambda pipeline: pipeline.srem(kept, view))
            del self._revisions[view]

    def register_again(self) -> None:
        """Register all views once more, in an engine that has lost them."""
        for view, plan in self._plans.items():
            self.register(view, plan)

    def leave(self) -> None:
        """Cancel all views, and remove this hub's keys from Redis."""
        for view in list(self._plans):
            self.cancel(view)
        web = self.link.id
        known = alive_key(web), views_key(web), figures_key(web)
        self.link.send("leave", lambda pipeline: pipeline.delete(*known), lambda pipeline: pipeline.srem(WEBS_KEY, web))

    def _send(self, view: int, *commands: Command) -> None:
        self.link.send(("view", view), *commands)

    def _entry(self, op: str, view: int, **entry: Any) -> Command:
        self._revisions[view] = max(self._revisions.get(view, 0) + 1, clock_revision())
        return self.link.entry(op, query=view, revision=self._revisions[view], **entry)
