"""The websocket."""

from webapp.consumers.access import Access
from webapp.consumers.direct import Direct
from webapp.consumers.monitor import Monitor
from webapp.consumers.shared import SharedMonitor

__all__ = ["Access", "Direct", "Monitor", "SharedMonitor"]
