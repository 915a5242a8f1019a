"""Celery tasks: send the engine what the database says, and save in the database what the engine reports.

A task that sends something to an engine only appends it to the control log. The engine's acknowledgement is settled by
`webapp.recording.settling`.
"""

import logging
from itertools import islice

import redis
from celery import shared_task
from django.conf import settings
from django.db.models import QuerySet

from streaming.keys import LogNames
from webapp import layers
from webapp.alarms import incidents
from webapp.audit.joining import tell_joined
from webapp.bus import liveness
from webapp.bus.control import engine_epoch, tell_engine
from webapp.bus.definitions import republish
from webapp.bus.redis import event_log, waiting_client
from webapp.history import upkeep
from webapp.history.snapshots import take_snapshots  # noqa: F401  # a task, too
from webapp.models import AuditEntry, DeletedQuery, Query, Space
from webapp.models.spaces import spaces_by_name
from webapp.operations import past
from webapp.operations.figures import collected
from webapp.queries.waiting import follow
from webapp.recording import incident_check, recording, strain

logger = logging.getLogger(__name__)

# A reconciliation appends this many queries to the control log at a time.
CHUNK = 500
# While an engine has more control entries than this to read, a reconciliation sends it no query. So an engine that is
# away finds each query a few times in its log, however long it was away.
CONTROL_ENTRIES_WAITING = 1_000


@shared_task
def reconcile() -> int:
    """Send the engines the queries that their present state has not acknowledged; return the number of queries.

    Before that, publish spaces, streams and layers again. So everything runs again after a restart of any part.
    Acknowledged queries are not sent again.
    """
    republish()
    layers.tell_engine()
    follow()
    return sum(map(_reconcile, list(Space.objects.values_list("name", flat=True))))


def _reconcile(space: str) -> int:
    """Send the unsettled queries of a space, and the ends of deleted ones, unless its engine has much to read."""
    client, names = waiting_client(), LogNames(space)
    if event_log(client).length(names.control) > CONTROL_ENTRIES_WAITING:
        logger.warning("the engine of %s does not read its control log; its queries are sent later", space)
        return 0
    sent = _send(client, space, DeletedQuery.objects.filter(space=space))
    return sent + _send(client, space, Query.objects.filter(space=space).unsettled(engine_epoch(client, names)))


def _send(client: redis.Redis, space: str, queries: QuerySet) -> int:
    """Send queries to the engine of a space, `CHUNK` at a time; return their number."""
    sent, unsent = 0, queries.order_by("pk").iterator(CHUNK)
    while chunk := list(islice(unsent, CHUNK)):
        tell_engine(client, space, chunk)
        sent += len(chunk)
    return sent


@shared_task
def record_events() -> int:
    """Store entries to and exits from answers as events, with their incidents; return the number of events."""
    client, spaces = waiting_client(), spaces_by_name().values()
    recorded = sum(recording.record_events(client, space) for space in spaces)
    for space in spaces:
        incident_check.check(client, space)
    return recorded


@shared_task
def pause_dear() -> None:
    """Pause queries that were too expensive."""
    client = waiting_client()
    for space in spaces_by_name().values():
        strain.watch(client, space)


@shared_task
def note_figures() -> None:
    """Add the present figures of all programs to those of the last hour; see `webapp.operations.past`."""
    past.note(waiting_client(), collected())


@shared_task
def retire_imports() -> int:
    """End imports whose worker died, and use versions that were stored but not saved; return the number of imports."""
    ended = layers.retire_imports()
    layers.catch_up()
    return ended


@shared_task
def keep_history() -> None:
    """Remove what is too old from the history, and merge its small files."""
    upkeep.maintain(settings.HISTORY_UPKEEP_S)


@shared_task
def forget_incidents() -> int:
    """Delete incidents that have been closed for too long, with their changes; return their number."""
    return incidents.forget(settings.INCIDENT_DAYS)


@shared_task
def forget_changes() -> int:
    """Delete rows of the audit log that are too old; return their number."""
    return AuditEntry.objects.expire(settings.AUDIT_DAYS)


@shared_task
def tell_joined_changes() -> int:
    """Add the changes that were joined in hours that are over to the audit log; return their number."""
    return tell_joined()


@shared_task
def retire_views() -> int:
    """Cancel the views of web processes that died; return their number."""
    return liveness.retire_views(waiting_client())
