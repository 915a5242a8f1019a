"""Encounters: which objects can take part in one, and where two of them are near each other.

Place and properties are compared as in joins with last known elements (`streaming.operators.stream_join`), of reports
that are valid at the same time.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from streaming.kinds.join.partners import Partners
from streaming.kinds.join.plan import JoinPlan
from streaming.kinds.range.plan import RangePlan
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.layer import LayerVersion
from streaming.operators.lines import Look
from streaming.operators.meetings import Meetings, is_first
from streaming.operators.range_query import RangeQueries
from streaming.operators.time_joins import MICROSECONDS, TimeJoin
from streaming.spaces import Space

# Predicates that hold both ways, or not at all; see `kinds.join.plan.PREDICATES`.
SYMMETRIC = frozenset(("intersects", "touches", "overlaps", "equals", "disjoint", "dwithin", "boxes"))
# A span of time that goes on; more than any event time.
OPEN_US = 2**62


class Ordering(NamedTuple):
    """A stream whose reports are put in the order of event time.

    Parameters
    ----------
    stream : int
        Its number.
    lateness_us : int
        How late a report may be.
    idle_us : int
        For how long a home server that hears nothing is waited for.
    """

    stream: int
    lateness_us: int
    idle_us: int


class Encounter(TimeJoin):
    """A query for encounters, ready to be evaluated.

    Parameters
    ----------
    plan : EncounterPlan
    space : Space

    Attributes
    ----------
    for_us, gap_us : int
    layer : str or None
        What both objects must be away from.
    """

    def __init__(self, plan: Any, space: Space, partner_drives: bool = False) -> None:
        super().__init__(plan, space, partner_drives)
        self.for_us, self.gap_us = (round(seconds * MICROSECONDS) for seconds in (plan.for_s, plan.gap_s))
        self.layer = plan.away_from.layer if plan.away_from else None

    @property
    def orderings(self) -> tuple[Ordering, ...]:
        """The orderings of its streams, each once."""
        streams = dict.fromkeys((self.stream, self.partner_stream))
        return tuple(Ordering(stream, self.lateness_us, self.idle_us) for stream in streams)

    @cached_property
    def _sides(self) -> list[RangeQueries]:
        """The range queries that say which elements, and which partners, can take part."""
        plan, whole = self.plan, tuple(self.space.whole().tolist())
        one = RangePlan(plan.stream, plan.area, plan.area, where=plan.where, filters=plan.filters)
        partners = plan.partners
        other = RangePlan(partners.name, whole, whole, where=partners.where, filters=partners.filters)
        return [RangeQueries([side], self.space) for side in (one, other)]

    def eligible(self, elements: Elements, failures: Failures) -> tuple[np.ndarray, np.ndarray]:
        """Tell which elements pass area and filters as elements of the stream, and which as partners; bool, (N,)."""
        both = []
        for side in self._sides:
            passes = np.zeros(len(elements), dtype=bool)
            passes[side.match(elements, failures)[0]] = True
            both.append(passes)
        return both[0], both[1]

    @cached_property
    def _close(self) -> JoinPlan:
        away = self.plan.away_from
        return JoinPlan(self.plan.stream, Partners("layer", away.layer, "dwithin", away.distance), self.plan.area)

    @cached_property
    def is_even(self) -> bool:
        """Whether two objects satisfy the join both ways or not at all, since it asks the same of both."""
        plan, partners = self.plan, self.plan.partners
        alike = (plan.where, plan.filters) == (partners.where, partners.filters)
        whole = np.array_equal(plan.area, self.space.whole())
        return alike and whole and not (plan.transform or partners.pair_filters) and partners.predicate in SYMMETRIC

    @property
    def tells_one_of_two(self) -> bool:
        """Whether at most one of two encounters that mirror each other is told at a time."""
        return self.itself and not self.plan.mirrored

    def told_once(self, pairs: Meetings, elements: Elements) -> np.ndarray:
        """Tell of which pairs of reports encounters are made, bool of shape (P,).

        Of two that mirror each other, it is one if that makes no difference. Else which of two encounters is told is
        decided once they are made: see `mirrored_encounters`.

        Parameters
        ----------
        pairs : Meetings
            Pairs that satisfy the whole query. Whenever one is there, so is its mirror image if that satisfies it, too.
        elements : Elements
        """
        if not (self.tells_one_of_two and self.is_even and len(pairs.row)):
            return np.ones(len(pairs.row), dtype=bool)
        return is_first(elements, pairs.row, pairs.partner)

    def away(
        self, elements: Elements, pairs: Meetings, features: Callable[[str], LayerVersion], look: Look
    ) -> np.ndarray:
        """Tell which pairs are of two objects that are away from the layer, bool of shape (P,).

        `look` counts the edges that are looked at; see `comparison.Comparison.measured`.
        """
        if self.layer is None or not len(pairs.row):
            return np.ones(len(pairs.row), dtype=bool)
        rows = np.unique(np.r_[pairs.row, pairs.partner])
        close = np.zeros(len(elements), dtype=bool)
        for comparison, some in features(self.layer).comparisons(self._close, elements.bounds[rows]):
            close[rows[some[comparison.pairs(elements, rows[some], look)[0]]]] = True
        return ~(close[pairs.row] | close[pairs.partner])


def orderings_of(encounters: Iterable[Encounter]) -> dict[Ordering, int]:
    """Return the orderings that queries need, in their order, with the longest time for which a report may hold."""
    gaps: dict[Ordering, int] = {}
    for encounter in encounters:
        for ordering in encounter.orderings:
            gaps[ordering] = max(gaps.get(ordering, 0), encounter.gap_us)
    return dict(sorted(gaps.items()))
