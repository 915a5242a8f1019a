"""Explanations for clients: of an object and a query now, of an event, and of an incident."""

from datetime import timedelta
from typing import Any, cast

from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.explaining import Subject, Term, explain
from streaming.explaining.moving import threshold_term
from streaming.explaining.rules import rule_term
from streaming.explaining.terms import every
from streaming.explaining.words import clock, span
from streaming.kinds.registry import kind_of
from streaming.kinds.rule.plan import RulePlan
from webapp.alarms import incidents
from webapp.hub import Hub
from webapp.models import Delivery, Event, Incident, Query, Stream
from webapp.queries.queries import visible
from webapp.queries.query_warnings import left_out_words
from webapp.questions.why.facts import ExplainedQuery, element_of, known_now, known_then
from webapp.questions.why.fixes import fix_document, microseconds, stored_subject, subject_of_event
from webapp.rights.access import Asker, rights_of
from webapp.words.refusals import Refused
from webapp.words.stored_words import retold

# Events of an object that are compared with the time that a client names.
MOST_EVENTS = 200
MOST_DELIVERIES = 50
MISSING = {
    Query.PAUSED: _("it is paused"),
    Query.PENDING: _("the engine has not taken it yet"),
    Query.FAILED: _("it failed: %(reason)s"),
    Query.WAITING: "%(reason)s",
}


async def of_object(user: Asker, hub_of: Any, query: int, stream: str, key: str) -> dict[str, Any]:
    """Explain why an object is in the answer of a query now, or why it is not.

    Parameters
    ----------
    user : User
    hub_of : async function of str
        Returns the hub of a space.
    query : int
    stream, key : str
        The object.

    Raises
    ------
    Refused
        ``query`` where the user may not see the query, ``stream`` where there is no such stream.
    """
    asked, of = await database_sync_to_async(_asked)(user, query, stream)
    hub: Hub = await hub_of(asked.query.space_id)
    subject, source = await element_of(hub, stream, key), "engine"
    terms = _standing(asked.query)
    if subject is None:
        subject, source = await database_sync_to_async(_last_known)(user, of, key)
        terms.append(_gone(of, subject))
    if subject is None:
        return _told(asked.query, every(gettext("in the answer"), terms), None, "", [])
    known = await known_now(asked, hub, subject)
    why = await sync_to_async(explain, thread_sensitive=False)(asked.plan, subject, known)
    whole = every(gettext("in the answer"), [*terms, *why.parts], why.found) if terms else why
    return _told(asked.query, whole, subject, source, _notes(asked, subject))


def _asked(user: Asker, number: int, stream: str) -> tuple[ExplainedQuery, Stream]:
    query = visible(user, number)
    of = Stream.objects.select_related("space").filter(name=stream).first()
    if of is None or of.space_id != query.space_id:
        raise Refused(
            "stream",
            gettext("stream must be one of the space of the query, %(space_id)s; got %(stream)s")
            % {"space_id": query.space_id, "stream": f"{stream!r:.80}"},
        )
    return ExplainedQuery.of(user, query), of


def _standing(query: Query) -> list[Term]:
    """Return the term that a query runs, unless it does."""
    if left_out := left_out_words(query):
        # Unknown, since other regions may evaluate their part of it.
        return [Term(gettext("the query is evaluated"), None, left_out)]
    if query.status not in MISSING:
        return []
    return [
        Term(
            gettext("the query runs"),
            False,
            str(MISSING[query.status]) % {"reason": retold(query.error or query.warning)},
        )
    ]


def _last_known(user: Asker, stream: Stream, key: str) -> tuple[Subject | None, str]:
    """Return the last report of an object that the engine does not know, and where it is from."""
    if (found := stored_subject(stream, key)) is not None:
        return found, "history"
    seen = rights_of(user).queries().filter(stream=stream.name)
    events = (
        Event.objects.select_related("query").filter(query__in=seen, key=key).exclude(query__plan__has_key="aggregate")
    )
    event = events.order_by("-time").first()
    return (None if event is None else subject_of_event(event, stream.space.parsed)), "event"


def _gone(stream: Stream, subject: Subject | None) -> Term:
    """Return the term that an object is known, which it is not."""
    asks = gettext("%(name)s has reported the object lately") % {"name": stream.name}
    if subject is None:
        return Term(asks, False, gettext("nothing is known of it"))
    heard_us = subject.table["time_us"][0].as_py()
    now_us = microseconds(timezone.now())
    ago = gettext("last heard %(span)s ago, at %(time)s") % {
        "span": span((now_us - heard_us) / 1e6),
        "time": clock(heard_us, now_us),
    }
    if stream.ttl_s:
        ago += gettext("; objects of %(name)s are forgotten %(ttl_s)s after their last report") % {
            "name": stream.name,
            "ttl_s": span(stream.ttl_s),
        }
    return Term(asks, False, ago)


def _notes(asked: ExplainedQuery, subject: Subject) -> list[str]:
    """Return what a reader should know about how an element is explained."""
    extent = subject.bounds[0][: subject.space.n] != subject.bounds[0][subject.space.n :]
    if subject.elements.has_geometries or not extent[:2].any():
        return []
    return [
        gettext(
            "The object has an extent, and is explained by its box. The engine compares its geometry, if it has one."
        )
    ]


async def of_event(user: Asker, query: int, key: str, sign: str, time_us: int, partner: str) -> dict[str, Any]:
    """Explain an event of a query: the one of an object, or a group, with this sign that is nearest to a time.

    Raises
    ------
    Refused
        ``query`` where the user may not see the query, ``event`` where no such event is stored.
    """
    return await database_sync_to_async(_of_event)(user, query, key, sign, time_us, partner)


def _of_event(user: Asker, number: int, key: str, sign: str, time_us: int, partner: str) -> dict[str, Any]:
    query = visible(user, number)
    events = Event.objects.select_related("query__space").filter(
        query=query, key=key[:200], sign=sign, partner=partner[:200]
    )
    found = min(events[:MOST_EVENTS], key=lambda event: abs(microseconds(event.time) - time_us), default=None)
    if found is None:
        rule = gettext(
            "events are stored some seconds after they are told, and the newest 1,000 of each query are kept"
        )
        raise Refused("event", gettext("%(rule)s; none of %(key)s is there") % {"rule": rule, "key": f"{key!r:.80}"})
    return event_document(user, found)


def event_document(user: Asker, event: Event) -> dict[str, Any]:
    """Return the explanation of a stored event."""
    query = event.query
    asked = ExplainedQuery.of(user, query)
    subject = subject_of_event(event, query.space.parsed)
    notes = []
    if "groups" in kind_of(asked.plan).facts(asked.plan):
        why = _threshold(asked.plan, event)
        subject = None
    elif getattr(asked.plan, "whole", False):
        why = rule_term(cast("RulePlan", asked.plan), None, known_then(asked, event, None))
        subject = None
    else:
        assert subject is not None  # other events are about an object
        why = explain(asked.plan, subject, known_then(asked, event, subject))
        notes = _notes(asked, subject)
    if query.revision > 1 and event.recorded and query.updated > event.recorded + timedelta(seconds=1):
        notes.append(
            gettext("The query may have changed since then. The event is explained with the query as it is now.")
        )
    if event.reason == "expired":
        notes.append(gettext("It left because it had not reported for as long as its stream allows, wherever it was."))
    told = _told(query, why, subject, "event", notes)
    about = {"sign": event.sign, "reason": event.reason, "key": event.key, "partner": event.partner or None}
    return told | {"event": about | {"time": event.time.isoformat()}, "lag": _lag(event)}


def _threshold(plan: Any, event: Event) -> Term:
    """Return the term of the threshold that an event of an aggregate is about."""
    value = event.properties.get("value")
    terms = [threshold_term(one, value, True) for one in plan.aggregate.thresholds if one.name == event.partner]
    values = {"function": plan.aggregate.function, "group": event.key}
    asks = gettext("the %(function)s of %(group)s") if event.key else gettext("the %(function)s")
    return every(asks % values, terms)


def _lag(event: Event) -> list[dict[str, str]]:
    """Return the times of an event from the report to the database, those that are known."""
    steps = [
        ("reported", event.time if event.time.timestamp() > 0 else None),
        ("heard", event.heard),
        ("told", event.told),
        ("recorded", event.recorded),
    ]
    return [{"what": what, "at": at.isoformat()} for what, at in steps if at is not None]


async def of_incident(user: Asker, number: int) -> dict[str, Any]:
    """Explain why an incident was opened, and tell how its alarms were delivered.

    Raises
    ------
    Refused
        ``incident`` where the user may not see it.
    """
    return await database_sync_to_async(_of_incident)(user, number)


def _of_incident(user: Asker, number: int) -> dict[str, Any]:
    incident, changes, *_ = incidents.detail(user, number)
    events = Event.objects.select_related("query__space").filter(query=incident.query, key=incident.key, sign="+")
    event = events.filter(partner=incident.partner, time=incident.opened).first()
    told = _without_event(user, incident) if event is None else event_document(user, event)
    opened = [{"what": "opened", "at": change.at.isoformat()} for change in changes if change.what == "opened"]
    told["lag"] += opened
    return told | {"incident": number, "deliveries": _deliveries(user, incident)}


def _without_event(user: Asker, incident: Incident) -> dict[str, Any]:
    """Return the explanation of an incident whose event is not stored any more, by what the incident has."""
    event = Event(
        query=Query.objects.select_related("space").get(pk=incident.query_id),
        sign="+",
        reason="moved",
        time=incident.opened,
        bounds=_point(incident),
        **{name: getattr(incident, name) for name in ("key", "partner", "lon", "lat", "properties")},
    )
    if not event.bounds and "aggregate" not in event.query.plan:
        why = Term(gettext("in the answer"), None, gettext("the event that opened it is not stored any more"))
        return _told(event.query, why, None, "", [])
    told = event_document(user, event)
    told["notes"].append(gettext("The event that opened the incident is not stored any more: only its place is known."))
    return told


def _point(incident: Incident) -> list[float | None]:
    """Return the bounds of the place of an incident, unbounded in all further dimensions; empty without a place."""
    if incident.lon is None:
        return []
    return [incident.lon, incident.lat, *[None] * (incident.query.space.parsed.n - 2)] * 2


def _deliveries(user: Asker, incident: Incident) -> list[dict[str, Any]]:
    """Return what was sent about an incident, with each attempt: what is one's own, or all for staff."""
    found = Delivery.objects.filter(change__incident=incident).select_related("subscription", "channel", "change")
    if not rights_of(user).views_all("delivery"):
        mine = found.filter(subscription__user=user) | found.filter(subscription__team__memberships__user=user)
        found = mine.distinct()
    return [_delivery(one) for one in found.prefetch_related("log").order_by("pk")[:MOST_DELIVERIES]]


def _delivery(delivery: Delivery) -> dict[str, Any]:
    attempts = [
        {
            "at": one.at.isoformat(),
            "outcome": one.outcome,
            "status": one.status,
            "took_ms": one.took_ms,
            "error": one.error,
        }
        for one in delivery.log.all()
    ]
    assert delivery.change is not None  # it is one of an incident
    return {
        "channel": delivery.channel.name,
        "kind": delivery.channel.kind,
        "to": str(delivery.subscription.user or delivery.subscription.team),
        "what": delivery.change.what,
        "state": delivery.state,
        "created": delivery.created.isoformat(),
        "held": delivery.held,
        "next": delivery.next_attempt.isoformat() if delivery.state in Delivery.OPEN else None,
        "attempts": attempts,
    }


def _told(query: Query, why: Term, subject: Subject | None, source: str, notes: list[str]) -> dict[str, Any]:
    """Return an explanation; what only events and incidents have is empty."""
    return {
        "query": query.pk,
        "name": query.name,
        "at": timezone.now().isoformat(),
        "fix": None if subject is None else fix_document(subject, source),
        "why": why.document(),
        "notes": notes,
        "event": None,
        "incident": None,
        "lag": [],
        "deliveries": [],
    }
