"""Open and close incidents by the entries and exits of recorded events."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.db.models import Max
from django.utils import timezone

from webapp.alarms.incidents import CHUNK, RELATED, changed
from webapp.models import Event, Incident, IncidentChange, Query, Stream

# Objects that are looked up in one statement.
KEYS = 5_000

Place = tuple[int, str, str]


def watched(space: str) -> frozenset[int]:
    """Return the queries of a space that open incidents."""
    return frozenset(Query.objects.alive().filter(space=space).exclude(severity="").values_list("pk", flat=True))


def record(events: list[Event]) -> None:
    """Open an incident for each entry of an object that has none, and close it by the exit.

    It must be called once for each event, in the transaction that moves the cursor.

    Parameters
    ----------
    events : list of Event
        Entries and exits, in the order of their batches. Those of queries that do not run or have no severity, such as
        those that were paused after the event, are ignored.
    """
    queries = held({event.query_id for event in events})
    ordered = sorted((event for event in events if event.query_id in queries), key=_in_time)
    inside = inside_of(ordered)
    opened: list[Incident] = []
    left: dict[int, Incident] = {}
    changes: list[IncidentChange] = []
    for event in ordered:
        place, query = place_of(event), queries[event.query_id]
        known = inside.get(place)
        if event.sign == "-":
            if known is None:
                continue
            changes += leave(known, time_of(event), event.reason.replace("_", " "))
            del inside[place]
            if known.pk is not None:
                left[known.pk] = known
        elif known is None or (known.closed and tells(query)):
            inside[place] = incident = opening(query, event)
            opened.append(incident)
            changes.append(IncidentChange(incident=incident, what=IncidentChange.OPENED))
    save(opened, left.values(), changes)


def held(numbers: Iterable[int]) -> dict[int, Query]:
    """Return those of some queries that run and open incidents, held until the end of the transaction."""
    found = Query.objects.select_for_update(of=("self",)).select_related("owner").filter(pk__in=numbers).order_by("pk")
    return {query.pk: query for query in found.exclude(severity="") if query.should_run}


def inside_of(events: Iterable[Event]) -> dict[Place, Incident]:
    """Return the incidents of the objects of events that have not left the answer, by query, key and partner."""
    keys_of: dict[int, dict[str, None]] = defaultdict(dict)
    for event in events:
        keys_of[event.query_id][event.key] = None
    inside = Incident.objects.select_for_update(of=("self",)).select_related(*RELATED).filter(left=None).order_by("pk")
    found: dict[Place, Incident] = {}
    for query, keys in ((query, list(keys)) for query, keys in keys_of.items()):
        for start in range(0, len(keys), KEYS):
            # In the order in which they were opened, so that of several the newest counts.
            for incident in inside.filter(query=query, key__in=keys[start : start + KEYS]):
                found[place_of(incident)] = incident
    return found


def place_of(about: Event | Incident) -> Place:
    """Return what an event or an incident is about: the query, the key and the partner."""
    return about.query_id, about.key, about.partner


def tells(query: Query) -> bool:
    """Return whether a query keeps no answer: nothing leaves it, so only people close its incidents."""
    return query.plan.get("emit") == "all"


def opening(query: Query, event: Event) -> Incident:
    """Return the unsaved incident that an entry opens."""
    about = {name: getattr(event, name) for name in ("key", "partner", "lon", "lat", "properties")}
    return Incident(query=query, severity=query.severity, opened=time_of(event), **about)


def leave(incident: Incident, at: datetime, why: str) -> list[IncidentChange]:
    """Record in an incident that its object left; return the change, which there is if the incident was open."""
    incident.left = max(incident.opened, at)
    if incident.closed is not None:
        return []
    incident.closed = incident.left
    return [IncidentChange(incident=incident, what=IncidentChange.CLOSED, text=why)]


def save(opened: list[Incident], left: Iterable[Incident], changes: list[IncidentChange]) -> None:
    """Save new incidents, those whose objects left, and the changes."""
    Incident.objects.bulk_update(left, ["left", "closed"], CHUNK)
    Incident.objects.bulk_create(opened, CHUNK)
    changed(changes)


def _in_time(event: Event) -> tuple[int, datetime, bool]:
    """Order events of one batch by time, and exits before entries of the same time."""
    return event.batch, event.time, event.sign == "+"


def time_of(event: Event) -> datetime:
    """Return when an event was; some thresholds are crossed at no time of their own."""
    return event.time if event.time.timestamp() > 0 else timezone.now()


def when_to_check(queries: Collection[int], anew: bool = False) -> datetime:
    """Return when the incidents of queries are to be compared with their answers, after events were lost.

    An engine with a new state learns of objects as they report. So they get the longest time-to-live of their streams.
    """
    names = Query.objects.filter(pk__in=queries).values("stream") if anew else ()
    ttl_s = Stream.objects.filter(name__in=names).aggregate(longest=Max("ttl_s"))["longest"] or 0.0
    return timezone.now() + timedelta(seconds=ttl_s)
