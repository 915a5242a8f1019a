"""The participating server: it computes a region's part of the answers to distributed queries.

The former members of a moving range are not stored. They are computed again from the objects and the focal objects as
the batch before left them; among objects that rest, only those near the border of a range that moved are tested. So the
cost of a range depends on the movements of objects and range, not on the size of its answer.

References
----------
PLACE* (2007), sections 3.3, 4.2 and 5.1: participating servers send positive and negative tuples, or aggregates of
their results, to the assembler.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from time import perf_counter

import numpy as np
import polars as pl
import pyarrow as pa

from streaming.operators.aggregates import PARTS, measured, parts
from streaming.operators.distributed import PlacedQueries
from streaming.operators.failures import Failures
from streaming.operators.runs import distinct, find
from streaming.operators.spatial_join import Pairs
from streaming.results import ENTERED, MOVED, STAYED
from streaming.servers.answers.changes import compared
from streaming.servers.answers.members import Answers
from streaming.servers.answers.reasons import OF_FOCUSES, decided, reasons, worth_telling
from streaming.servers.answers.tuples import Results, TupleWriter
from streaming.servers.control.border import QueriesFailed
from streaming.servers.control.step import ControlStep
from streaming.servers.participant.object_index import ObjectIndex
from streaming.servers.participant.partial import Candidates, Partial, Tracks
from streaming.servers.participant.placement import Placement
from streaming.servers.region.objects import elements_of
from streaming.servers.region.state import ObjectChanges
from streaming.spaces import Space


@dataclass(frozen=True)
class IndexedObjects:
    """The indices over a region's objects, as the batch before left them and as they are."""

    before: ObjectIndex
    after: ObjectIndex

    @classmethod
    def of(cls, changed: ObjectChanges, space: Space, before: ObjectIndex | None = None) -> "IndexedObjects":
        """Return the indices, given one that some batch left; if this was not the batch before, another is made."""
        was = changed.was.objects.whole
        if before is None or not before.covers(was):
            before = ObjectIndex.of(was, space)
        return cls(before, before.advanced(changed.objects.whole, changed.touched))


def step(
    changed: ObjectChanges, control: ControlStep, *, tracks: Tracks, members: pl.DataFrame, indexed: IndexedObjects
) -> tuple[pl.DataFrame, Results, Partial]:
    """Evaluate the distributed queries for the objects of a region.

    Parameters
    ----------
    changed : ObjectChanges
    control : ControlStep
    tracks : Tracks
    members : polars.DataFrame
        The members of aggregates in this region, with the columns `aggregates.MEMBERS`.
    indexed : IndexedObjects

    Returns
    -------
    members : polars.DataFrame
    results : Results
        The tuples of moving ranges.
    partial : Partial

    Raises
    ------
    QueriesFailed
        If a filter of a moving range failed.
    """
    evaluation = _RangeEvaluation(changed, control, tracks, tracks.placement(control), indexed, Failures())
    old, new = evaluation.old(), evaluation.new()
    members, altered, partial = evaluation.aggregates(new, members)
    changes = evaluation.changes(old, new)
    removed, added, moved = evaluation.candidates(old, new)
    writer = TupleWriter(changed.known, changed.cold, changed.departures, control.before, control.after)
    counters, failures, began = {"results": len(changes.key)}, evaluation.failures, perf_counter()
    rows = writer.rows(changes)
    failures.share(changes.query, perf_counter() - began, control.after.distributed_ids)
    snapshots = evaluation.snapshots(writer)
    evaluation.check_ranges()
    results = Results(rows, snapshots, counters, failures.errors, seconds=failures.seconds)
    renewed = np.intersect1d(changed.touched, _extremes(partial))
    return members, results, Partial(removed, added, moved, altered, partial, renewed=renewed)


def _extremes(parts):
    """Return the `key_hash` of the objects that parts name, ascending."""
    if not len(parts):
        return np.empty(0, dtype=np.int64)
    return np.unique(pl.concat([parts["min_key"], parts["max_key"]]).drop_nulls().to_numpy())


@dataclass(frozen=True)
class _Found:
    """Members of ranges: row and key of the object, position of the query, and distance, arrays of shape (P,)."""

    row: np.ndarray
    key: np.ndarray
    query: np.ndarray
    distance: np.ndarray

    @classmethod
    def none(cls) -> "_Found":
        none = np.empty(0, dtype=np.int64)
        return cls(none, none, none, np.empty(0))

    @classmethod
    def of(cls, pairs: Pairs, keys: np.ndarray) -> "_Found":
        return cls(pairs.row, keys[pairs.row], pairs.query, pairs.distance)

    @classmethod
    def together(cls, parts: Sequence["_Found"]) -> "_Found":
        return cls(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(cls)))

    def of_queries(self, chosen: np.ndarray) -> "_Found":
        rows = np.isin(self.query, chosen)
        return _Found(self.row[rows], self.key[rows], self.query[rows], self.distance[rows])


@dataclass(frozen=True)
class _RangeEvaluation:
    """The distributed queries of a region in a micro-batch."""

    changed: ObjectChanges
    control: ControlStep
    tracks: Tracks
    placement: Placement
    indexed: IndexedObjects
    failures: Failures

    @property
    def were(self) -> PlacedQueries:
        """The queries, placed where they were."""
        return self.placement.were

    @property
    def are(self) -> PlacedQueries:
        """The queries, placed where they are."""
        return self.placement.are

    def check_ranges(self) -> None:
        """Raise `QueriesFailed` if a filter of a moving range failed, since such a range keeps no answer.

        The next batch computes its former members again, and the filter may then judge the same elements differently.
        """
        before, after = self.control.before.distributed_ids, self.control.after.distributed_ids
        ranges = {*before[self.were.queries.ranges].tolist(), *after[self.are.queries.ranges].tolist()}
        if failed := {query: error for query, error in self.failures.errors.items() if query in ranges}:
            raise QueriesFailed(failed)

    def old(self) -> _Found:
        """Return the former members of ranges: touched objects in all, all objects in moving ranges that shifted.

        Some members that stay are missing; nothing has to be reported of them.
        """
        placement, rows = self.placement, self._touched_rows[0]
        asked = placement.asked_before, placement.listed_before, placement.left
        found = self._found(self.changed.was.objects, self.changed.was.cold, rows, asked, self.indexed.before)
        return _Found.together([found, *(old for old, _ in self._crossed)])

    def new(self) -> _Found:
        """Return the present members of ranges: touched objects in all ranges, all objects in those that shifted."""
        placement, rows = self.placement, self._touched_rows[1]
        asked = placement.asked, placement.listed, placement.begun
        found = self._found(self.changed.objects, self.changed.cold, rows, asked, self.indexed.after)
        return _Found.together([found, *(new for _, new in self._crossed)])

    def _found(self, objects, cold, rows, asked, index):
        """Match objects that come or go with some queries, those that stay with others, and all with a third part.

        What `_crossed` finds is left to it.
        """
        coming, staying = rows
        every, listed, whole = asked
        found = [self._matched(every, objects, cold, coming), self._matched(listed, objects, cold, staying)]
        if len(whole.chosen):
            pairs = self._matching(whole, elements_of(objects, cold), objects.key_hash, index.look)
            # Most objects are untouched: the touched ones among those found are dropped afterwards.
            found.append(pairs.take(~find(np.sort(np.r_[coming, staying]), pairs.row)[1]))
        return _Found.of(Pairs.together(found), objects.key_hash)

    def _matched(self, queries, objects, cold, rows):
        """Match the objects at `rows` with queries; return pairs with rows of `objects`."""
        some = objects.take(rows)
        pairs = self._matching(queries, elements_of(some, cold), some.key_hash)
        return Pairs(rows[pairs.row], pairs.query, pairs.partner, pairs.distance)

    def _matching(self, queries, elements, keys, look=None):
        registry = self.control.before if queries.placed is self.were else self.control.after
        failed = Failures()
        pairs = queries.match(elements, keys, failed, look)
        self.failures.add(failed, registry.distributed_ids)
        return pairs

    @functools.cached_property
    def _touched_rows(self):
        """The rows of touched objects before and now: of those that come or go, and of those that stay."""
        (old, was), (new, now) = (
            find(objects.key_hash, self.changed.touched) for objects in (self.changed.was.objects, self.changed.objects)
        )
        return (old[was & ~now], old[was & now]), (new[now & ~was], new[was & now])

    @functools.cached_property
    def _crossed(self):
        """The former and the present members of lasting ranges, among objects near a border that may have been crossed.

        First the untouched objects with the ranges that shifted; then the objects that stay in the region, but moved,
        with the ranges that report membership alone.
        """
        (_, old), (_, new) = self._touched_rows
        objects, cold, was = self.changed.objects, self.changed.cold, self.changed.was
        touched = np.sort(np.concatenate(self._touched_rows[1]))
        some, failed = objects.take(new), Failures()
        both = (
            self.placement.shifted_borders.crossing(
                elements_of(objects, cold),
                objects.key_hash,
                self.indexed.after.look,
                lambda rows: ~find(touched, rows)[1],
                failed,
            ),
            self.placement.borders.crossed_by(
                elements_of(was.objects.take(old), was.cold), elements_of(some, cold), some.key_hash, failed
            ),
        )
        self.failures.add(failed, self.control.after.distributed_ids)
        keys = objects.key_hash, some.key_hash
        return [tuple(_Found.of(part, key) for part in pairs) for pairs, key in zip(both, keys, strict=True)]

    def changes(self, old: _Found, new: _Found) -> Answers:
        """Compare the former and the present members of moving ranges; return the changes to report."""
        before, after = self.control.before, self.control.after
        was = _answers(old.of_queries(self.were.queries.ranges), before.distributed_ids)
        now = _answers(new.of_queries(self.are.queries.ranges), after.distributed_ids)
        both = compared(was, now)
        known = self.changed.known
        fate = self.changed.fate[np.searchsorted(known.key_hash, both.key)]
        reason = reasons(both.query, self._lost(both.query, fate), before, after, self.control.applied)
        reason = self._explained(both, reason)
        changes = replace(both, distance=np.full(len(both.key), np.nan), reason=reason)
        return changes.take(worth_telling(changes, find(self.changed.touched, both.key)[1], before, after))

    def _explained(self, both, reason):
        """Return the reasons of changes; where only object and range can explain one, tell which of the two does."""
        was, objects, ids = self.changed.was.objects, self.changed.objects, self.control.after.distributed_ids
        mine = np.flatnonzero((reason == MOVED) & (both.sign != STAYED))
        (old, known), (new, _) = (find(part.key_hash, both.key[mine]) for part in (was, objects))
        # An object that was not known before has arrived, so MOVED stands.
        mine, old, new = mine[known], old[known], new[known]
        if not len(mine):
            return reason
        before = find(self.control.before.distributed_ids, both.query[mine])[0]
        query, entered = find(ids, both.query[mine])[0], both.sign[mine] == ENTERED
        placed = (
            self.were.lies(was.bounds, old, before, was.key_hash),
            self.were.lies(objects.bounds, new, before, objects.key_hash),
            self.are.lies(objects.bounds, new, query, objects.key_hash),
        )
        between = placed[1].copy()
        asked = np.flatnonzero(between & ~entered)
        elements = elements_of(objects, self.changed.cold)
        between[asked] = self.are.passing(elements, new[asked], query[asked])
        reason = reason.copy()
        reason[mine] = decided(entered, between, placed, OF_FOCUSES)
        return reason

    def _lost(self, query, fate):
        """Return the fates of members; one that stays has its focal object's fate if the query lost that object."""
        ids, focal = self.control.after.distributed_ids, self.control.after.distributed.focal
        for key, why in self.tracks.lost.items():
            lost = np.isin(query, ids[focal == key]) & (fate == MOVED)
            fate = np.where(lost, np.int8(why), fate)
        return fate

    def candidates(self, old: _Found, new: _Found) -> tuple[Candidates, Candidates, np.ndarray]:
        """Return the candidates to remove and to add, and which of the added are touched; see `Partial`."""
        before, after = self.control.before, self.control.after
        left = _candidates(old.of_queries(self.were.queries.nearest), before.distributed_ids)
        came = _candidates(new.of_queries(self.are.queries.nearest), after.distributed_ids)
        moved = find(self.changed.touched, came.key)[1]
        return left.take(np.isin(left.query, self.placement.still)), came, moved

    def aggregates(self, new: _Found, members: pl.DataFrame) -> tuple[pl.DataFrame, np.ndarray, pl.DataFrame]:
        """Return the members of aggregates, the aggregates that may have changed, and the parts of these."""
        queries, ids = self.are.queries, self.control.after.distributed_ids
        if not len(queries.aggregates) and not len(members):
            return members, np.empty(0, dtype=np.int64), pl.DataFrame(schema=PARTS)
        mine = new.of_queries(queries.aggregates)
        pairs = Pairs.without_partners(mine.row, ids[mine.query])
        plans = {int(ids[query]): queries.plans[query].aggregate for query in queries.aggregates.tolist()}
        objects, cold, began = self.changed.objects, self.changed.cold, perf_counter()
        arrived = measured(pairs, elements_of(objects, cold), objects.key_hash, plans, self.control.after.space)
        self.failures.share(pairs.query, perf_counter() - began, ids)
        running = np.intersect1d(self.placement.still, ids[queries.aggregates])
        here = members.filter(pl.col("query").is_in(running.tolist()))
        touched = pl.col("key").is_in(self.changed.touched.tolist())
        moved = here.filter(touched)
        wanted = np.union1d(self.placement.shifted, np.flatnonzero(np.isin(ids, list(self.tracks.wanting))))
        wanted_here = ids[np.intersect1d(wanted, queries.aggregates)]
        altered = distinct(np.r_[moved["query"].to_numpy(), arrived["query"].to_numpy(), wanted_here])
        members, began = pl.concat([here.filter(~touched), arrived]), perf_counter()
        merged = members.filter(pl.col("query").is_in(altered.tolist()))
        partial = parts(merged)
        self.failures.share(merged["query"].to_numpy(), perf_counter() - began, ids)
        return members, altered, partial

    def snapshots(self, writer: TupleWriter) -> pa.Table:
        """Return the requested snapshots of moving ranges."""
        ids, queries = self.control.after.distributed_ids, self.are.queries
        asked = np.intersect1d(np.flatnonzero(np.isin(ids, self.control.applied.snapshots)), queries.ranges)
        objects, cold = self.changed.objects, self.changed.cold
        if not len(asked):
            return writer.snapshot(_answers(_Found.none(), ids), objects, cold)
        elements = elements_of(objects, cold)
        pairs = self._matching(self.are.some(asked), elements, objects.key_hash, self.indexed.after.look)
        return writer.snapshot(_answers(_Found.of(pairs, objects.key_hash), ids), objects, cold)


def _answers(found, ids):
    none = np.zeros(len(found.key), dtype=np.int64)
    return Answers(found.key, ids[found.query], none, np.full(len(found.key), np.nan))


def _candidates(found, ids):
    return Candidates(ids[found.query], found.key, found.distance)
