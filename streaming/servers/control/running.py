"""The queries that run, in the forms in which the steps of servers look at them.

One query more, less or changed makes a new `RunningQueries` from the old one. It copies arrays of numbers, and compiles
the plan that is new. What a change does not concern, both share.
"""

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from streaming.kinds.base import Evaluation
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
from streaming.servers.control.columns import Columns, Row, bits_where, distinct_of
from streaming.spaces import Space

# As many joins over event time, at most, stay compiled from one version of the queries to the next.
MOST_READY = 4_096


@dataclass(frozen=True)
class Group:
    """Running queries of some kinds that are compiled together, and apart from all others.

    Parameters
    ----------
    space : Space
    plans : mapping of int to Plan
        By query, ascending.

    Attributes
    ----------
    evaluations : tuple of Evaluation
        How its queries are evaluated.
    bits : int
        The bits of these; see `columns.bits_of`.
    """

    space: Space
    plans: Mapping[int, Any] = field(default_factory=dict)
    evaluations: ClassVar[tuple[Evaluation, ...]]
    bits: ClassVar[int]

    def __init_subclass__(cls) -> None:
        cls.bits = bits_where(lambda evaluation: evaluation in cls.evaluations)

    def changed(self, ended: Sequence[Row], begun: Sequence[Row]) -> Self:
        """Return the group after some queries of any kind have ended, and others have begun."""
        ended, begun = ([row for row in rows if row.bits & self.bits] for rows in (ended, begun))
        if not ended and not begun:
            return self
        gone = {row.query for row in ended}
        plans = {query: plan for query, plan in self.plans.items() if query not in gone}
        plans |= {row.query: row.plan for row in begun}
        return type(self)(self.space, dict(sorted(plans.items())))

    def only(self, rows: Sequence[Row]) -> Self:
        """Return the group with only some of the running queries."""
        return type(self)(self.space).changed((), rows)

    @functools.cached_property
    def ids(self) -> np.ndarray:
        """The numbers of the queries, int64, ascending."""
        return np.array(list(self.plans), dtype=np.int64)


class StreamJoinGroup(Group):
    """The joins with streams."""

    evaluations = (Evaluation.STREAM_JOIN,)

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
    evaluations = (Evaluation.TIME_JOIN,)

    def changed(self, ended: Sequence[Row], begun: Sequence[Row]) -> Self:
        """See `Group`. A query that begins, or gets another plan, is driven by its own stream."""
        ended = [row for row in ended if row.bits & self.bits]
        plans = {row.query: row.plan for row in begun}
        other = {row.query for row in ended if plans.get(row.query) is not row.plan}
        return replace(super().changed(ended, begun), by_partner=self.by_partner - other)

    def only(self, rows: Sequence[Row]) -> Self:
        """See `Group`. The partners drive as many of the queries as before."""
        return super().only(rows).driven(self.by_partner)

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

    evaluations = (Evaluation.ENCOUNTER,)

    @functools.cached_property
    def orderings(self) -> Mapping[Ordering, int]:
        """See `orderings_of`."""
        return orderings_of(self.joins.values())


class DistributedGroup(Group):
    """The distributed queries: moving ranges, kNN, aggregates."""

    evaluations = tuple(one for one in Evaluation if one.distributed)

    @functools.cached_property
    def queries(self) -> DistributedQueries:
        """The queries, ready to be placed and matched."""
        return DistributedQueries(list(self.plans.values()), self.space)

    @functools.cached_property
    def focal(self) -> np.ndarray:
        """The `key_hash` of every object that a query follows, int64, ascending."""
        foci = (kind_of(plan).focus(plan) for plan in self.plans.values())
        return distinct(focal_keys([focus for focus in foci if focus is not None and focus.key]))


class SketchGroup(Group):
    """The queries of sketches."""

    evaluations = (Evaluation.SKETCH,)


class RuleGroup(Group):
    """The rules."""

    evaluations = (Evaluation.RULE,)

    @functools.cached_property
    def rules(self) -> Rules:
        """The rules, compiled."""
        return Rules(self.plans)


class TrackGroup(Group):
    """The queries about tracks."""

    evaluations = (Evaluation.TRACK,)

    @functools.cached_property
    def queries(self) -> TrackQueries:
        """The queries, ready to be evaluated."""
        return TrackQueries(self.plans, self.space)


class Groups(NamedTuple):
    """The running queries that have no answer which a region computes by itself; the only list of groups."""

    stream_joins: StreamJoinGroup
    time_joins: TimeJoinGroup
    encounters: EncounterGroup
    distributed: DistributedGroup
    sketches: SketchGroup
    rules: RuleGroup
    tracks: TrackGroup

    @classmethod
    def none(cls, space: Space) -> "Groups":
        """Return groups without queries."""
        return cls(*(kind(space) for kind in cls.__annotations__.values()))


APART = functools.reduce(operator.or_, (kind.bits for kind in Groups.__annotations__.values()))


@dataclass(frozen=True)
class RunningQueries:
    """The queries that run.

    Parameters
    ----------
    columns : Columns
        All of them.
    answers : ndarray of int64
        The numbers of the answers that a region computes by itself, ascending: those of all queries in no group.
    levels : QueryLevels
        The queries of `answers`, ready to be matched; queries that share an answer are one.
    groups : Groups
    """

    columns: Columns
    answers: np.ndarray
    levels: QueryLevels
    groups: Groups

    @classmethod
    def none(cls, space: Space) -> "RunningQueries":
        """Return no queries."""
        return cls(Columns(), np.empty(0, dtype=np.int64), QueryLevels(space), Groups.none(space))

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
        answers = np.insert(answers, np.searchsorted(answers, new), new)
        levels = self.levels.changed(gone, {answer: plans[answer] for answer in new.tolist()})
        return RunningQueries(
            columns, answers, levels, Groups._make(group.changed(ended, begun) for group in self.groups)
        )

    def only(self, rows: Sequence[Row]) -> "RunningQueries":
        """Return only some of the queries."""
        answers, columns = np.intersect1d(distinct_of(rows), self.answers), Columns().changed((), rows)
        return RunningQueries(
            columns, answers, self.levels.only(answers), Groups._make(group.only(rows) for group in self.groups)
        )

    def driven(self, by_partner: frozenset[int]) -> "RunningQueries":
        """Return the queries, of which the partners drive some joins over event time."""
        time_joins = self.groups.time_joins.driven(by_partner)
        if time_joins is self.groups.time_joins:
            return self
        return replace(self, groups=self.groups._replace(time_joins=time_joins))

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
        known[known] = columns.bits[place[known]] & np.uint32(bit) != 0
        return known
