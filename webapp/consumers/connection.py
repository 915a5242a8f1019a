"""What the parts of one connection have in common."""

from typing import Any

import orjson
from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib.auth.models import User

from webapp.consumers.hubs import Hubs
from webapp.consumers.listing import Listing
from webapp.consumers.outbox import Outbox
from webapp.rights.access import Guest, Rights
from webapp.words.stored_words import retold_in


class ClientConnection(AsyncWebsocketConsumer):
    """Base of the parts of a connection.

    Attributes
    ----------
    user : User or Guest
        Who opened the connection.
    rights : Rights
        What they may see and change now.
    examples : bool
        Whether they see the examples of the demonstration.
    outbox : Outbox
        What waits to be sent.
    hubs : Hubs
        The hubs of the spaces, and the connection's subscriptions.
    listing : Listing
        The queries of whose changes the client hears.
    incidents_of : set of int
        The queries of whose incidents the client has heard. It hears when they end, whether it has listed them or not.
    """

    user: User | Guest
    rights: Rights
    examples: bool
    outbox: Outbox
    hubs: Hubs
    listing: Listing
    incidents_of: set[int]

    def say(self, message: dict[str, Any]) -> None:
        """Queue a reply; leave out its id if that is None."""
        if message.get("id", "") is None:
            message = {key: value for key, value in message.items() if key != "id"}
        self.outbox.reply(orjson.dumps(retold_in(message)).decode())

    def broadcast(self, slot: str, text: str) -> None:
        """Queue a message that replaces an unsent one of the same slot."""
        self.outbox.broadcast(slot, text)
