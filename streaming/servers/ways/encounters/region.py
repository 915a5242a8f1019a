"""Encounters in a region: the reports that are valid now, and the spans of time in which two of them are near.

Home servers release reports in the order of event time (`servers.ordering`). A report is valid until the object's next
one, or until it is too old. A pair of reports is near while both are valid, if both satisfy the query. Each such span
is found in every region that knows both reports, and told by one of them (`Meetings.tellers`); the assembler joins the
spans of all regions.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array, bounds_of
from streaming.operators.boxes import in_plane, with_turns
from streaming.operators.elements import Elements
from streaming.operators.encounters import OPEN_US, Encounter, Ordering
from streaming.operators.failures import LATE, Failures
from streaming.operators.meetings import Meetings
from streaming.operators.runs import distinct, find, first_of_runs, last_of_runs
from streaming.operators.time_joins import too_late
from streaming.results import EXPIRED, FILTERED, MOVED, PARTNER_FILTERED, PARTNER_MOVED, result_schema
from streaming.servers.answers.tuples import Results
from streaming.servers.control.border import refuse
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.region.object_index import ObjectIndex
from streaming.servers.region.objects import Cold, Objects, ObjectTable, elements_of
from streaming.servers.region.place import RegionPlace
from streaming.servers.report_queue import ReportQueue, turn_of
from streaming.servers.ways.encounters.event_times import EventTimeAdvance, EventTimes, is_dropped, renewed
from streaming.servers.ways.encounters.ordering import Late, released_schema
from streaming.servers.ways.encounters.spans import Ends, Spans, span_schema
from streaming.spaces import Space

# So many reports of each object are compared at once, on average.
REPORTS_AN_OBJECT = 2
# The arrival of a report that was valid before: it comes before all others of the same time.
VALID_BEFORE = -1

Indexed = Callable[[int, ObjectTable], ObjectIndex]


@lru_cache(maxsize=64)
def queued_schema(space: Space) -> pa.Schema:
    """Return the columns of reports that wait in a region.

    These are those of `released_schema` without `ordering`, and `start_us` (int64): when the report begins to be valid.
    That is its own time, unless event time had gone on when the report came.
    """
    schema = released_schema(space)
    schema = schema.remove(schema.get_field_index("ordering"))
    return schema.append(pa.field("start_us", pa.int64(), nullable=False))


@dataclass(frozen=True)
class Followed:
    """What a region knows for a query.

    Parameters
    ----------
    valid : ObjectTable
        The reports that are valid now, reach the region, and pass the filters of one of the sides.
    queue : ReportQueue
        The reports that begin to be valid later, by `start_us`.
    near : ndarray of int64, shape (P, 2)
        The pairs of valid reports that the region told as near, by their `key_hash`.
    """

    valid: ObjectTable
    queue: ReportQueue
    near: np.ndarray

    @classmethod
    def nothing(cls, space: Space, following: int) -> "Followed":
        """Return the knowledge of a query that begins."""
        queue = ReportQueue(queued_schema(space), "start_us", following=following)
        return cls(ObjectTable.empty(space, following), queue, np.empty((0, 2), dtype=np.int64))

    def emptied(self) -> "Followed":
        """Return the same without any report."""
        valid = self.valid.without(self.valid.key_hash).settled()
        return Followed(valid, replace(self.queue, batches=()), self.near[:0])

    def requeued(self, space: Space) -> "Followed":
        """Return the same such that all reports that are valid begin to be valid once more, at the watermark."""
        found = self.valid.whole
        reports = _queued(self._tracked(found, space), VALID_BEFORE, self.queue.until_us, space)
        return Followed(self.valid.without(found.key_hash).settled(), self.queue.put(reports), self.near[:0])

    def _tracked(self, objects: Objects, space: Space) -> dict[str, Any]:
        columns = {name: getattr(objects, name) for name in ("key_hash", "stream", "time_us", "heard_us")}
        columns |= {"version": objects.time_us, "bounds": bounds_array(objects.bounds)}
        cold = self.valid.cold.take(objects)
        return columns | {name: cold[name] for name in cold.column_names}


def _queued(columns: dict[str, Any], arrival: int, start_us: int, space: Space) -> pa.Table:
    rows = len(columns["key_hash"])
    columns = columns | {
        "arrival": np.full(rows, arrival),
        "reaches": np.ones(rows, dtype=np.int8),
        "start_us": np.full(rows, start_us),
    }
    schema = queued_schema(space)
    return pa.table([columns[name] for name in schema.names], schema=schema)


@dataclass(frozen=True)
class Encounters:
    """State of a region: what it knows, by query."""

    queries: Mapping[int, Followed] = field(default_factory=dict)


def step(
    was: Encounters,
    reports: pa.Table,
    control: ControlStep,
    *,
    late: Sequence[tuple[Ordering, Late]],
    times: EventTimes,
    place: RegionPlace,
    indexed: Indexed,
    following: int,
) -> tuple[Encounters, Results, Spans]:
    """Find the spans that begin and end in a micro-batch.

    Parameters
    ----------
    was : Encounters
        Divided anew, if another region map takes force.
    reports : pyarrow.Table
        With `ordering.released_schema`.
    control : ControlStep
    late : sequence of (Ordering, Late)
        The reports that home servers did not accept; one of the regions has all of them.
    times : EventTimes
    place : RegionPlace
    indexed : callable
        Returns an index over the valid reports of a query.
    following : int
        Queries that begin number their runs from here on.
    """
    came = bounds_of(reports["bounds"])
    space, failures, queries, count = control.after.space, Failures(place.allowance_for_elements(came)), {}, 0
    begun, ended = [span_schema(space).empty_table()], []
    places = {ordering: place for place, ordering in enumerate(control.after.orderings)}
    of = reports["ordering"].to_numpy()
    for query, advance in failures.while_there_is_room(times.advances(control).items()):
        began, encounter = perf_counter(), control.after.encounters[query]
        known = was.queries.get(query)
        if known is None or advance.is_new:
            known = Followed.nothing(space, following)
        elif is_dropped(encounter, control):
            known = known.emptied()
        elif renewed(encounter, control):
            known = known.requeued(space)
        mine = reports.filter(pa.array(np.isin(of, [places[ordering] for ordering in encounter.orderings])))
        evaluation = _Evaluation(query, encounter, control.after, place, indexed, failures)
        queries[query], more, ends = evaluation.advanced(known, mine, advance)
        begun += more
        ended += ends
        count += _warn(query, encounter, late, failures)
        failures.charge(np.array([query]), np.array([perf_counter() - began]))
    refuse(failures.settled(control.after.columns.owners_of))
    spans = Spans(pa.concat_tables(begun), Ends.together(ended))
    none = result_schema(space).empty_table()
    counters = {"reports": sum(len(known.valid) for known in queries.values()), "late": count}
    results = Results(none, none, counters, failures.errors, seconds=failures.seconds, unused=failures.unused)
    return Encounters(queries), results, spans


def _warn(query: int, encounter: Encounter, late: Sequence[tuple[Ordering, Late]], failures: Failures) -> int:
    """Note the reports that came too late for a query; return how many they are."""
    mine = [told for ordering, told in late if ordering in encounter.orderings]
    if mine:
        behind_us = max(told.behind_us for told in mine)
        failures.leave(np.array([query]), LATE, too_late(encounter, behind_us), sum(told.reports for told in mine))
    return sum(told.reports for told in mine)


@dataclass(frozen=True)
class _Evaluation:
    """The evaluation of a query in a micro-batch."""

    query: int
    encounter: Encounter
    registry: Registry
    place: RegionPlace
    indexed: Indexed
    failures: Failures

    @property
    def space(self) -> Space:
        return self.registry.space

    def advanced(
        self, known: Followed, reports: pa.Table, advance: EventTimeAdvance
    ) -> tuple[Followed, list[pa.Table], list[Ends]]:
        """Let event time go on: return what the region knows then, and the spans that begin and end."""
        due, queue = known.queue.put(self._counting(reports, advance)).taken(advance.until_us)
        valid, near, begun, ended = known.valid, known.near, [], []
        if advance.until_us > advance.from_us:
            for some, until_us in _pieces(_ordered(due), advance.until_us):
                valid, near, more, ends = _Piece(self, valid, near, some, until_us).compared()
                begun.append(more)
                ended.append(ends)
        return Followed(valid, queue, near), begun, ended

    def _counting(self, reports: pa.Table, advance: EventTimeAdvance) -> pa.Table:
        """Return the reports that arrived since the query began, with the time when they begin to be valid."""
        schema = queued_schema(self.space)
        reports = reports.filter(pa.array(turn_of(reports["arrival"].to_numpy()) >= advance.since))
        start_us = np.maximum(reports["time_us"].to_numpy(), advance.from_us)
        return reports.drop_columns("ordering").append_column("start_us", pa.array(start_us)).cast(schema)

    def ended(self, key: np.ndarray, partner: np.ndarray, until_us: np.ndarray, reason: np.ndarray) -> Ends:
        return Ends(np.full(len(key), self.query), key, partner, until_us, reason)

    def passed(self, elements: Elements) -> tuple[np.ndarray, np.ndarray]:
        """Tell which elements can take part on either side."""
        failed = self.failures.part()
        both = self.encounter.eligible(elements, failed)
        self.failures.add(failed, np.array([self.query]))
        return both

    def pairs(self, elements: Elements, key_hash: np.ndarray, left: np.ndarray, right: np.ndarray) -> Meetings:
        failed = self.failures.part()
        found = self.encounter.pairs(elements, key_hash, left, right, failed)
        self.failures.add(failed, np.array([self.query]))
        return found


def _ordered(due: pa.Table) -> pa.Table:
    """Return reports by object, in the order in which they begin to be valid."""
    names = ("arrival", "time_us", "start_us", "key_hash")
    return due.take(pa.array(np.lexsort([due[name].to_numpy() for name in names])))


def _pieces(due: pa.Table, until_us: int) -> Iterator[tuple[pa.Table, int]]:
    """Cut reports, ordered by object, into pieces of event time; yield them with the times at which they end."""
    start_us, key = due["start_us"].to_numpy(), due["key_hash"].to_numpy()
    objects = int(first_of_runs(key).sum()) if len(key) else 1
    pieces = -(-len(key) // (REPORTS_AN_OBJECT * objects))
    if pieces > 1:
        limits = np.unique(np.sort(start_us)[np.linspace(0, len(key), pieces, endpoint=False, dtype=np.int64)[1:]])
        piece = np.searchsorted(limits, start_us, "right")
        for number, limit in enumerate([*limits.tolist(), until_us]):
            yield due.filter(pa.array(piece == number)), limit
    else:
        yield due, until_us


@dataclass(frozen=True)
class _Validity:
    """Until when reports are valid.

    Parameters
    ----------
    until_us : ndarray of int64, shape (N,)
    next : ndarray of int64, shape (N,)
        The row of the report in the piece that follows each; -1 if the report is only too old.
    """

    until_us: np.ndarray
    next: np.ndarray

    def take(self, rows: np.ndarray) -> "_Validity":
        return _Validity(self.until_us[rows], self.next[rows])

    def followed(self, more: "_Validity") -> "_Validity":
        return _Validity(np.r_[self.until_us, more.until_us], np.r_[self.next, more.next])


@dataclass(frozen=True)
class _Piece:
    """A piece of event time, in which some reports begin to be valid.

    Parameters
    ----------
    evaluation : _Evaluation
    valid : ObjectTable
        The reports that were valid before.
    near : ndarray of int64, shape (P, 2)
    due : pyarrow.Table
        With `queued_schema`, ordered by object and by `start_us`.
    until_us : int
        When the piece ends.
    """

    evaluation: _Evaluation
    valid: ObjectTable
    near: np.ndarray
    due: pa.Table
    until_us: int

    def compared(self) -> tuple[ObjectTable, np.ndarray, pa.Table, Ends]:
        """Return the valid reports and the near pairs at the end, and the spans that begin and end."""
        kept, ended = self._ended()
        begun = self._begun()
        goes_on = begun["until_us"].to_numpy() == OPEN_US
        more = np.stack([begun[name].to_numpy()[goes_on] for name in ("key_hash", "partner_hash")], axis=1)
        return self._valid_after(), np.concatenate([kept, more]), begun, ended

    @functools.cached_property
    def key_hash(self) -> np.ndarray:
        return self.due["key_hash"].to_numpy()

    @functools.cached_property
    def start_us(self) -> np.ndarray:
        return self.due["start_us"].to_numpy()

    @functools.cached_property
    def _cold(self) -> Cold:
        return self.valid.cold.append(self.due)

    @functools.cached_property
    def _objects(self) -> Objects:
        return Objects.arrived(self.due, self.valid.cold.following)

    @functools.cached_property
    def _first(self) -> np.ndarray:
        return np.flatnonzero(first_of_runs(self.key_hash)) if len(self.key_hash) else np.empty(0, dtype=np.int64)

    @functools.cached_property
    def _last(self) -> np.ndarray:
        return last_of_runs(self.key_hash) if len(self.key_hash) else np.empty(0, dtype=np.int64)

    @functools.cached_property
    def _passed(self) -> tuple[np.ndarray, np.ndarray]:
        """Which of the due reports can take part as elements, and which as partners."""
        return self.evaluation.passed(elements_of(self._objects, self._cold))

    @functools.cached_property
    def _useful(self) -> np.ndarray:
        return (self._passed[0] | self._passed[1]) & (self.due["reaches"].to_numpy() != 0)

    @property
    def _gap_us(self) -> int:
        return self.evaluation.encounter.gap_us

    @functools.cached_property
    def _validity(self) -> _Validity:
        """Until when the due reports are valid."""
        count = len(self.key_hash)
        follower = np.arange(1, count + 1)
        follower[self._last] = -1
        next_us = np.append(self.start_us, OPEN_US)[follower]
        too_old_us = self._objects.time_us + self._gap_us
        return _Validity(np.minimum(next_us, too_old_us), np.where(next_us <= too_old_us, follower, -1))

    def _validity_of(self, objects: Objects) -> _Validity:
        """Return until when reports are valid that were valid before."""
        too_old_us = objects.time_us + self._gap_us
        place, present = find(self.key_hash[self._first], objects.key_hash)
        follower = np.full(len(objects), -1)
        follower[present] = self._first[place[present]]
        next_us = np.append(self.start_us, OPEN_US)[follower]
        return _Validity(np.minimum(next_us, too_old_us), np.where(next_us <= too_old_us, follower, -1))

    @functools.cached_property
    def _expired(self) -> np.ndarray:
        """The objects whose valid report is too old before the piece ends, ascending."""
        part, row = self.valid.table.select(lambda run: run.columns["time_us"] + self._gap_us < self.until_us)
        return np.sort(self.valid.table.keys(part, row))

    def _ended(self) -> tuple[np.ndarray, Ends]:
        """Return the near pairs that go on, and the ends of the others."""
        touched = distinct(np.r_[self.key_hash[self._first], self._expired])
        mine = find(touched, self.near[:, 0])[1] | find(touched, self.near[:, 1])[1]
        sides = [self._validity_of(self.valid.found(keys)[0]) for keys in self.near[mine].T]
        until_us = np.minimum(sides[0].until_us, sides[1].until_us)
        ends = until_us < self.until_us
        mine[mine] = ends
        reason = self._reasons(sides[0].take(ends), sides[1].take(ends))
        key, partner = self.near[mine].T
        return self.near[~mine], self.evaluation.ended(key, partner, until_us[ends], reason)

    def _reasons(self, one: _Validity, other: _Validity) -> np.ndarray:
        """Return why spans end, given until when the reports of both sides are valid."""
        passes = [np.append(side, False) for side in self._passed]
        first = np.where(one.next < 0, EXPIRED, np.where(passes[0][one.next], MOVED, FILTERED))
        second = np.where(other.next < 0, EXPIRED, np.where(passes[1][other.next], PARTNER_MOVED, PARTNER_FILTERED))
        return np.where(one.until_us <= other.until_us, first, second).astype(np.int8)

    def _begun(self) -> pa.Table:
        """Return the spans that begin, with `span_schema`."""
        fresh = np.flatnonzero(self._useful)
        if not len(fresh):
            return span_schema(self.evaluation.space).empty_table()
        old = self._close_by(self._objects.bounds[fresh])
        both, count = old.followed(self._objects.take(fresh)), len(old)
        validity = self._validity_of(old).followed(self._validity.take(fresh))
        start_us = np.r_[np.full(count, -OPEN_US), self.start_us[fresh]]
        pairs = self._near_pairs(both, count, fresh)
        since_us = np.maximum(start_us[pairs.row], start_us[pairs.partner])
        one, other = validity.take(pairs.row), validity.take(pairs.partner)
        until_us = np.minimum(one.until_us, other.until_us)
        chosen = np.flatnonzero(since_us < until_us)
        chosen = chosen[self._told(pairs.take(chosen), both)]
        until_us = until_us[chosen]
        return self._rows(
            both,
            pairs.take(chosen),
            since_us[chosen],
            np.where(until_us < self.until_us, until_us, OPEN_US),
            self._reasons(one.take(chosen), other.take(chosen)),
        )

    def _near_pairs(self, both: Objects, count: int, fresh: np.ndarray) -> Meetings:
        """Return the pairs that satisfy the query, and of which at least one report begins to be valid."""
        elements, known = elements_of(both, self._cold), np.arange(count)
        left, right = (count + np.flatnonzero(passed[fresh]) for passed in self._passed)
        find_pairs = functools.partial(self.evaluation.pairs, elements, both.key_hash)
        found = [find_pairs(left, np.r_[known, right]), find_pairs(known, right)]
        return Meetings.together(found)

    def _told(self, pairs: Meetings, both: Objects) -> np.ndarray:
        """Return the positions of the pairs that this region tells."""
        encounter, registry, place = self.evaluation.encounter, self.evaluation.registry, self.evaluation.place
        look = self.evaluation.failures.looking(np.array([self.evaluation.query]))
        elements = elements_of(both, self._cold)
        rows = np.flatnonzero(encounter.away(elements, pairs, registry.features, look))
        pairs = pairs.take(rows)
        mine = encounter.told_once(pairs, elements)
        mine &= pairs.tellers(place.region_map) == place.number
        return rows[mine]

    def _close_by(self, bounds: np.ndarray) -> Objects:
        """Return the valid reports that may be near some boxes of reports, (K, 2n)."""
        encounter, space = self.evaluation.encounter, self.evaluation.space
        if not len(self.valid) or encounter.way is not None:
            return self.valid.whole
        boxes = in_plane(np.concatenate([encounter.reach(bounds), encounter.about(bounds)]), space)
        plane = with_turns(np.arange(len(boxes)), boxes, space)[1]
        near = self.evaluation.indexed(self.evaluation.query, self.valid).look(plane)
        return self.valid.found(np.sort(near.keys))[0]

    def _rows(
        self, both: Objects, pairs: Meetings, since_us: np.ndarray, until_us: np.ndarray, reason: np.ndarray
    ) -> pa.Table:
        schema = span_schema(self.evaluation.space)
        if not len(pairs.row):
            return schema.empty_table()
        columns = {
            "query": np.full(len(pairs.row), self.evaluation.query),
            "since_us": since_us,
            "until_us": until_us,
            "reason": reason,
            "distance": pairs.distance,
        }
        for rows, key, prefix in ((pairs.row, "key", ""), (pairs.partner, "partner", "partner_")):
            objects = both.take(rows)
            cold = self._cold.take(objects)
            columns |= {f"{key}_hash": objects.key_hash, key: cold["key"], f"{prefix}properties": cold["properties"]}
            columns |= {f"{prefix}time_us": objects.time_us, f"{prefix}bounds": bounds_array(objects.bounds)}
        return pa.table([columns[name] for name in schema.names], schema=schema)

    def _valid_after(self) -> ObjectTable:
        """Return the reports that are valid at the end."""
        stays = self._useful[self._last] & (self._objects.time_us[self._last] + self._gap_us >= self.until_us)
        kept, keys = self._last[stays], self.key_hash[self._last]
        gone = distinct(np.r_[keys[~stays], self._expired])
        gone = gone[~find(keys[stays], gone)[1]]
        gone = gone[self.valid.found(gone)[1]]
        valid = self.valid.updated(self.due.take(pa.array(kept))) if len(kept) else self.valid
        return valid.without(gone).settled()


def divided(states: Sequence[Encounters], place: RegionPlace, before: Registry, following: int) -> Encounters:
    """Return the state of a region, made of those of all regions under another region map.

    All valid reports begin to be valid once more, so the new regions find the pairs, and tell which of them are near.

    Parameters
    ----------
    states : sequence of Encounters
        Of all regions under the map before. They have seen the same micro-batches.
    place : RegionPlace
        The region, and the map from now on.
    before : Registry
        As the batch before left it.
    following : int
        The number of the first run.
    """
    space, reach = before.space, before.encounter_reach
    queries = {}
    for query in states[0].queries:
        known = [state.queries[query] for state in states if query in state.queries]
        waiting = [part.requeued(space).queue.waiting() for part in known]
        reports = _shared(waiting, queued_schema(space))
        met = reach.regions(bounds_of(reports["bounds"]), reports["stream"].to_numpy(), place.region_map)
        reaches = met[:, place.number]
        # The last report before the watermark ends no other one, so only regions that it reaches need it.
        needed = reaches | (reports["arrival"].to_numpy() != VALID_BEFORE)
        at = reports.schema.get_field_index("reaches")
        reports = reports.set_column(at, reports.schema.field(at), pa.array(reaches.astype(np.int8)))
        empty = Followed.nothing(space, following)
        queue = replace(empty.queue, until_us=known[0].queue.until_us).put(reports.filter(pa.array(needed)))
        queries[query] = replace(empty, queue=queue)
    return Encounters(queries)


def _shared(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Return the reports of several queues, each once."""
    whole = pa.concat_tables([schema.empty_table(), *tables])
    names = np.stack([whole[name].to_numpy() for name in ("key_hash", "time_us", "arrival")])
    return whole.take(pa.array(np.sort(np.unique(names, axis=1, return_index=True)[1])))
