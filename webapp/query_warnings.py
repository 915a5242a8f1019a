"""Failures of queries: warnings while a query runs, why it is left out for a while, and errors that end it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from streaming.explaining.words import clock
from webapp.incidents import close_of
from webapp.models import Query
from webapp.models.queries import Cause
from webapp.notify import announce
from webapp.rules import rules_watching
from webapp.stored_words import retold

ANY_REVISION = 0
WATCHED = gettext_noop("it watches query %(number)s, %(name)s, which is left out")


@dataclass(frozen=True)
class LeftOutQuery:
    """A query that the engine leaves out: why, and when it is tried again.

    Parameters
    ----------
    cause : {"room", "failure"}
    error : str
    until : datetime
    """

    cause: str
    error: str
    until: datetime


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


def leave_out(omissions: Mapping[tuple[int, int], LeftOutQuery]) -> None:
    """Save that queries are left out, and that rules watch them, and announce it.

    Parameters
    ----------
    omissions : mapping of (int, int) to LeftOutQuery
        By query and revision; those of other than the present revision are ignored.
    """
    numbers = {query for query, _ in omissions}
    with transaction.atomic():
        watched = {rule.pk: of for rule, of in rules_watching(Query.objects.filter(pk__in=numbers)).items()}
        alive = Query.objects.alive().select_for_update(of=("self",)).select_related("owner").order_by("pk")
        held = list(alive.filter(pk__in=numbers | watched.keys()))
        found = {query.pk: query for query in held if (query.pk, query.revision) in omissions}
        for query in found.values():
            told = omissions[query.pk, query.revision]
            _leave_out(query, told.cause, told.error, told.until)
        watching = [query for query in held if not found.keys().isdisjoint(watched.get(query.pk, ()))]
        for rule in watching:
            # Of several queries, the one that takes longest stands for all.
            one = max(
                (found[of] for of in watched[rule.pk] & found.keys()),
                key=lambda of: omissions[of.pk, of.revision].until,
            )
            until = omissions[one.pk, one.revision].until
            _leave_out(rule, Cause.WATCHED, WATCHED % {"number": one.pk, "name": one.name}, until)
        if found:
            transaction.on_commit(lambda: announce([*found.values(), *watching]))


def left_out_words(query: Query) -> str:
    """Say why a query lacks its answer now, and when it is tried again; empty if it is evaluated."""
    if not query.lacks_answer or query.left_out_until is None:
        return ""
    until, now = (int(at.timestamp() * 1e6) for at in (query.left_out_until, timezone.now()))
    text = {
        Cause.WATCHED: gettext("%(why)s; that query is tried again at %(time)s"),
        Cause.FAILURE: gettext(
            "left out, because it failed: %(why)s; it is tried again at %(time)s, and an edit at once"
        ),
        Cause.ROOM: gettext("left out, because %(why)s; it is tried again at %(time)s, and an edit at once"),
    }[Cause(query.left_out_cause)]
    return text % {"why": retold(query.left_out), "time": clock(until, now)}


def _leave_out(query: Query, cause: str, why: str, until: datetime) -> None:
    query.leave_out(cause, why, until)
    fields = {name: getattr(query, name) for name in ("left_out", "left_out_cause", "left_out_until")}
    Query.objects.filter(pk=query.pk).update(**fields, updated=timezone.now())


def _of(query: Query, failures: Mapping[tuple[int, int], str]) -> str:
    return failures.get((query.pk, query.revision)) or failures.get((query.pk, ANY_REVISION)) or ""
