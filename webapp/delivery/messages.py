"""What messages say: a JSON document for programs, and words for people, which are made from the document."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import translation
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.delivery.channels.base import Message
from webapp.models import Incident, IncidentChange, Severity
from webapp.templatetags.words import in_words
from webapp.words.plans import title

Document = Mapping[str, Any]

SEVERITIES = list(map(str, Severity.values))
# A digest describes its first incidents, and counts all.
LISTED = 100
_LINES = 10
_ZOOM = 12
_THRESHOLD = re.compile(r"(above|below) (\S+)(?: for (\S+) s)?")
# What happened, where the name of the change does not say it.
_WORDS = {
    "assigned": _("assigned to %(text)s"),
    "commented": _("commented: %(text)s"),
    "snoozed": _("snoozed until %(text)s"),
}


def document_of(change: IncidentChange) -> dict[str, Any]:
    """Return the document of a change, with its incident, as they are now.

    Parameters
    ----------
    change : IncidentChange
        With its user, its incident, and the query and users of that.
    """
    incident, query = change.incident, change.incident.query
    return {
        "type": "incident",
        "change": {
            "id": change.pk,
            "what": change.what,
            "at": _iso(change.at),
            "user": _name(change.user),
            "text": change.text,
        },
        "incident": {
            "id": incident.pk,
            "key": incident.key or query.name,
            "partner": incident.partner or None,
            "severity": incident.severity,
            "opened": _iso(incident.opened),
            "closed": _iso(incident.closed),
            "acknowledged": _iso(incident.acknowledged),
            "acknowledged_by": _name(incident.acknowledged_by),
            "assigned_to": _name(incident.assigned_to),
            "lon": incident.lon,
            "lat": incident.lat,
            "properties": incident.properties,
        },
        "query": {"id": query.pk, "name": query.name, "stream": query.stream, "space": query.space_id},
        "url": _url(incident),
    }


def digest_of(documents: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one document for several changes, in their order; it describes the first `LISTED` of them."""
    listed: list[Document] = []
    changes: Counter[str] = Counter()
    queries: dict[int, dict[str, Any]] = {}
    severities: set[str] = set()
    since = until = None
    for count, document in enumerate(documents, 1):
        change, incident, query = document["change"], document["incident"], document["query"]
        if count <= LISTED:
            listed.append({"change": change, "incident": incident, "query": query})
        changes[change["what"]] += 1
        counted = queries.setdefault(query["id"], {"id": query["id"], "name": query["name"], "count": 0})
        counted["count"] += 1
        severities.add(incident["severity"])
        since, until = min(since or change["at"], change["at"]), max(until or change["at"], change["at"])
    return {
        "type": "digest",
        "count": sum(changes.values()),
        "since": since,
        "until": until,
        "severity": max(severities, key=SEVERITIES.index),
        "changes": dict(changes),
        "queries": sorted(queries.values(), key=lambda query: -query["count"]),
        "incidents": listed,
        "left_out": max(0, sum(changes.values()) - LISTED),
        "url": f"{settings.PUBLIC_URL}/#&tab=incidents",
    }


def trial_document(channel: str) -> dict[str, Any]:
    """Return the document of a test of a channel."""
    return {"type": "test", "channel": channel, "at": _iso(datetime.now(UTC)), "url": f"{settings.PUBLIC_URL}/"}


def message_of(key: str, document: Mapping[str, Any], language: str = "") -> Message:
    """Return the message of a document, with words for people in a language; by default, in the present one."""
    with translation.override(language or translation.get_language()):
        subject, text = _WRITERS[document["type"]](document)
    severity = document.get("severity") or document.get("incident", {}).get("severity")
    return Message(key, document, subject, text, urgent=severity == Severity.CRITICAL)


def _incident_words(document: Document) -> tuple[str, str]:
    change, incident, query = document["change"], document["incident"], document["query"]
    subject = f"[{in_words(incident['severity'])}] {query['name']}: {_told(document)}"
    place = None if incident["lon"] is None else f"{incident['lat']:.5f}, {incident['lon']:.5f}"
    what = _what(change)
    if change["user"]:
        what = gettext("%(what)s by %(user)s") % {"what": what, "user": change["user"]}
    properties = dict(incident["properties"])
    last_report = properties.pop("last_report", None)
    lines = [
        (gettext("Object"), _object(document)),
        (gettext("Key"), _keys(incident)),
        (gettext("Query"), query["name"]),
        (gettext("Severity"), in_words(incident["severity"])),
        (gettext("What"), what),
        (gettext("Entered"), _time(incident["opened"])),
        (gettext("Left"), _time(incident["closed"])),
        (gettext("Last report"), _time(last_report)),
        (gettext("Latitude, longitude"), place),
        *((name, value) for name, value in sorted(properties.items()) if value is not None),
    ]
    told = [f"{name}: {value}" for name, value in lines if value not in (None, "")]
    where = gettext("Incident %(number)s: %(address)s") % {"number": incident["id"], "address": document["url"]}
    return subject, "\n".join([*told, "", where])


def _digest_words(document: Document) -> tuple[str, str]:
    opened_only = set(document["changes"]) == {IncidentChange.OPENED}
    queries = document["queries"]
    where = queries[0]["name"]
    if len(queries) > 1:
        where = gettext("%(count)s queries") % {"count": len(queries)}
    more = gettext("[%(severity)s] %(count)s more changes of incidents in %(where)s since %(time)s")
    if opened_only:
        more = gettext("[%(severity)s] %(count)s more incidents in %(where)s since %(time)s")
    subject = more % {
        "severity": in_words(document["severity"]),
        "count": document["count"],
        "where": where,
        "time": _time(document["since"]),
    }
    counts = ", ".join(f"{count} {in_words(what)}" for what, count in document["changes"].items())
    span = {"since": _time(document["since"]), "until": _time(document["until"]), "counts": counts}
    lines = [
        gettext("From %(since)s to %(until)s: %(counts)s.") % span,
        gettext("They waited for the limit of this subscription."),
        "",
        *(f"{query['name']}: {query['count']}" for query in queries[:_LINES]),
        "",
        *(_line(told) for told in document["incidents"][:_LINES]),
    ]
    rest = document["count"] - min(_LINES, len(document["incidents"]))
    left_out = [gettext("and %(count)s more") % {"count": rest}] if rest else []
    return subject, "\n".join([*lines, *left_out, "", document["url"]])


def _line(told: Document) -> str:
    severity = in_words(told["incident"]["severity"])
    return f"{_time(told['change']['at'])}  [{severity}] {told['query']['name']}: {_told(told)}"


def _trial_words(document: Document) -> tuple[str, str]:
    channel = {"channel": document["channel"]}
    text = gettext("This is a test of the channel %(channel)s. No incident has happened.") % channel
    subject = gettext("[test] Lookout reaches you by %(channel)s") % channel
    return subject, f"{text}\n\n{document['url']}"


_WRITERS: dict[str, Callable[[Document], tuple[str, str]]] = {
    "incident": _incident_words,
    "digest": _digest_words,
    "test": _trial_words,
}


def _told(document: Document) -> str:
    """Return what an incident is about, and what happened to it."""
    return f"{_object(document)} {_what(document['change'])}".strip()


def _object(document: Document) -> str:
    """Return what an incident is about, by name where it is known; nothing if it is about a whole answer."""
    incident = document["incident"]
    known, partner = incident["properties"], incident["partner"]
    whole = incident["key"] == document["query"]["name"]
    name = "" if whole else title(incident["key"], known)
    if not partner:
        return name
    if "value" in known:
        return f"{name}: {_threshold(partner)}" if name else _threshold(partner)
    return gettext("%(object)s with %(partner)s") % {"object": name, "partner": known.get("partner_name") or partner}


def _keys(incident: Document) -> str | None:
    """Return the keys of an object and of its partner if a name stands for one of them."""
    key, known = incident["key"], incident["properties"]
    if title(key, known) == key and not known.get("partner_name"):
        return None
    return ", ".join(filter(None, [key, incident["partner"]]))


def _threshold(name: str) -> str:
    """Return a threshold in words, given the name that the engine gives to it: "above 20 for 300 s"."""
    found = _THRESHOLD.fullmatch(name)
    if found is None:
        return name
    side, limit, seconds = found.groups()
    words = gettext("above %(limit)s") if side == "above" else gettext("below %(limit)s")
    told = words % {"limit": limit}
    return gettext("%(what)s for %(seconds)s s") % {"what": told, "seconds": seconds} if seconds else told


def _what(change: Document) -> str:
    what, text = change["what"], change["text"]
    if not text or what not in _WORDS:
        return str(in_words(what))
    # The text of an assignment is "to ..." or "to nobody", that of a snooze "until ..."; see `webapp.alarms.incidents`.
    told = text if what == IncidentChange.COMMENTED else text.removeprefix("to ").removeprefix("until ")
    nobody = what == IncidentChange.ASSIGNED and told == "nobody"
    return str(_WORDS[what]) % {"text": gettext("nobody") if nobody else told}


def _url(incident: Incident) -> str:
    """Return the address of the page with an incident opened, at its place if any; see static/js/url-state.js."""
    at = "" if incident.lon is None or incident.lat is None else f"{_ZOOM}/{incident.lat:.4f}/{incident.lon:.4f}"
    return f"{settings.PUBLIC_URL}/#{at}&tab=incidents&incident={incident.pk}"


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat(timespec="milliseconds")


def _time(text: str | None) -> str | None:
    return text and f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S} UTC"


def _name(user: User | None) -> str | None:
    return None if user is None else user.get_username()
