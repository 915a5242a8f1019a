"""The consumer of ``/ws/shared/<secret>/``: a connection that a share link opened, which only reads."""

import asyncio
from typing import Any

import orjson
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.kinds.registry import kind_of
from streaming.plans import parse_plan
from webapp.bus.notify import DEFINITIONS_GROUP, link_group, team_group, user_group
from webapp.consumers.leases import Limit
from webapp.consumers.monitor import Monitor, definitions
from webapp.models import ShareLink
from webapp.rights.access import Guest, Rights

ENDED, FULL = 4410, 4413
# What the channel layer may tell a guest.
HEARD = frozenset({"query.status", "definitions.changed", "messages.missed", "link.ended", "rights.changed"})
# What a guest gets of the messages to all connections: the slots of its own, and parts of the engine's state.
SLOTS = frozenset({"stream.list", "changes.missed", "queries.changed"})
ENGINE_SHOWN = ("type", "space", "alive", "lag_ms")
# What a guest gets of the settings of a stream: what is needed to draw its objects.
STREAM_SHOWN = ("name", "title", "icon", "space", "enabled", "origin")


class SharedMonitor(Monitor):
    """One websocket connection of a guest.

    The login of the browser does not count here. `webapp.consumers.permissions` says which messages a guest may send,
    and `webapp.rights.access` which queries the link shows. The connection ends with its link.
    """

    user: Guest
    _expiry: asyncio.Task[None] | None = None
    GONE = ENDED, _("this link has expired or was revoked")

    async def admitted(self) -> Guest | None:
        """Return the guest; refuse the connection and return None if the link does not work."""
        secret = self.scope["url_route"]["kwargs"]["secret"]
        link = await database_sync_to_async(ShareLink.of)(secret)
        if link is None:
            await self.accept()
            await self.close(*self.GONE)
            return None
        return Guest(link)

    def account(self, user: User | Guest) -> str:
        """Return for whom a connection counts: all guests of a link are one."""
        assert isinstance(user, Guest)
        return f"link:{user.link.pk}"

    def limits_of(self, user: User | Guest) -> list[Limit]:
        """Return how many connections the link, and the address, may have."""
        rule = gettext("at most %(share_connections)s people may use this link at once; try again later")
        most = settings.SHARE_CONNECTIONS
        of_link = Limit(self.account(user), most, FULL, rule % {"share_connections": most})
        return [of_link, *self.limits_of_address()]

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
        if self.rights.link is not None and self._expiry is not None:
            self._end_with(self.rights.link)

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

    async def connect(self) -> None:
        """Accept a guest; end the connection when the link expires."""
        await super().connect()
        if self.joined:
            self._end_with(self.rights.link or self.user.link)

    def _end_with(self, link: ShareLink) -> None:
        """Have the connection end when the link expires, as it is now."""
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = asyncio.create_task(self._end_in_time(link))

    async def _end_in_time(self, link: ShareLink) -> None:
        await asyncio.sleep(max(0.0, (link.expires - timezone.now()).total_seconds()))
        await self.close(ENDED, gettext("this link has expired"))

    async def _leave(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        await super()._leave()
