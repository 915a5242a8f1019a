"""The recorded events of saved queries: within a span, for the slider of a replay, and the newest of one query."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings

from webapp.models import Event
from webapp.queries.queries import visible
from webapp.rights.access import Asker, rights_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# So many events of one query come at once.
PAGE = 200
TOLD = ("query", "sign", "key", "partner", "reason", "lon", "lat")


def events_between(user: Asker, from_us: int, to_us: int) -> dict[str, Any]:
    """Return the events of the queries that a user sees, in the order of time; if there are too many, the newest.

    Parameters
    ----------
    user : User
    from_us, to_us : int
        Event times in microseconds since 1970 UTC, both included.

    Returns
    -------
    dict
        `events`, a list of ``{query, sign, key, partner, reason, lon, lat, time_us}``, and whether it is `truncated`.
    """
    start, stop = (EPOCH + timedelta(microseconds=time_us) for time_us in (from_us, to_us))
    seen = rights_of(user).queries()
    found = Event.objects.filter(query__in=seen, time__gte=start, time__lte=stop).order_by("-time", "-id")
    rows = list(found.values(*TOLD, "time")[: settings.REPLAY_EVENTS + 1])
    told = [_told(row) for row in rows[: settings.REPLAY_EVENTS]]
    return {"events": told[::-1], "truncated": len(rows) > settings.REPLAY_EVENTS}


def newest_events(user: Asker, query: int, before: int | None) -> dict[str, Any]:
    """Return a page of the events that are kept of a query, the newest first.

    Parameters
    ----------
    user : User
    query : int
    before : int or None
        The `next` of the page before; None for the first page.

    Returns
    -------
    dict
        `events`, as `events_between` has them; `next`, null on the last page; how many are `kept` of the query.

    Raises
    ------
    Refused
        If the user may not see the query.
    """
    kept = Event.objects.filter(query=visible(user, query))
    found = kept.order_by("-id") if before is None else kept.filter(pk__lt=before).order_by("-id")
    rows = list(found.values(*TOLD, "time", "id")[: PAGE + 1])
    following = rows[PAGE - 1]["id"] if len(rows) > PAGE else None
    return {"events": [_told(row) for row in rows[:PAGE]], "next": following, "kept": kept.count()}


def _told(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in TOLD} | {"time_us": (row["time"] - EPOCH) // timedelta(microseconds=1)}
