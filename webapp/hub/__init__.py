"""The hub: reads the result log of a space once, for all websocket connections of a process."""

from webapp.hub.hub import Hub, current_hub
from webapp.hub.shipping import ResumePoint
from webapp.hub.subscriptions import Subscription

__all__ = ["Hub", "ResumePoint", "Subscription", "current_hub"]
