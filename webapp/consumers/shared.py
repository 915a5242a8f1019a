"""The consumer of ``/ws/shared/<secret>/``: a connection that a share link opened, which only reads."""

import asyncio
import time
from typing import Any

import orjson
import redis
from channels.db import database_sync_to_async
from django.conf import settings
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.kinds.registry import kind_of
from streaming.logs import SHARE_KEY
from streaming.plans import parse_plan
from webapp.access import Guest, Rights
from webapp.consumers.monitor import Monitor, definitions
from webapp.models import ShareLink
from webapp.notify import DEFINITIONS_GROUP, link_group, team_group, user_group
from webapp.redis import client

ENDED, FULL = 4410, 4413
# What the channel layer may tell a guest.
HEARD = frozenset({"query.status", "definitions.changed", "messages.missed", "link.ended", "rights.changed"})
# A connection that ended without saying so is counted for this long.
COUNTED_S = 30.0
# What a guest gets of the messages to all connections: the slots of its own, and parts of the engine's state.
SLOTS = frozenset({"stream.list", "changes.missed", "queries.changed"})
ENGINE_SHOWN = ("type", "space", "alive", "lag_ms")
# What a guest gets of the settings of a stream: what is needed to draw its objects.
STREAM_SHOWN = ("name", "title", "icon", "space", "enabled", "origin")


class SharedMonitor(Monitor):
    """One websocket connection of a guest.

    The login of the browser does not count here. `webapp.consumers.permissions` says which messages a guest may send,
    and `webapp.access` which queries the link shows. The connection ends with its link.
    """

    user: Guest
    GONE = ENDED, _("this link has expired or was revoked")

    async def admitted(self) -> Guest | None:
        """Return the guest; refuse the connection and return None if the link does not work or is full."""
        secret = self.scope["url_route"]["kwargs"]["secret"]
        link = await database_sync_to_async(ShareLink.of)(secret)
        refusal: tuple[int, str | Promise] | None = self.GONE if link is None else None
        if link is not None and not await database_sync_to_async(self._count)(link.pk):
            refusal = (
                FULL,
                gettext("at most %(share_connections)s people may use this link at once; try again later")
                % {"share_connections": settings.SHARE_CONNECTIONS},
            )
        if refusal:
            await self.accept()
            await self.close(*refusal)
            return None
        self._upkeep = asyncio.create_task(self._keep(link))
        return Guest(link)

    def groups_of_user(self) -> list[str]:
        """Return the groups that tell of the link and of its queries."""
        link = self.user.link
        whose = team_group(link.team_id) if link.team_id else user_group(link.owner_id)
        return [link_group(link.pk), whose, DEFINITIONS_GROUP]

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Leave out what the channel layer tells to users only."""
        if message["type"].startswith("websocket.") or message["type"] in HEARD:
            await super().dispatch(message)

    async def link_ended(self, _: object) -> None:
        """Look whether the link still works; close the connection if it does not."""
        await self.rights_changed(None)

    async def rights_changed(self, _: object) -> None:
        """Look at the rights of the link again, and when it expires."""
        await super().rights_changed(None)
        if self.rights.link is not None:
            self._upkeep.cancel()
            self._upkeep = asyncio.create_task(self._keep(self.rights.link))

    async def _join_teams(self, before: Rights) -> None:
        """A guest is in no team."""

    def teams_of_user(self) -> list[dict[str, Any]]:
        """Return the teams of a guest: none."""
        return []

    def shown(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the document of a query without what is about people."""
        return document | {"owner": None, "team": None}

    def shows_examples(self) -> bool:
        """Return whether a guest sees the examples: no link shows any."""
        return False

    def definitions(self) -> dict[str, Any]:
        """Return the streams of the queries that the link shows, and the spaces."""
        spaces, streams = self._sources()
        every = definitions()
        return {
            "spaces": [space for space in every["spaces"] if space["name"] in spaces],
            "streams": [
                {name: stream[name] for name in STREAM_SHOWN}
                for stream in every["streams"]
                if stream["name"] in streams
            ],
        }

    def report(self, slot: str, text: str) -> None:
        """Leave out reports of what the link does not show."""
        if (shown := self._of_link(slot, text)) is not None:
            super().report(slot, shown)

    def broadcast(self, slot: str, text: str) -> None:
        """Leave out what the link does not show."""
        if (shown := self._of_link(slot, text)) is not None:
            super().broadcast(slot, shown)

    def mark(self, space: str, text: str) -> None:
        """Leave out marks of spaces that the link does not show."""
        if space in self.spaces:
            super().mark(space, text)

    @property
    def spaces(self) -> set[str]:
        """The spaces of the queries that the link shows."""
        return self.__dict__.get("_spaces", set())

    def _of_link(self, slot: str, text: str) -> str | None:
        """Return what a guest gets of a message; None if nothing."""
        kind, _, space = slot.partition(" ")
        if kind == "engine.status" and space in self.spaces:
            told = orjson.loads(text)
            return orjson.dumps({name: told.get(name) for name in ENGINE_SHOWN}).decode()
        return text if slot in SLOTS else None

    def _sources(self) -> tuple[set[str], set[str]]:
        """Return the names of the spaces and streams of the queries that the link shows."""
        streams = set()
        spaces = set()
        for query in self.rights.queries().select_related("space"):
            plan = parse_plan(query.plan, query.space.parsed)
            spaces.add(query.space_name)
            streams |= {query.stream} | {one.name for one in kind_of(plan).sources(plan) if one.type == "stream"}
        self._spaces = spaces
        return spaces, streams

    async def _keep(self, link: ShareLink) -> None:
        """Count the connection while it is open; close it when the link expires."""
        ends_s = time.monotonic() + (link.expires - timezone.now()).total_seconds()
        while (rest_s := ends_s - time.monotonic()) > 0:
            await asyncio.sleep(min(rest_s, COUNTED_S / 3))
            await database_sync_to_async(self._count)(link.pk, again=True)
        await self.close(ENDED, gettext("this link has expired"))

    def _count(self, link: int, again: bool = False) -> bool:
        """Count this connection; return whether it is among the first `SHARE_CONNECTIONS` of the link."""
        now, key = time.time(), SHARE_KEY.format(link=link)
        try:
            with client().pipeline() as pipeline:
                pipeline.zremrangebyscore(key, 0, now)
                pipeline.zadd(key, {self.channel_name: now + COUNTED_S})
                pipeline.zcard(key)
                pipeline.expire(key, int(2 * COUNTED_S))
                *_, count, _ = pipeline.execute()
            if again or count <= settings.SHARE_CONNECTIONS:
                return True
            client().zrem(key, self.channel_name)
        except redis.RedisError:  # nothing is counted while Redis is away; nothing new can be answered either
            return True
        return False

    async def _leave(self) -> None:
        self._upkeep.cancel()
        link = self.user.link.pk
        await database_sync_to_async(self._uncount)(link)
        await super()._leave()

    def _uncount(self, link: int) -> None:
        try:
            client().zrem(SHARE_KEY.format(link=link), self.channel_name)
        except redis.RedisError:
            return
