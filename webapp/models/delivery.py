"""Where alarms are sent, who gets which, and the outbox of all that is to be sent."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.dates import WEEKDAYS_ABBR
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.errors import InvalidOptions
from webapp.models.audited import AuditedQuerySet
from webapp.models.incidents import IncidentChange
from webapp.models.queries import Query, Severity
from webapp.models.schedule import DAYS, is_zone
from webapp.models.teams import Team
from webapp.words.text import SoundJSONField

WHOLE_WEEK = list(range(len(DAYS)))
CHANGES = [what for what, _ in IncidentChange.WHAT]


def whole_week() -> list[int]:
    """Return all days of the week."""
    return WHOLE_WEEK.copy()


def opened_only() -> list[str]:
    """Return the changes that people want to hear of by default."""
    return [IncidentChange.OPENED]


class Channel(models.Model):
    """A way to reach somebody: a kind, its options, and its secrets, which are never shown again.

    A channel belongs to a user, or to a team; without either, everybody's subscriptions may use it.
    """

    name = models.CharField(_("name"), max_length=80, unique=True)
    kind = models.CharField(_("kind"), max_length=40, help_text=_("How messages are sent: a kind of docs/delivery.md."))
    options = SoundJSONField(_("options"), default=dict, blank=True)
    secrets = models.JSONField(_("secrets"), default=dict, blank=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="channels",
        verbose_name=_("owner"),
        help_text=_("Only subscriptions of this user may use it. Empty: see team."),
    )
    team = models.ForeignKey(
        Team,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="channels",
        verbose_name=_("team"),
        help_text=_("Only subscriptions of this team and of its members may use it. Both empty: all subscriptions."),
    )
    enabled = models.BooleanField(_("enabled"), default=True, help_text=_("What is to be sent waits while it is off."))
    created = models.DateTimeField(_("created"), auto_now_add=True)

    objects = AuditedQuerySet.as_manager()

    class Meta:
        verbose_name = _("channel")
        verbose_name_plural = _("channels")
        base_manager_name = "objects"
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=Q(owner=None) | Q(team=None), name="channel_of_a_user_or_a_team")
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Check kind, options and secrets by making the channel."""
        super().clean()
        errors = {}
        if self.owner_id and self.team_id:
            errors["team"] = gettext("a channel must belong to a user or to a team, not to both")
        if self.kind:
            errors |= self._option_errors()
        if errors:
            raise ValidationError(errors)

    def _option_errors(self) -> dict[str, str]:
        from webapp.delivery.channels import channel_kinds, make_channel  # late: it loads the libraries of all kinds

        if not isinstance(self.options, dict):
            return {
                "options": gettext("options must be a JSON object; got %(options)s") % {"options": f"{self.options!r}"}
            }
        if self.kind not in channel_kinds():
            return {
                "kind": gettext("kind must be one of %(channel_kinds)s; got %(kind)s")
                % {"channel_kinds": ", ".join(channel_kinds()), "kind": f"{self.kind!r}"}
            }
        try:
            make_channel(self.kind, self.options, self.secrets)
        except InvalidOptions as error:
            return {"options": str(error)}
        return {}


class Subscription(models.Model):
    """Which changes of incidents a user, or a team, gets by which channel, and when.

    A user hears of the queries that the user sees: own ones, those of teams and shared ones; staff also of others that
    the subscription names. A team hears of its own queries and of shared ones.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="subscriptions",
        verbose_name=_("user"),
    )
    team = models.ForeignKey(
        Team, models.CASCADE, null=True, blank=True, related_name="subscriptions", verbose_name=_("team")
    )
    channel = models.ForeignKey(Channel, models.CASCADE, related_name="subscriptions", verbose_name=_("channel"))
    enabled = models.BooleanField(_("enabled"), default=True)
    severity = models.CharField(
        _("least severity"), max_length=10, choices=Severity, default=Severity.WARNING, help_text=_("And all above it.")
    )
    changes = models.JSONField(_("changes"), default=opened_only, help_text=_("Which changes of incidents are sent."))
    queries = models.ManyToManyField(
        Query,
        blank=True,
        related_name="subscriptions",
        verbose_name=_("queries"),
        help_text=_("Only incidents of these queries. None: of all that the receiver sees."),
    )
    weekdays = models.JSONField(_("days"), default=whole_week, help_text=_("What happens on other days is not sent."))
    begins = models.TimeField(_("from"), null=True, blank=True, help_text=_("Time of day; both empty: the whole day."))
    ends = models.TimeField(
        _("until"), null=True, blank=True, help_text=_("A time before the beginning is on the next day.")
    )
    time_zone = models.CharField(
        _("time zone"), max_length=60, default="UTC", help_text=_("Of days and times, such as Europe/Helsinki.")
    )
    limit = models.PositiveIntegerField(
        _("most messages"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("In each window; what is more waits and comes as one digest. Empty: no limit."),
    )
    window_s = models.PositiveIntegerField(
        _("window [s]"), default=3_600, validators=[MinValueValidator(1), MaxValueValidator(30 * 86_400)]
    )
    created = models.DateTimeField(_("created"), auto_now_add=True)

    objects = AuditedQuerySet.as_manager()

    class Meta:
        verbose_name = _("subscription")
        verbose_name_plural = _("subscriptions")
        base_manager_name = "objects"
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(user=None, team__isnull=False) | Q(user__isnull=False, team=None),
                name="subscription_of_a_user_or_a_team",
                violation_error_message=_("a subscription must be of a user or of a team"),
            )
        ]

    def __str__(self) -> str:
        return f"{self.user or self.team} by {self.channel}"

    @property
    def schedule(self) -> str:
        """When this subscription is in force, in words."""
        every_day = len(self.weekdays) == len(DAYS)
        days = [] if every_day else [str(WEEKDAYS_ABBR[day]) for day in sorted(self.weekdays)]
        whole_day = self.begins is None or self.begins == self.ends
        hours = [] if whole_day else [f"{self.begins:%H:%M}–{self.ends:%H:%M} {self.time_zone}"]
        return ", ".join([*days, *hours]) or gettext("always")

    def clean(self) -> None:
        """Check schedule and changes."""
        super().clean()
        errors = {}
        if not is_zone(self.time_zone):
            errors["time_zone"] = gettext("the time zone must be a name such as Europe/Helsinki; got %(time_zone)s") % {
                "time_zone": f"{self.time_zone!r}"
            }
        if (self.begins is None) != (self.ends is None):
            errors["begins" if self.begins is None else "ends"] = gettext("give both times of day, or neither")
        errors |= _choice_errors("weekdays", self.weekdays, WHOLE_WEEK)
        errors |= _choice_errors("changes", self.changes, CHANGES)
        if errors:
            raise ValidationError(errors)


def _choice_errors(field: str, chosen: Any, choices: Sequence[Any]) -> dict[str, str]:
    if isinstance(chosen, list) and chosen and all(choice in choices for choice in chosen):
        return {}
    return {
        field: gettext("choose at least one of %(map)s; got %(chosen)s")
        % {"map": ", ".join(map(str, choices)), "chosen": f"{chosen!r}"}
    }


class Deliveries(models.QuerySet):
    """Selections of deliveries."""

    def due(self, now: datetime) -> "Deliveries":
        """Select what is to be sent now: released, not over, and in no worker's hands."""
        return self.filter(state__in=Delivery.OPEN, released__isnull=False, next_attempt__lte=now)

    def unreleased(self, now: datetime) -> "Deliveries":
        """Select what has to pass the limit of its subscription first."""
        return self.filter(state=Delivery.PENDING, released=None, next_attempt__lte=now)

    def send_again(self) -> int:
        """Make dead deliveries due, with all their attempts; return how many there are."""
        now = timezone.now()
        dead = self.filter(state=Delivery.DEAD)
        return dead.update(state=Delivery.PENDING, attempts=0, next_attempt=now, settled=None, lease="", released=now)


def new_key() -> str:
    """Return a new idempotency key."""
    return uuid.uuid4().hex


class Delivery(models.Model):
    """A row of the outbox: one change of an incident, for one subscription.

    The row holds the message itself, so every attempt sends the same, also after the incident was deleted. Its `key`
    tells receivers that they know it already. A worker that takes the row sets `lease`, its own token, and moves
    `next_attempt` behind the end of the lease: if the worker dies, the row is due again.
    """

    PENDING, SENT, FAILED, DEAD, DIGESTED = "pending", "sent", "failed", "dead", "digested"
    STATES = [(state, state) for state in (PENDING, SENT, FAILED, DEAD, DIGESTED)]
    OPEN, OVER = (PENDING, FAILED), (SENT, DEAD, DIGESTED)

    change = models.ForeignKey(
        IncidentChange, models.SET_NULL, null=True, related_name="deliveries", verbose_name=_("change")
    )
    subscription = models.ForeignKey(
        Subscription, models.CASCADE, related_name="deliveries", verbose_name=_("subscription")
    )
    channel = models.ForeignKey(Channel, models.CASCADE, related_name="deliveries", verbose_name=_("channel"))
    key = models.CharField(_("idempotency key"), max_length=32, unique=True, default=new_key, editable=False)
    document = models.JSONField(_("message"))
    state = models.CharField(_("state"), max_length=10, choices=STATES, default=PENDING)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    created = models.DateTimeField(_("created"), default=timezone.now)
    next_attempt = models.DateTimeField(_("next attempt"), default=timezone.now)
    lease = models.CharField(_("lease"), max_length=32, blank=True, editable=False)
    released = models.DateTimeField(
        _("released"), null=True, help_text=_("When the limit of the subscription let it pass.")
    )
    held = models.BooleanField(_("held by the limit"), default=False)
    settled = models.DateTimeField(_("over since"), null=True)
    digest = models.ForeignKey(
        "self", models.SET_NULL, null=True, related_name="digested", verbose_name=_("sent within the digest")
    )

    objects = Deliveries.as_manager()

    class Meta:
        verbose_name = _("delivery")
        ordering = ["-id"]
        verbose_name_plural = _("deliveries")
        constraints = [
            models.UniqueConstraint(fields=["change", "subscription"], name="one_delivery_of_a_change_and_subscription")
        ]
        indexes = [
            models.Index(
                fields=["channel", "next_attempt"],
                condition=Q(state__in=("pending", "failed"), released__isnull=False),
                name="deliveries_to_send",
            ),
            models.Index(
                fields=["subscription", "next_attempt"],
                condition=Q(state="pending", released=None),
                name="deliveries_to_release",
            ),
            models.Index(fields=["subscription", "-released"], name="deliveries_released"),
            models.Index(fields=["state", "settled"], name="deliveries_over"),
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk}"


class DeliveryAttempt(models.Model):
    """One attempt to send a delivery, and how it ended.

    `interrupted` says that the worker ended before the outcome was known: the receiver may have the message.
    """

    SENT, FAILED, INTERRUPTED = "sent", "failed", "interrupted"
    OUTCOMES = [(outcome, outcome) for outcome in (SENT, FAILED, INTERRUPTED)]

    delivery = models.ForeignKey(Delivery, models.CASCADE, related_name="log", verbose_name=_("delivery"))
    at = models.DateTimeField(_("at"), default=timezone.now)
    outcome = models.CharField(_("outcome"), max_length=12, choices=OUTCOMES)
    status = models.IntegerField(
        _("status"), null=True, help_text=_("The status code of the receiver, if it gave one.")
    )
    took_ms = models.PositiveIntegerField(_("took [ms]"), null=True)
    error = models.TextField(_("error"), blank=True)

    class Meta:
        verbose_name = _("delivery attempt")
        verbose_name_plural = _("delivery attempts")
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.outcome} at {self.at:%Y-%m-%d %H:%M:%S}"
