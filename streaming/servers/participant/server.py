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
from streaming.servers.focals import lasting, shifted
from streaming.servers.participant.partial import Candidates, Partial, Tracks
from streaming.servers.region.objects import elements_of
from streaming.servers.region.state import ObjectChanges

# Objects are matched with the borders of ranges where they lie in this many ranges on average.
CROWDED = 4

# The number of objects from which that average is taken.
SAMPLE = 64


def step(
    changed: ObjectChanges, control: ControlStep, *, tracks: Tracks, members: pl.DataFrame
) -> tuple[pl.DataFrame, Results, Partial]:
    """Evaluate the distributed queries for the objects of a region.

    Parameters
    ----------
    changed : ObjectChanges
    control : ControlStep
    tracks : Tracks
    members : polars.DataFrame
        The members of aggregates in this region, with the columns `aggregates.MEMBERS`.

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
    evaluation = _RangeEvaluation(changed, control, tracks, Failures())
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
    return members, results, Partial(removed, added, moved, altered, partial)


@dataclass(frozen=True)
class _Found:
    """Members of ranges: row and key of the object, position of the query, and distance, arrays of shape (P,)."""

    row: np.ndarray
    key: np.ndarray
    query: np.ndarray
    distance: np.ndarray

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
    failures: Failures

    @functools.cached_property
    def were(self) -> PlacedQueries:
        """The queries, placed where they were."""
        return self.tracks.before.placed(self.control.before)

    @functools.cached_property
    def are(self) -> PlacedQueries:
        """The queries, placed where they are."""
        return self.tracks.after.placed(self.control.after)

    @functools.cached_property
    def shifted(self):
        """The positions of queries that cover another place than before, or are new."""
        return np.flatnonzero(shifted(self.were, self.are, self.control))

    @functools.cached_property
    def _still(self):
        """The numbers of queries that cover the same place as before."""
        ids = self.control.after.distributed_ids
        return np.delete(ids, self.shifted)

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
        queries, was = self.were.queries, self.changed.was
        ids = self.control.before.distributed_ids
        left = np.intersect1d(np.flatnonzero(~np.isin(ids, self._still)), queries.ranges)
        asked = np.setdiff1d(np.arange(len(ids)), queries.aggregates)  # their members are stored
        found = self._found(self.were, ids, (was.objects, was.cold), (asked, left), self._lasting[0])
        return _Found.together([found, *(old for old, _ in self._crossed)])

    def new(self) -> _Found:
        """Return the present members of ranges: touched objects in all ranges, all objects in those that shifted."""
        ids, region = self.control.after.distributed_ids, (self.changed.objects, self.changed.cold)
        found = self._found(self.are, ids, region, (np.arange(len(ids)), self.shifted), self._lasting[1])
        return _Found.together([found, *(new for _, new in self._crossed)])

    def _found(self, placed, ids, region, asked, lasting):
        """Match touched objects with the queries `asked`, and all objects with those `elsewhere`.

        What `_crossed` finds in lasting ranges is left to it.
        """
        (objects, _), (asked, elsewhere) = region, asked
        touched = _mask(objects, self.changed.touched)
        bordered = lasting[self._bordered]
        lingering = touched & _mask(objects, self._lingering) if len(bordered) else np.zeros_like(touched)
        others = np.setdiff1d(asked, bordered)
        pairs = [
            self._matched(placed, ids, region, np.flatnonzero(touched & ~lingering), asked),
            self._matched(placed, ids, region, np.flatnonzero(lingering), others),
        ]
        elsewhere = np.setdiff1d(elsewhere, lasting)
        if len(elsewhere):
            # Most objects are untouched: to copy them takes longer than to drop the touched ones afterwards.
            found = self._matched(placed, ids, region, np.arange(len(objects)), elsewhere)
            pairs.append(found.take(~touched[found.row]))
        return _Found.of(Pairs.together(pairs), objects.key_hash)

    def _matched(self, placed, ids, region, rows, chosen):
        """Match the objects at `rows` with some queries; return pairs with rows of the region's objects."""
        if not len(rows) or not len(chosen):
            return Pairs.without_partners(*np.empty((2, 0), dtype=np.int64))
        objects, cold = region
        some, failed = objects if len(rows) == len(objects) else objects.take(rows), Failures()
        pairs = placed.match(elements_of(some, cold), some.key_hash, failed, chosen)
        self.failures.add(failed, ids)
        return Pairs(rows[pairs.row], pairs.query, pairs.partner, pairs.distance)

    @functools.cached_property
    def _lasting(self):
        """The positions, before and now, of the moving ranges whose plan did not change."""
        before, now = lasting(self.control)
        ranges = np.isin(now, self.are.queries.ranges)
        return before[ranges], now[ranges]

    @functools.cached_property
    def _lingering(self):
        """The keys of objects that moved within the region, ascending."""
        objects, was = self.changed.objects.key_hash, self.changed.was.objects.key_hash
        both = [find(keys, self.changed.touched)[1] for keys in (objects, was)]
        return self.changed.touched[both[0] & both[1]]

    @functools.cached_property
    def _bordered(self):
        """Which lasting ranges match their borders with objects that moved, bool: all that can, or none.

        Unless objects lie in many ranges, it is faster to list all ranges in which an object lies.
        """
        now = self._lasting[1]
        bordered = self.are.queries.bordered[now]
        some = self.changed.objects.bounds[_mask(self.changed.objects, self._lingering[:SAMPLE])]
        return bordered & (self.are.crowding(now[bordered], some) >= CROWDED)

    @functools.cached_property
    def _crossed(self):
        """The former and the present members of lasting ranges, among objects near a border that may have been crossed.

        First the untouched objects with the ranges that shifted; then the objects that moved within the region with the
        ranges of `_bordered`, which report membership alone.
        """
        before, now = self._lasting
        objects, cold, was = self.changed.objects, self.changed.cold, self.changed.was
        found = []
        moved, bordered = np.isin(now, self.shifted), self._bordered
        if moved.any():
            here = elements_of(objects, cold)
            rest = ~_mask(objects, self.changed.touched)
            found.append(self._crossing((before[moved], now[moved]), (here, here), objects.key_hash, rest))
        if bordered.any() and len(self._lingering):
            old, new = (part.take(_mask(part, self._lingering)) for part in (was.objects, objects))
            both = elements_of(old, was.cold), elements_of(new, cold)
            all_of_them = np.ones(len(new), dtype=bool)
            found.append(self._crossing((before[bordered], now[bordered]), both, new.key_hash, all_of_them))
        return found

    def _crossing(self, ranges, elements, keys, chosen):
        failed = Failures()
        pairs = self.are.crossed(self.were, ranges, elements, keys, chosen, failed)
        self.failures.add(failed, self.control.after.distributed_ids)
        return tuple(_Found.of(part, keys) for part in pairs)

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
        return left.take(np.isin(left.query, self._still)), came, moved

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
        running = np.intersect1d(self._still, ids[queries.aggregates])
        here = members.filter(pl.col("query").is_in(running.tolist()))
        touched = pl.col("key").is_in(self.changed.touched.tolist())
        moved = here.filter(touched)
        wanted = np.union1d(self.shifted, np.flatnonzero(np.isin(ids, list(self.tracks.wanting))))
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
        rows = np.arange(len(objects)) if len(asked) else np.empty(0, dtype=np.int64)
        pairs = self._matched(self.are, ids, (objects, cold), rows, asked)
        return writer.snapshot(_answers(_Found.of(pairs, objects.key_hash), ids), objects, cold)


def _mask(objects, keys):
    """Tell which objects have one of some keys, bool of shape (M,)."""
    mask = np.zeros(len(objects), dtype=bool)
    position, present = find(objects.key_hash, keys)
    mask[position[present]] = True
    return mask


def _answers(found, ids):
    none = np.zeros(len(found.key), dtype=np.int64)
    return Answers(found.key, ids[found.query], none, np.full(len(found.key), np.nan))


def _candidates(found, ids):
    return Candidates(ids[found.query], found.key, found.distance)
