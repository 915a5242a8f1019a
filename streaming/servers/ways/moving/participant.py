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
from streaming.operators.distributed import PlacedQueries, SomeQueries
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
from streaming.servers.region.object_index import ObjectIndex
from streaming.servers.region.objects import Objects, elements_of
from streaming.servers.region.state import ObjectChanges
from streaming.servers.ways.moving.partial import Candidates, Partial, Tracks
from streaming.servers.ways.moving.placement import Placement
from streaming.spaces import Space


@dataclass(frozen=True)
class IndexedObjects:
    """The indices over a region's objects, as the batch before left them and as they are."""

    before: ObjectIndex
    after: ObjectIndex

    @classmethod
    def of(cls, changed: ObjectChanges, space: Space, before: ObjectIndex | None = None) -> "IndexedObjects":
        """Return the indices, given one that some batch left, of which they take over what is the same."""
        before = ObjectIndex.of(changed.was.objects, space, before)
        return cls(before, ObjectIndex.of(changed.objects, space, before))


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


def _extremes(parts: pl.DataFrame) -> np.ndarray:
    """Return the `key_hash` of the objects that parts name, ascending."""
    if not len(parts):
        return np.empty(0, dtype=np.int64)
    return np.unique(pl.concat([parts["min_key"], parts["max_key"]]).drop_nulls().to_numpy())


@dataclass(frozen=True)
class _Found:
    """Members of ranges: key of the object, position of the query, and distance, arrays of shape (P,)."""

    key: np.ndarray
    query: np.ndarray
    distance: np.ndarray

    @classmethod
    def none(cls) -> "_Found":
        none = np.empty(0, dtype=np.int64)
        return cls(none, none, np.empty(0))

    @classmethod
    def of(cls, pairs: Pairs, keys: np.ndarray) -> "_Found":
        return cls(keys[pairs.row], pairs.query, pairs.distance)

    @classmethod
    def together(cls, parts: Sequence["_Found"]) -> "_Found":
        return cls(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(cls)))

    def take(self, rows: np.ndarray) -> "_Found":
        """Return the members at `rows`, positions or a mask."""
        return _Found(*(getattr(self, column.name)[rows] for column in fields(self)))

    def of_queries(self, chosen: np.ndarray) -> "_Found":
        return self.take(np.isin(self.query, chosen))


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
        placement = self.placement
        asked = placement.asked_before, placement.listed_before, placement.left
        found = self._found(self._touched[0], asked, self.indexed.before)
        return _Found.together([found, *(old for old, _ in self._crossed)])

    def new(self) -> _Found:
        """Return the present members of ranges: touched objects in all ranges, all objects in those that shifted."""
        placement = self.placement
        asked = placement.asked, placement.listed, placement.begun
        found = self._found(self._touched[1], asked, self.indexed.after)
        return _Found.together([found, *(new for _, new in self._crossed)])

    def _found(
        self, touched: tuple[Objects, Objects], asked: tuple[SomeQueries, SomeQueries, SomeQueries], index: ObjectIndex
    ) -> _Found:
        """Match objects that come or go with some queries, those that stay with others, and all with a third part.

        What `_crossed` finds is left to it.
        """
        found = [self._matched(queries, objects) for queries, objects in zip(asked, touched, strict=False)]
        if len(asked[2].chosen):
            members = self._searched(asked[2], index)
            # Most objects are untouched: the touched ones among those found are dropped afterwards.
            found.append(members.take(~find(self.changed.touched, members.key)[1]))
        return _Found.together(found)

    def _matched(self, queries: SomeQueries, objects: Objects) -> _Found:
        """Match touched objects with queries."""
        failed = Failures()
        pairs = queries.match(elements_of(objects, self.changed.cold), objects.key_hash, failed)
        self._fail(queries, failed)
        return _Found.of(pairs, objects.key_hash)

    def _searched(self, queries: SomeQueries, index: ObjectIndex) -> _Found:
        """Match all objects of an index with queries."""
        failed = Failures()
        found = _Found.of(*queries.search(index.look, failed))
        self._fail(queries, failed)
        return found

    def _fail(self, queries: SomeQueries, failed: Failures) -> None:
        registry = self.control.before if queries.placed is self.were else self.control.after
        self.failures.add(failed, registry.distributed_ids)

    @functools.cached_property
    def _touched(self) -> tuple[tuple[Objects, Objects], tuple[Objects, Objects]]:
        """The touched objects before and now: those that come or go, and those that stay."""
        was, now = self.changed.was.objects.found(self.changed.touched)[0], self.changed.moved
        stayed, stay = find(now.key_hash, was.key_hash)[1], find(was.key_hash, now.key_hash)[1]
        return (was.take(~stayed), was.take(stayed)), (now.take(~stay), now.take(stay))

    @functools.cached_property
    def _crossed(self) -> list[tuple[_Found, _Found]]:
        """The former and the present members of lasting ranges, among objects near a border that may have been crossed.

        First the untouched objects with the ranges that shifted; then the objects that stay in the region, but moved,
        with the ranges that report membership alone.
        """
        (_, old), (_, new) = self._touched
        cold, failed, touched = self.changed.cold, Failures(), self.changed.touched
        rested = self.placement.shifted_borders.crossing(
            self.indexed.after.look, lambda keys: ~find(touched, keys)[1], failed
        )
        moved = self.placement.borders.crossed_by(elements_of(old, cold), elements_of(new, cold), new.key_hash, failed)
        self.failures.add(failed, self.control.after.distributed_ids)
        return [
            (_Found.of(before, keys), _Found.of(now, keys)) for before, now, keys in (rested, (*moved, new.key_hash))
        ]

    def changes(self, old: _Found, new: _Found) -> Answers:
        """Compare the former and the present members of moving ranges; return the changes to report."""
        before, after = self.control.before, self.control.after
        was = _answers(old.of_queries(self.were.queries.ranges), before.distributed_ids)
        now = _answers(new.of_queries(self.are.queries.ranges), after.distributed_ids)
        both = compared(was, now)
        fate = self.changed.fates(both.key)
        reason = reasons(both.query, self._lost(both.query, fate), before, after, self.control.applied)
        reason = self._explained(both, reason)
        changes = replace(both, distance=np.full(len(both.key), np.nan), reason=reason)
        return changes.take(worth_telling(changes, find(self.changed.touched, both.key)[1], before, after))

    def _explained(self, both: Answers, reason: np.ndarray) -> np.ndarray:
        """Return the reasons of changes; where only object and range can explain one, tell which of the two does."""
        ids, mine = self.control.after.distributed_ids, np.flatnonzero((reason == MOVED) & (both.sign != STAYED))
        was, known = self.changed.was.objects.found(both.key[mine])
        # An object that was not known before has arrived, so MOVED stands.
        mine = mine[known]
        if not len(mine):
            return reason
        objects, rows = self.changed.objects.found(both.key[mine])[0], np.arange(len(mine))
        before = find(self.control.before.distributed_ids, both.query[mine])[0]
        query, entered = find(ids, both.query[mine])[0], both.signs[mine] == ENTERED
        placed = (
            self.were.lies(was.bounds, rows, before, was.key_hash),
            self.were.lies(objects.bounds, rows, before, objects.key_hash),
            self.are.lies(objects.bounds, rows, query, objects.key_hash),
        )
        between = placed[1].copy()
        asked = np.flatnonzero(between & ~entered)
        elements = elements_of(objects, self.changed.cold)
        between[asked] = self.are.passing(elements, asked, query[asked])
        reason = reason.copy()
        reason[mine] = decided(entered, between, placed, OF_FOCUSES)
        return reason

    def _lost(self, query: np.ndarray, fate: np.ndarray) -> np.ndarray:
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
        keys, began = distinct(mine.key), perf_counter()
        pairs = Pairs.without_partners(find(keys, mine.key)[0], ids[mine.query])
        plans = {int(ids[query]): queries.plans[query].aggregate for query in queries.aggregates.tolist()}
        elements = elements_of(self.changed.objects.found(keys)[0], self.changed.cold)
        arrived = measured(pairs, elements, keys, plans, self.control.after.space)
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
        found = self._searched(self.are.some(asked), self.indexed.after)
        return writer.snapshot(_answers(found, ids), objects, cold)


def _answers(found: _Found, ids: np.ndarray) -> Answers:
    none = np.zeros(len(found.key), dtype=np.int64)
    return Answers(found.key, ids[found.query], none, np.full(len(found.key), np.nan))


def _candidates(found: _Found, ids: np.ndarray) -> Candidates:
    return Candidates(ids[found.query], found.key, found.distance)
