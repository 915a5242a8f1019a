"""The recorded events of saved queries within a span, for the ticks on the slider of a replay."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings

from webapp.access import Asker, rights_of
from webapp.models import Event

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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
    told = [
        {name: row[name] for name in TOLD} | {"time_us": (row["time"] - EPOCH) // timedelta(microseconds=1)}
        for row in rows[: settings.REPLAY_EVENTS]
    ]
    return {"events": told[::-1], "truncated": len(rows) > settings.REPLAY_EVENTS}
