"""The queries that run, in the forms in which the steps of servers look at them.

One query more, less or changed makes a new `RunningQueries` from the old one. It copies arrays of numbers, and compiles
the plan that is new. What a change does not concern, both share.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from streaming.kinds.registry import kind_of
from streaming.operators.distributed import DistributedQueries
from streaming.operators.encounters import Ordering, orderings_of
from streaming.operators.focal_ranges import focal_keys
from streaming.operators.query_levels import QueryLevels
from streaming.operators.rules import Rules
from streaming.operators.runs import distinct, find
from streaming.operators.stream_join import StreamJoins
from streaming.operators.stream_reach import Reach, unfiltered
from streaming.operators.time_joins import compiled, driving
from streaming.operators.tracks import TrackQueries
from streaming.servers.control.columns import (
    DISTRIBUTED,
    ENCOUNTER,
    RULE,
    SKETCH,
    STREAM_JOIN,
    TIME_JOIN,
    TRACK,
    Columns,
    Row,
    distinct_of,
)
from streaming.spaces import Space

# The queries with one of these bits have no answer that a region computes by itself.
APART = STREAM_JOIN | TIME_JOIN | ENCOUNTER | DISTRIBUTED | SKETCH | RULE | TRACK
# As many joins over event time, at most, stay compiled from one version of the queries to the next.
MOST_READY = 4_096


@dataclass(frozen=True)
class Group:
    """Running queries of some kinds that are compiled together, and apart from all others.

    Parameters
    ----------
    space : Space
    bit : int
        What the queries have in common; see `columns.bits_of`.
    plans : mapping of int to Plan
        By query, ascending.
    """

    space: Space
    bit: int
    plans: Mapping[int, Any] = field(default_factory=dict)

    def changed(self, ended: Sequence[Row], begun: Sequence[Row]) -> Self:
        """Return the group after some queries of any kind have ended, and others have begun."""
        ended, begun = ([row for row in rows if row.bits & self.bit] for rows in (ended, begun))
        if not ended and not begun:
            return self
        gone = {row.query for row in ended}
        plans = {query: plan for query, plan in self.plans.items() if query not in gone}
        plans |= {row.query: row.plan for row in begun}
        return type(self)(self.space, self.bit, dict(sorted(plans.items())))

    @functools.cached_property
    def ids(self) -> np.ndarray:
        """The numbers of the queries, int64, ascending."""
        return np.array(list(self.plans), dtype=np.int64)


class StreamJoinGroup(Group):
    """The joins with streams."""

    @functools.cached_property
    def joins(self) -> StreamJoins:
        """The joins, ready to be matched."""
        return StreamJoins(list(self.plans.values()), self.space)

    @functools.cached_property
    def places(self) -> StreamJoins:
        """The joins without their filters."""
        return StreamJoins([unfiltered(plan) for plan in self.plans.values()], self.space)

    @functools.cached_property
    def reach(self) -> Reach:
        """How far elements of joined streams reach for partners."""
        return Reach.of(list(self.plans.values()), self.space)


# Whenever a query begins or ends, there is a new group, whose other plans are as before.
_ready = functools.lru_cache(MOST_READY)(compiled)


@dataclass(frozen=True)
class TimeJoinGroup(Group):
    """The joins over event time.

    Parameters
    ----------
    by_partner : frozenset of int
        The queries whose partners drive them; see `TimeJoin`.
    """

    by_partner: frozenset[int] = frozenset()

    def changed(self, ended: Sequence[Row], begun: Sequence[Row]) -> Self:
        """See `Group`. A query that begins, or gets another plan, is driven by its own stream."""
        ended = [row for row in ended if row.bits & self.bit]
        plans = {row.query: row.plan for row in begun}
        other = {row.query for row in ended if plans.get(row.query) is not row.plan}
        return replace(super().changed(ended, begun), by_partner=self.by_partner - other)

    def driven(self, by_partner: frozenset[int]) -> Self:
        """Return the group in which the partners drive some queries, as far as they are here."""
        by_partner = by_partner & self.plans.keys()
        return self if by_partner == self.by_partner else replace(self, by_partner=by_partner)

    @functools.cached_property
    def joins(self) -> Mapping[int, Any]:
        """The joins by query, each ready to be evaluated by the class that its kind names."""
        return {query: _ready(plan, self.space, query in self.by_partner) for query, plan in self.plans.items()}

    @functools.cached_property
    def reach(self) -> Reach:
        """How far reports reach for partners."""
        plans = [driving(plan, query in self.by_partner) for query, plan in self.plans.items()]
        return Reach.of(plans, self.space)


class EncounterGroup(TimeJoinGroup):
    """The queries for encounters."""

    @functools.cached_property
    def orderings(self) -> Mapping[Ordering, int]:
        """See `orderings_of`."""
        return orderings_of(self.joins.values())


class DistributedGroup(Group):
    """The distributed queries: moving ranges, kNN, aggregates."""

    @functools.cached_property
    def queries(self) -> DistributedQueries:
        """The queries, ready to be placed and matched."""
        return DistributedQueries(list(self.plans.values()), self.space)

    @functools.cached_property
    def focal(self) -> np.ndarray:
        """The `key_hash` of every object that a query follows, int64, ascending."""
        foci = (kind_of(plan).focus(plan) for plan in self.plans.values())
        return distinct(focal_keys([focus for focus in foci if focus is not None and focus.key]))


class RuleGroup(Group):
    """The rules."""

    @functools.cached_property
    def rules(self) -> Rules:
        """The rules, compiled."""
        return Rules(self.plans)


class TrackGroup(Group):
    """The queries about tracks."""

    @functools.cached_property
    def queries(self) -> TrackQueries:
        """The queries, ready to be evaluated."""
        return TrackQueries(self.plans, self.space)


@dataclass(frozen=True)
class RunningQueries:
    """The queries that run.

    Parameters
    ----------
    columns : Columns
        All of them.
    answers : ndarray of int64
        The numbers of the answers that a region computes by itself, ascending: all answers except those of joins with
        streams, of joins over event time, of encounters, of distributed queries, of queries of sketches, of rules and
        of tracks.
    levels : QueryLevels
        The queries of `answers`, ready to be matched; queries that share an answer are one.
    stream_joins : StreamJoinGroup
    time_joins : TimeJoinGroup
    encounters : EncounterGroup
    distributed : DistributedGroup
    sketches : Group
        The queries of sketches.
    rules : RuleGroup
    tracks : TrackGroup
    """

    columns: Columns
    answers: np.ndarray
    levels: QueryLevels
    stream_joins: StreamJoinGroup
    time_joins: TimeJoinGroup
    encounters: EncounterGroup
    distributed: DistributedGroup
    sketches: Group
    rules: RuleGroup
    tracks: TrackGroup

    @classmethod
    def none(cls, space: Space) -> "RunningQueries":
        """Return no queries."""
        groups = (
            StreamJoinGroup(space, STREAM_JOIN),
            TimeJoinGroup(space, TIME_JOIN),
            EncounterGroup(space, ENCOUNTER),
            DistributedGroup(space, DISTRIBUTED),
            Group(space, SKETCH),
            RuleGroup(space, RULE),
            TrackGroup(space, TRACK),
        )
        return cls(Columns(), np.empty(0, dtype=np.int64), QueryLevels(space), *groups)

    def changed(self, ended: Sequence[Row], begun: Sequence[Row]) -> "RunningQueries":
        """Return the queries after some have ended, and others have begun; an edited query is in both."""
        if not ended and not begun:
            return self
        columns = self.columns.changed(ended, begun)
        were, plans = ({row.answer: row.plan for row in rows if not row.bits & APART} for rows in (ended, begun))
        touched = np.array(sorted(were | plans), dtype=np.int64)
        before, after = (find(known.ordered_answer, touched)[1] for known in (self.columns, columns))
        # An answer whose boxes have moved has the number that it had, and another plan.
        both = [answer in were and plans.get(answer, were[answer]) is not were[answer] for answer in touched.tolist()]
        moved = before & after & np.array(both, dtype=bool)
        gone, new = touched[before & ~after | moved], touched[after & ~before | moved]
        answers = np.delete(self.answers, np.searchsorted(self.answers, gone))
        return RunningQueries(
            columns,
            np.insert(answers, np.searchsorted(answers, new), new),
            self.levels.changed(gone, {answer: plans[answer] for answer in new.tolist()}),
            self.stream_joins.changed(ended, begun),
            self.time_joins.changed(ended, begun),
            self.encounters.changed(ended, begun),
            self.distributed.changed(ended, begun),
            self.sketches.changed(ended, begun),
            self.rules.changed(ended, begun),
            self.tracks.changed(ended, begun),
        )

    def only(self, rows: Sequence[Row]) -> "RunningQueries":
        """Return only some of the queries."""
        chosen = RunningQueries.none(self.levels.space)
        time_joins = chosen.time_joins.changed((), rows).driven(self.time_joins.by_partner)
        groups = (
            chosen.stream_joins,
            chosen.encounters,
            chosen.distributed,
            chosen.sketches,
            chosen.rules,
            chosen.tracks,
        )
        stream_joins, *others = (group.changed((), rows) for group in groups)
        answers = np.intersect1d(distinct_of(rows), self.answers)
        return RunningQueries(
            chosen.columns.changed((), rows),
            answers,
            self.levels.only(answers),
            *(stream_joins, time_joins, *others),  # type: ignore[arg-type]
        )

    def driven(self, by_partner: frozenset[int]) -> "RunningQueries":
        """Return the queries, of which the partners drive some joins over event time."""
        time_joins = self.time_joins.driven(by_partner)
        return self if time_joins is self.time_joins else replace(self, time_joins=time_joins)

    def are(self, names: np.ndarray, bit: int) -> np.ndarray:
        """Tell which numbers, of queries or of answers, are those of queries with a bit (see `columns.bits_of`).

        Parameters
        ----------
        names : ndarray of int64, shape (K,)
        bit : int

        Returns
        -------
        ndarray of bool, shape (K,)
        """
        columns, query = self.columns, np.array(names, dtype=np.int64)
        place, shared = find(columns.ordered_answer, query)
        query[shared] = columns.ordered_query[place[shared]]
        place, known = find(columns.query, query)
        known[known] = columns.bits[place[known]] & np.uint16(bit) != 0
        return known
