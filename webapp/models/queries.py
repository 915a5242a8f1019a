"""Saved continuous queries."""

import time
from datetime import datetime, timedelta
from typing import cast

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from streaming.kinds.registry import claimed
from webapp.models.audited import AuditedQuerySet
from webapp.models.looks import QUERY_LOOKS, look_field
from webapp.models.spaces import EARTH, Space
from webapp.words.text import SoundJSONField

# So soon after the end of its pause, it is told if a query is left out again.
TRIED_WITHIN = timedelta(seconds=10)
# The keys of plans that name a layer, as `layer` within them.
LAYER_KEYS = ("join", "away_from")


class Severity(models.TextChoices):
    """How urgent incidents are, from the least to the most urgent."""

    INFO = "info", _("info")
    WARNING = "warning", _("warning")
    CRITICAL = "critical", _("critical")


class Cause(models.TextChoices):
    """Why the answer of a query that runs is missing for a while."""

    ROOM = "room", _("no room")
    FAILURE = "failure", _("failure")
    WATCHED = "watched", _("a watched query is left out")


class QuerySet(AuditedQuerySet):
    """Selections of queries. `webapp.rights.access` selects those that a user may see."""

    def examples(self) -> "QuerySet":
        """Select the examples of the demonstration, also cancelled ones."""
        return self.filter(owner=None)

    def alive(self) -> "QuerySet":
        """Select the queries that have not been cancelled."""
        return self.exclude(status=Query.CANCELLED)

    def unsettled(self, epoch: str) -> "QuerySet":
        """Select the queries that the engine must be told of, given the epoch of its present state.

        These are the queries whose newest revision no state has acknowledged, and those that should run but were
        acknowledged in another state. A new state does not need the other queries: they should not run. If `epoch` is
        empty, because the engine has not reported yet, its state counts as unchanged.
        """
        unheard = Q(acknowledged__lt=models.F("revision"))
        runs = Q(paused=False) & ~Q(status__in=(Query.CANCELLED, Query.WAITING))
        elsewhere = runs & ~Q(epoch=epoch)
        return self.filter(unheard | elsewhere if epoch else unheard)


class Query(models.Model):
    """A continuous query that somebody saved; its primary key is its number in the engine.

    `status` is what people see. `revision` counts the changes that concern the engine. `acknowledged` is the newest
    revision that the engine has acknowledged, and `epoch` names the engine's state that did so. A query with the status
    `waiting` names a layer or a query that is not there for its owner, so it is not in the engine. A query without an
    owner is an example of the demonstration.
    """

    PENDING, RUNNING, PAUSED, CANCELLED, FAILED = "pending", "running", "paused", "cancelled", "failed"
    WAITING = "waiting"
    STATUSES = [(status, status) for status in (PENDING, RUNNING, PAUSED, CANCELLED, FAILED, WAITING)]

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        related_name="queries",
        verbose_name=_("owner"),
        help_text=_("Nobody owns the examples of the demonstration."),
    )
    name = models.CharField(_("name"), max_length=120)
    stream = models.CharField(_("stream"), max_length=40, db_index=True, editable=False)
    space = models.ForeignKey(
        Space, models.PROTECT, default=EARTH, related_name="queries", verbose_name=_("space"), editable=False
    )
    plan = SoundJSONField(_("plan"))
    status = models.CharField(_("status"), max_length=10, choices=STATUSES, default=PENDING, db_index=True)
    error = models.TextField(_("error"), blank=True)
    warning = models.TextField(_("warning"), blank=True, help_text=_("What keeps the query from working."))
    warnings = SoundJSONField(
        _("warnings"), default=dict, blank=True, help_text=_("By kind, what did not work although the query ran.")
    )
    left_out = models.TextField(
        _("left out"), blank=True, help_text=_("Why the engine leaves the query out for a while.")
    )
    left_out_cause = models.CharField(_("left out for"), max_length=10, blank=True, choices=Cause)
    left_out_until = models.DateTimeField(_("left out until"), null=True, blank=True)
    shared = models.BooleanField(_("shared"), default=False, help_text=_("Everybody sees it."))
    team = models.ForeignKey(
        "webapp.Team",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="queries",
        verbose_name=_("team"),
        help_text=_("Its members see it, and its analysts change it."),
    )
    paused = models.BooleanField(_("paused"), default=False)
    severity = models.CharField(
        _("severity"),
        max_length=10,
        blank=True,
        choices=Severity,
        help_text=_("Objects that enter the answer open incidents of this severity; none if it is empty."),
    )
    look = look_field(QUERY_LOOKS)
    revision = models.PositiveBigIntegerField(_("revision"), default=1)
    acknowledged = models.PositiveBigIntegerField(_("acknowledged revision"), default=0)
    epoch = models.CharField(_("epoch"), max_length=80, blank=True)
    created = models.DateTimeField(_("created"), auto_now_add=True)
    updated = models.DateTimeField(_("updated"), auto_now=True)

    objects = QuerySet.as_manager()

    class Meta:
        verbose_name = _("query")
        base_manager_name = "objects"
        ordering = ["-id"]
        verbose_name_plural = _("queries")

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"

    @property
    def space_name(self) -> str:
        """The name of its space."""
        return cast("str", self.space_id)  # django-stubs thinks that a key with a default may be None

    @property
    def example(self) -> bool:
        """Whether this is an example of the demonstration."""
        return self.owner_id is None

    @property
    def ended(self) -> bool:
        """Whether somebody ended this query for good."""
        return self.status == self.CANCELLED

    @property
    def should_run(self) -> bool:
        """Whether the engine should evaluate this query."""
        return not self.paused and self.status not in (self.CANCELLED, self.WAITING)

    @property
    def counts_for(self) -> int:
        """Whom the query counts for in the engine: its team, as a number below 0, or its owner; 0 for an example."""
        return -self.team_id if self.team_id else self.owner_id or 0

    @property
    def layer(self) -> str:
        """The name of the layer that this query joins with, or that keeps its encounters away; empty without one."""
        named = (self.plan.get(key) or {} for key in LAYER_KEYS)
        return next((about["layer"] for about in named if about.get("layer")), "")

    @property
    def lacks_answer(self) -> bool:
        """Whether the engine leaves this query out now, or one that it watches."""
        until = self.left_out_until
        return self.status == self.RUNNING and until is not None and timezone.now() < until + TRIED_WITHIN

    @property
    def failed(self) -> bool:
        """Whether the engine does not evaluate this query although it should, since it failed or there was no room."""
        return self.status == self.FAILED or (self.lacks_answer and self.left_out_cause != Cause.WATCHED)

    def leave_out(self, cause: str, why: str, until: datetime) -> None:
        """Note why the engine leaves this query out, and when it is tried again. Nothing is saved."""
        self.left_out_cause, self.left_out, self.left_out_until = cause, why, until

    def begin(self) -> None:
        """Forget what was wrong with the query before it changed, and set its first status. Nothing is saved."""
        self.error = self.warning = self.left_out = self.left_out_cause = ""
        self.warnings = {}
        self.left_out_until = None
        self.status = self.PAUSED if self.paused else self.PENDING

    def wait(self, reason: str) -> None:
        """Set status and warning while the query may not read what it names. Nothing is saved."""
        self.status, self.warning = self.WAITING, reason

    def acknowledge(self, error: str, epoch: str) -> None:
        """Apply the engine's acknowledgement of the present revision; `error` is empty on success. Nothing is saved."""
        self.acknowledged, self.epoch = self.revision, epoch
        if self.should_run:
            self.status, self.error = (self.FAILED if error else self.RUNNING), error

    def standing(self) -> dict:
        """Return what a web process needs to send this query's status to its clients."""
        return {"owner_id": self.owner_id, "document": self.document()}

    @property
    def told_once(self) -> bool:
        """Whether its answer tells things once, so that no snapshot brings them back."""
        return self.plan.get("emit") == "all" or claimed(self.plan).once

    def document(self) -> dict:
        """Return the description of this query for clients, without `mine`, which depends on the client."""
        return {
            "query": self.pk,
            "name": self.name,
            "stream": self.stream,
            "space": self.space_id,
            "status": self.status,
            "error": self.error or None,
            "warning": self.warning or None,
            "warnings": self.warned(),
            "left_out": self._left_out(),
            "plan": self.plan,
            "shared": self.shared,
            "team": self.team_id,
            "severity": self.severity,
            "look": self.pk % QUERY_LOOKS if self.look is None else self.look,
            "owner": self.owner.get_username() if self.owner else None,
            "example": self.example,
            "revision": self.revision,
        }

    def warned(self) -> list[dict]:
        """Return the newest warning of each kind, how often it happened and when last; the newest kind first."""
        told = sorted(self.warnings.items(), key=lambda one: one[1]["last"], reverse=True)
        return [
            {"kind": kind, "warning": one["text"], "count": one["count"], "last": one["last"]} for kind, one in told
        ]

    def _left_out(self) -> dict | None:
        if not self.lacks_answer:
            return None
        assert self.left_out_until is not None  # otherwise it does not lack its answer
        return {"cause": self.left_out_cause, "error": self.left_out, "until": self.left_out_until.isoformat()}


def clock_revision() -> int:
    """Return a revision for something not saved: the wall clock in ms, so it exceeds those of earlier processes."""
    return time.time_ns() // 1_000_000


class DeletedQuery(models.Model):
    """Replaces a deleted query until the engine has acknowledged its end.

    Its revision, from the clock, is higher than any revision that the query can have had.
    """

    number = models.PositiveBigIntegerField(primary_key=True)
    space = models.CharField(max_length=40, db_index=True)
    revision = models.PositiveBigIntegerField(default=clock_revision)

    class Meta:
        verbose_name = _("deleted query")
        verbose_name_plural = _("deleted queries")

    def __str__(self) -> str:
        return str(self.number)

    @property
    def should_run(self) -> bool:
        """Whether the engine should evaluate this query: never, since it is deleted."""
        return False


class RemovedExamples(models.Model):
    """Records that a user removed the examples of the demonstration from their list; others still see them."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True)

    objects = AuditedQuerySet.as_manager()

    class Meta:
        verbose_name = _("removed examples")
        base_manager_name = "objects"
        verbose_name_plural = _("removed examples")

    def __str__(self) -> str:
        return f"examples removed by {self.user}"

    @classmethod
    def shown_to(cls, user: User) -> bool:
        """Return whether a user sees the examples."""
        return not cls.objects.filter(user=user).exists()

    @classmethod
    def show(cls, user: User, shown: bool) -> None:
        """Show a user the examples, or remove them from their list."""
        if shown:
            cls.objects.filter(user=user).delete()
        else:
            cls.objects.get_or_create(user=user)
