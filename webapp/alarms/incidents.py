"""Incidents: who may act on them, the actions, and the one place that writes what happened to them.

`webapp.rights.access` says who sees incidents and who may act on them.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count
from django.utils import timezone
from django.utils.translation import gettext

from webapp.bus.notify import announce_incidents
from webapp.delivery.outbox import enqueue
from webapp.models import Incident, IncidentChange, Query, Severity
from webapp.rights.access import Asker, Rights, people, rights_of
from webapp.words.refusals import Refused

OPEN, CLOSED = "open", "closed"
STATES = (OPEN, CLOSED)
PAGE_INCIDENTS = 100
# Rows that one statement writes.
CHUNK = 1_000
# Incidents that are deleted at a time.
FORGOTTEN = 5_000
# Names of users that are offered to be assigned.
PEOPLE = 200
RELATED = ("query__owner", "acknowledged_by", "assigned_to", "closed_by")


def changed(changes: list[IncidentChange]) -> None:
    """Write changes of incidents. Whatever happens to an incident passes here.

    It must be called in the transaction that changes the incidents. What has to be sent of the changes is written in
    the same transaction; connections hear of the incidents once it is committed.

    Parameters
    ----------
    changes : list of IncidentChange
        Unsaved, in their order, with their incidents and the queries of these.
    """
    if not changes:
        return
    IncidentChange.objects.bulk_create(changes, CHUNK)
    enqueue(changes)
    incidents = {change.incident.pk: change.incident for change in changes}
    transaction.on_commit(lambda: announce_incidents(incidents.values()))


def close_of(queries: Iterable[Query], why: str) -> None:
    """Close the open incidents of queries whose answers end or are no longer the same, and say why in their changes.

    Objects that are in an answer after that open incidents again when they enter it. It must be called in the
    transaction that changes the queries.
    """
    numbers = [query.pk for query in queries]
    if not numbers:
        return
    inside = Incident.objects.filter(query__in=numbers, left=None)
    ended = list(inside.filter(closed=None).select_for_update(of=("self",)).select_related(*RELATED).order_by("pk"))
    now = timezone.now()
    inside.filter(closed=None).update(closed=now)
    inside.update(left=now)
    for incident in ended:
        incident.closed = incident.left = now
    changed([IncidentChange(incident=incident, what=IncidentChange.CLOSED, text=why) for incident in ended])


def acknowledge(user: User, number: int) -> Incident:
    """Record that a user has taken note of an open incident; a second time changes nothing."""
    with _acting(user, number) as act:
        if act.incident.acknowledged is None:
            act.save(IncidentChange.ACKNOWLEDGED, acknowledged=timezone.now(), acknowledged_by=user)
    return act.incident


def assign(user: User, number: int, to: str | None) -> Incident:
    """Assign an open incident to a user, by name, or to nobody.

    Raises
    ------
    Refused
        Where there is no such user who may act on the incident.
    """
    with _acting(user, number) as act:
        person = None if to is None else _person(act.incident.query, to)
        if act.incident.assigned_to != person:
            act.save(IncidentChange.ASSIGNED, f"to {to}" if to else "to nobody", assigned_to=person)
    return act.incident


def comment(user: User, number: int, text: str) -> Incident:
    """Add a comment to an incident, also to a closed one."""
    with _acting(user, number, closed=True) as act:
        act.save(IncidentChange.COMMENTED, text)
    return act.incident


def snooze(user: User, number: int, until: datetime) -> Incident:
    """Let an open incident be silent until a time, which must be in the future."""
    with _acting(user, number) as act:
        if until <= timezone.now():
            raise Refused(
                "fields", gettext("until must be in the future; got %(isoformat)s") % {"isoformat": until.isoformat()}
            )
        act.save(IncidentChange.SNOOZED, f"until {until:%Y-%m-%d %H:%M} UTC", snoozed_until=until)
    return act.incident


def wake(user: User, number: int) -> Incident:
    """End the snooze of an open incident."""
    with _acting(user, number) as act:
        if act.incident.snoozed_until is not None:
            act.save(IncidentChange.WOKEN, snoozed_until=None)
    return act.incident


def close(user: User, number: int) -> Incident:
    """Close an incident by hand; a second time changes nothing.

    It stays closed until the object leaves and enters again.
    """
    with _acting(user, number, closed=True) as act:
        if act.incident.closed is None:
            act.save(IncidentChange.CLOSED, "by hand", closed=timezone.now(), closed_by=user)
    return act.incident


@dataclass(frozen=True)
class _Act:
    """An action of a user on an incident that is held in a transaction."""

    user: User
    incident: Incident

    def save(self, what: str, text: str = "", **values: Any) -> None:
        """Save new values, and write the change."""
        for field, value in values.items():
            setattr(self.incident, field, value)
        self.incident.save(update_fields=[*values])
        changed([IncidentChange(incident=self.incident, user=self.user, what=what, text=text)])


@contextmanager
def _acting(user: User, number: int, closed: bool = False) -> Iterator[_Act]:
    """Hold an incident on which a user acts; unless `closed` is true, it must be open."""
    with transaction.atomic():
        held = Incident.objects.select_for_update(of=("self",)).select_related(*RELATED).filter(pk=number).first()
        rights = rights_of(user)
        incident = _visible(rights, number, held)
        if not rights.acts(incident.query):
            raise Refused(
                "owner",
                gettext("only analysts and admins of its team may act on an incident; got %(number)s")
                % {"number": number},
            )
        if incident.closed is not None and not closed:
            raise Refused("incident", gettext("the incident must be open; %(number)s is closed") % {"number": number})
        yield _Act(user, incident)


def detail(user: Asker, number: int) -> tuple[Incident, list[IncidentChange], list[str], bool]:
    """Return an incident that a user may see, its changes in order, who may act on it, and whether the user may."""
    rights = rights_of(user)
    incident = _visible(rights, number, Incident.objects.select_related(*RELATED).filter(pk=number).first())
    names = people(incident.query).values_list(get_user_model().USERNAME_FIELD, flat=True)
    return incident, list(incident.changes.select_related("user")), list(names[:PEOPLE]), rights.acts(incident.query)


def _visible(rights: Rights, number: int, incident: Incident | None) -> Incident:
    if incident is None or incident.query.ended or not rights.sees(incident.query):
        raise Refused(
            "incident",
            gettext("incident must be the number of one of a query that you may see; got %(number)s")
            % {"number": number},
        )
    return incident


def _person(query: Query, name: str) -> User:
    person = people(query).filter(**{get_user_model().USERNAME_FIELD: name}).first()
    if person is None:
        raise Refused(
            "user",
            gettext("to must be a user who may act on the incidents of the query; got %(name)s")
            % {"name": f"{name!r:.80}"},
        )
    return person


def forget(days: int) -> int:
    """Delete closed incidents to which nothing has happened for some days; return their number, at most `FORGOTTEN`.

    Those whose objects have not left the answer stay: they say that these objects open no other incident.
    """
    began = timezone.now() - timedelta(days=days)
    old = Incident.objects.exclude(closed=None).exclude(left=None).exclude(changes__at__gte=began)
    numbers = list(old.order_by("pk").values_list("pk", flat=True)[:FORGOTTEN])
    with transaction.atomic():
        IncidentChange.objects.filter(incident__in=numbers).delete()
        Incident.objects.filter(pk__in=numbers).delete()
    return len(numbers)


@dataclass(frozen=True)
class IncidentFilter:
    """Which incidents a list is to have; None stands for all.

    Attributes
    ----------
    state, severity : str, optional
    query : int, optional
    mine : bool
        Only those that are assigned to the user.
    after : int, optional
        Only those that are older than this one.
    limit : int
    """

    state: str | None = None
    severity: str | None = None
    query: int | None = None
    mine: bool = False
    after: int | None = None
    limit: int = PAGE_INCIDENTS


def page_of(user: User, wanted: IncidentFilter) -> tuple[list[Incident], bool, dict[str, int]]:
    """Return incidents that a user may see.

    Returns
    -------
    incidents : list of Incident
        The newest first.
    more : bool
        Whether there are older ones.
    open : dict of str to int
        The number of all open incidents that the user may see, by severity.
    """
    seen = Incident.objects.filter(query__in=rights_of(user).listed())
    counted = dict(seen.filter(closed=None).order_by().values_list("severity").annotate(Count("pk")))
    if wanted.state is not None:
        seen = seen.filter(closed__isnull=wanted.state == OPEN)
    if wanted.mine:
        seen = seen.filter(assigned_to=user)
    told = {"severity": wanted.severity, "query": wanted.query, "pk__lt": wanted.after}
    seen = seen.filter(**{name: value for name, value in told.items() if value is not None})
    found = list(seen.select_related(*RELATED)[: wanted.limit + 1])
    return found[: wanted.limit], len(found) > wanted.limit, {name: counted.get(name, 0) for name in Severity.values}
