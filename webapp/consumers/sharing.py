"""The messages about saved views and share links, and what a connection does when its user's rights change."""

from collections.abc import Sequence
from typing import Any

import orjson
from channels.db import database_sync_to_async
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from webapp.bus.notify import STAFF_GROUP, team_group
from webapp.consumers.connection import ClientConnection
from webapp.consumers.messages import Reference
from webapp.models import Query
from webapp.rights.access import Rights, rights_of
from webapp.teams import links, views


class Sharing(ClientConnection):
    """The part of a connection that knows the user's teams, and what people share.

    `GONE` is how the connection closes when its user has no rights any more.
    """

    GONE: tuple[int, str | Promise] = 4401, _("this user may not use Lookout any more")

    # Called by the channel layer.

    async def rights_changed(self, _: object) -> None:
        """Read the user's rights again; end what the user may not see any more, and tell of what is new."""
        before, self.rights = self.rights, await database_sync_to_async(rights_of)(self.user)
        if before == self.rights:
            return
        await self._join_teams(before)
        gone = await database_sync_to_async(self._unseen)()
        for number in gone:
            self.hubs.unsubscribe(number)
        self.outbox.statuses(gone)
        self.listing.told.difference_update(gone)
        self.incidents_of.difference_update(gone)
        if not self.rights.active:
            code, reason = self.GONE
            await self.close(code, str(reason))
            return
        teams = await database_sync_to_async(self.teams_of_user)()
        self.broadcast("team.list", orjson.dumps({"type": "team.list", "teams": teams}).decode())
        self.broadcast("changes.missed", orjson.dumps({"type": "changes.missed"}).decode())
        if self.listing.every:
            listed = await database_sync_to_async(lambda: list(self._listed().values_list("pk", flat=True)))()
            new = [number for number in listed if number not in self.listing.told]
            self.listing.learn(new)
            self.outbox.statuses(new)

    async def views_changed(self, _: object) -> None:
        """Say that saved views or share links changed; the client asks for them if it shows them."""
        self.broadcast("saved.changed", orjson.dumps({"type": "saved.changed"}).decode())

    async def layer_hidden(self, event: dict[str, Any]) -> None:
        """Say that a layer is gone if the user may not see it any more."""
        if not self.rights.sees_layer(event["owner_id"], event["team"]):
            gone = {"name": event["name"], "status": "deleted"}
            self.broadcast(f"layer.{event['name']}", orjson.dumps({"type": "layer.status", "layer": gone}).decode())

    # One method for each type of message.

    async def on_saved_list(self, reference: Reference) -> None:
        """Reply with the saved views."""
        await self._say_views(reference)

    async def on_saved_add(
        self,
        reference: Reference,
        name: str,
        address: str,
        queries: Sequence[int] = (),
        layers: Sequence[str] = (),
        team: int | None = None,
    ) -> None:
        """Save a view of the map."""
        shown = {"address": address, "queries": list(queries), "layers": list(layers)}
        await database_sync_to_async(views.add)(self.user, name.strip(), team, **shown)
        await self._say_views(reference)

    async def on_saved_edit(self, reference: Reference, view: int, **changes: Any) -> None:
        """Change a saved view."""
        await database_sync_to_async(views.edit)(self.user, view, **changes)
        await self._say_views(reference)

    async def on_saved_delete(self, reference: Reference, view: int) -> None:
        """Delete a saved view."""
        await database_sync_to_async(views.delete)(self.user, view)
        await self._say_views(reference)

    async def on_link_list(self, reference: Reference) -> None:
        """Reply with the share links that the user may revoke."""
        await self._say_links(reference)

    async def on_link_add(
        self, reference: Reference, name: str, queries: list[int], hours: int, address: str = ""
    ) -> None:
        """Make a share link; the reply alone has its address."""
        link, secret = await database_sync_to_async(links.make)(self.user, name.strip(), queries, hours, address)
        document = await database_sync_to_async(link.document)()
        self.say({"type": "link.added", "id": reference, "link": document, "url": links.url_of(secret)})

    async def on_link_revoke(self, reference: Reference, link: int) -> None:
        """End a share link and its connections."""
        await database_sync_to_async(links.revoke)(self.user, link)
        await self._say_links(reference)

    # Parts of the methods above.

    def teams_of_user(self) -> list[dict[str, Any]]:
        """Return the teams of the user with the user's role, as ``hello`` has them."""
        teams = self.rights.teams().filter(pk__in=self.rights.roles)
        return [{"team": team.pk, "name": team.name, "role": self.rights.roles[team.pk]} for team in teams]

    async def _join_teams(self, before: Rights) -> None:
        """Join the groups that belong to the present rights, and leave those that only belonged to the former."""
        groups, former = _groups(self.rights), _groups(before)
        for group in groups - former:
            await self.channel_layer.group_add(group, self.channel_name)
        for group in former - groups:
            await self.channel_layer.group_discard(group, self.channel_name)

    def _unseen(self) -> list[int]:
        """Return the queries of which the connection knows, and which the user may not see any more."""
        known = {*self.hubs.subscriptions, *self.listing.told, *self.incidents_of}
        saved = Query.objects.filter(pk__in=known)
        seen = set(self.rights.queries().filter(pk__in=known).values_list("pk", flat=True))
        return [query.pk for query in saved.only("pk").order_by("pk") if query.pk not in seen]

    async def _say_views(self, reference: Reference) -> None:
        found = await database_sync_to_async(views.listed)(self.user)
        self.say({"type": "saved.listed", "id": reference, "views": found})

    async def _say_links(self, reference: Reference) -> None:
        found = await database_sync_to_async(links.listed)(self.user)
        self.say({"type": "link.listed", "id": reference, "links": found})


def _groups(rights: Rights) -> set[str]:
    """Return the groups that tell of what somebody sees by their roles, or as staff."""
    return {team_group(team) for team in rights.roles} | ({STAFF_GROUP} if rights.views_all("layer") else set())
