"""The websocket."""

from webapp.consumers.access import Access
from webapp.consumers.monitor import Monitor

__all__ = ["Access", "Monitor"]
