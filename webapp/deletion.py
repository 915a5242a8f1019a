"""Queries whose rows are deleted end in the engine and for all clients, whichever way the rows go.

They may go by the admin, with their owner, or many at once: Django sends its signals for each. What is left of a query,
until the engine has acknowledged its end, is a `DeletedQuery`; so it ends although Redis or the engine is away.
"""

from copy import copy

from django.db import transaction
from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver

from streaming.logs import LogNames
from webapp.control import entry_of, tell_engine
from webapp.models import DeletedQuery, Query
from webapp.notify import announce
from webapp.redis import client
from webapp.telling import tell

# An engine is told of so many at a time.
CHUNK = 500


def end_deleted(space: str, timeout_s: float) -> int:
    """Tell the engine of a space of the ends that it has not acknowledged; return how many it acknowledges."""
    deleted = list(DeletedQuery.objects.filter(space=space).order_by("pk")[:CHUNK])
    if not deleted:
        return 0
    answers = tell_engine(client(), LogNames(space), deleted, timeout_s)
    DeletedQuery.objects.filter(pk__in=answers).delete()
    return len(answers)


@receiver(pre_delete, sender=Query)
def _leaving(instance, **_):
    """Keep the owner with a query, whose row may go before the query's does."""
    _ = instance.owner


@receiver(post_delete, sender=Query)
def _deleted(instance, **_):
    ended = copy(instance)  # Django clears the key of the other one
    ended.status, ended.error, ended.warning = Query.CANCELLED, "", ""
    deleted = DeletedQuery(number=ended.pk, space=ended.space_id)
    deleted.save()
    transaction.on_commit(lambda: _tell(deleted, ended))


def _tell(deleted, ended):
    control = LogNames(deleted.space).control
    tell(f"the end of query {deleted.number}", lambda: client().xadd(control, entry_of(deleted)))
    announce([ended])
