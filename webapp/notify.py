"""Announce changes of queries, layers, spaces and streams to the connections of all web processes."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from webapp.groups import send
from webapp.models import Incident, Query
from webapp.telling import tell

SHARED_GROUP = "queries.shared"
# Every connection is in it: it announces that spaces or streams changed.
DEFINITIONS_GROUP = "definitions"
# Most queries in one message: plans may be long, and Redis disconnects a subscriber once 32 MB wait for it.
QUERIES_PER_MESSAGE = 250
INCIDENTS_PER_MESSAGE = 100
# Every connection is in it: everybody may see every layer.
LAYERS_GROUP = "layers"


def user_group(user_id: int) -> str:
    """Return the name of the group of a user's connections."""
    return f"queries.user.{user_id}"


def announce(queries: Iterable[Query], was_shared: bool = False, lists: bool = False) -> None:
    """Announce the state of queries to their owners, and to everybody if they are or were shared.

    Parameters
    ----------
    queries : iterable of Query
    was_shared : bool
        Whether they were shared before the change.
    lists : bool
        Whether the change may have added them to lists of queries, or removed them.
    """
    told = defaultdict(list)
    for query in queries:
        standing = query.standing()
        if not query.example:
            told[user_group(query.owner_id)].append(standing)
        if query.shared or was_shared:
            told[SHARED_GROUP].append(standing)
    for group, standings in told.items():
        for start in range(0, len(standings), QUERIES_PER_MESSAGE):
            part = standings[start : start + QUERIES_PER_MESSAGE]
            numbers = [standing["document"]["query"] for standing in part]
            _say(group, {"type": "query.status", "queries": part, "lists": lists}, f"how the queries {numbers} stand")


def announce_incidents(incidents: Iterable[Incident]) -> None:
    """Announce the state of incidents to the owners of their queries, and to everybody if the query is shared."""
    told = defaultdict(list)
    for incident in incidents:
        standing = incident.standing()
        told[SHARED_GROUP if standing["shared"] else user_group(standing["owner_id"])].append(standing)
    for group, standings in told.items():
        for start in range(0, len(standings), INCIDENTS_PER_MESSAGE):
            part = standings[start : start + INCIDENTS_PER_MESSAGE]
            numbers = [standing["document"]["incident"] for standing in part]
            _say(group, {"type": "incident.status", "incidents": part}, f"how the incidents {numbers} stand")


def announce_definitions() -> None:
    """Announce to everybody that spaces or streams changed."""
    _say(DEFINITIONS_GROUP, {"type": "definitions.changed"}, "the spaces and streams")


def announce_examples(user, shown: bool) -> None:
    """Announce to a user's connections whether the user sees the examples."""
    _say(user_group(user.pk), {"type": "examples.changed", "shown": shown}, "whether the examples are shown")


def announce_layer(group: str, document: dict[str, Any]) -> None:
    """Announce the state of a layer to a group."""
    _say(group, {"type": "layer.status", "document": document}, f"how the layer {document['name']} stands")


def _say(group, message, about):
    tell(f"to {group}: {about}", lambda: send(group, message))
