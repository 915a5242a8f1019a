"""Views: continuous queries that live as long as the connections that opened them."""

import secrets
from collections import Counter
from typing import Any

import orjson
from django.conf import settings

from streaming.keys import WEBS_KEY, alive_key, figures_key, views_key
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
        # The views that connections share: how many hold each, and by which plan it is found.
        self._holders: Counter[int] = Counter()
        self._shared: dict[bytes, int] = {}

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

    def hold(self, plan: dict) -> int:
        """Return the number of a view with a plan, for one more connection: equal views are evaluated once."""
        number = self._shared.get(_name(plan)) or self.number()
        if not self._holders[number]:
            self._shared[_name(plan)] = number
            self.register(number, plan)
        self._holders[number] += 1
        return number

    def move(self, view: int, plan: dict) -> int:
        """Give the view of a connection a new plan; return its number, a new one if other connections hold the view."""
        if self._holders[view] > 1:
            self.let_go(view)
            return self.hold(plan)
        self._forget(view)
        self._shared.setdefault(_name(plan), view)
        self.register(view, plan)
        return view

    def let_go(self, view: int) -> None:
        """Take a view from a connection; end it with the last one."""
        self._holders[view] -= 1
        if not self._holders[view]:
            del self._holders[view]
            self._forget(view)
            self.cancel(view)

    def _forget(self, view: int) -> None:
        if self._shared.get(name := _name(self._plans[view])) == view:
            del self._shared[name]

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


def _name(plan: dict) -> bytes:
    return orjson.dumps(plan, option=orjson.OPT_SORT_KEYS)
