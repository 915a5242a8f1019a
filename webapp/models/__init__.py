"""The models: everything that the database keeps."""

from webapp.models.audit import AuditEntry, JoinedChange
from webapp.models.delivery import Channel, Delivery, DeliveryAttempt, Subscription
from webapp.models.events import Event, EventCursor
from webapp.models.filters import EnabledFilter
from webapp.models.incidents import Incident, IncidentChange
from webapp.models.languages import UserLanguage
from webapp.models.layers import Layer, RefusedImport
from webapp.models.maps import BaseMap
from webapp.models.queries import DeletedQuery, Query, RemovedExamples, Severity
from webapp.models.spaces import Space
from webapp.models.streams import Stream
from webapp.models.teams import Membership, Role, SavedView, ShareLink, Team
from webapp.models.tokens import ApiToken, LoginLink

__all__ = [
    "ApiToken",
    "AuditEntry",
    "BaseMap",
    "Channel",
    "DeletedQuery",
    "Delivery",
    "DeliveryAttempt",
    "EnabledFilter",
    "Event",
    "EventCursor",
    "Incident",
    "IncidentChange",
    "JoinedChange",
    "Layer",
    "LoginLink",
    "Membership",
    "Query",
    "RefusedImport",
    "RemovedExamples",
    "Role",
    "SavedView",
    "Severity",
    "ShareLink",
    "Space",
    "Stream",
    "Subscription",
    "Team",
    "UserLanguage",
]
