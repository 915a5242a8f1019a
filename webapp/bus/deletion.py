"""End deleted queries in the engine and for all clients, however their rows are deleted.

The admin may delete them, their owner may be deleted, or many may be deleted at once: Django sends its signals for each
row. A `DeletedQuery` replaces the row until the engine has acknowledged the end, so the query ends even if Redis or the
engine is away now.
"""

from copy import copy

from django.db import transaction
from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver

from webapp.bus.control import tell_engine
from webapp.bus.notify import announce
from webapp.bus.redis import client
from webapp.bus.telling import tell
from webapp.models import DeletedQuery, Query


@receiver(pre_delete, sender=Query)
def _leaving(instance: Query, **options: object) -> None:
    """Load the owner now: the owner's row may be deleted before the query's row."""
    _ = instance.owner


@receiver(post_delete, sender=Query)
def _deleted(instance: Query, **_: object) -> None:
    ended = copy(instance)  # a copy, since Django clears the primary key of the instance
    ended.status, ended.error, ended.warning = Query.CANCELLED, "", ""
    deleted = DeletedQuery(number=ended.pk, space=ended.space_name)
    deleted.save()
    transaction.on_commit(lambda: _tell(deleted, ended))


def _tell(deleted: DeletedQuery, ended: Query) -> None:
    tell(f"the end of query {deleted.number}", lambda: tell_engine(client(), deleted.space, [deleted]))
    announce([ended], lists=True)
