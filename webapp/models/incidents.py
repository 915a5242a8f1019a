"""Incidents: what somebody has to look at, and the log of everything that was done about each."""

from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from webapp.models.queries import Query, Severity


class Incident(models.Model):
    """An object, or a pair, that is in the answer of a query with a severity: from its entry to its exit.

    It is open until `closed`. Updates of the object change nothing, so an object has at most one open incident in a
    query. `closed_by` is empty if the object left the answer. An incident that somebody closed by hand stays closed
    until the object leaves and enters again.
    """

    query = models.ForeignKey(Query, models.CASCADE, related_name="incidents", verbose_name=_("query"))
    key = models.CharField(_("object"), max_length=200, db_index=True)
    partner = models.CharField(_("partner"), max_length=200, blank=True)
    severity = models.CharField(_("severity"), max_length=10, choices=Severity)
    opened = models.DateTimeField(_("opened"), help_text=_("When the object entered, in event time."))
    closed = models.DateTimeField(_("closed"), null=True, blank=True)
    left = models.DateTimeField(
        _("left"),
        null=True,
        blank=True,
        help_text=_(
            "When the object left the answer. Until then it opens no other incident, also if this one is closed."
        ),
    )
    lon = models.FloatField(_("longitude [deg]"), null=True)
    lat = models.FloatField(_("latitude [deg]"), null=True)
    properties = models.JSONField(_("properties"), default=dict)
    acknowledged = models.DateTimeField(_("acknowledged"), null=True, blank=True)
    acknowledged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("acknowledged by"),
    )
    assigned_to = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("assigned to"),
    )
    snoozed_until = models.DateTimeField(_("snoozed until"), null=True, blank=True)
    closed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", verbose_name=_("closed by")
    )

    class Meta:
        verbose_name = _("incident")
        verbose_name_plural = _("incidents")
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["query", "-id"]),
            models.Index(fields=["closed", "-id"]),
            models.Index(fields=["query", "key"], condition=Q(left=None), name="incidents_of_objects_inside"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["query", "key", "partner"], condition=Q(closed=None), name="one_open_incident_of_an_object"
            )
        ]

    def __str__(self) -> str:
        return f"{self.query.name}: {self.key}{self.partner and ' with ' + self.partner} ({self.pk})"

    def standing(self) -> dict:
        """Return what a web process needs to send this incident to its clients."""
        query = self.query
        whose = {"owner_id": query.owner_id, "shared": query.shared, "team": query.team_id}
        return whose | {"document": self.document()}

    def document(self) -> dict:
        """Return the description of this incident for clients."""
        return {
            "incident": self.pk,
            "query": self.query_id,
            "name": self.query.name,
            "stream": self.query.stream,
            "space": self.query.space_id,
            "example": self.query.example,
            "key": self.key,
            "partner": self.partner or None,
            "severity": self.severity,
            "opened": _iso(self.opened),
            "closed": _iso(self.closed),
            "lon": self.lon,
            "lat": self.lat,
            "properties": self.properties,
            "acknowledged": _iso(self.acknowledged),
            "acknowledged_by": _name(self.acknowledged_by),
            "assigned_to": _name(self.assigned_to),
            "snoozed_until": _iso(self.snoozed_until),
            "closed_by": _name(self.closed_by),
        }


class IncidentChange(models.Model):
    """One thing that happened to an incident. Changes are only ever added: together they are the audit log.

    `user` is empty for what Lookout did by itself.
    """

    OPENED, CLOSED, ACKNOWLEDGED, ASSIGNED = "opened", "closed", "acknowledged", "assigned"
    COMMENTED, SNOOZED, WOKEN = "commented", "snoozed", "woken"
    WHAT = [
        (OPENED, _("opened")),
        (CLOSED, _("closed")),
        (ACKNOWLEDGED, _("acknowledged")),
        (ASSIGNED, _("assigned")),
        (COMMENTED, _("commented")),
        (SNOOZED, _("snoozed")),
        (WOKEN, _("woken")),
    ]

    incident = models.ForeignKey(Incident, models.CASCADE, related_name="changes", verbose_name=_("incident"))
    at = models.DateTimeField(_("at"), auto_now_add=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", verbose_name=_("user")
    )
    what = models.CharField(_("what"), max_length=12, choices=WHAT)
    text = models.TextField(_("text"), blank=True, help_text=_("The comment, or to whom or until when."))

    class Meta:
        verbose_name = _("incident change")
        verbose_name_plural = _("incident changes")
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.what} by {self.user or 'Lookout'}"

    def document(self) -> dict:
        """Return the description of this change for clients; the user is null for what Lookout did by itself."""
        return {"at": _iso(self.at), "user": _name(self.user), "what": self.what, "text": self.text}


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _name(user: User | None) -> str | None:
    return None if user is None else user.get_username()
