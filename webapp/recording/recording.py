"""Recording: save entries to and exits from the answers of saved queries as events, and failures as warnings."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import redis
from django.db import transaction
from django.utils import timezone

from streaming.eventlog import EventLog
from streaming.isolation import faulty
from streaming.keys import LogNames
from streaming.logs import read_fragment
from streaming.results import STAYED, json_rows
from streaming.results.netting import fanned_out, settled
from streaming.spaces import Space
from webapp.bus.redis import event_log
from webapp.hub.assembly import Assembly, Batch
from webapp.models import Event, EventCursor, Query
from webapp.queries.query_warnings import (
    ANY_REVISION,
    FAILED,
    UNRECORDED,
    LeftOutQuery,
    Warnings,
    leave_out,
    refuse,
    warn,
)
from webapp.recording import incident_recording
from webapp.words.plans import title

logger = logging.getLogger(__name__)

EVENTS_KEPT = 1_000
# The log is recorded in steps of this many entries, some seconds of the log. Each step stores its newest events only.
ENTRIES_PER_STEP = 64
# A step ends once it has so many crossings of queries that open incidents. All of them count, so it holds them all.
CROSSINGS_PER_STEP = 10_000
EVENTS_PER_STEP = 2_000
ENTRIES_PER_READ = 16
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

T = TypeVar("T")


class _BatchEvents(NamedTuple):
    """What a batch told: the rows that become events, the newest last, which queries aggregate, and when."""

    batch: int
    rows: pa.Table
    aggregates: frozenset[int]
    heard_us: int
    told_ms: int


@dataclass
class _RecordedPart:
    """A part of the log that is recorded in one transaction.

    Attributes
    ----------
    came_from : str
        The cursor's entry id before this part.
    watched : frozenset of int
        The queries that open incidents.
    told : list of _BatchEvents
        The newest rows, at most `EVENTS_PER_STEP` in all, by batch.
    incidents : list of _BatchEvents
        All rows of the queries that open incidents, by batch.
    left_out : int
        How many older rows are not stored.
    losses : list of str
        What was lost, for the log.
    warnings : Warnings
        What did not work although queries ran.
    refusals : dict of (int, int) to str
        Why the engine ended a query, by query and revision.
    omissions : dict of (int, int) to LeftOutQuery
        Why the engine left a query out the last time, by query and revision.
    ends : bool
        Whether the log ends with this part.
    """

    came_from: str
    watched: frozenset[int] = frozenset()
    told: list[_BatchEvents] = field(default_factory=list)
    incidents: list[_BatchEvents] = field(default_factory=list)
    left_out: int = 0
    losses: list[str] = field(default_factory=list)
    warnings: Warnings = field(default_factory=Warnings)
    refusals: dict[tuple[int, int], str] = field(default_factory=dict)
    omissions: dict[tuple[int, int], LeftOutQuery] = field(default_factory=dict)
    ends: bool = True

    @property
    def crossings(self) -> int:
        """How many rows `incidents` has."""
        return sum(told.rows.num_rows for told in self.incidents)

    def note(self, failure: dict[str, Any], told: datetime) -> None:
        """Add a failure of a fragment, and when it was told."""
        queries = [(query, revision) for query, revision in failure["queries"]]
        if cause := failure.get("left_out"):
            omitted = LeftOutQuery(cause, failure["error"], _time(failure["until_us"]))
            self.omissions |= {query: omitted for query in queries if _longer(omitted, self.omissions.get(query))}
        elif failure.get("refused"):
            self.refusals = dict.fromkeys(queries, failure["error"]) | self.refusals
        else:
            for query in queries:
                kind, count = failure.get("kind", FAILED), failure.get("reports", 1)
                self.warnings.note(query, kind, failure["error"], told, count)

    def add(self, told: _BatchEvents) -> None:
        """Add the rows of a batch, and leave out older ones that are too many."""
        self.told.append(told)
        excess = sum(known.rows.num_rows for known in self.told) - EVENTS_PER_STEP
        self.left_out += max(0, excess)
        while excess > 0:
            oldest = self.told.pop(0)
            if oldest.rows.num_rows > excess:
                self.told.insert(0, oldest._replace(rows=oldest.rows.slice(excess)))
            excess -= oldest.rows.num_rows


def record_events(client: redis.Redis, space: Space) -> int:
    """Store the events of all batches of a space since the last call, and return their number.

    The cursor moves in the transaction that stores the events and opens and closes their incidents, so each event is
    stored and counts once. Then the log is trimmed up to the cursor.
    """
    logs, log, told, ends = event_log(client), LogNames(space.name).events, 0, False
    while not ends:
        cursor, _ = EventCursor.objects.get_or_create(space=space.name)
        step = _collect(logs, log, cursor, space)
        if cursor.last_id != step.came_from:
            logs.sync()  # after a power cut, the batches that the database has are told again as they were
        events = [event for batch in step.told for event in _events(step, batch, space)]
        crossings = [event for batch in step.incidents for event in _events(step, batch, space)]
        if not _store(step, events, crossings, cursor):
            break  # another worker has recorded these
        logs.trim({log: cursor.last_id})
        if step.left_out:
            logger.warning("events: the newest %d are stored; %d were left out", len(events), step.left_out)
        for loss in step.losses:
            logger.warning("events: %s", loss)
        told, ends = told + len(events), step.ends
    return told


def _collect(event_log: EventLog, log: str, cursor: EventCursor, space: Space) -> _RecordedPart:
    """Read some entries of the log after the cursor, and move the cursor in memory, behind whole batches only."""
    step = _RecordedPart(cursor.last_id, incident_recording.watched(space.name))
    assembly = Assembly(cursor.epoch, cursor.batch)
    position, read = cursor.last_id, 0
    while entries := event_log.read(log, position, limit=ENTRIES_PER_READ):
        for position, fields, appended_ms in entries:
            read += 1
            batch = assembly.add(read_fragment(fields, space))
            if batch is not None:
                _take(step, batch, cursor, appended_ms)
            if assembly.waiting:
                continue
            cursor.last_id = position
            if read >= ENTRIES_PER_STEP or step.crossings >= CROSSINGS_PER_STEP:
                step.ends = False
                return step
    return step


def _take(step: _RecordedPart, batch: Batch, cursor: EventCursor, told_ms: int) -> None:
    """Add a batch, whose last fragment was told at `told_ms`, to a step, and set the cursor to it."""
    if batch.new_epoch:
        step.losses.append(f"the engine began anew; what it told after batch {cursor.batch} unread is not recorded")
        cursor.check_at = incident_recording.when_to_check(step.watched, anew=True)
    elif batch.gap:
        step.losses.append(f"batches {cursor.batch + 1} to {batch.number - 1} were gone unread and are not recorded")
        cursor.check_at = incident_recording.when_to_check(step.watched)
    cursor.epoch, cursor.batch = batch.epoch, batch.number
    for failure in (failure for fragment in batch.fragments for failure in fragment.failures):
        step.note(failure, _time(told_ms * 1_000))
    aggregates = frozenset(query for fragment in batch.fragments for query in fragment.aggregates)
    rows, left_out = _apart(step, batch.number, lambda: _queries(batch), lambda some: _rows(batch, some))
    step.left_out += left_out
    told = _BatchEvents(batch.number, rows, aggregates, batch.newest_us, told_ms)
    step.add(told)
    if step.watched:
        crossings = _apart(step, batch.number, lambda: sorted(step.watched), lambda some: _crossings(step, batch, some))
        if crossings.num_rows:
            step.incidents.append(told._replace(rows=crossings))


def _apart(
    step: _RecordedPart, batch: int, queries: Callable[[], list[int]], work: Callable[[list[int] | None], T]
) -> T:
    """Do some work on a batch for all queries; if it fails, without those on which it fails, and add warnings for them.

    Parameters
    ----------
    step : _RecordedPart
    batch : int
    queries : callable
        Returns all queries.
    work : callable
        Does the work for a list of queries, or for all queries if it is None.
    """
    try:
        return work(None)
    except Exception as error:
        logger.exception("the events of batch %d could not be recorded together", batch)
        everyone = queries()
        found = dict(faulty(everyone, lambda some: _error_of(work, batch, list(some))))
        if not found:
            raise error
    for query, why in found.items():
        step.warnings.note((query, ANY_REVISION), UNRECORDED, why, timezone.now())
    return work([query for query in everyone if query not in found])


def _error_of(work: Callable[[list[int] | None], object], batch: int, queries: list[int]) -> str | None:
    try:
        work(queries)
    except Exception as error:
        return f"the events of batch {batch} could not be recorded: {error!s:.200}"
    return None


def _queries(batch: Batch) -> list[int]:
    """Return the queries whose answers a batch changed."""
    told = {query for fragment in batch.fragments for query in fragment.changes["query"].unique().to_pylist()}
    shared = {answer: several for fragment in batch.fragments for answer, several in fragment.shared.items()}
    return sorted((told - shared.keys()).union(*shared.values()))


def _rows(batch: Batch, queries: list[int] | None) -> tuple[pa.Table, int]:
    """Return the newest rows of a batch that become events, the newest last, and how many older ones are left out."""
    rows, shared = settled(batch.fragments, queries)
    rows = rows.filter(pc.not_equal(rows["sign"], STAYED))  # these are handoffs between regions
    told = rows.num_rows + sum(
        (len(several) - 1) * pc.sum(pc.equal(rows["query"], answer), min_count=0).as_py()
        for answer, several in shared.items()
    )
    # Cut to the newest rows before the fan-out, so that a shared answer is not copied whole for each of its queries.
    newest = fanned_out(_newest(rows.take(pc.sort_indices(rows, [("time_us", "ascending")]))), shared)
    newest = _newest(newest)
    return newest, told - newest.num_rows


def _crossings(step: _RecordedPart, batch: Batch, queries: list[int] | None) -> pa.Table:
    """Return all rows of a batch that are entries or exits of queries that open incidents."""
    rows = fanned_out(*settled(batch.fragments, step.watched if queries is None else queries))
    return rows.filter(pc.not_equal(rows["sign"], STAYED))


def _events(step: _RecordedPart, told: _BatchEvents, space: Space) -> list[Event]:
    """Return the events of a batch; add warnings to its step for rows that could not be read."""
    heard, recorded = _time(told.heard_us) if told.heard_us else None, timezone.now()

    def made(queries: list[int] | None) -> tuple[list[Event], dict[int, str]]:
        rows = told.rows
        if queries is not None:
            rows = rows.filter(pc.is_in(rows["query"], value_set=pa.array(queries, pa.int64())))
        shown, unread = json_rows(rows, space)
        of = rows["query"].to_pylist()
        events = [event_of(q, told.batch, row, q in told.aggregates) for q, row in zip(of, shown, strict=True)]
        for event in events:
            event.heard, event.told = heard, _time(told.told_ms * 1_000)
            event.recorded = recorded
        return events, {of[row]: rule for row, rule in reversed(unread.items())}

    events, unread = _apart(step, told.batch, lambda: told.rows["query"].unique().to_pylist(), made)
    for query, rule in unread.items():
        step.warnings.note((query, ANY_REVISION), UNRECORDED, rule, timezone.now())
    return events


def _newest(rows: pa.Table) -> pa.Table:
    return rows.slice(max(0, rows.num_rows - EVENTS_PER_STEP))


def _store(step: _RecordedPart, events: list[Event], crossings: list[Event], cursor: EventCursor) -> bool:
    """Store a step's events, incidents and the moved cursor; return False if another worker has moved the cursor."""
    with transaction.atomic():
        same = EventCursor.objects.filter(space=cursor.space, last_id=step.came_from)
        moved = {name: getattr(cursor, name) for name in ("last_id", "epoch", "batch", "check_at")}
        if not same.update(**moved):
            return False
        queries = set(Query.objects.filter(pk__in={e.query_id for e in events}).values_list("pk", flat=True))
        Event.objects.bulk_create([event for event in events if event.query_id in queries])
        _trim(queries)
        incident_recording.record(crossings)
        refuse(step.refusals)
        warn(step.warnings)
        leave_out(step.omissions)
    return True


def event_of(query: int, batch: int, row: dict, crossing: bool) -> Event:
    """Return the event of a result tuple; `crossing` says that it is of an aggregate's threshold.

    The time of an encounter is its beginning, or its end; its properties are both, and the least distance. Of a partner
    they have the name, `partner_name`, and of an encounter that of the object, `name`. An alarm about silence has the
    time of the last report, `last_report`. An entry or exit of a track
    between two reports has `interpolated` among its properties, and the times of these reports.
    """
    partner = row.get("partner", {})
    time_us, properties = row["time_us"], partner["properties"] if crossing else row["properties"]
    if (since_us := row.get("since_us")) and not partner:
        properties = properties | {"last_report": _time(since_us).isoformat()}
    elif since_us:
        times = {"since": since_us, "until": row.get("until_us")}
        time_us = times["until"] or (since_us if row["sign"] == "+" else time_us)
        told = {name: None if at_us is None else _time(at_us).isoformat() for name, at_us in times.items()}
        properties = told | {"distance": partner["distance"]} | _named("name", row)
    if not crossing:
        properties = properties | _named("partner_name", partner)
    if row.get("interpolated"):
        reports = {name: _time(row[f"{name}_us"]).isoformat() for name in ("from", "to")}
        properties = properties | {"interpolated": True} | {f"interpolated_{name}": at for name, at in reports.items()}
    return Event(
        query_id=query,
        batch=batch,
        key=row["key"][:200],
        sign=row["sign"],
        reason=row["reason"],
        time=_time(time_us),
        lon=row["lon"],
        lat=row["lat"],
        bounds=row["bounds"],
        properties=properties,
        partner=partner.get("key", "")[:200],
    )


def _named(name: str, row: dict) -> dict[str, str]:
    """Return what the object of a row is called, under a name; nothing if only its key is known."""
    known = title("", row.get("properties") or {})
    return {name: known} if known else {}


def _longer(told: LeftOutQuery, before: LeftOutQuery | None) -> bool:
    return before is None or told.until >= before.until


def _time(time_us: float) -> datetime:
    return EPOCH + timedelta(microseconds=time_us)


def _trim(queries: Iterable[int]) -> None:
    """Delete all but the newest events of each query."""
    for query in queries:
        events = Event.objects.filter(query=query)
        oldest_kept = events.order_by("-pk").values_list("pk", flat=True)[EVENTS_KEPT - 1 : EVENTS_KEPT].first()
        if oldest_kept is not None:
            events.filter(pk__lt=oldest_kept).delete()
