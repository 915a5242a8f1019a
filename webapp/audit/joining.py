"""Join the edits of a user beyond a number an hour: one row for each object then says how many there were.

A joined change is counted in the database, in the transaction of the edit. When its hour is over, a task adds it to the
log, so rows of the log never change.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from webapp.models import AuditEntry, JoinedChange
from webapp.models.audit_values import Pair, shortened

# Joined changes differ in none of these.
_SAME = ("user_number", "user_name", "way", "address", "action", "kind", "key", "team", "former_team")


@dataclass(frozen=True)
class Edit:
    """A change that is to be recorded.

    Parameters
    ----------
    entry : AuditEntry
        Not saved yet.
    changes : dict of str to list
        The old and the new value of each field, whole.
    joins : bool
        Whether it edits only what may be joined.
    """

    entry: AuditEntry
    changes: dict[str, Pair]
    joins: bool


def keep(edits: Sequence[Edit]) -> None:
    """Add changes of one user to the log; join those that may be joined if the user has edited much in this hour."""
    joinable = [edit for edit in edits if edit.joins]
    own = [edit for edit in edits if not edit.joins]
    room = _room(joinable[0].entry) if joinable else 0
    AuditEntry.objects.bulk_create(edit.entry for edit in (*own, *joinable[:room]))
    for edit in joinable[room:]:
        _join(edit.entry, edit.changes)


def _room(entry: AuditEntry) -> int:
    """Return how many edits of a user still have rows of their own in this hour."""
    most = settings.AUDIT_EDITS_AN_HOUR
    rows = AuditEntry.objects.filter(user_name=entry.user_name, way=entry.way, count=1, at__gte=_hour(entry.at))
    edits = rows.filter(action=AuditEntry.CHANGED).order_by("-at")
    return most - edits[:most].count() if most > 0 else sys.maxsize


def _join(entry: AuditEntry, changes: dict[str, Pair]) -> None:
    same = {name: getattr(entry, name) for name in _SAME}
    row = JoinedChange.objects.filter(hour=_hour(entry.at), **same).first()
    if row is None:
        named = {"name": entry.name, "team_name": entry.team_name, "since": entry.at, "count": 0, "changes": {}}
        row = JoinedChange(hour=_hour(entry.at), **same, **named)
    row.at, row.count, row.name = entry.at, row.count + 1, entry.name
    for field, (old, new) in changes.items():
        row.changes[field] = [row.changes.get(field, [shortened(old)])[0], shortened(new)]
    row.save()


def tell_joined(now: datetime | None = None) -> int:
    """Add the joined changes of hours that are over to the log; return their number."""
    with transaction.atomic():
        over = JoinedChange.objects.select_for_update().filter(hour__lt=_hour(now or timezone.now()))
        rows = list(over.order_by("pk"))
        names = [field.name for field in JoinedChange._meta.fields if field.name not in ("id", "hour")]
        AuditEntry.objects.bulk_create(AuditEntry(**{name: getattr(row, name) for name in names}) for row in rows)
        JoinedChange.objects.filter(pk__in=[row.pk for row in rows]).delete()
    return len(rows)


def _hour(at: datetime) -> datetime:
    return at - timedelta(minutes=at.minute, seconds=at.second, microseconds=at.microsecond)
