"""Incidents: what somebody has to look at, and the log of everything that was done about each."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.models.queries import Query, Severity


class Incident(models.Model):
    """An object, or a pair, that is in the answer of a query with a severity: from its entry to its exit.

    It is open until `closed`. Updates of the object change nothing, so an object has at most one open incident in a
    query. `closed_by` is empty if the object left the answer. An incident that somebody closed by hand stays closed
    until the object leaves and enters again.
    """

    query = models.ForeignKey(Query, models.CASCADE, related_name="incidents", verbose_name="query")
    key = models.CharField("object", max_length=200, db_index=True)
    partner = models.CharField("partner", max_length=200, blank=True)
    severity = models.CharField("severity", max_length=10, choices=Severity)
    opened = models.DateTimeField("opened", help_text="When the object entered, in event time.")
    closed = models.DateTimeField("closed", null=True, blank=True)
    lon = models.FloatField("longitude [deg]", null=True)
    lat = models.FloatField("latitude [deg]", null=True)
    properties = models.JSONField("properties", default=dict)
    acknowledged = models.DateTimeField("acknowledged", null=True, blank=True)
    acknowledged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name="acknowledged by",
    )
    assigned_to = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", verbose_name="assigned to"
    )
    snoozed_until = models.DateTimeField("snoozed until", null=True, blank=True)
    closed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", verbose_name="closed by"
    )

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["query", "-id"]), models.Index(fields=["closed", "-id"])]
        constraints = [
            models.UniqueConstraint(
                fields=["query", "key", "partner"], condition=Q(closed=None), name="one_open_incident_of_an_object"
            )
        ]

    def __str__(self) -> str:
        return f"{self.query.name}: {self.key}{self.partner and ' with ' + self.partner} ({self.pk})"


class IncidentChange(models.Model):
    """One thing that happened to an incident. Changes are only ever added: together they are the audit log.

    `user` is empty for what Lookout did by itself.
    """

    OPENED, CLOSED, ACKNOWLEDGED, ASSIGNED = "opened", "closed", "acknowledged", "assigned"
    COMMENTED, SNOOZED, WOKEN = "commented", "snoozed", "woken"
    WHAT = [(what, what) for what in (OPENED, CLOSED, ACKNOWLEDGED, ASSIGNED, COMMENTED, SNOOZED, WOKEN)]

    incident = models.ForeignKey(Incident, models.CASCADE, related_name="changes", verbose_name="incident")
    at = models.DateTimeField("at", auto_now_add=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", verbose_name="user"
    )
    what = models.CharField("what", max_length=12, choices=WHAT)
    text = models.TextField("text", blank=True, help_text="The comment, or to whom or until when.")

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.what} by {self.user or 'Lookout'}"
