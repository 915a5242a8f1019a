"""The websocket."""

from webapp.consumers.access import Access
from webapp.consumers.direct import Direct
from webapp.consumers.monitor import Monitor

__all__ = ["Access", "Direct", "Monitor"]
