"""Continuous queries of a space whose areas do not move, ready to be matched."""

import copy
from collections.abc import Sequence

import numpy as np

from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.range_query import RangeQueries
from streaming.operators.spatial_join import FeaturesOf, Pairs, SpatialJoins, range_of
from streaming.plans import JoinPlan, RangePlan
from streaming.spaces import Space


class ContinuousQueries:
    """An immutable set of continuous queries of one space.

    A join compares the elements that a range query over its area finds. So one index matches the areas and filters of
    range queries and of joins. Sets are made of others without a look at the plans: see `take`, `together` and
    `masked`. The caller passes the features of layers, so an edit of a layer compiles nothing.

    Parameters
    ----------
    plans : sequence of RangePlan or JoinPlan, length Q
    space : Space
    """

    def __init__(self, plans: Sequence[RangePlan | JoinPlan], space: Space) -> None:
        is_join = np.array([isinstance(plan, JoinPlan) for plan in plans], dtype=bool)
        joined = [plan for plan in plans if isinstance(plan, JoinPlan)]
        joins, plain = SpatialJoins(joined, space), [plan for plan in plans if isinstance(plan, RangePlan)]
        of_range = dict(zip(joins.range.number.tolist(), joined, strict=True))
        ranges = [range_of(of_range[number]) for number in range(len(joins.range.values))]
        self._use(is_join, joins, RangeQueries([*plain, *ranges], space))

    def _use(self, is_join, joins, ranges):
        self._is_join, self._joins, self._ranges = is_join, joins, ranges
        self._plain, self._joined = np.flatnonzero(~is_join), np.flatnonzero(is_join)

    @classmethod
    def _of(cls, *parts):
        queries = cls.__new__(cls)
        queries._use(*parts)
        return queries

    def __len__(self) -> int:
        return len(self._is_join)

    def take(self, queries: np.ndarray) -> "ContinuousQueries":
        """Return the set of the queries at positions (int64, ascending)."""
        is_join = self._is_join[queries]
        joins, used = self._joins.take(np.searchsorted(self._joined, queries[is_join]))
        plain = np.searchsorted(self._plain, queries[~is_join])
        return self._of(is_join, joins, self._ranges.take(np.r_[plain, len(self._plain) + used]))

    @classmethod
    def together(cls, parts: Sequence["ContinuousQueries"], order: np.ndarray) -> "ContinuousQueries":
        """Return the queries of all parts in one set.

        Parameters
        ----------
        parts : sequence of ContinuousQueries
            At least one.
        order : ndarray of int64, shape (Q,)
            The positions of the queries, counted through all parts, in the order of the set.
        """
        is_join = np.concatenate([part._is_join for part in parts])
        joins, source = SpatialJoins.together([part._joins for part in parts])
        plain, ranges, offset = [], [], 0
        for part in parts:
            count = len(part._joins.range.values)
            plain.append(offset + np.arange(len(part._plain)))
            ranges.append(offset + len(part._plain) + np.arange(count))
            offset += len(part._plain) + count
        # The number of each query among the plain ones, or among the joins, of all parts.
        place = np.where(is_join, np.cumsum(is_join), np.cumsum(~is_join)) - 1
        is_join, place = is_join[order], place[order]
        joins, used = joins.take(place[is_join])
        rows = np.r_[np.concatenate(plain)[place[~is_join]], np.concatenate(ranges)[source[used]]]
        return cls._of(is_join, joins, RangeQueries.together([part._ranges for part in parts]).take(rows))

    def masked(self, kept: np.ndarray) -> "ContinuousQueries":
        """Return the set such that only queries that are kept (bool, shape (Q,)) match; positions stay as they are.

        What is not kept is not evaluated, so its errors do not occur, and it costs a look-up in the index alone.
        """
        queries = copy.copy(self)
        queries._joins = self._joins.masked(kept[self._joined]) if len(self._joined) else self._joins
        ranges = np.zeros(len(self._joins.range.values), dtype=bool)
        ranges[self._joins.range.number[kept[self._joined]]] = True
        queries._ranges = self._ranges.masked(np.r_[kept[self._plain], ranges])
        return queries

    def match(self, elements: Elements, features_of: FeaturesOf, failures: Failures | None = None) -> Pairs:
        """Return the pairs of an element and a query that it satisfies, with partners.

        Parameters
        ----------
        elements : Elements
        features_of : callable
            Returns the `Features` of a layer by its name.
        failures : Failures, optional
            Receives the errors of user-defined filters, and what queries cost, by their positions. Elements on which a
            filter fails do not pass.

        Returns
        -------
        Pairs
            Ordered by row, then query.
        """
        failures, failed = failures or Failures(), Failures()
        row, number = self._ranges.match(elements, failed)
        for asked, error in failed.errors.items():
            failures.note(self._asking(asked), error)
        joined = Failures()
        self._charge(failures, joined, *failed.costs())
        if not len(self._joined):
            return Pairs.without_partners(row, self._plain[number])
        of_join = number >= len(self._plain)
        plain = Pairs.without_partners(row[~of_join], self._plain[number[~of_join]])
        found = self._joins.refined(elements, row[of_join], number[of_join] - len(self._plain), features_of, joined)
        failures.add(joined, self._joined)
        pairs = Pairs.together([plain, Pairs(found.row, self._joined[found.query], found.partner, found.distance)])
        return pairs.take(np.lexsort((pairs.query, pairs.row)))

    def _charge(self, failures, joined, number, seconds):
        """Charge queries with the costs of ranges; joins that look at the same elements share the cost."""
        plain = number < len(self._plain)
        failures.charge(self._plain[number[plain]], seconds[plain])
        self._joins.charge(joined, number[~plain] - len(self._plain), seconds[~plain])

    def _asking(self, number):
        """Return the queries that use a range, given its number."""
        plain = len(self._plain)
        return self._plain[[number]] if number < plain else self._joined[self._joins.of(number - plain)]

    def lies(self, elements: Elements, pairs: Pairs, features_of: FeaturesOf) -> np.ndarray:
        """Tell which pairs satisfy their query, filters aside.

        Parameters
        ----------
        elements : Elements
        pairs : Pairs
            P pairs of an element and a query, with a partner if the query is a join.
        features_of : callable
            Returns the `Features` of a layer by its name.

        Returns
        -------
        ndarray of bool, shape (P,)
        """
        is_join = self._is_join[pairs.query]
        number = np.searchsorted(self._plain, pairs.query)
        join = np.searchsorted(self._joined, pairs.query[is_join])
        number[is_join] = len(self._plain) + self._joins.range.number[join]
        lies = self._ranges.lies(elements.bounds[pairs.row], number)
        joined = np.flatnonzero(lies & is_join)
        if len(joined):
            chosen = pairs.take(joined)
            chosen = Pairs(chosen.row, np.searchsorted(self._joined, chosen.query), chosen.partner, chosen.distance)
            lies[joined] = self._joins.lies(elements, chosen, features_of)
        return lies

    def reached(self, bounds: np.ndarray, features_of: FeaturesOf) -> np.ndarray:
        """Tell which elements, given their boxes (N, 2n), may have a partner in one of the joins: bool of (N,)."""
        return self._joins.reached(bounds, features_of)
