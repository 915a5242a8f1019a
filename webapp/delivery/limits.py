"""The limit of a subscription: so many messages in a window; what is more waits, and comes as one digest."""

from datetime import datetime, timedelta
from typing import TypeVar

from django.db import connection, transaction
from django.db.models import QuerySet

from webapp.delivery.messages import digest_of
from webapp.models import Delivery, Subscription
from webapp.models.delivery import Deliveries

Rows = TypeVar("Rows", bound=QuerySet)


def locked(rows: Rows) -> Rows:
    """Return a selection whose rows this transaction locks; rows that others have locked are skipped.

    SQLite has no locks of rows: there, a transaction that writes is alone (see `transaction_mode` in the settings).
    """
    features = connection.features
    if not features.has_select_for_update:
        return rows
    of = ("self",) if features.has_select_for_update_of else ()
    return rows.select_for_update(skip_locked=features.has_select_for_update_skip_locked, of=of)


def release(now: datetime) -> int:
    """Let deliveries pass the limits of their subscriptions, or make them wait; return the number of subscriptions."""
    waiting = list(Delivery.objects.unreleased(now).order_by().values_list("subscription", flat=True).distinct())
    for number in waiting:
        with transaction.atomic():
            subscription = locked(Subscription.objects.filter(pk=number)).first()
            if subscription is not None:
                _release(subscription, now)
    return len(waiting)


def _release(subscription: Subscription, now: datetime) -> None:
    """Release what a subscription's limit allows: first a digest of what has waited, then the oldest ones."""
    deliveries = Delivery.objects.filter(subscription=subscription)
    waiting = deliveries.unreleased(now).order_by("pk")
    if subscription.limit is None:
        waiting.update(released=now)
        return
    window = timedelta(seconds=subscription.window_s)
    recent = deliveries.filter(released__gt=now - window)
    # The newest first: at most `limit` of them count.
    released = list(recent.order_by("-released").values_list("released", flat=True)[: subscription.limit])
    free = subscription.limit - len(released)
    held = waiting.filter(held=True)
    if free and held.exists():
        _digest(held, now)
        released.insert(0, now)
        free -= 1
    fresh = list(waiting.filter(held=False).values_list("pk", flat=True)[:free])
    deliveries.filter(pk__in=fresh).update(released=now)
    released = [now] * len(fresh) + released
    if len(released) >= subscription.limit:
        frees = released[subscription.limit - 1] + window
        deliveries.unreleased(now).update(held=True, next_attempt=frees)


def _digest(held: Deliveries, now: datetime) -> None:
    """Put the content of all held deliveries into the first one, and release that one."""
    numbers = list(held.values_list("pk", flat=True))
    first, others = Delivery.objects.get(pk=numbers[0]), held.exclude(pk=numbers[0])
    if len(numbers) > 1:
        first.document = digest_of(held.values_list("document", flat=True).iterator(500))
        others.update(state=Delivery.DIGESTED, digest=first, settled=now)
    first.released = now
    first.save(update_fields=["document", "released"])
