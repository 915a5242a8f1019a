"""Celery tasks: send what is due, and delete what is long over."""

from datetime import timedelta

from celery import shared_task
from celery.signals import worker_shutting_down
from django.conf import settings
from django.utils import timezone

from webapp.models import Delivery

CHUNK = 1_000


@worker_shutting_down.connect
def end_run(**_: object) -> None:
    """Begin no further attempts: what is under way ends, and the next worker sends the rest."""
    from webapp.delivery.sending import ENDING  # late, as below

    ENDING.set()


@shared_task
def deliver() -> int:
    """Send the deliveries that are due; return the number of attempts."""
    from webapp.delivery.sending import deliver_due  # late: only a worker needs what it loads

    return deliver_due()


@shared_task
def trim_deliveries() -> int:
    """Delete deliveries that have been over for `kept_s` seconds, with their attempts; return their number."""
    oldest = timezone.now() - timedelta(seconds=settings.DELIVERY_PACE.kept_s)
    old, deleted = Delivery.objects.filter(state__in=Delivery.OVER, settled__lt=oldest).order_by("settled"), 0
    while chunk := list(old.values_list("pk", flat=True)[:CHUNK]):
        Delivery.objects.filter(pk__in=chunk).delete()
        deleted += len(chunk)
    return deleted
