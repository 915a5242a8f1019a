"""Tasks: they bring the engine to what the database says, and the database to what the engine says."""

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
# A reconciliation tells the engine so many queries at a time.
CHUNK = 500
# It begins no further chunk after so long: the next is due. The spaces share the time, so that none waits for another.
RECONCILE_S = 20.0
# What people see of an acknowledgement, and all that is noted of it.
SHOWN = attrgetter("status", "error")
NOTED = attrgetter("status", "error", "acknowledged", "epoch")


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
    """Tell the engine what it has not acknowledged, or only in a state that it has no more; return how many it answers.

    So whatever was running before a restart of anything is running after it. What is acknowledged is not told again,
    so a run that ends early, because the engine is silent or slow, is carried on by the next.
    """
    republish()
    layers.tell_engine()
    follow_layers()
    spaces = _spaces()
    for space in spaces:
        end_deleted(space, settings.ACK_TIMEOUT_S)
    return sum(_reconcile(space, RECONCILE_S / len(spaces)) for space in spaces)


def _reconcile(space, time_s):
    """Tell the engine of one space; return how many queries it answers."""
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
    """Settle the queries that an engine acknowledged after whoever told it had given up; return their number."""
    return sum(_settle_late(space) for space in _spaces())


def _settle_late(space):
    answers = recent_answers(waiting_client(), LogNames(space))
    late = [query for query in _unsettled(space) if query in answers] if answers else []
    return sum(settle({query: answers[query] for query in chunk}) for chunk in _chunks(late))


@shared_task
def record_events() -> int:
    """Store what entered and left the answers of saved queries; return the number of events."""
    return sum(recording.record_events(waiting_client(), space) for space in spaces_by_name().values())


@shared_task
def retire_imports() -> int:
    """End imports whose worker died, take the versions that they had stored; return the number of imports."""
    ended = layers.retire_imports()
    layers.catch_up()
    return ended


@shared_task
def keep_history() -> None:
    """Remove what is too old of the history, and merge its small files."""
    history.maintain(settings.HISTORY_UPKEEP_S)


@shared_task
def take_snapshots() -> int:
    """Make snapshots of the stored elements with which streams are joined; return the number of streams."""
    return history.take_snapshots()


@shared_task
def retire_views() -> int:
    """Cancel the views of web processes that died; return their number."""
    return liveness.retire_views(waiting_client())


def settle(answers: Mapping[int, Acknowledgement]) -> int:
    """Write acknowledgements down, except of queries that have changed since, and announce what is new.

    Parameters
    ----------
    answers : mapping of int to Acknowledgement
        By query.

    Returns
    -------
    int
        How many queries there was something to write down for.
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
    """Save what acknowledgements changed: one statement for all queries that came to the same."""
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
    """Let a query fail, unless it has changed or been acknowledged in the meantime."""
    query.status, query.error = Query.FAILED, NO_ANSWER.format(settings.ACK_TIMEOUT_S, RETRIES + 1)
    waiting = Query.objects.filter(pk=query.pk, revision=query.revision, acknowledged__lt=query.revision)
    if waiting.update(status=query.status, error=query.error, updated=timezone.now()):
        announce([query])
