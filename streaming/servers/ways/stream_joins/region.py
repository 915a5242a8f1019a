"""The part of a regional server that joins streams with the last known elements of streams.

An element of a joined stream is known in every region in which it may have a partner. Every region that knows both
elements of a pair finds it, and exactly one reports it (`operators.stream_join.Meetings.tellers`). So no pair is lost
and none is doubled, whatever the extents of the elements, and wherever the borders of the regions run.

References
----------
BBoxDB Streams (2022), section 4.6: elements are enlarged so that they reach all regions of possible partners.
J. Patel, D. DeWitt, "Partition Based Spatial-Merge Join", SIGMOD 1996: objects are replicated, results are not.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import pyarrow as pa

from streaming.operators.closest import Closest
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.meetings import Meetings
from streaming.operators.runs import distinct, find, last_of_runs
from streaming.operators.stream_join import StreamJoins
from streaming.results import (
    DROPPED,
    EXPIRED,
    HANDOFF,
    LEFT,
    MOVED,
    PARTNER_FILTERED,
    PARTNER_HANDOFF,
    PARTNER_MOVED,
    PASSED,
    QUIET_HANDOFF,
    QUIET_PARTNER_HANDOFF,
    REASONS,
    SNAPSHOT,
    STAYED,
    result_schema,
)
from streaming.servers.answers.changes import SIGN, among, changed_objects, compared
from streaming.servers.answers.members import Answers
from streaming.servers.answers.reasons import ObjectVersions, reasons, worth_telling
from streaming.servers.answers.tuples import Results, result_rows
from streaming.servers.control.border import refuse
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.region.dues import Dues
from streaming.servers.region.member_table import MemberTable
from streaming.servers.region.objects import Cold, Objects, ObjectTable, elements_of
from streaming.servers.region.place import RegionPlace
from streaming.servers.region.predictions import Ways
from streaming.servers.region.state import Region, fates
from streaming.servers.ways.stream_joins.join_input import JoinInput

# If the two objects of a pair have different fates, the one with the higher rank is reported. All regions know that an
# object expired or was dropped; a handoff ends the pair in this region only.
RANK = np.zeros(len(REASONS), dtype=np.int64)
RANK[[HANDOFF, EXPIRED, DROPPED]] = 1, 2, 3
# The reason of a handoff if the partner alone departed.
PARTNERS_HANDOFF = np.arange(QUIET_PARTNER_HANDOFF + 1, dtype=np.int8)
PARTNERS_HANDOFF[[HANDOFF, QUIET_HANDOFF]] = PARTNER_HANDOFF, QUIET_PARTNER_HANDOFF


def step(state: Region, joined: JoinInput, control: ControlStep, place: RegionPlace) -> tuple[Region, Results]:
    """Apply the control entries, then the updates, of one micro-batch.

    Parameters
    ----------
    state : Region
        The objects that the region knows, and the pairs that it reports; `pair_partner` is the partner object.
    joined : JoinInput
    control : ControlStep
    place : RegionPlace

    Returns
    -------
    state : Region
    results : Results
        At most one tuple per (query, object, partner), except for queries that emit all. A pair that another region may
        report from now on leaves with the reason ``handoff``, to be netted with the tuples of that region.
    """
    pairs = state.pairs.without(control.applied.forgotten)
    elements, gone = _newer(state.objects, joined)
    newer = state.objects.updated(elements)
    known, cold = newer.whole, newer.cold
    fate = fates(known, gone, control.after, control.applied, control.now_us)
    touched = fate != MOVED
    touched[find(known.key_hash, joined.present["key_hash"].to_numpy())[0]] = True
    failures = Failures(place.allowance(known.bounds[:0], known.bounds))
    evaluation = _JoinEvaluation(state, known, cold, fate, touched, control, place, failures)
    members = pairs.whole()
    dues = evaluation.dues(members)
    old, rest, passed = evaluation.old_answers(members, dues)
    new, held, told = evaluation.evaluate()
    failures.keep(np.r_[rest.query, new.query], owners := control.after.columns.owners_of)
    refuse(failures.settled(owners))
    writer = _Writer(known, cold, control.after)
    changes, began = evaluation.changes(old, new, held, passed), perf_counter()
    rows = [writer.rows(changes), writer.rows(told)]
    failures.share(changes.query, perf_counter() - began, control.after.stream_ids)
    rows.append(_passing(joined.passing, evaluation))
    now = _joined(rest, new)
    pairs = pairs.replaced(members, now, changed_objects(members, now))
    snapshots = writer.rows(evaluation.snapshots(pairs))
    refuse(failures.settled(owners))  # what `_passing` and snapshots compare counts, too
    objects = newer.without(known.key_hash[~evaluation.stays])
    counters = {"results": sum(table.num_rows for table in rows)}
    results = Results(pa.concat_tables(rows), snapshots, counters, failures.errors, seconds=failures.seconds)
    dues, ways = evaluation.dues(now, dues), evaluation.ways
    return Region(objects.settled(), pairs.settled(), control.now_us, dues=dues, ways=ways), results


def _joined(rest: Answers, new: Answers) -> Answers:
    """Return the pairs that did not change and the new ones, ordered by key."""
    both = Answers(*(np.r_[getattr(rest, name), getattr(new, name)] for name in ("key", "query", "partner")))
    return both.take(np.argsort(both.key, kind="stable"))


def _newer(objects: ObjectTable, joined: JoinInput) -> tuple[pa.Table, np.ndarray]:
    """Return the newest elements that the input has, ordered by key, and the keys of objects that are gone."""
    tables = [joined.present] if joined.found is None else [joined.found, joined.present]
    keys = joined.gone["key_hash"].to_numpy()
    known = objects.found(keys)[1]
    if joined.found is not None:
        known |= np.isin(keys, joined.found["key_hash"].to_numpy())
    gone = joined.gone.filter(pa.array(known))
    elements = pa.concat_tables([*tables, gone])
    order = np.argsort(elements["key_hash"].to_numpy(), kind="stable")
    order = order[last_of_runs(elements["key_hash"].to_numpy()[order])]
    return elements.take(pa.array(order)), gone["key_hash"].to_numpy()


@dataclass(frozen=True)
class _JoinEvaluation:
    """The joins with streams of a region in a micro-batch.

    `was` is the state before the batch; `known` are those that were there or arrived, each with its `fate`;
    `touched` tells which of `known` moved or leave; `objects` are those that stay.
    """

    was: Region
    known: Objects
    cold: Cold
    fate: np.ndarray
    touched: np.ndarray
    control: ControlStep
    place: RegionPlace
    failures: Failures

    @functools.cached_property
    def stays(self) -> np.ndarray:
        return (self.fate == MOVED) & find(self.control.after.reach.streams, self.known.stream)[1]

    @functools.cached_property
    def objects(self) -> Objects:
        return self.known if self.stays.all() else self.known.take(self.stays)

    @functools.cached_property
    def ways(self) -> Ways:
        """The ways of the objects that stay; only those of new reports are measured."""
        horizons_s = self.control.after.stream_joins.horizons_s
        objects, known = self.objects, self.was.ways.without(self.known.key_hash[self.touched])
        return known.of(objects.key_hash, elements_of(objects, self.cold), horizons_s) if horizons_s else Ways()

    @functools.cached_property
    def _elements(self) -> Elements:
        """All known objects as elements, also those that leave."""
        return elements_of(self.known, self.cold)

    def dues(self, members: Answers, known: Dues | None = None) -> Dues:
        """Return when predicted pairs, given all pairs, are past their closest points; only new ones are measured."""
        after = self.control.after
        predicted = np.isin(members.query, after.stream_ids[after.stream_joins.predicting])
        if known is None:
            # A pair is measured again if one of its objects has another element.
            known = self.was.dues.without(self.known.key_hash[self.touched])
        return known.of(members.take(predicted), self._due_us)

    def _due_us(self, pairs: Answers) -> np.ndarray:
        after = self.control.after
        row, partner = (find(self.known.key_hash, side)[0] for side in (pairs.key, pairs.partner))
        query = np.searchsorted(after.stream_ids, pairs.query)
        return after.stream_joins.meetings(row, query, partner, self._elements).due_us

    def old_answers(self, members: Answers, dues: Dues) -> tuple[Answers, Answers, Answers]:
        """Return the pairs reported so far that the micro-batch may change, the others, and those that have passed."""
        applied, touched = self.control.applied, self.known.key_hash[self.touched]
        reevaluation = find(touched, members.key)[1] | find(touched, members.partner)[1]
        altered = np.r_[applied.changed, applied.cancelled]
        if len(altered):
            reevaluation |= np.isin(members.query, altered)
        over = dues.pairs.take(dues.due_us < self.control.now_us)
        passed = among(members, over) if len(over.key) else np.zeros(len(members.key), dtype=bool)
        untouched = members.take(passed & ~reevaluation)
        reevaluation |= passed
        return members.take(reevaluation), members.take(~reevaluation), untouched

    def evaluate(self) -> tuple[Answers, Answers, Answers]:
        """Match touched objects with all objects; for the joins that changed, match all with all.

        Returns
        -------
        new, held, told : Answers
            The pairs to keep, ordered by key; these together with the pairs that other regions report; and the pairs of
            joins that keep no answer.
        """
        after = self.control.after
        touched = self.touched[self.stays]
        moved, others, all_ = np.flatnonzero(touched), np.flatnonzero(~touched), np.arange(len(touched))
        joins, ids = after.stream_joins, after.stream_ids
        arrived = self._answers(joins, ids, moved, all_)
        told = arrived.take(~joins.keeps[np.searchsorted(ids, arrived.query)])
        parts = [arrived, self._answers(joins, ids, others, moved)]
        changed = np.intersect1d(self.control.applied.changed, ids)
        if len(changed):
            parts.append(self._answers(after.compiled_joins(changed), changed, others, others))
        held = _together(parts)
        held = held.take(joins.keeps[np.searchsorted(ids, held.query)])
        new = held.take(held.signs != STAYED)
        return new.take(np.argsort(new.key, kind="stable")), held, told.take(told.signs != STAYED)

    def _answers(self, joins: StreamJoins, ids: np.ndarray, left: np.ndarray, right: np.ndarray) -> Answers:
        """Return the pairs of two sets of rows as members of answers; ``~`` marks those that another region reports."""
        objects = self.objects
        failed = self.failures.part()
        if self.failures.alone:  # the step ends
            left, right = left[:0], right[:0]
        elements = elements_of(objects, self.cold)
        if self.ways.boxes:
            elements = self.ways.known_to(elements)
        meetings = joins.pairs(elements, objects.key_hash, left, right, failed)
        meetings = meetings.take(~(meetings.due_us < self.control.now_us))
        self.failures.add(failed, ids)
        return _members(meetings, objects, ids, self.place)

    def snapshots(self, pairs: MemberTable) -> Answers:
        """Return the requested snapshots; distances are not kept but measured again."""
        after, asked = self.control.after, self.control.applied.snapshots
        members = pairs.of_answers(np.array(asked, dtype=np.int64))
        members = replace(members, distance=np.full(len(members.key), np.nan))
        key, query, partner = members.key, members.query, members.partner
        mine = after.measuring(query)
        if mine.any():
            joins = distinct(query[mine])
            left, right = (find(self.objects.key_hash, distinct(side[mine]))[0] for side in (key, partner))
            again = self._answers(after.compiled_joins(joins), joins, left, right)
            members = members.take(~mine).joined(again.take(again.signs != STAYED))
        return replace(members, reason=SNAPSHOT)

    def changes(self, old: Answers, new: Answers, held: Answers, passed: Answers) -> Answers:
        """Compare the pairs reported so far with those to report now; return the changes to report."""
        both = compared(old, new)
        row, partner = (np.searchsorted(self.known.key_hash, side) for side in (both.key, both.partner))
        fate = np.where(RANK[self.fate[row]] > RANK[self.fate[partner]], self.fate[row], self.fate[partner])
        # A pair that still holds here but is not reported here is reported by another region.
        fate[(both.sign == LEFT) & among(both, held)] = HANDOFF
        if len(passed.key):
            fate[(both.sign == LEFT) & (fate == MOVED) & among(both, passed)] = PASSED
        before, after = self.control.before, self.control.after
        changes = replace(both, reason=reasons(both.query, fate, before, after, self.control.applied))
        changes = self.explained(changes, row, partner)
        moved = self.touched[row] | self.touched[partner]
        return changes.take(worth_telling(changes, self.shifted(changes, row, partner, moved), before, after))

    def shifted(self, changes: Answers, row: np.ndarray, partner: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """Return `moved` (P,), without predicted pairs of which nothing that is shown changes: see `closest.shown`."""
        after = self.control.after
        predicted = np.isin(changes.query, after.stream_ids[after.stream_joins.predicting])
        mine = np.flatnonzero(predicted & moved & (changes.sign == STAYED))
        were = [self.was.objects.found(side[mine]) for side in (changes.key, changes.partner)]
        both = were[0][1] & were[1][1]
        mine, count = mine[both], int(both.sum())
        if count:
            old = [objects.take(both[known]) for objects, known in were]
            then = elements_of(old[0].followed(old[1]), self.cold)
            was = Closest.of(then, np.arange(count), np.arange(count, 2 * count)).shown
            now = Closest.of(self._elements, row[mine], partner[mine]).shown
            moved = moved.copy()
            moved[mine] = (was != now).any(0)
        return moved

    def explained(self, changes: Answers, row: np.ndarray, partner: np.ndarray) -> Answers:
        """Return changes with reasons; where only the objects of a pair can explain one, tell which of the two does.

        A pair that leaves with an object that departed from this region is explained in the same way, for it may enter
        in no other region.
        """
        reason, after = np.array(changes.reason), self.control.after
        departed = (self.fate[row] == HANDOFF) | (self.fate[partner] == HANDOFF)
        handed = departed & np.isin(reason, (HANDOFF, QUIET_HANDOFF))
        mine = np.flatnonzero((reason == MOVED) | handed)
        if len(mine):
            touched = np.array([self.touched[row[mine]], self.touched[partner[mine]]])
            versions = ObjectVersions(self.known, self.was.objects.whole, self.cold)
            joins = after.stream_joins, after.stream_join_places, after.stream_ids
            found = versions.of_pairs(changes.take(mine), touched, *joins)
            kept = np.where(
                np.isin(found, (PARTNER_MOVED, PARTNER_FILTERED)), PARTNERS_HANDOFF[reason[mine]], reason[mine]
            )
            reason[mine] = np.where(handed[mine], kept, found)
        return replace(changes, reason=reason)


def _members(meetings: Meetings, objects: Objects, ids: np.ndarray, place: RegionPlace) -> Answers:
    """Return pairs as members of answers, with the sign ``~`` where another region reports them."""
    mine = meetings.tellers(place.region_map) == place.number
    partner = objects.key_hash[meetings.partner]
    key, query = objects.key_hash[meetings.row], ids[meetings.query]
    return Answers(key, query, partner, meetings.distance, SIGN[0, mine.astype(np.int8)])


def _together(parts: Sequence[Answers]) -> Answers:
    names = ("key", "query", "partner", "distance", "sign")
    return Answers(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _passing(passing: pa.Table, evaluation: _JoinEvaluation) -> pa.Table:
    """Return the tuples of pairs with superseded elements, for the joins that emit all."""
    after, known = evaluation.control.after, evaluation.objects
    space = after.space
    if not passing.num_rows:
        return result_schema(space).empty_table()
    objects, cold = Objects.arrived(passing, evaluation.cold.following), evaluation.cold.append(passing)
    both = known.followed(objects)
    elements = elements_of(both, cold)
    left, right = np.arange(len(known), len(both)), np.arange(len(known))
    failed = evaluation.failures.part()
    meetings = after.stream_joins.pairs(elements, both.key_hash, left, right, failed)
    evaluation.failures.add(failed, after.stream_ids)
    meetings = meetings.take(~after.stream_joins.keeps[meetings.query])
    answers = _members(meetings, both, after.stream_ids, evaluation.place)
    mine = answers.signs != STAYED
    rows, answers = meetings.row[mine], answers.take(mine)
    return _Writer(both, cold, after).table(answers, rows, meetings.partner[mine])


@dataclass(frozen=True)
class _Writer:
    """Writes result tuples of known objects."""

    objects: Objects
    cold: Cold
    registry: Registry

    def rows(self, answers: Answers) -> pa.Table:
        """Return result tuples of members of answers."""
        rows, partners = (np.searchsorted(self.objects.key_hash, side) for side in (answers.key, answers.partner))
        return self.table(answers, rows, partners)

    def table(self, answers: Answers, rows: np.ndarray, partners: np.ndarray) -> pa.Table:
        """Return result tuples, given the rows of the objects and of their partners."""
        if not len(answers.key):
            return result_schema(self.registry.space).empty_table()
        objects = self.objects.take(rows)
        others = self.cold.take(self.objects.take(partners))
        columns = {"partner": others["key"], "partner_properties": others["properties"]}
        answers, closest = self._closest(answers, rows, partners)
        return result_rows(answers, objects, self.cold.take(objects), columns | closest, self.registry.space)

    def _closest(self, answers: Answers, rows: np.ndarray, partners: np.ndarray) -> tuple[Answers, dict[str, pa.Array]]:
        """Return members with the distances of predicted pairs, and columns that tell where these are closest."""
        predicted = self.registry.stream_ids[self.registry.stream_joins.predicting]
        mine = np.flatnonzero(np.isin(answers.query, predicted) & (np.broadcast_to(answers.sign, len(rows)) != LEFT))
        if not len(mine):
            return answers, {}
        found = Closest.of(elements_of(self.objects, self.cold), rows[mine], partners[mine])
        distance, told = np.array(np.broadcast_to(answers.distance, len(rows))), np.full(len(rows), -1)
        distance[mine], told[mine] = found.distance_m, np.arange(len(mine))
        place = pa.array(told, mask=told < 0)
        time_us = pa.array(found.time_us.astype(np.int64))
        places = pa.FixedSizeListArray.from_arrays(pa.array(found.places.ravel()), 4)
        columns = {"closest_us": time_us, "closest_s": pa.array(found.after_s), "closest_places": places}
        return replace(answers, distance=distance), {name: column.take(place) for name, column in columns.items()}
