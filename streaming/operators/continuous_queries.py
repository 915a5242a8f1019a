"""Continuous queries of a space whose areas do not move, ready to be matched."""

import copy
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from typing import Any

import numpy as np

from streaming.kinds.base import Plan
from streaming.kinds.registry import kind_of
from streaming.operators.asked import Asked
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.range_query import RangeQueries
from streaming.operators.refinements import Refined, Refinement, refinement_of, side_by_side, together
from streaming.operators.runs import find
from streaming.operators.spatial_join import FeaturesOf, Pairs
from streaming.spaces import Space


class ContinuousQueries:
    """An immutable set of continuous queries of one space.

    A join compares the elements that a range query over its area finds, and so do other kinds of queries that need a
    `Refinement`. So one index matches the areas and filters of range queries and of all of them. Sets are made of
    others without a look at the plans: see `take`, `together` and `masked`. The caller passes the features of layers,
    so an edit of a layer compiles nothing.

    Parameters
    ----------
    plans : sequence of Plan, length Q
    space : Space
    """

    def __init__(self, plans: Sequence[Plan], space: Space) -> None:
        places: dict[str, list[int]] = {"": []}
        for query, plan in enumerate(plans):
            places.setdefault(kind_of(plan).refinement, []).append(query)
        plain = places.pop("")
        ranges: list[Any] = [plans[query] for query in plain]
        refinements = {}
        for place, queries in places.items():
            refinement, more = refinement_of(place, [plans[query] for query in queries], space)
            refinements[place] = refinement, np.array(queries, dtype=np.int64)
            ranges += more
        self._use(np.array(plain, dtype=np.int64), refinements, RangeQueries(ranges, space))

    def _use(
        self, plain: np.ndarray, refinements: Mapping[str, tuple[Refinement, np.ndarray]], ranges: RangeQueries
    ) -> None:
        """Use range queries: first those at the positions `plain`, then the ranges of the refinements."""
        self._plain, self._ranges = plain, ranges
        self._refined = side_by_side(refinements, len(plain))

    @classmethod
    def _of(
        cls, plain: np.ndarray, refinements: Mapping[str, tuple[Refinement, np.ndarray]], ranges: RangeQueries
    ) -> "ContinuousQueries":
        queries = cls.__new__(cls)
        queries._use(plain, refinements, ranges)
        return queries

    def __len__(self) -> int:
        return len(self._plain) + sum(len(part.queries) for part in self._refined.values())

    def take(self, queries: np.ndarray) -> "ContinuousQueries":
        """Return the set of the queries at positions (int64, ascending)."""
        position, known = find(self._plain, queries)
        plain, rows = np.flatnonzero(known), [position[known]]
        refinements: dict[str, tuple[Refinement, np.ndarray]] = {}
        for place, part in self._refined.items():
            position, known = find(part.queries, queries)
            if known.any():
                refinement, used = part.refinement.take(position[known])
                refinements[place] = refinement, np.flatnonzero(known)
                rows.append(part.numbers[used])
        return self._of(plain, refinements, self._ranges.take(np.concatenate(rows)))

    @classmethod
    def together(cls, parts: Sequence["ContinuousQueries"], order: np.ndarray) -> "ContinuousQueries":
        """Return the queries of all parts in one set.

        Parameters
        ----------
        parts : sequence of ContinuousQueries
            At least one.
        order : ndarray of int64, shape (Q,)
            The positions of the queries, counted through all parts, in the order of the set; each once.
        """
        position = np.argsort(order)
        begins = zip(parts, _begins(parts), _begins([part._ranges for part in parts]), strict=True)
        placed = [(query + part._plain, part._moved(query, first), first) for part, query, first in begins]
        plain = position[np.concatenate([queries for queries, _, _ in placed])]
        rows = [np.concatenate([first + np.arange(len(queries)) for queries, _, first in placed])[np.argsort(plain)]]
        refinements: dict[str, tuple[Refinement, np.ndarray]] = {}
        for place in dict.fromkeys(place for _, refined, _ in placed for place in refined):
            some = [refined[place] for _, refined, _ in placed if place in refined]
            refinement, queries, numbers = together(some, position)
            refinements[place] = refinement, queries
            rows.append(numbers)
        ranges = RangeQueries.together([part._ranges for part in parts]).take(np.concatenate(rows))
        return cls._of(np.sort(plain), refinements, ranges)

    def _moved(self, query: int, number: int) -> dict[str, Refined]:
        """Return the refined queries within a still larger set, where queries and ranges begin at some positions."""
        return {
            place: Refined(one.refinement, query + one.queries, number + one.first)
            for place, one in self._refined.items()
        }

    def masked(self, kept: np.ndarray) -> "ContinuousQueries":
        """Return the set such that only queries that are kept (bool, shape (Q,)) match; positions stay as they are.

        What is not kept is not evaluated, so its errors do not occur, and it costs a look-up in the index alone.
        """
        queries = copy.copy(self)
        queries._refined = {
            place: replace(part, refinement=part.refinement.masked(kept[part.queries]))
            for place, part in self._refined.items()
        }
        ranges = np.zeros(len(self._ranges), dtype=bool)
        ranges[: len(self._plain)] = kept[self._plain]
        for part in self._refined.values():
            ranges[part.range_of(np.flatnonzero(kept[part.queries]))] = True
        queries._ranges = self._ranges.masked(ranges)
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
        failures = failures or Failures()
        failed = failures.part()
        row, number = self._ranges.match(elements, failed)
        for asked, error in failed.errors.items():
            failures.note(self._asking(asked), error)
        failures.asked += [part for asked in failed.asked for part in self._of_queries(asked)]
        charged, seconds = failed.costs()
        plain = charged < len(self._plain)
        failures.charge(self._plain[charged[plain]], seconds[plain])
        if not self._refined:
            return Pairs.without_partners(row, self._plain[number])
        plain = number < len(self._plain)
        found = [Pairs.without_partners(row[plain], self._plain[number[plain]])]
        for part in self._refined.values():
            found.append(part.match(elements, (row, number), (charged, seconds), features_of, failures))
        pairs = Pairs.together(found)
        return pairs.take(np.lexsort((pairs.query, pairs.row)))

    def meets(self, stream: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Tell which elements may satisfy a query, given their streams (N,) and boxes (N, 2n): bool of shape (N,)."""
        return self._ranges.meets(stream, bounds)

    def _of_queries(self, asked: Asked) -> Iterator[Asked]:
        """Yield what ranges asked for as what the queries ask for that use them."""
        plain = asked.query < len(self._plain)
        yield Asked.apart(self._plain[asked.query[plain]], asked.pairs[plain])
        for number, pairs in zip(asked.query[~plain].tolist(), asked.pairs[~plain].tolist(), strict=True):
            yield Asked.jointly(self._asking(number), pairs)

    def _asking(self, number: int) -> np.ndarray:
        """Return the queries that use a range, given its number."""
        if number < len(self._plain):
            return self._plain[[number]]
        return next(part for part in reversed(self._refined.values()) if part.first <= number).asking(number)

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
        number = find(self._plain, pairs.query)[0]
        own = [(part, *find(part.queries, pairs.query)) for part in self._refined.values()]
        for part, place, mine in own:
            number[mine] = part.range_of(place[mine])
        lies = self._ranges.lies(elements, pairs.row, number)
        for part, place, mine in own:
            mine = np.flatnonzero(lies & mine)
            if len(mine):
                chosen = Pairs(pairs.row[mine], place[mine], pairs.partner[mine], pairs.distance[mine])
                lies[mine] = part.refinement.lies(elements, chosen, features_of)
        return lies

    def reached(self, bounds: np.ndarray, features_of: FeaturesOf) -> np.ndarray:
        """Tell which elements, given their boxes (N, 2n), may have a partner in one of the joins: bool of (N,)."""
        reached = np.zeros(len(bounds), dtype=bool)
        for part in self._refined.values():
            reached |= part.refinement.reached(bounds, features_of)
        return reached


def _begins(sets: Sequence[Sized]) -> list[int]:
    """Return the position at which each set begins if they stand one after the other."""
    return np.cumsum([0, *map(len, sets)])[:-1].tolist()
