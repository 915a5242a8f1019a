"""What the database keeps."""

from webapp.models.events import Event, EventCursor
from webapp.models.queries import VIEW_NUMBERS, Query
from webapp.models.streams import Stream
from webapp.models.tokens import ApiToken, LoginLink

__all__ = ["VIEW_NUMBERS", "ApiToken", "Event", "EventCursor", "LoginLink", "Query", "Stream"]
