"""Incidents, channels and subscriptions, as tests need them."""

from datetime import UTC, datetime

from django.db import transaction

from tests.webapp.conftest import PLAN
from webapp.delivery.outbox import enqueue
from webapp.models import Channel, Incident, IncidentChange, Query, Subscription

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)  # a Monday


def query_of(user, name="Harbour", shared=False, severity="critical", team=None):
    """Save a query with a severity; no engine knows of it."""
    about = {"owner": user, "name": name, "shared": shared, "severity": severity, "team": team}
    return Query.objects.create(**about, stream="ships", plan=PLAN, status=Query.RUNNING)


def changed(query, count=1, what=IncidentChange.OPENED, prefix="ship", at=None, **fields):
    """Save incidents with a change each, and what is to be sent of them, in one transaction; return the changes."""
    with transaction.atomic():
        incidents = Incident.objects.bulk_create(
            Incident(
                query=query,
                key=f"{prefix}-{number}",
                severity=query.severity,
                opened=NOON,
                lon=24.95,
                lat=60.17,
                properties={"speed_mps": 5.5},
            )
            for number in range(count)
        )
        changes = [IncidentChange(incident=incident, what=what, **fields) for incident in incidents]
        changes = IncidentChange.objects.bulk_create(changes)
        if at is not None:
            IncidentChange.objects.filter(pk__in=[change.pk for change in changes]).update(at=at)
        enqueue(changes)
    return changes


def webhook(url, name="hook", **secrets):
    """Save a channel that posts to an address."""
    return Channel.objects.create(name=name, kind="webhook", options={"url": url}, secrets=secrets)


def subscribed(user, channel, queries=(), **fields):
    """Save a subscription of a user, or of a team."""
    kind = "user" if hasattr(user, "username") else "team"
    made = Subscription.objects.create(**{kind: user}, channel=channel, **fields)
    made.queries.set(queries)
    return made
