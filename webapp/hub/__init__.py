"""The hub: reads the result log of a space once, for all websocket connections of a process."""

from webapp.hub.current import current_hub
from webapp.hub.hub import Hub
from webapp.hub.shipping import ResumePoint
from webapp.hub.subscriptions import AnswerSubscription

__all__ = ["AnswerSubscription", "Hub", "ResumePoint", "current_hub"]
