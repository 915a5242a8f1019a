"""What web processes are told of queries and layers, through the channel layer."""

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer

from webapp.models import Query

SHARED_GROUP = "queries.shared"
# Everybody may see every layer.
LAYERS_GROUP = "layers"


def user_group(user_id: int) -> str:
    """Return the group of a user's connections."""
    return f"queries.user.{user_id}"


def announce(query: Query, was_shared: bool = False) -> None:
    """Tell the owner, and everybody where the query is or was shared, how it stands."""
    message = {"type": "query.status", "owner_id": query.owner_id, "document": query.document()}
    groups = [user_group(query.owner_id)] + ([SHARED_GROUP] if query.shared or was_shared else [])
    for group in groups:
        async_to_sync(get_channel_layer().group_send)(group, message)
