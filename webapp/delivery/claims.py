"""Which worker sends what: a claim has a lease that ends by itself; only who holds it saves the outcome."""

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from webapp.delivery.limits import locked
from webapp.delivery.listeners import unheard
from webapp.delivery.pace import DeliveryPace
from webapp.models import Delivery, DeliveryAttempt

INTERRUPTED = "the worker ended before the outcome was known"
UNHEARD = "the receiver may not hear of the query any more"


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended.

    Parameters
    ----------
    delivery : Delivery
    at : datetime
        When it began.
    took_s : float
    error : str
        Empty if the message was accepted.
    status : int or None
        The receiver's status code.
    final : bool
        Whether no further attempt makes sense.
    retry_after_s : float
        The receiver asked to wait for so many seconds.
    """

    delivery: Delivery
    at: datetime
    took_s: float
    error: str = ""
    status: int | None = None
    final: bool = False
    retry_after_s: float = 0.0


def claim(
    now: datetime, token: str, pace: DeliveryPace, free: Callable[[int], int], under_way: Collection[int]
) -> list[Delivery]:
    """Return due deliveries, with channels and subscriptions, which are this worker's until the lease ends.

    Those whose receiver may not hear any more of what they tell are dead.

    Parameters
    ----------
    now : datetime
    token : str
        The worker's.
    pace : DeliveryPace
    free : function
        Returns how many more attempts a channel, given by its number, may have.
    under_way : collection of int
        Deliveries that this worker has in hands, which it does not take again.
    """
    due = Delivery.objects.due(now).filter(channel__enabled=True).exclude(pk__in=under_way)
    channels = list(due.order_by().values_list("channel", flat=True).distinct())
    if not channels:
        return []  # without a transaction: on SQLite, that would wait for other writers
    with transaction.atomic():
        rows = [row for channel in channels for row in _oldest(due.filter(channel=channel), free(channel))]
        _note([row for row in rows if row.lease], now, DeliveryAttempt.INTERRUPTED, INTERRUPTED)
        hidden = unheard(rows)
        _note([row for row in rows if row.pk in hidden], now, DeliveryAttempt.FAILED, UNHEARD)
        over = hidden | {row.pk for row in rows if row.attempts >= pace.attempts}
        Delivery.objects.filter(pk__in=over).update(state=Delivery.DEAD, settled=now, lease="")
        rows = [row for row in rows if row.pk not in over]
        ends = now + timedelta(seconds=pace.lease_s)
        mine = Delivery.objects.filter(pk__in=[row.pk for row in rows])
        mine.update(lease=token, next_attempt=ends, attempts=F("attempts") + 1)
    for row in rows:
        row.lease, row.next_attempt, row.attempts = token, ends, row.attempts + 1
    return rows


def _oldest(due: QuerySet[Delivery], most: int) -> QuerySet[Delivery]:
    return locked(due.select_related("channel", "subscription").order_by("next_attempt", "pk"))[: max(0, most)]


def _note(rows: Collection[Delivery], now: datetime, outcome: str, error: str) -> None:
    """Log how attempts ended of which no worker has saved an outcome, or that are not made."""
    DeliveryAttempt.objects.bulk_create(
        DeliveryAttempt(delivery=row, at=now, outcome=outcome, error=error) for row in rows
    )


def settle(outcomes: Sequence[Outcome], token: str, now: datetime, pace: DeliveryPace, jitter: random.Random) -> None:
    """Save how attempts ended: sent, to be tried again, or dead.

    The state of a delivery whose lease is another worker's by now stays as it is; the attempt is logged all the same.
    """
    with transaction.atomic():
        mine = Delivery.objects.filter(lease=token, pk__in=[outcome.delivery.pk for outcome in outcomes])
        sent = [outcome.delivery.pk for outcome in outcomes if not outcome.error]
        mine.filter(pk__in=sent).update(state=Delivery.SENT, settled=now, lease="")
        for outcome in (outcome for outcome in outcomes if outcome.error):
            changed = _after_failure(outcome, now, pace, jitter)
            mine.filter(pk=outcome.delivery.pk).update(lease="", **changed)
        DeliveryAttempt.objects.bulk_create(map(_attempt, outcomes))


def _after_failure(outcome: Outcome, now: datetime, pace: DeliveryPace, jitter: random.Random) -> dict[str, Any]:
    attempts = outcome.delivery.attempts
    if outcome.final or attempts >= pace.attempts:
        return {"state": Delivery.DEAD, "settled": now}
    asked_s = min(outcome.retry_after_s, pace.longest_retry_s)
    wait_s = max(pace.wait_s(attempts, jitter), asked_s)
    return {"state": Delivery.FAILED, "next_attempt": now + timedelta(seconds=wait_s)}


def _attempt(outcome: Outcome) -> DeliveryAttempt:
    return DeliveryAttempt(
        delivery=outcome.delivery,
        at=outcome.at,
        outcome=DeliveryAttempt.FAILED if outcome.error else DeliveryAttempt.SENT,
        status=outcome.status,
        took_ms=round(outcome.took_s * 1000),
        error=outcome.error,
    )
