"""Which models the audit log records, which of their fields, and which models it does not record, with the reason."""

from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Model

from webapp.models import (
    ApiToken,
    BaseMap,
    Channel,
    EnabledFilter,
    Layer,
    Membership,
    Query,
    RemovedExamples,
    SavedView,
    ShareLink,
    Space,
    Stream,
    Subscription,
    Team,
)


@dataclass(frozen=True)
class RecordedFields:
    """What is recorded of a model. A field of the model must be in exactly one of the lists.

    Parameters
    ----------
    kind : str
        What the audit log calls an object.
    fields : tuple of str
        Recorded with the old and the new value.
    state : tuple of str
        Not recorded: keys, and what Lookout itself keeps there.
    secrets : tuple of str
        Recorded without the values.
    many : tuple of str
        Relations to many objects, recorded by what was added and removed.
    ended : str
        A property that says whether the object has ended although its row stays.
    repeatable : tuple of str
        Fields that people draw and arrange, and that give nobody a right. Edits of these alone may be joined.
    """

    kind: str
    fields: tuple[str, ...]
    state: tuple[str, ...] = ("id", "created")
    secrets: tuple[str, ...] = ()
    many: tuple[str, ...] = ()
    ended: str = ""
    repeatable: tuple[str, ...] = ()

    @property
    def recorded(self) -> tuple[str, ...]:
        """The names of all that is recorded of a single row."""
        return (*self.fields, *self.secrets, *filter(None, [self.ended]))


WATCHED: dict[type[Model], RecordedFields] = {
    Query: RecordedFields(
        "query",
        ("owner", "name", "stream", "space", "plan", "shared", "team", "paused", "severity", "look"),
        (
            *("id", "status", "error", "warning", "warnings", "left_out", "left_out_cause", "left_out_until"),
            *("revision", "acknowledged", "epoch", "created", "updated"),
        ),
        ended="ended",
        repeatable=("name", "plan", "paused", "severity", "look"),
    ),
    Layer: RecordedFields(
        "layer",
        ("name", "title", "space", "owner", "team", "version", "look"),
        (
            *("id", "features", "bounds", "geometry_types", "status", "progress", "error", "problems", "problem_count"),
            *("importer", "next_title", "run", "heartbeat", "created", "updated"),
        ),
        repeatable=("title", "version"),
    ),
    SavedView: RecordedFields(
        "view",
        ("owner", "team", "name", "address", "queries", "layers"),
        ("id", "created", "updated"),
        repeatable=("name", "address", "queries", "layers"),
    ),
    Team: RecordedFields("team", ("name",)),
    Membership: RecordedFields("member", ("team", "user", "role")),
    ShareLink: RecordedFields(
        "share link",
        ("name", "owner", "team", "address", "expires", "revoked"),
        secrets=("digest",),
        many=("queries",),
    ),
    RemovedExamples: RecordedFields("removed examples", ("user",), ()),
    Stream: RecordedFields(
        "stream",
        (
            *("name", "title", "icon", "space", "enabled", "ttl_s", "max_ahead_s", "max_age_s"),
            *("stored", "retention_s", "sketch", "transport", "transport_options", "decoder", "decoder_options"),
        ),
    ),
    Space: RecordedFields("space", ("name", "title", "definition", "partitioner"), ("created",)),
    BaseMap: RecordedFields(
        "base map",
        ("name", "kind", "address", "layers", "attribution", "min_zoom", "max_zoom", "default"),
        ("id",),
    ),
    EnabledFilter: RecordedFields("filter", ("name", "enabled"), ("id",)),
    Channel: RecordedFields("channel", ("name", "kind", "options", "owner", "team", "enabled"), secrets=("secrets",)),
    Subscription: RecordedFields(
        "subscription",
        (
            *("user", "team", "channel", "enabled", "severity", "changes", "weekdays", "begins", "ends", "time_zone"),
            *("limit", "window_s"),
        ),
        many=("queries",),
    ),
    ApiToken: RecordedFields("API token", ("user", "name"), ("id", "created", "last_used"), secrets=("digest",)),
    get_user_model(): RecordedFields(
        "user",
        ("username", "first_name", "last_name", "email", "is_active", "is_staff", "is_superuser"),
        ("id", "last_login", "date_joined"),
        secrets=("password",),
        many=("groups", "user_permissions"),
    ),
    Group: RecordedFields("group", ("name",), ("id",), many=("permissions",)),
}

# Models of Lookout that the audit log does not record, and why.
UNWATCHED = {
    "AuditEntry": "it is the audit log",
    "DeletedQuery": "Lookout keeps it until the engine has heard of a deletion",
    "Delivery": "Lookout sends it; the channel and the subscription are recorded",
    "DeliveryAttempt": "Lookout writes it",
    "Event": "Lookout writes it",
    "EventCursor": "Lookout keeps it",
    "Incident": "its changes are in a log of their own, IncidentChange",
    "IncidentChange": "it is the log of incidents",
    "JoinedChange": "it becomes a row of the audit log",
    "LoginLink": "it changes nothing that others see, and is gone after an hour",
    "UserLanguage": "it changes nothing that others see",
    "RefusedImport": "Lookout writes it, and it is gone after a week",
}
