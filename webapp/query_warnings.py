"""Failures of queries: warnings while a query runs, and errors that end it."""

from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone

from webapp.incidents import close_of
from webapp.models import Query
from webapp.notify import announce

ANY_REVISION = 0


def warn(failures: Mapping[tuple[int, int], str]) -> None:
    """Save a warning for each query that has none, and announce it.

    Parameters
    ----------
    failures : mapping of (int, int) to str
        Warnings by query and revision; `ANY_REVISION` stands for the present one. Those of former revisions are
        ignored.
    """
    numbers = {query for query, _ in failures}
    with transaction.atomic():
        silent = (
            Query.objects.select_for_update(of=("self",))
            .select_related("owner")
            .filter(pk__in=numbers, warning="")
            .order_by("pk")
        )
        warned = [query for query in silent if _of(query, failures)]
        for query in warned:
            query.warning = _of(query, failures)
            Query.objects.filter(pk=query.pk).update(warning=query.warning, updated=timezone.now())
        if warned:
            transaction.on_commit(lambda: announce(warned))


def refuse(failures: Mapping[tuple[int, int], str]) -> None:
    """Set queries that the engine has ended to failed, save why, and announce it.

    Parameters
    ----------
    failures : mapping of (int, int) to str
        Errors by query and revision; those of other than the present revision are ignored.
    """
    numbers = {query for query, _ in failures}
    with transaction.atomic():
        held = (
            Query.objects.select_for_update(of=("self",)).select_related("owner").filter(pk__in=numbers).order_by("pk")
        )
        running = [query for query in held.exclude(status=Query.FAILED) if query.should_run]
        ended = [query for query in running if (query.pk, query.revision) in failures]
        for query in ended:
            query.status, query.error = Query.FAILED, failures[query.pk, query.revision]
            Query.objects.filter(pk=query.pk).update(status=query.status, error=query.error, updated=timezone.now())
        close_of(ended, "the query failed")
        if ended:
            transaction.on_commit(lambda: announce(ended))


def _of(query: Query, failures: Mapping[tuple[int, int], str]) -> str:
    return failures.get((query.pk, query.revision)) or failures.get((query.pk, ANY_REVISION)) or ""
