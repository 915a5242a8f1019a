"""Which subscriptions may hear of what, when a message is written to the outbox and again before it is sent."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import QuerySet

from webapp.delivery.messages import SEVERITIES
from webapp.models import Delivery, IncidentChange, Query, RemovedExamples, Subscription
from webapp.models.schedule import within
from webapp.rights.access import Rights, hears, rights_of_users, uses_channel


@dataclass
class Listener:
    """A subscription with what is looked up once for all changes."""

    subscription: Subscription
    named: frozenset[int]
    rights: Rights | None
    examples: bool
    known: dict[tuple, bool] = field(default_factory=dict)

    def wants(self, change: IncidentChange) -> bool:
        """Return whether a change is to be sent; changes that do not differ in what counts are judged once."""
        incident = change.incident
        case = (incident.query_id, incident.severity, change.what, change.at.replace(microsecond=0))
        if case not in self.known:
            self.known[case] = self._chosen(*case) and self.hears(incident.query)
        return self.known[case]

    def _chosen(self, query: int, severity: str, what: str, at: datetime) -> bool:
        told = self.subscription
        return (
            what in told.changes
            and SEVERITIES.index(severity) >= SEVERITIES.index(told.severity)
            and (not self.named or query in self.named)
            and within(at, told.weekdays, told.begins, told.ends, told.time_zone)
        )

    def hears(self, query: Query) -> bool:
        """Return whether the subscription may tell of a query."""
        return hears(self.subscription, query, self.rights, self.examples, query.pk in self.named)


def unheard(deliveries: Iterable[Delivery]) -> set[int]:
    """Return the numbers of those deliveries whose receivers may not hear any more of what they tell."""
    told = [delivery for delivery in deliveries if delivery.change_id is not None]
    listening = listeners_of(Subscription.objects.filter(pk__in={one.subscription_id for one in told})) if told else ()
    listeners = {listener.subscription.pk: listener for listener in listening}
    changes = IncidentChange.objects.select_related("incident__query").in_bulk({one.change_id for one in told})
    return {
        one.pk
        for one in told
        if one.subscription_id not in listeners
        or not listeners[one.subscription_id].hears(changes[one.change_id].incident.query)
    }


def listeners_of(subscriptions: QuerySet[Subscription]) -> Iterator[Listener]:
    """Yield subscriptions that may use their channel now."""
    found = list(subscriptions.select_related("channel").prefetch_related("queries"))
    removed = set(RemovedExamples.objects.values_list("user", flat=True))
    rights = rights_of_users({one.user_id for one in found if one.user_id is not None})
    for subscription in found:
        # Not by `values_list`, which would ask the database for each subscription.
        named = frozenset(query.pk for query in subscription.queries.all())
        user = subscription.user_id
        its = None if user is None else rights[user]
        if uses_channel(subscription.channel, subscription, its):
            yield Listener(subscription, named, its, user not in removed)
