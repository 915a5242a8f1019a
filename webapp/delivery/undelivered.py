"""Alarms that do not reach anybody, for those who operate Lookout."""

from collections.abc import Iterable, Iterator
from datetime import timedelta

from django.db.models import Count
from django.utils import timezone
from django.utils.translation import gettext

from webapp.models import Delivery, DeliveryAttempt
from webapp.models.delivery import Deliveries

# Deliveries that have waited for so long are late, unless a limit holds them.
LATE = timedelta(minutes=5)


def undelivered() -> Iterator[tuple[str, str, str]]:
    """Yield for each channel with dead or late deliveries how bad that is, where, and what happened, in words."""
    dead = Delivery.objects.filter(state=Delivery.DEAD)
    for number, name, count in _by_channel(dead):
        words = gettext("%(count)s could not be delivered; see Deliveries in the admin. %(dead)s") % {
            "count": count,
            "dead": _last_error(number, Delivery.DEAD),
        }
        yield "bad", gettext("alarms by %(name)s") % {"name": name}, words.strip()
    late = Delivery.objects.filter(
        state__in=Delivery.OPEN, released__isnull=False, created__lt=timezone.now() - LATE, channel__enabled=True
    )
    for number, name, count in _by_channel(late):
        words = gettext("%(count)s are not delivered yet. %(failed)s") % {
            "count": count,
            "failed": _last_error(number, Delivery.FAILED),
        }
        yield "warn", gettext("alarms by %(name)s") % {"name": name}, words.strip()


def _by_channel(deliveries: Deliveries) -> Iterable[tuple[int, str, int]]:
    return deliveries.order_by("channel").values_list("channel", "channel__name").annotate(Count("pk"))


def _last_error(channel: int, state: str) -> str:
    errors = DeliveryAttempt.objects.filter(delivery__channel=channel, delivery__state=state).order_by("-pk")
    return errors.values_list("error", flat=True).first() or ""
