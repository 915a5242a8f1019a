"""End deleted queries in the engine and for all clients, however their rows are deleted.

The admin may delete them, their owner may be deleted, or many may be deleted at once: Django sends its signals for each
row. A `DeletedQuery` replaces the row until the engine has acknowledged the end, so the query ends even if Redis or the
engine is away now.
"""

from copy import copy

from django.db import transaction
from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver

from streaming.eventlog import RedisEventLog
from streaming.logs import LogNames
from webapp.control import entry_of, tell_engine
from webapp.models import DeletedQuery, Query
from webapp.notify import announce
from webapp.redis import client
from webapp.telling import tell

# An engine is sent this many at a time.
CHUNK = 500


def end_deleted(space: str, timeout_s: float) -> int:
    """Send the engine of a space the deletions that it has not acknowledged; return how many it acknowledges."""
    deleted = list(DeletedQuery.objects.filter(space=space).order_by("pk")[:CHUNK])
    if not deleted:
        return 0
    answers = tell_engine(client(), LogNames(space), deleted, timeout_s)
    DeletedQuery.objects.filter(pk__in=answers).delete()
    return len(answers)


@receiver(pre_delete, sender=Query)
def _leaving(instance, **_):
    """Load the owner now: the owner's row may be deleted before the query's row."""
    _ = instance.owner


@receiver(post_delete, sender=Query)
def _deleted(instance, **_):
    ended = copy(instance)  # a copy, since Django clears the primary key of the instance
    ended.status, ended.error, ended.warning = Query.CANCELLED, "", ""
    deleted = DeletedQuery(number=ended.pk, space=ended.space_id)
    deleted.save()
    transaction.on_commit(lambda: _tell(deleted, ended))


def _tell(deleted, ended):
    control = LogNames(deleted.space).control
    tell(f"the end of query {deleted.number}", lambda: RedisEventLog(client()).append(control, entry_of(deleted)))
    announce([ended])
