"""The messages about incidents."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from channels.db import database_sync_to_async

from webapp.alarms import incidents
from webapp.consumers.connection import ClientConnection
from webapp.consumers.messages import Reference
from webapp.consumers.outbox import Unread
from webapp.models import Incident
from webapp.rights.limits import FLOODED


class Incidents(ClientConnection):
    """The part of a connection that lists incidents, acts on them, and tells how they change."""

    async def incident_status(self, event: dict[str, Any]) -> None:
        """Send how incidents stand, except those of examples that the user removed. Called by the channel layer."""
        seen = [one["document"] for one in event["incidents"] if self._hears_of(one, event["to_team"])]
        if not seen:
            return
        self.incidents_of.update(document["query"] for document in seen)
        try:
            self.say({"type": "incident.status", "incidents": seen})
        except Unread as error:
            await self.close(FLOODED, str(error))

    def _hears_of(self, standing: dict[str, Any], to_team: bool) -> bool:
        """Return whether the user lists the query of an incident, and sees it if it is an example.

        An owner who is in the query's team gets the message twice, and heeds the one that goes to owners.
        """
        if to_team and standing["owner_id"] == self.user.pk:
            return False
        document = standing["document"]
        of = (document["query"], standing["owner_id"], standing["shared"], standing["team"])
        return self.rights.lists_query(*of) and (self.examples or not document["example"])

    async def on_incident_list(self, reference: Reference, mine: bool, limit: int, **wanted: Any) -> None:
        """Reply with a page of incidents, the newest first."""
        found = incidents.IncidentFilter(mine=mine, limit=limit, **wanted)
        page, more, counted = await database_sync_to_async(incidents.page_of)(self.user, found)
        told = [incident.document() for incident in page]
        self.incidents_of.update(incident.query_id for incident in page)
        following = page[-1].pk if more else None
        self.say({"type": "incident.listed", "id": reference, "incidents": told, "next": following, "open": counted})

    async def on_incident_get(self, reference: Reference, incident: int) -> None:
        """Reply with an incident, its changes, and who can be assigned."""
        found, changes, people, acts = await database_sync_to_async(incidents.detail)(self.user, incident)
        told = {
            "incident": found.document(),
            "acts": acts,
            "changes": [change.document() for change in changes],
            "people": people,
        }
        self.say({"type": "incident.detail", "id": reference, **told})

    async def on_incident_acknowledge(self, reference: Reference, incident: int) -> None:
        """Acknowledge an incident."""
        await self._act(reference, incidents.acknowledge, incident)

    async def on_incident_assign(self, reference: Reference, incident: int, to: str | None) -> None:
        """Assign an incident to a user, or to nobody."""
        await self._act(reference, incidents.assign, incident, to)

    async def on_incident_comment(self, reference: Reference, incident: int, text: str) -> None:
        """Comment on an incident."""
        await self._act(reference, incidents.comment, incident, text.strip())

    async def on_incident_snooze(self, reference: Reference, incident: int, until: str) -> None:
        """Silence an incident until a time."""
        await self._act(reference, incidents.snooze, incident, datetime.fromisoformat(until))

    async def on_incident_wake(self, reference: Reference, incident: int) -> None:
        """End the snooze of an incident."""
        await self._act(reference, incidents.wake, incident)

    async def on_incident_close(self, reference: Reference, incident: int) -> None:
        """Close an incident by hand."""
        await self._act(reference, incidents.close, incident)

    async def _act(self, reference: Reference, action: Callable[..., Incident], *arguments: Any) -> None:
        incident = await database_sync_to_async(action)(self.user, *arguments)
        self.say({"type": "incident.status", "id": reference, "incidents": [incident.document()]})
