"""Celery tasks: bring the engine in line with the database, and save in the database what the engine reports."""

import logging
import time
from collections import defaultdict
from collections.abc import Mapping
from operator import attrgetter

from celery import shared_task
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from streaming.logs import LogNames
from webapp import history, layers, liveness, recording
from webapp.control import Acknowledgement, engine_epoch, recent_answers, tell_engine
from webapp.definitions import republish
from webapp.deletion import end_deleted
from webapp.models import Query, Space
from webapp.models.spaces import spaces_by_name
from webapp.notify import announce
from webapp.redis import waiting_client
from webapp.waiting import follow_layers

logger = logging.getLogger(__name__)

RETRIES = 3
NO_ANSWER = "the engine must acknowledge a query within {:g} s; got no answer in {} attempts"
# A reconciliation sends this many queries to the engine at a time.
CHUNK = 500
# It starts no further chunk after this time, before the next one is due. The spaces share the time equally, so that a
# silent engine does not delay the others.
RECONCILE_S = 20.0
# The fields of a query that an acknowledgement changes: those that clients see, and all of them.
SHOWN = attrgetter("status", "error")
NOTED = attrgetter("status", "error", "acknowledged", "epoch")


@shared_task(bind=True, max_retries=RETRIES)
def register_query(self, query_id: int) -> None:
    """Register a query, or its new revision, and wait for the engine's answer."""
    _settle(self, query_id)


@shared_task(bind=True, max_retries=RETRIES)
def cancel_query(self, query_id: int) -> None:
    """Cancel in the engine a query that was ended or paused, and wait for the engine's answer."""
    _settle(self, query_id)


@shared_task
def reconcile() -> int:
    """Send the engines the queries that their present state has not acknowledged; return how many they answer.

    Before that, publish spaces, streams and layers again, and send the ends of deleted queries. So everything runs
    again after a restart of any part. Acknowledged queries are not sent again, so if a run ends early, because an
    engine is silent or slow, the next run continues it.
    """
    republish()
    layers.tell_engine()
    follow_layers()
    spaces = _spaces()
    for space in spaces:
        end_deleted(space, settings.ACK_TIMEOUT_S)
    return sum(_reconcile(space, RECONCILE_S / len(spaces)) for space in spaces)


def _reconcile(space, time_s):
    """Send the queries of one space to its engine, within `time_s`; return how many it answers."""
    deadline = time.monotonic() + time_s
    queries = _unsettled(space)
    answered = 0
    for chunk in _chunks(queries):
        told = list(Query.objects.filter(pk__in=chunk).order_by("pk"))
        answers = tell_engine(waiting_client(), LogNames(space), told, min(settings.ACK_TIMEOUT_S, time_s))
        settle(answers)
        answered += len(answers)
        if not answers or time.monotonic() > deadline:
            break
    if answered < len(queries):
        words = "the engine of %s acknowledged %d of %d queries; the others are told again"
        logger.warning(words, space, answered, len(queries))
    return answered


@shared_task
def settle_late() -> int:
    """Save acknowledgements that came after the sender had stopped waiting; return the number of queries."""
    return sum(_settle_late(space) for space in _spaces())


def _settle_late(space):
    answers = recent_answers(waiting_client(), LogNames(space))
    late = [query for query in _unsettled(space) if query in answers] if answers else []
    return sum(settle({query: answers[query] for query in chunk}) for chunk in _chunks(late))


@shared_task
def record_events() -> int:
    """Store entries to and exits from the answers of saved queries as events; return their number."""
    return sum(recording.record_events(waiting_client(), space) for space in spaces_by_name().values())


@shared_task
def retire_imports() -> int:
    """End imports whose worker died, and use versions that were stored but not saved; return the number of imports."""
    ended = layers.retire_imports()
    layers.catch_up()
    return ended


@shared_task
def keep_history() -> None:
    """Remove what is too old from the history, and merge its small files."""
    history.maintain(settings.HISTORY_UPKEEP_S)


@shared_task
def take_snapshots() -> int:
    """Snapshot the stored streams that queries join with; return their number."""
    return history.take_snapshots()


@shared_task
def retire_views() -> int:
    """Cancel the views of web processes that died; return their number."""
    return liveness.retire_views(waiting_client())


def settle(answers: Mapping[int, Acknowledgement]) -> int:
    """Save acknowledgements, except of queries that have changed since; announce changes of status and error.

    Parameters
    ----------
    answers : mapping of int to Acknowledgement
        By query.

    Returns
    -------
    int
        How many queries changed in the database.
    """
    with transaction.atomic():
        held = Query.objects.select_for_update().select_related("owner").filter(pk__in=answers)
        queries = [query for query in held if query.revision == answers[query.pk].revision]
        shown, noted = list(map(SHOWN, queries)), list(map(NOTED, queries))
        for query in queries:
            query.acknowledge(answers[query.pk].error, answers[query.pk].epoch)
        settled = _changed(queries, NOTED, noted)
        _save(settled)
    announce(_changed(queries, SHOWN, shown))
    return len(settled)


def _changed(queries, fields, before):
    return [query for query, was in zip(queries, before, strict=True) if fields(query) != was]


def _save(queries):
    """Save what acknowledgements changed, with one statement for all queries that get equal values."""
    same = defaultdict(list)
    for query in queries:
        same[query.status, query.error, query.epoch].append(query.pk)
    for (status, error, epoch), alike in same.items():
        fields = {"status": status, "error": error, "epoch": epoch, "updated": timezone.now()}
        Query.objects.filter(pk__in=alike).update(acknowledged=F("revision"), **fields)


def _spaces():
    return list(Space.objects.values_list("name", flat=True))


def _unsettled(space):
    epoch = engine_epoch(waiting_client(), LogNames(space))
    queries = Query.objects.filter(space=space).unsettled(epoch)
    return list(queries.order_by("pk").values_list("pk", flat=True))


def _chunks(queries):
    return (queries[start : start + CHUNK] for start in range(0, len(queries), CHUNK))


def _settle(task, query_id):
    query = Query.objects.select_related("owner").filter(pk=query_id).first()
    if query is None or query.acknowledged >= query.revision:
        return
    answers = tell_engine(waiting_client(), LogNames(query.space_id), [query], settings.ACK_TIMEOUT_S)
    if answers:
        settle(answers)
    elif task.request.retries < RETRIES:
        raise task.retry(countdown=2**task.request.retries)
    elif query.should_run:
        _give_up(query)


def _give_up(query):
    """Set a query to failed, unless it has changed or been acknowledged meanwhile."""
    query.status, query.error = Query.FAILED, NO_ANSWER.format(settings.ACK_TIMEOUT_S, RETRIES + 1)
    waiting = Query.objects.filter(pk=query.pk, revision=query.revision, acknowledged__lt=query.revision)
    if waiting.update(status=query.status, error=query.error, updated=timezone.now()):
        announce([query])
