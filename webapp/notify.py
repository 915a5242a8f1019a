"""What web processes are told of queries, layers, spaces and streams, through the channel layer."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer

from webapp.models import Query

SHARED_GROUP = "queries.shared"
# Every connection: the spaces or the streams are not what they were.
DEFINITIONS_GROUP = "definitions"
# A message tells of at most so many queries: a plan may be long, and Redis drops readers that 32 MB wait for.
QUERIES_PER_MESSAGE = 250
# Everybody may see every layer.
LAYERS_GROUP = "layers"


def user_group(user_id: int) -> str:
    """Return the group of a user's connections."""
    return f"queries.user.{user_id}"


def announce(queries: Iterable[Query], was_shared: bool = False) -> None:
    """Tell the owners, and everybody of the queries that are or were shared, how queries stand."""
    told = defaultdict(list)
    for query in queries:
        standing = {"owner_id": query.owner_id, "document": query.document()}
        if not query.example:
            told[user_group(query.owner_id)].append(standing)
        if query.shared or was_shared:
            told[SHARED_GROUP].append(standing)
    if told:
        async_to_sync(_send)(told)


def announce_definitions() -> None:
    """Tell everybody that spaces or streams changed."""
    async_to_sync(get_channel_layer().group_send)(DEFINITIONS_GROUP, {"type": "definitions.changed"})


def announce_examples(user, shown: bool) -> None:
    """Tell a user's connections whether the user sees the examples."""
    message = {"type": "examples.changed", "shown": shown}
    async_to_sync(get_channel_layer().group_send)(user_group(user.pk), message)


async def _send(told: dict[str, list[dict[str, Any]]]) -> None:
    """Send each group what it is told; all in one event loop, since each opens connections of its own."""
    layer = get_channel_layer()
    for group, standings in told.items():
        for start in range(0, len(standings), QUERIES_PER_MESSAGE):
            part = standings[start : start + QUERIES_PER_MESSAGE]
            await layer.group_send(group, {"type": "query.status", "queries": part})
