"""All continuous queries of a space, ready to be matched."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from streaming.kinds.base import Plan
from streaming.kinds.registry import kind_of
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.features import Features
from streaming.operators.range_query import RangeQueries
from streaming.operators.refinements import refinement_of
from streaming.operators.runs import find
from streaming.operators.spatial_join import Pairs
from streaming.spaces import Space


class ContinuousQueries:
    """An immutable set of continuous queries of one space.

    A join compares the elements that a range query over its area finds, and so do other kinds of queries that need a
    `Refinement`. So one index matches the areas and filters of range queries and of all of them.

    Parameters
    ----------
    plans : sequence of Plan, length Q
    space : Space
    features_of : callable
        Returns the `Features` of a layer by its name.

    Attributes
    ----------
    keeps : ndarray of bool, shape (Q,)
        Which queries keep their answer.
    """

    def __init__(self, plans: Sequence[Plan], space: Space, features_of: Callable[[str], Features]) -> None:
        self.keeps = np.array([plan.emit != "all" for plan in plans], dtype=bool)
        refined = {query: plan for query, plan in enumerate(plans) if kind_of(plan).refinement}
        ranges: dict[int, Any] = {query: plan for query, plan in enumerate(plans) if query not in refined}
        self._range_queries = np.array(list(ranges), dtype=np.int64)
        self._joins = refinement_of(refined, space, features_of)
        self._ranges = RangeQueries([*ranges.values(), *(self._joins.ranges if self._joins else ())], space)

    def match(self, elements: Elements, failures: Failures | None = None) -> Pairs:
        """Return the pairs of an element and a query that it satisfies, with partners.

        Parameters
        ----------
        elements : Elements
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
        self._charge(failures, *failed.costs())
        if self._joins is None:
            return Pairs.without_partners(row, self._range_queries[number])
        of_join = number >= len(self._range_queries)
        plain = Pairs.without_partners(row[~of_join], self._range_queries[number[~of_join]])
        joined = self._joins.refined(elements, row[of_join], number[of_join] - len(self._range_queries), failures)
        pairs = Pairs.together([plain, joined])
        return pairs.take(np.lexsort((pairs.query, pairs.row)))

    def meets(self, stream: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Tell which elements may satisfy a query, given their streams (N,) and boxes (N, 2n): bool of shape (N,)."""
        return self._ranges.meets(stream, bounds)

    def _charge(self, failures, number, seconds):
        """Charge queries with the costs of ranges; joins that look at the same elements share the cost."""
        plain = number < len(self._range_queries)
        failures.charge(self._range_queries[number[plain]], seconds[plain])
        if self._joins is not None:
            spent = np.zeros(len(self._joins.ranges))
            spent[number[~plain] - len(self._range_queries)] = seconds[~plain]
            self._joins.charge(failures, spent)

    def _asking(self, number):
        """Return the queries that use a range, given its number."""
        plain = len(self._range_queries)
        return (
            self._range_queries[[number]] if self._joins is None or number < plain else self._joins.of(number - plain)
        )

    def lies(self, elements: Elements, pairs: Pairs) -> np.ndarray:
        """Tell which pairs satisfy their query, filters aside.

        Parameters
        ----------
        elements : Elements
        pairs : Pairs
            P pairs of an element and a query, with a partner if the query is a join.

        Returns
        -------
        ndarray of bool, shape (P,)
        """
        number, plain = find(self._range_queries, pairs.query)
        if self._joins is not None:
            number[~plain] = len(self._range_queries) + self._joins.range_of(pairs.query[~plain])
        lies = self._ranges.lies(elements.bounds[pairs.row], number)
        joined = np.flatnonzero(lies & ~plain)
        if self._joins is not None and len(joined):
            lies[joined] = self._joins.lies(elements, pairs.take(joined))
        return lies

    def reached(self, bounds: np.ndarray) -> np.ndarray:
        """Tell which elements, given their boxes (N, 2n), may have a partner in one of the joins: bool of (N,)."""
        return self._joins.reached(bounds) if self._joins else np.zeros(len(bounds), dtype=bool)
