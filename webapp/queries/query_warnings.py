"""Failures of queries: warnings while a query runs, why it is left out for a while, and errors that end it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop, ngettext

from streaming.explaining.words import clock
from streaming.language import thousands
from streaming.operators.failures import DOUBTED, LATE
from webapp.alarms.incidents import close_of
from webapp.alarms.rules import rules_watching
from webapp.bus.notify import announce
from webapp.models import Query
from webapp.models.queries import Cause
from webapp.words.stored_words import retold

ANY_REVISION = 0
# What a query's warnings are about: a filter or join failed; answers could not be sent, or events not be recorded.
# Those about reports that were not used have the kinds of `streaming.operators.failures`.
FAILED, UNSENT, UNRECORDED = "failed", "unsent", "unrecorded"
# In words, given the error; other kinds are the error itself.
_WORDS = {
    FAILED: gettext_noop(
        "a part of the query failed, and the objects on which it fails count as not matching; %(error)s"
    )
}
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


@dataclass(frozen=True)
class Warned:
    """What does not work although a query runs: the newest text of its kind, how often it happened, and when last."""

    text: str
    count: int
    last: datetime


class Warnings:
    """Collects warnings by query, revision and kind, the newest of each kind with the number of all."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], dict[str, Warned]] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def note(self, query: tuple[int, int], kind: str, error: str, at: datetime, count: int = 1) -> None:
        """Add a warning.

        Parameters
        ----------
        query : tuple of int
            The query and its revision; `ANY_REVISION` stands for the present one.
        kind : str
        error : str
        at : datetime
        count : int
            How often it happened, or how many reports it is about.
        """
        kinds = self._found.setdefault(query, {})
        before = kinds[kind].count if kind in kinds else 0
        kinds[kind] = Warned(_WORDS.get(kind, "%(error)s") % {"error": error}, before + count, at)

    @property
    def queries(self) -> set[int]:
        """The numbers of the queries that have any."""
        return {query for query, _ in self._found}

    def of(self, query: Query) -> dict[str, Warned]:
        """Return those of a query in its present revision, by kind."""
        found = (self._found.get((query.pk, revision), {}) for revision in (query.revision, ANY_REVISION))
        return {kind: told for some in found for kind, told in some.items()}


def warn(found: Warnings) -> None:
    """Add warnings to those of their queries, and announce them; those of former revisions are ignored."""
    with transaction.atomic():
        held = Query.objects.select_for_update(of=("self",)).select_related("owner").filter(pk__in=found.queries)
        warned = [query for query in held.order_by("pk") if (told := found.of(query)) and _renew(query, told)]
        if warned:
            transaction.on_commit(lambda: announce(warned))


def _renew(query: Query, told: Mapping[str, Warned]) -> bool:
    """Save the newest warning of each kind, and how many there were since the query was edited."""
    for kind, one in told.items():
        before = query.warnings.get(kind, {}).get("count", 0)
        query.warnings[kind] = {"text": one.text, "count": before + one.count, "last": one.last.isoformat()}
    return bool(Query.objects.filter(pk=query.pk).update(warnings=query.warnings, updated=timezone.now()))


def warning_words(query: Query) -> str:
    """Say what keeps a query from working, and what did not work although it ran; empty if nothing did."""
    return "; ".join(filter(None, [retold(query.warning), *map(_counted, query.warned())]))


def _counted(told: Mapping[str, Any]) -> str:
    text, count = retold(told["warning"]), told["count"]
    words = ngettext("%(text)s (once, at %(time)s)", "%(text)s (%(count)s times, last at %(time)s)", count)
    if told["kind"] in (LATE, DOUBTED):
        words = ngettext(
            "%(text)s (%(count)s report, at %(time)s)", "%(text)s (%(count)s reports, the last at %(time)s)", count
        )
    last, now = (int(at.timestamp() * 1e6) for at in (datetime.fromisoformat(told["last"]), timezone.now()))
    return words % {"text": text, "count": thousands(count), "time": clock(last, now)}


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
