"""Recording: what enters and leaves the answers of saved queries becomes events in the database."""

import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import redis
from django.db import transaction

from streaming.logs import LogNames, read_fragment
from streaming.results import STAYED, json_rows
from streaming.spaces import SPACES
from webapp.hub.assembly import Assembly, Batch
from webapp.models import VIEW_NUMBERS, Event, EventCursor, Query

logger = logging.getLogger(__name__)

EVENTS_KEPT = 1_000
EVENTS_PER_RUN = 2_000
FRAGMENTS_PER_READ = 16
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def record_events(client: redis.Redis, space: str) -> int:
    """Store the events of all batches since the last call, and return their number.

    The place in the log moves in the transaction that stores the events, so an event is stored once.
    """
    cursor, _ = EventCursor.objects.get_or_create(space=space)
    events, left_out, lost = _collect(client, LogNames(space).results, cursor, SPACES[space])
    with transaction.atomic():
        same = EventCursor.objects.filter(space=space, last_id=cursor.came_from)
        if not same.update(last_id=cursor.last_id, epoch=cursor.epoch, batch=cursor.batch):
            return 0  # another worker has recorded these
        queries = set(Query.objects.filter(pk__in={e.query_id for e in events}).values_list("pk", flat=True))
        Event.objects.bulk_create([event for event in events if event.query_id in queries])
        _trim(queries)
    if left_out:
        logger.warning("events: the newest %d of a run are stored; %d were left out", EVENTS_PER_RUN, left_out)
    if lost:
        logger.warning("events: batches before %d had been trimmed from the log and are not recorded", cursor.batch)
    return len(events)


def _collect(client, log, cursor, space):
    """Read the log from the cursor, and move the cursor in memory.

    Returns the events, how many were left out, and whether batches were lost.
    """
    cursor.came_from = cursor.last_id
    assembly = Assembly(cursor.epoch, cursor.batch)
    position, events, left_out, lost = cursor.last_id, [], 0, False
    if position != "0-0" and not client.xrange(log, position, position):
        assembly.lose()
    while entries := client.xrange(log, f"({position}", count=FRAGMENTS_PER_READ):
        for entry, fields in entries:
            position = entry.decode()
            batch = assembly.add(read_fragment(fields))
            if batch is not None:
                lost |= batch.gap
                found, more = _events(batch, space)
                events, left_out = events + found, left_out + more
                cursor.epoch, cursor.batch = batch.epoch, batch.number
            if not assembly.waiting:
                cursor.last_id = position
    return events[-EVENTS_PER_RUN:], left_out + max(0, len(events) - EVENTS_PER_RUN), lost


def _events(batch: Batch, space) -> tuple[list[Event], int]:
    """Return the newest events of a batch, and how many more there were."""
    saved = {q for f in batch.fragments for q in pc.unique(f.changes["query"]).to_pylist() if q < VIEW_NUMBERS}
    if not saved:
        return [], 0
    rows = batch.changes(saved)
    rows = rows.filter(pc.not_equal(rows["sign"], pa.scalar(STAYED, pa.int8())))
    rows = rows.take(pc.sort_indices(rows, [("time_us", "ascending")]))
    more = max(0, rows.num_rows - EVENTS_PER_RUN)
    rows = rows.slice(more)
    pairs = zip(rows["query"].to_pylist(), json_rows(rows, space), strict=True)
    return [_event(query, batch.number, row) for query, row in pairs], more


def _event(query, batch, row):
    return Event(
        query_id=query,
        batch=batch,
        key=row["key"][:200],
        sign=row["sign"],
        reason=row["reason"],
        time=EPOCH + timedelta(microseconds=row["time_us"]),
        lon=row["lon"],
        lat=row["lat"],
        properties=row["properties"],
    )


def _trim(queries: Iterable[int]) -> None:
    """Delete all but the newest events of each query."""
    for query in queries:
        events = Event.objects.filter(query=query)
        oldest_kept = events.order_by("-pk").values_list("pk", flat=True)[EVENTS_KEPT - 1 : EVENTS_KEPT].first()
        if oldest_kept is not None:
            events.filter(pk__lt=oldest_kept).delete()
