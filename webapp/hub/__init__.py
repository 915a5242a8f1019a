"""The hub: reads the result log of a space once for all websocket connections of a process."""

from webapp.hub.hub import Hub, current_hub
from webapp.hub.shipping import Held
from webapp.hub.subscriptions import Subscription

__all__ = ["Held", "Hub", "Subscription", "current_hub"]
