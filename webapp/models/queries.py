"""Saved continuous queries."""

import time

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.models.spaces import EARTH, Space


class QuerySet(models.QuerySet):
    """Selections of queries."""

    def visible_to(self, user) -> "QuerySet":
        """Select the user's own queries and the shared ones, except cancelled ones."""
        return self.filter(Q(owner=user) | Q(shared=True)).exclude(status=Query.CANCELLED)

    def alive(self) -> "QuerySet":
        """Select what has not been cancelled."""
        return self.exclude(status=Query.CANCELLED)

    def unsettled(self, epoch: str) -> "QuerySet":
        """Select what the engine must be told, given the epoch of its state.

        These are the queries whose newest revision no state has acknowledged, and those that should run but that
        another state acknowledged. A new state does not know the others either, which is as it should be. While the
        engine has not told its epoch (empty), its state is taken for the one that it had.
        """
        unheard = Q(acknowledged__lt=models.F("revision"))
        runs = Q(paused=False) & ~Q(status__in=(Query.CANCELLED, Query.WAITING))
        elsewhere = runs & ~Q(epoch=epoch)
        return self.filter(unheard | elsewhere if epoch else unheard)


class Query(models.Model):
    """A continuous query that somebody saved; its primary key is its number in the engine.

    `status` is what people see; `revision` counts every change; `acknowledged` is the newest revision that the engine
    has answered for, and `epoch` names the state in which it did. A query that is `waiting` joins with a layer that is
    not there, so the engine does not know it.
    """

    PENDING, RUNNING, PAUSED, CANCELLED, FAILED = "pending", "running", "paused", "cancelled", "failed"
    WAITING = "waiting"
    STATUSES = [(status, status) for status in (PENDING, RUNNING, PAUSED, CANCELLED, FAILED, WAITING)]

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="queries", verbose_name="owner")
    name = models.CharField("name", max_length=120)
    stream = models.CharField("stream", max_length=40, db_index=True, editable=False)
    space = models.ForeignKey(
        Space, models.PROTECT, default=EARTH, related_name="queries", verbose_name="space", editable=False
    )
    plan = models.JSONField("plan")
    status = models.CharField("status", max_length=10, choices=STATUSES, default=PENDING, db_index=True)
    error = models.TextField("error", blank=True)
    warning = models.TextField("warning", blank=True, help_text="What does not work as it should while it runs.")
    shared = models.BooleanField("shared", default=False)
    paused = models.BooleanField("paused", default=False)
    revision = models.PositiveBigIntegerField("revision", default=1)
    acknowledged = models.PositiveBigIntegerField("acknowledged revision", default=0)
    epoch = models.CharField("epoch", max_length=80, blank=True)
    created = models.DateTimeField("created", auto_now_add=True)
    updated = models.DateTimeField("updated", auto_now=True)

    objects = QuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "queries"

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"

    @property
    def should_run(self) -> bool:
        """Whether the engine should evaluate this query."""
        return not self.paused and self.status not in (self.CANCELLED, self.WAITING)

    @property
    def layer(self) -> str:
        """The name of the layer that this query joins with; empty where it joins with none."""
        return self.plan.get("join", {}).get("layer", "")

    def wait_for(self, layer: str) -> None:
        """Wait for a layer that is not there; nothing is saved."""
        self.status = self.WAITING
        self.warning = f"waits for the layer {layer!r}, which is not there; it starts once the layer is imported"

    def editable_by(self, user) -> bool:
        """Tell whether a user may change or end this query."""
        return user.is_staff or self.owner_id == user.pk

    def visible_to(self, user) -> bool:
        """Tell whether a user may see this query's answer."""
        return self.shared or self.editable_by(user)

    def acknowledge(self, error: str, epoch: str) -> None:
        """Take the engine's answer to the present revision; nothing is saved."""
        self.acknowledged, self.epoch = self.revision, epoch
        if self.should_run:
            self.status, self.error = (self.FAILED if error else self.RUNNING), error

    def document(self) -> dict:
        """Return what clients are told of this query, but for `mine`, which depends on who is told."""
        return {
            "query": self.pk,
            "name": self.name,
            "stream": self.stream,
            "space": self.space_id,
            "status": self.status,
            "error": self.error or None,
            "warning": self.warning or None,
            "plan": self.plan,
            "shared": self.shared,
            "owner": self.owner.get_username(),
            "revision": self.revision,
        }


def clock_revision() -> int:
    """Return a revision for something unsaved: the wall clock in milliseconds, so above all of earlier processes."""
    return time.time_ns() // 1_000_000
