"""Evaluate the part of the answers that a micro-batch may change.

Objects that moved are matched with all queries, and all objects with queries that are new. When a layer was edited,
only the features that differ count: joins with the layer evaluate the objects near these again. When only the boxes of
a query have moved, it evaluates the objects where the boxes differ.

References
----------
PLACE* (2007), section 3.2: incremental evaluation looks at where the old and the new region of a query differ.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from streaming.elements import stream_number
from streaming.kinds.parts import Box
from streaming.kinds.registry import moved
from streaming.operators.boxes import box_array, differences, in_plane
from streaming.operators.failures import Failures
from streaming.operators.features import Features
from streaming.operators.layer import LayerVersion
from streaming.operators.query_levels import QueryLevels
from streaming.operators.runs import distinct, find
from streaming.operators.spatial_join import Pairs
from streaming.operators.stream_boxes import StreamBoxes
from streaming.results import (
    EDITED,
    ENTERED,
    FILTERED,
    LEFT,
    MOVED,
)
from streaming.servers.answers.members import Answers
from streaming.servers.answers.reasons import reasons
from streaming.servers.answers.recipients import Recipients
from streaming.servers.control.registry import Applied, Registry
from streaming.servers.region.member_table import MemberTable
from streaming.servers.region.objects import Objects, elements_of
from streaming.servers.region.state import ObjectChanges
from streaming.servers.sorted_runs import Run


@dataclass(frozen=True)
class Reevaluation:
    """The part of the answers that a micro-batch may change.

    Parameters
    ----------
    before, after : Registry
        Without and with the batch's control entries.
    applied : Applied
        What those entries did.
    changed : ObjectChanges
    failures : Failures
        Collects the errors of user-defined filters, by the numbers of answers.
    """

    before: Registry
    after: Registry
    applied: Applied
    changed: ObjectChanges
    failures: Failures

    @functools.cached_property
    def recipients_before(self) -> Recipients:
        """The recipients before the batch; queries that the batch changes or ends are reported by themselves."""
        return self.before.recipients(self._apart)

    @functools.cached_property
    def recipients(self) -> Recipients:
        """The recipients after the batch; queries with a new plan are reported by themselves."""
        return self.after.recipients(self.applied.changed)

    def members(self, pairs: MemberTable) -> Answers:
        """Return all members with the objects of which the batch may change members that there were, ordered by key."""
        objects = [self.changed.touched, self._near]
        if len(self._altered):
            objects.append(pairs.of_answers(self._altered).key)
        return pairs.of_objects(distinct(np.concatenate(objects)))

    @property
    def alters(self) -> bool:
        """Whether the batch changes or ends whole answers."""
        return len(self._altered) > 0

    def covers(self, members: Answers) -> np.ndarray:
        """Tell which members, under the numbers of answers, the batch may change: bool of shape (P,)."""
        covered = find(self.changed.touched, members.key)[1]
        if len(self._altered):
            covered |= np.isin(members.query, self._altered)
        if len(self._near):
            covered |= np.isin(members.query, self._in_part) & find(self._near, members.key)[1]
        return covered

    def evaluated(self) -> tuple[Answers, Answers]:
        """Evaluate the part of the answers that the batch may change.

        Returns
        -------
        kept : Answers
            The members of answers that are kept, ordered by key.
        told : Answers
            What queries report that keep no answer.
        """
        found, told = self._matched(self.changed.moved, None)
        if len(self._fresh):
            queries = self.after.queries.only(self._fresh)
            some = self.changed.objects.select(lambda run: queries.meets(run.columns["stream"], run.columns["bounds"]))
            others = some.take(~find(self.changed.touched, some.key_hash)[1])
            found = found.joined(self._matched(others, self._fresh, queries)[0])
        if len(self._near):
            near = np.setdiff1d(self._near, self.changed.touched, assume_unique=True)
            found = found.joined(self._matched(self.changed.objects.found(near)[0], self._in_part)[0])
        return found, told

    def measured(self, members: Answers) -> Answers:
        """Return members whose objects are present, with their distances, which are not kept but measured again."""
        mine = self.after.measuring(members.query)
        if not mine.any():
            return members
        joins = distinct(members.query[mine])
        objects = self.changed.objects.found(distinct(members.key[mine]))[0]
        return members.take(~mine).joined(self._matched(objects, joins)[0])

    def with_kept(self, old: Answers, new: Answers) -> Answers:
        """Return the new members, and those old ones that were not evaluated again.

        When a query changes or ends, its answer stays as it is for the other queries that share it.
        """
        kept = np.setdiff1d(self._altered, self._fresh)
        kept = kept[find(self.after.answers, kept)[1]]
        if not len(kept):
            return new
        again = find(self.changed.touched, old.key)[1]
        if len(self._near):
            again |= np.isin(old.query, self._in_part) & find(self._near, old.key)[1]
        still = old.take(np.isin(old.query, kept) & ~again)
        return new.joined(replace(still, distance=np.full(len(still.key), np.nan)))

    def reasons(self, members: Answers, fate: np.ndarray) -> np.ndarray:
        """Return why answers changed, given members under the numbers of their recipients, and the objects' fates."""
        reason = reasons(members.query, fate, self.before, self.after, self.applied)
        if self.applied.edited:
            edited = np.isin(members.query, self.recipients.names_of(self._edited)) & np.isin(
                members.partner, self._partners
            )
            edited |= np.isin(members.query, self.recipients.names_of(self._renewed))
            reason[(reason == MOVED) & edited] = EDITED
        return reason

    def explained(self, changes: Answers) -> Answers:
        """Return changes with the reason `FILTERED` where a filter decided, not a place.

        There the object (in a join: together with its partner) satisfies the query without its filters now, and did so
        before: it is the filters that judge it differently.

        Parameters
        ----------
        changes : Answers
            With signs and reasons as arrays.
        """
        reason, queries = np.array(changes.reason), self.after.queries
        number = self.recipients.answers_of(changes.query)
        ours = (reason == MOVED) & find(self.after.answers, number)[1]
        # The version in the answer satisfies the query, so only the other version is tested.
        for sign, table in ((ENTERED, self.changed.was.objects), (LEFT, self.changed.objects)):
            mine = np.flatnonzero(ours & (changes.sign == sign))
            if not len(mine):
                continue
            keys, row = np.unique(changes.key[mine], return_inverse=True)
            objects, known = table.found(keys)
            mine, row = mine[known[row]], (np.cumsum(known) - 1)[row[known[row]]]
            if len(mine):
                pairs = Pairs(row, number[mine], changes.partner[mine], np.full(len(mine), np.nan))
                elements = elements_of(objects, self.changed.cold)
                reason[mine[queries.lies(elements, pairs, self.after.features)]] = FILTERED
        return replace(changes, reason=reason)

    @functools.cached_property
    def _partners(self) -> np.ndarray:
        """The `key_hash` of all features that differ."""
        differing = [features.key_hash for features in self._differing.values() if features is not None]
        return np.concatenate([np.empty(0, dtype=np.int64), *differing])

    @functools.cached_property
    def _apart(self) -> np.ndarray:
        return np.union1d(self.applied.changed, self.applied.cancelled)

    @functools.cached_property
    def _differing(self) -> dict[str, Features | None]:
        """The features that differ, old and new ones, by edited layer; None if there are too many, or one has none.

        Then all pairs with the layer are evaluated again: see `LayerVersion.differing`.
        """
        edited = self.applied.edited & self.after.layers_joined
        versions = ((layer, self.before.features(layer), self.after.features(layer)) for layer in edited)
        return {layer: old.differing(new) for layer, old, new in versions}

    @functools.cached_property
    def _fresh(self) -> np.ndarray:
        """Answers to evaluate as a whole: of queries with a new plan, and of the joins of `_renewed`."""
        changed = np.setdiff1d(self.after.columns.answers_of(self.applied.changed), self._moved)
        return np.union1d(changed[find(self.after.answers, changed)[1]], self._renewed)

    @functools.cached_property
    def _moved(self) -> np.ndarray:
        """Answers of queries of which only boxes have moved, ascending; no other query has or had such an answer."""
        columns = self.before.columns, self.after.columns
        before, after = (known.answers_of(self.applied.changed) for known in columns)
        both = np.intersect1d(before, after, assume_unique=True)
        both = both[find(self.before.answers, both)[1] & find(self.after.answers, both)[1]]
        (was, one), (now, other) = (known.queries_of(both) for known in columns)
        alone = (np.bincount(was, minlength=len(both)) == 1) & (np.bincount(now, minlength=len(both)) == 1)
        both, one, other = both[alone], one[alone[was]], other[alone[now]]
        return np.setdiff1d(both[one == other], self._renewed)

    @functools.cached_property
    def _renewed(self) -> np.ndarray:
        """Answers of joins with an edited layer whose features are not compared one by one."""
        return self.after.joins_with([layer for layer, differing in self._differing.items() if differing is None])

    @functools.cached_property
    def _edited(self) -> np.ndarray:
        """Answers of joins to evaluate again for the objects near features that differ."""
        return np.setdiff1d(self.after.joins_with(self.applied.edited), self._fresh)

    @functools.cached_property
    def _altered(self) -> np.ndarray:
        """Answers whose every member may change, or has to be reported."""
        apart = np.setdiff1d(self.before.columns.answers_of(self._apart), self._moved)
        return np.union1d(self._fresh, apart)

    @functools.cached_property
    def _in_part(self) -> np.ndarray:
        """Answers to evaluate again for the objects of `_near`."""
        return np.union1d(self._edited, self._moved)

    @functools.cached_property
    def _near(self) -> np.ndarray:
        """The `key_hash` of the objects near features that differ, or where boxes differ that have moved; ascending."""
        found = [np.empty(0, dtype=np.int64)]
        if len(self._edited):
            differing = {
                layer: LayerVersion.of(features) for layer, features in self._differing.items() if features is not None
            }
            queries, features_of = self.after.queries.only(self._edited), differing.__getitem__
            found.append(self._selected(lambda run: queries.reached(run.columns["bounds"], features_of)))
        if len(self._moved):
            strips = self._strips
            found.append(self._selected(lambda run: strips.meet(run.columns["stream"], run.columns["bounds"])))
        return distinct(np.concatenate(found))

    @property
    def _strips(self) -> StreamBoxes:
        """Where the boxes of the answers of `_moved` differ."""
        registries, numbers = (self.before, self.after), []
        boxes: tuple[list[Box], list[Box]] = ([], [])
        for query in self.after.columns.queries_of(self._moved)[1].tolist():
            was, now = (registry.plan(query) for registry in registries)
            for both in () if was is now else moved(was, now) or ():
                numbers.append(stream_number(now.stream))
                for known, box in zip(boxes, both, strict=True):
                    known.append(box)
        space = self.after.space
        pair, strips = differences(box_array(boxes[0], space), box_array(boxes[1], space), space)
        streams = np.array(numbers, dtype=np.int64)[pair]
        return StreamBoxes(pair, in_plane(strips, space), streams, space)

    def _selected(self, matching: Callable[[Run], np.ndarray]) -> np.ndarray:
        return self.changed.objects.select(matching).key_hash

    def _matched(
        self, objects: Objects, answers: np.ndarray | None, queries: QueryLevels | None = None
    ) -> tuple[Answers, Answers]:
        """Match objects with the queries of some answers, or of all.

        Return the members of answers that are kept, and those of answers that are not.
        """
        if queries is None:
            queries = self.after.queries if answers is None else self.after.queries.only(answers)
        pairs = queries.match(elements_of(objects, self.changed.cold), self.after.features, self.failures)
        members = Answers.of(pairs, objects.key_hash)
        if self.after.keep_all:
            return members, members.take(slice(0))
        keep = self.after.keep(pairs.query)
        return members.take(keep), members.take(~keep)
