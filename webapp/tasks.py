"""Tasks: they bring the engine to what the database says, and the database to what the engine says."""

import logging
from pathlib import Path

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from streaming.layers import Wanted
from webapp import layers, liveness, recording
from webapp.control import Acknowledgement, tell_engine
from webapp.definitions import republish_streams
from webapp.models import Layer, Query
from webapp.notify import announce
from webapp.redis import client, names

logger = logging.getLogger(__name__)

RETRIES = 3
NO_ANSWER = "the engine must acknowledge a query within {:g} s; got no answer in {} attempts"
# A reconciliation tells the engine so many queries at a time.
CHUNK = 500


@shared_task(bind=True, max_retries=RETRIES)
def register_query(self, query_id: int) -> None:
    """Register a query, or its new revision, and wait for the engine's answer."""
    _settle(self, query_id)


@shared_task(bind=True, max_retries=RETRIES)
def cancel_query(self, query_id: int) -> None:
    """Cancel a query that was ended or paused, and wait for the engine's answer."""
    _settle(self, query_id)


@shared_task
def reconcile() -> int:
    """Tell the engine again of all that should run and of all it has not acknowledged; return the number of answers.

    So whatever was running before a restart of anything is running after it.
    """
    republish_streams()
    layers.tell_engine()
    queries = list(Query.objects.unsettled().select_related("owner").order_by("pk"))
    answered = 0
    for start in range(0, len(queries), CHUNK):
        chunk = queries[start : start + CHUNK]
        answers = tell_engine(client(), names(), chunk, settings.ACK_TIMEOUT_S)
        for query in chunk:
            if query.pk in answers:
                acknowledge(query, answers[query.pk])
        answered += len(answers)
        if not answers:
            logger.warning("the engine acknowledged none of %d queries; they are told again", len(queries))
            break
    return answered


@shared_task
def record_events() -> int:
    """Store what entered and left the answers of saved queries; return the number of events."""
    return recording.record_events(client(), settings.SPACE)


@shared_task(bind=True, acks_late=False, max_retries=None)
def import_layer(self, layer_id: int, run: str, path: str, wanted: dict[str, str]) -> None:
    """Import an uploaded file into a layer, unless the import is not wanted any more.

    It is acknowledged as it begins: a large import takes longer than tasks may, and must not be handed to another
    worker meanwhile. One whose worker dies is ended by `retire_imports`.
    """
    layer = Layer.objects.filter(pk=layer_id, run=run, status=Layer.IMPORTING).first()
    if layer is None:
        layers.forget_upload(run)
    elif layers.running_imports() >= settings.LAYER_IMPORTS_AT_ONCE:
        raise self.retry(countdown=1)
    else:
        layers.run_import(layer, Path(path), Wanted(**wanted))


@shared_task
def retire_imports() -> int:
    """End imports whose worker died, take the versions that they had stored; return the number of imports."""
    ended = layers.retire_imports()
    layers.catch_up()
    return ended


@shared_task
def retire_views() -> int:
    """Cancel the views of web processes that died; return their number."""
    return liveness.retire_views(client(), names())


def acknowledge(query: Query, answer: Acknowledgement) -> None:
    """Write an acknowledgement down, unless the query has changed in the meantime."""
    status = query.status
    if query.should_run:
        status = Query.FAILED if answer.error else Query.RUNNING
    _update(query, status, answer.error, acknowledged=query.revision)


def _settle(task, query_id):
    query = Query.objects.select_related("owner").filter(pk=query_id).first()
    if query is None or query.acknowledged >= query.revision:
        return
    answers = tell_engine(client(), names(), [query], settings.ACK_TIMEOUT_S)
    if query_id in answers:
        acknowledge(query, answers[query_id])
    elif task.request.retries < RETRIES:
        raise task.retry(countdown=2**task.request.retries)
    elif query.should_run:
        _update(query, Query.FAILED, NO_ANSWER.format(settings.ACK_TIMEOUT_S, RETRIES + 1))


def _update(query, status, error, **fields):
    same = Query.objects.filter(pk=query.pk, revision=query.revision)
    changed = (query.status, query.error) != (status, error)
    fields |= {"status": status, "error": error, "updated": timezone.now()}
    if (changed or fields.get("acknowledged", 0) > query.acknowledged) and same.update(**fields) and changed:
        query.status, query.error = status, error
        announce(query)
