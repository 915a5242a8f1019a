"""Compare incidents with the answers of their queries after events were lost.

The recorder notices when batches were gone unread, or when the engine began with a new state. Some exits may be missing
then, and some entries. So the worker asks the engine for snapshots of the answers, closes the open incidents whose
objects are in no answer, and opens those that are missing.
"""

import logging
import time
from collections.abc import Set
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
import redis
from django.db import transaction
from django.utils import timezone

from streaming.keys import LogNames
from streaming.logs import read_fragment
from streaming.results import ENTERED, json_rows
from streaming.spaces import Space
from webapp.alarms.incidents import RELATED
from webapp.bus.redis import event_log, log
from webapp.hub.assembly import Assembly, Batch
from webapp.models import Event, EventCursor, Incident, IncidentChange, Query
from webapp.recording import recording
from webapp.recording.incident_recording import held, inside_of, leave, opening, place_of, save, tells, watched

logger = logging.getLogger(__name__)

# How long the answers may take to come, and after how long those that did not come are asked for again.
PATIENCE_S = 5.0
AGAIN = timedelta(seconds=30)
ENTRIES_PER_READ = 64
LOST = "it is no longer in the answer; its exit was lost"


@dataclass(frozen=True)
class _Answer:
    """The answer of a query at the end of a batch: the members as entries."""

    epoch: str
    batch: int
    members: list[Event]


def check(client: redis.Redis, space: Space) -> bool:
    """Compare the incidents of a space with the answers if that is due; return whether all were compared."""
    now = timezone.now()
    due = EventCursor.objects.filter(space=space.name, check_at__lte=now).values_list("check_at", flat=True).first()
    if due is None:
        return False
    told = {query.pk for query in Query.objects.filter(pk__in=watched(space.name)) if tells(query)}
    queries = set(watched(space.name)) - told
    for query, answer in _answers(client, space, queries).items():
        if _compare(query, answer, space):
            queries.discard(query)
    again = now + AGAIN if queries else None
    EventCursor.objects.filter(space=space.name, check_at=due).update(check_at=again)
    if queries:
        logger.warning("incidents: the answers of %s did not come; they are asked for again", sorted(queries))
    return not queries


def _compare(query: int, answer: _Answer, space: Space) -> bool:
    """Close and open incidents of a query so that they are those of its answer; return False if it came too late.

    No event after the answer may be recorded yet. Events before it may still follow: an entry of an object that has an
    incident changes nothing, and nor does an exit of one that has none.
    """
    with transaction.atomic():
        here = EventCursor.objects.select_for_update().filter(space=space.name, epoch=answer.epoch)
        if here.filter(batch__lte=answer.batch).first() is None:
            return False
        known = held([query])
        if not known:
            return True
        members = {place_of(event): event for event in answer.members}
        inside = inside_of(answer.members)
        gone = [one for one in _inside(query) if place_of(one) not in members]
        opened = [opening(known[query], event) for place, event in members.items() if place not in inside]
        entered = {"what": IncidentChange.OPENED, "text": "its entry was lost"}
        changes = [IncidentChange(incident=incident, **entered) for incident in opened]
        now = timezone.now()
        for incident in gone:
            changes += leave(incident, now, LOST)
        save(opened, gone, changes)
    return True


def _inside(query: int) -> list[Incident]:
    """Return the incidents of a query whose objects have not left, held until the end of the transaction."""
    related = Incident.objects.select_for_update(of=("self",)).select_related(*RELATED)
    return list(related.filter(query=query, left=None))


def _answers(client: redis.Redis, space: Space, queries: Set[int]) -> dict[int, _Answer]:
    """Ask the engine for the answers of queries, and return those that come in time."""
    logs, results = event_log(client), LogNames(space.name).results
    position, assembly = logs.newest(results), Assembly()
    answers: dict[int, _Answer] = {}
    for query in sorted(queries):
        log(space.name).send("snapshot", query=query)
    deadline_s = time.monotonic() + PATIENCE_S
    while len(answers) < len(queries) and (left_s := deadline_s - time.monotonic()) > 0:
        for entry in logs.poll({results: position}, ENTRIES_PER_READ, left_s).get(results, ()):
            position = entry.position
            batch = assembly.add(read_fragment(entry.fields, space))
            if batch is None:
                continue
            for query in queries & batch.snapshot_queries:
                answers[query] = _Answer(batch.epoch, batch.number, _members(query, batch, space))
    return answers


def _members(query: int, batch: Batch, space: Space) -> list[Event]:
    """Return the members of an answer as entries; of an aggregate, the thresholds that are crossed."""
    aggregates = any(query in fragment.aggregates for fragment in batch.fragments)
    rows = batch.snapshots([query])
    rows = rows.filter(pc.equal(rows["sign"], pa.scalar(ENTERED, pa.int8())))
    if aggregates:
        rows = rows.filter(rows["partner"].is_valid())
    shown, _ = json_rows(rows, space)
    return [recording.event_of(query, batch.number, row, aggregates) for row in shown]
