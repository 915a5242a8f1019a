"""The outbox: what is to be sent is written in the transaction that writes the change, so neither is there alone.

References
----------
C. Richardson, "Microservices Patterns", 2018, section 3.3.7, "Transactional outbox".
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from webapp.access import Rights, hears, rights_of_users, uses_channel
from webapp.delivery.messages import SEVERITIES, document_of
from webapp.delivery.schedule import within
from webapp.models import Delivery, IncidentChange, Query, RemovedExamples, Subscription
from webapp.telling import tell_task

# Changes that are looked up in one statement.
CHUNK = 500
_RELATED = (
    "user",
    "incident__query",
    "incident__acknowledged_by",
    "incident__assigned_to",
)


def enqueue(changes: Iterable[IncidentChange]) -> int:
    """Write to the outbox what has to be sent of changes; to be called in the transaction that saves them.

    A change is written once for each subscription, however often this is called.

    Parameters
    ----------
    changes : iterable of IncidentChange
        Saved ones, with their numbers.

    Returns
    -------
    int
        How many deliveries there are to make.
    """
    numbers = [change.pk for change in changes]
    listeners = list(_listeners(Subscription.objects.filter(enabled=True))) if numbers else []
    if not listeners:
        return 0
    made = 0
    with transaction.atomic():
        for start in range(0, len(numbers), CHUNK):
            chunk = IncidentChange.objects.filter(pk__in=numbers[start : start + CHUNK])
            told = chunk.select_related(*_RELATED).order_by("pk")
            deliveries = [delivery for change in told for delivery in _deliveries(change, listeners)]
            Delivery.objects.bulk_create(deliveries, CHUNK, ignore_conflicts=True)
            made += len(deliveries)
        if made:
            transaction.on_commit(_wake, robust=True)
    return made


@dataclass
class _Listener:
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
    listening = _listeners(Subscription.objects.filter(pk__in={one.subscription_id for one in told})) if told else ()
    listeners = {listener.subscription.pk: listener for listener in listening}
    changes = IncidentChange.objects.select_related("incident__query").in_bulk({one.change_id for one in told})
    return {
        one.pk
        for one in told
        if one.subscription_id not in listeners
        or not listeners[one.subscription_id].hears(changes[one.change_id].incident.query)
    }


def _listeners(subscriptions: QuerySet[Subscription]) -> Iterator[_Listener]:
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
            yield _Listener(subscription, named, its, user not in removed)


def _deliveries(change: IncidentChange, listeners: Sequence[_Listener]) -> list[Delivery]:
    """Return the deliveries of a change; those with a limit are released by `limits.release`."""
    wanted = [listener.subscription for listener in listeners if listener.wants(change)]
    document = document_of(change) if wanted else None
    now = timezone.now()
    return [
        Delivery(
            change=change,
            subscription=subscription,
            channel_id=subscription.channel_id,
            document=document,
            released=None if subscription.limit else now,
            created=now,
            next_attempt=now,
        )
        for subscription in wanted
    ]


def _wake() -> None:
    from webapp.delivery.tasks import deliver  # late: the task loads all kinds of channels

    tell_task(deliver)
