"""The audit log: what people changed, when, and from where. Its rows are only ever added."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NoReturn

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from webapp.models.audit_values import in_words


class FixedRow(TypeError):
    """Somebody tried to change or to delete a row of the audit log."""


class AuditEntries(models.QuerySet):
    """Rows of the audit log. They cannot change, and only old ones can be deleted."""

    def update(self, **values: Any) -> NoReturn:
        """Refuse to change rows."""
        raise FixedRow(f"rows of the audit log cannot change; got {', '.join(values)}")

    def bulk_update(
        self, objs: Iterable["AuditEntry"], fields: Iterable[str], batch_size: int | None = None
    ) -> NoReturn:
        """Refuse to change rows."""
        raise FixedRow(f"rows of the audit log cannot change; got {', '.join(fields)}")

    def delete(self) -> NoReturn:
        """Refuse to delete rows."""
        raise FixedRow("rows of the audit log are deleted by `expire` only")

    def expire(self, days: int, most: int = 5_000) -> int:
        """Delete rows that are older than some days, at most `most`; return their number. 0 days keep all."""
        if days <= 0:
            return 0
        before = timezone.now() - timedelta(days=days)
        old = list(self.filter(at__lt=before).order_by("pk").values_list("pk", flat=True)[:most])
        return self.filter(pk__in=old)._raw_delete(self.db) if old else 0

    def of_team(self, team: int) -> "AuditEntries":
        """Select the changes of a team, of its members, and of what it has or had."""
        return self.filter(models.Q(team=team) | models.Q(former_team=team))


class Change(models.Model):
    """One change of one object, or several of one user that are told together.

    It has no foreign keys, so that no deletion of something else changes it. `user_name` is who did it: a user of
    Lookout, for a command the user of the server, and empty for what Lookout did by itself. Of several changes, `at` is
    the time of the last one and `since` that of the first.
    """

    CREATED, CHANGED, DELETED = "created", "changed", "deleted"
    ACTIONS = [(action, action) for action in (CREATED, CHANGED, DELETED)]
    WEBSOCKET, HTTP, ADMIN, COMMAND, LOOKOUT = "websocket", "http", "admin", "command", "lookout"
    WAYS = [(way, way) for way in (WEBSOCKET, HTTP, ADMIN, COMMAND, LOOKOUT)]

    at = models.DateTimeField(_("at"), default=timezone.now, db_index=True)
    since = models.DateTimeField(_("since"), null=True)
    count = models.PositiveIntegerField(_("number of changes"), default=1)
    user_number = models.BigIntegerField(_("number of the user"), null=True)
    user_name = models.CharField(_("user"), max_length=150, blank=True, db_index=True)
    way = models.CharField(_("by"), max_length=10, choices=WAYS)
    address = models.GenericIPAddressField(_("address"), null=True)
    action = models.CharField(_("action"), max_length=10, choices=ACTIONS)
    kind = models.CharField(_("kind"), max_length=40)
    key = models.CharField(_("number"), max_length=64)
    name = models.CharField(_("name"), max_length=200)
    team = models.BigIntegerField(_("number of the team"), null=True, db_index=True)
    team_name = models.CharField(_("team"), max_length=80, blank=True)
    former_team = models.BigIntegerField(_("number of the former team"), null=True, db_index=True)
    changes = models.JSONField(_("changes"), help_text=_("By field: the old and the new value."))

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.action}"


class JoinedChange(Change):
    """Edits of an object by a user in an hour, beyond those that have rows of their own. It becomes a row of the log.

    Unlike rows of the log it changes, until its hour is over (`webapp.audit.joining`).
    """

    hour = models.DateTimeField(db_index=True)


class AuditEntry(Change):
    """A row of the audit log. It never changes."""

    objects = AuditEntries.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("change")
        verbose_name_plural = _("audit log")
        indexes = [
            models.Index(fields=["kind", "key", "-id"], name="audit_of_an_object"),
            models.Index(fields=["user_name", "-at"], name="audit_of_a_user"),
        ]

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Add the row; refuse to change it later."""
        if not self._state.adding:
            raise FixedRow(f"rows of the audit log cannot change; got row {self.pk}")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to delete the row."""
        raise FixedRow(f"rows of the audit log are deleted by `expire` only; got row {self.pk}")

    @property
    def lines(self) -> list[tuple[str, str, str]]:
        """The changes as (field, old, new), as people read them."""
        return [(field, in_words(old), in_words(new)) for field, (old, new) in self.changes.items()]
