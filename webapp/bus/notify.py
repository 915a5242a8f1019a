"""Announce changes of queries, layers, spaces and streams to the connections of all web processes."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User

from webapp.bus.groups import send
from webapp.bus.telling import tell
from webapp.models import Incident, Layer, Query

SHARED_GROUP = "queries.shared"
# The connections of staff who may see every layer.
STAFF_GROUP = "staff"
# Every connection is in it: it announces that spaces or streams changed.
DEFINITIONS_GROUP = "definitions"
# Most queries in one message: plans may be long, and Redis disconnects a subscriber once 32 MB wait for it.
QUERIES_PER_MESSAGE = 250
INCIDENTS_PER_MESSAGE = 100
# Every connection of a user is in it: everybody sees the layers that belong to no team.
LAYERS_GROUP = "layers"


def user_group(user_id: int) -> str:
    """Return the name of the group of a user's connections."""
    return f"queries.user.{user_id}"


def team_group(team: int | str) -> str:
    """Return the name of the group of the connections of a team's members."""
    return f"queries.team.{team}"


def link_group(link: int) -> str:
    """Return the name of the group of the connections that a share link opened."""
    return f"share.{link}"


def announce(
    queries: Iterable[Query], was_shared: bool = False, lists: bool = False, was_team: int | None = None
) -> None:
    """Announce the state of queries to their owners, their teams, and everybody if they are or were shared.

    Parameters
    ----------
    queries : iterable of Query
    was_shared : bool
        Whether they were shared before the change.
    lists : bool
        Whether the change may have added them to lists of queries, or removed them.
    was_team : int, optional
        The team that they belonged to before the change.
    """
    told = defaultdict(list)
    for query in queries:
        standing = query.standing()
        if query.owner_id is not None:
            told[user_group(query.owner_id)].append(standing)
        if query.shared or was_shared:
            told[SHARED_GROUP].append(standing)
        for team in {team for team in (query.team_id, was_team) if team is not None}:
            told[team_group(team)].append(standing)
    for group, standings in told.items():
        for start in range(0, len(standings), QUERIES_PER_MESSAGE):
            part = standings[start : start + QUERIES_PER_MESSAGE]
            numbers = [standing["document"]["query"] for standing in part]
            _say(group, {"type": "query.status", "queries": part, "lists": lists}, f"how the queries {numbers} stand")


def announce_incidents(incidents: Iterable[Incident]) -> None:
    """Announce the state of incidents to the owners and teams of their queries, and to everybody if they are shared."""
    told = defaultdict(list)
    for incident in incidents:
        standing = incident.standing()
        groups = [SHARED_GROUP] if standing["shared"] else [user_group(standing["owner_id"])]
        if standing["team"] is not None and not standing["shared"]:
            groups.append(team_group(standing["team"]))
        for group in groups:
            told[group].append(standing)
    for group, standings in told.items():
        to_team = group.startswith(team_group(""))
        for start in range(0, len(standings), INCIDENTS_PER_MESSAGE):
            part = standings[start : start + INCIDENTS_PER_MESSAGE]
            numbers = [standing["document"]["incident"] for standing in part]
            _say(
                group,
                {"type": "incident.status", "incidents": part, "to_team": to_team},
                f"how the incidents {numbers} stand",
            )


def announce_definitions() -> None:
    """Announce to everybody that spaces or streams changed."""
    _say(DEFINITIONS_GROUP, {"type": "definitions.changed"}, "the spaces and streams")


def announce_examples(user: User, shown: bool) -> None:
    """Announce to a user's connections whether the user sees the examples."""
    _say(user_group(user.pk), {"type": "examples.changed", "shown": shown}, "whether the examples are shown")


def announce_layer(group: str, document: dict[str, Any]) -> None:
    """Announce the state of a layer to a group."""
    _say(group, {"type": "layer.status", "document": document}, f"how the layer {document['name']} stands")


def announce_layer_hidden(group: str, layer: Layer) -> None:
    """Announce to a group that not all of it may see a layer any more; each connection looks whether its user may."""
    whose = {"name": layer.name, "owner_id": layer.owner_id, "team": layer.team_id}
    _say(group, {"type": "layer.hidden", **whose}, f"who sees the layer {layer.name}")


def announce_membership(user_id: int) -> None:
    """Announce to a user's connections that the user's roles changed, so that they look at their rights again."""
    _say(user_group(user_id), {"type": "rights.changed"}, f"the roles of user {user_id}")


def announce_views(groups: Iterable[str]) -> None:
    """Announce to groups that their saved views or share links changed."""
    for group in groups:
        _say(group, {"type": "views.changed"}, "the saved views")


def announce_link_ended(link: int) -> None:
    """Announce to the connections of a share link that it was revoked or deleted."""
    _say(link_group(link), {"type": "link.ended"}, f"the end of share link {link}")


def _say(group: str, message: dict[str, Any], about: str) -> None:
    tell(f"to {group}: {about}", lambda: send(group, message))
