"""Settle queries: save in the database what the engines acknowledge, and which queries wait for too long.

A worker does this in a thread of its own, so that no task has to wait for an engine. An acknowledgement stays in its
log until it is saved: whatever ends the worker, the next one finds it there. To settle it twice changes nothing, so any
number of workers may run.
"""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from operator import attrgetter
from typing import Any

import redis
from django.conf import settings
from django.db import close_old_connections, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_noop

from streaming.eventlog import FIRST, Entry
from streaming.keys import LogNames
from streaming.results import VIEW_NUMBERS
from webapp.bus.control import Acknowledgement, acknowledgements
from webapp.bus.notify import announce
from webapp.bus.redis import NOT_NOW, event_log, waiting_client
from webapp.models import DeletedQuery, Query
from webapp.models.spaces import spaces_by_name

logger = logging.getLogger(__name__)

NO_ANSWER = gettext_noop("the engine must acknowledge a query within %(timeout_s)g s; got no answer")
# Queries that are saved in one transaction.
CHUNK = 500
ENTRIES_PER_READ = 64
# The longest wait for an acknowledgement before spaces and overdue queries are looked up again.
WAIT_S = 1.0
# After a failure.
RETRY_S = 1.0
# The fields of a query that an acknowledgement changes: those that clients see, and all of them.
SHOWN = attrgetter("status", "error")
NOTED = attrgetter("status", "error", "acknowledged", "epoch")


class Settler:
    """Settles acknowledgements as they come, in a thread.

    Parameters
    ----------
    wait_s : float
        The longest wait for an acknowledgement; `stop` takes as long.
    """

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self.wait_s = wait_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="settler", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what it has begun to save is saved."""
        self._ended.set()
        self._thread.join(self.wait_s + RETRY_S)

    def _run(self) -> None:
        began_s = time.monotonic()
        while not self._ended.is_set():
            try:
                settle_acknowledged(waiting_client(), spaces_by_name(), self.wait_s)
                # A query that had to wait for a worker has not been sent for as long as it has been pending.
                if time.monotonic() - began_s > settings.ACK_TIMEOUT_S:
                    fail_overdue()
            except Exception as error:  # whatever happens, acknowledgements must be settled
                expected = isinstance(error, NOT_NOW)
                logger.warning("acknowledgements wait: %s", error, exc_info=None if expected else error)
                self._ended.wait(RETRY_S)
                began_s = time.monotonic()
            finally:
                close_old_connections()


def settle_acknowledged(client: redis.Redis, spaces: Iterable[str], wait_s: float) -> int:
    """Wait for acknowledgements in the logs of spaces, settle them, and then remove them from the logs.

    Returns
    -------
    int
        How many queries changed in the database.
    """
    event_logs = event_log(client)
    logs = dict.fromkeys((LogNames(space).acks for space in spaces), FIRST)
    changed = 0
    found = event_logs.poll(logs, ENTRIES_PER_READ, wait_s)
    if found:
        # The database must not say that an engine has a query whose control entry a power cut could still take.
        event_logs.sync()
    for log, entries in found.items():
        newest = _newest(entries)
        queries = list(newest)
        for start in range(0, len(queries), CHUNK):
            answers = {query: newest[query] for query in queries[start : start + CHUNK]}
            changed += settle(answers)
            _forget_deleted(answers)
        event_logs.trim({log: entries[-1].position})
    return changed


def _newest(entries: Iterable[Entry]) -> dict[int, Acknowledgement]:
    """Return the last acknowledgement of the highest revision of each saved query, by query."""
    newest: dict[int, Acknowledgement] = {}
    for told in (told for entry in entries for told in acknowledgements(entry)):
        known = newest.get(told.query)
        if told.query < VIEW_NUMBERS and (known is None or told.revision >= known.revision):
            newest[told.query] = told
    return newest


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
        held = (
            Query.objects.select_for_update(of=("self",)).select_related("owner").order_by("pk").filter(pk__in=answers)
        )
        queries = [query for query in held if query.revision == answers[query.pk].revision]
        shown, noted = list(map(SHOWN, queries)), list(map(NOTED, queries))
        for query in queries:
            query.acknowledge(answers[query.pk].error, answers[query.pk].epoch)
        settled = _changed(queries, NOTED, noted)
        _save(settled)
    announce(_changed(queries, SHOWN, shown))
    return len(settled)


def _changed(queries: list[Query], fields: Callable[[Query], Any], before: list[Any]) -> list[Query]:
    return [query for query, was in zip(queries, before, strict=True) if fields(query) != was]


def _save(queries: Iterable[Query]) -> None:
    """Save what acknowledgements changed, with one statement for all queries that get equal values."""
    same = defaultdict(list)
    for query in queries:
        same[query.status, query.error, query.epoch].append(query.pk)
    for (status, error, epoch), alike in same.items():
        fields = {"status": status, "error": error, "epoch": epoch, "updated": timezone.now()}
        Query.objects.filter(pk__in=alike).update(acknowledged=F("revision"), **fields)


def _forget_deleted(answers: Mapping[int, Acknowledgement]) -> None:
    """Forget the deleted queries whose end is acknowledged."""
    deleted = DeletedQuery.objects.order_by("pk").filter(pk__in=answers)
    ended = [query.pk for query in deleted if answers[query.pk].revision >= query.revision]
    if ended:
        DeletedQuery.objects.filter(pk__in=ended).delete()


def fail_overdue() -> int:
    """Set queries to failed whose newest revision nobody acknowledged within `ACK_TIMEOUT_S`; return their number.

    They stay unsettled, so they are sent again, and they run as soon as the engine acknowledges them.
    """
    due = timezone.now() - timedelta(seconds=settings.ACK_TIMEOUT_S)
    overdue = Query.objects.filter(status=Query.PENDING, acknowledged__lt=F("revision"), updated__lt=due)
    if not overdue.exists():
        return 0
    with transaction.atomic():
        queries = list(overdue.select_for_update(of=("self",)).select_related("owner").order_by("pk")[:CHUNK])
        no_answer = NO_ANSWER % {"timeout_s": settings.ACK_TIMEOUT_S}
        for query in queries:
            query.status, query.error = Query.FAILED, no_answer
        failed = Query.objects.filter(pk__in=[query.pk for query in queries])
        failed.update(status=Query.FAILED, error=no_answer, updated=timezone.now())
    announce(queries)
    return len(queries)
