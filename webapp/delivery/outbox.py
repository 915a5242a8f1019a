"""The outbox: what is to be sent is written in the transaction that writes the change, so neither is there alone.

References
----------
C. Richardson, "Microservices Patterns", 2018, section 3.3.7, "Transactional outbox".
"""

from collections.abc import Iterable, Sequence

from django.db import transaction
from django.utils import timezone

from webapp.bus.telling import tell_task
from webapp.delivery.listeners import Listener, listeners_of
from webapp.delivery.messages import document_of
from webapp.models import Delivery, IncidentChange, Subscription

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
    listeners = list(listeners_of(Subscription.objects.filter(enabled=True))) if numbers else []
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


def _deliveries(change: IncidentChange, listeners: Sequence[Listener]) -> list[Delivery]:
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
