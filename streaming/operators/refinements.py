"""Refinements: how kinds of queries choose among the elements that ranges find, each region for itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Protocol, Self

import numpy as np

from streaming.kinds.range.plan import RangePlan
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.numbered import Numbered
from streaming.operators.spatial_join import FeaturesOf, Pairs
from streaming.spaces import Space


class Refinement(Protocol):
    """An immutable set of queries of one kind that look at the elements that ranges find; for example `SpatialJoins`.

    It is made of the plans (a sequence of length J) and the space. Sets are made of others without a look at the plans:
    see `take`, `together` and `masked`. In all methods, a query is its position in the set, and a range its number. The
    caller passes the features of layers, so an edit of a layer compiles nothing.
    """

    range: Numbered
    """The range of each query, J rows; queries may share one. Its values, which are hashable, stand for the ranges."""

    def __init__(self, plans: Sequence[Any], space: Space) -> None: ...

    @staticmethod
    def range_of(plan: Any) -> RangePlan:
        """Return the range that finds the elements that the query with a plan looks at."""

    def take(self, queries: np.ndarray) -> tuple[Self, np.ndarray]:
        """Return the set of the queries at positions, in that order, and the former number of each of its ranges."""

    @classmethod
    def together(cls, parts: Sequence[Self]) -> tuple[Self, np.ndarray]:
        """Return the queries of all parts, one part after the other; needs at least one part.

        Also return the number of each range among those of all parts, one part after the other; int64.
        """

    def masked(self, kept: np.ndarray) -> Self:
        """Return the set such that only queries that are kept (bool, shape (J,)) have pairs; positions stay."""

    def of(self, number: int) -> np.ndarray:
        """Return the positions of the queries of a range, given its number; int64."""

    def refined(
        self, elements: Elements, row: np.ndarray, number: np.ndarray, features_of: FeaturesOf, failures: Failures
    ) -> Pairs:
        """Return the pairs of an element and a query that it satisfies, in any order.

        Parameters
        ----------
        elements : Elements
        row, number : ndarray of int64, shape (P,)
            The positions of elements, and the numbers of the ranges that they satisfy; ordered by row.
        features_of : callable
            Returns the `Features` of a layer by its name.
        failures : Failures
            Receives the errors of user-defined filters, and what queries cost, by their positions.
        """

    def charge(self, failures: Failures, ranges: np.ndarray, seconds: np.ndarray) -> None:
        """Charge the queries with the seconds that ranges took, given the ranges' numbers, (R,) each."""

    def lies(self, elements: Elements, pairs: Pairs, features_of: FeaturesOf) -> np.ndarray:
        """Tell which pairs satisfy their query, ranges and filters aside: bool of shape (P,)."""

    def reached(self, bounds: np.ndarray, features_of: FeaturesOf) -> np.ndarray:
        """Tell which elements, given their boxes (N, 2n), may have a partner in one of the queries: bool of (N,)."""


def refinement_of(place: str, plans: Sequence[Any], space: Space) -> tuple[Refinement, list[RangePlan]]:
    """Return the refinement of some plans of one kind, and its ranges by their numbers.

    Parameters
    ----------
    place : str
        Where the class is; see `Kind.refinement`.
    plans : sequence of Plan
    space : Space
    """
    made: Refinement = resolve_name(place)(plans, space)
    plan_of = dict(zip(made.range.number.tolist(), plans, strict=True))
    return made, [made.range_of(plan_of[number]) for number in range(len(made.range.values))]


@dataclass(frozen=True)
class Refined:
    """The queries of one refinement within a larger set.

    Parameters
    ----------
    refinement : Refinement
    queries : ndarray of int64, shape (J,)
        Their positions in the larger set, ascending.
    first : int
        The number of the first of their ranges among all ranges of the larger set, where they stand side by side.
    """

    refinement: Refinement
    queries: np.ndarray
    first: int

    @property
    def numbers(self) -> np.ndarray:
        """The numbers of their ranges in the larger set, int64."""
        return self.first + np.arange(len(self.refinement.range.values))

    def among(self, number: np.ndarray) -> np.ndarray:
        """Return the positions in `number` of those ranges that are theirs, int64."""
        return np.flatnonzero((number >= self.first) & (number < self.first + len(self.refinement.range.values)))

    def range_of(self, place: np.ndarray) -> np.ndarray:
        """Return the numbers, in the larger set, of the ranges of queries, given their positions in `queries`."""
        return self.first + self.refinement.range.number[place]

    def asking(self, number: int) -> np.ndarray:
        """Return the queries of a range, given its number in the larger set, int64."""
        return self.queries[self.refinement.of(number - self.first)]

    def match(
        self,
        elements: Elements,
        found: tuple[np.ndarray, np.ndarray],
        costs: tuple[np.ndarray, np.ndarray],
        features_of: FeaturesOf,
        failures: Failures,
    ) -> Pairs:
        """Return the pairs of an element and a query that it satisfies, in any order.

        Parameters
        ----------
        elements : Elements
        found : tuple of ndarray of int64
            The elements and the ranges that they satisfy, ordered by element; ranges may belong to other queries.
        costs : tuple of ndarray
            Ranges, and the seconds that each took.
        features_of : callable
            Returns the `Features` of a layer by its name.
        failures : Failures
            Receives what went wrong and what queries cost, by their positions in the larger set.
        """
        own, mine, charged = failures.part(), self.among(found[1]), self.among(costs[0])
        self.refinement.charge(own, costs[0][charged] - self.first, costs[1][charged])
        pairs = self.refinement.refined(elements, found[0][mine], found[1][mine] - self.first, features_of, own)
        failures.add(own, self.queries)
        return Pairs(pairs.row, self.queries[pairs.query], pairs.partner, pairs.distance)


def side_by_side(refinements: Mapping[str, tuple[Refinement, np.ndarray]], first: int) -> dict[str, Refined]:
    """Number the ranges of refinements one after the other, from `first` on; each comes with its queries."""
    refined = {}
    for place, (refinement, queries) in refinements.items():
        refined[place] = Refined(refinement, queries, first)
        first += len(refinement.range.values)
    return refined


def together(parts: Sequence[Refined], position: np.ndarray) -> tuple[Refinement, np.ndarray, np.ndarray]:
    """Return the queries of refinements of one kind, each within the same larger set, in another order.

    Parameters
    ----------
    parts : sequence of Refined
        At least one.
    position : ndarray of int64, shape (Q,)
        Where each query of the larger set stands in the other order.

    Returns
    -------
    refinement : Refinement
    queries : ndarray of int64
        The positions of its queries in the other order, ascending.
    numbers : ndarray of int64
        The number that each of its ranges has in the larger set.
    """
    refinement, source = type(parts[0].refinement).together([part.refinement for part in parts])
    queries = position[np.concatenate([part.queries for part in parts])]
    refinement, used = refinement.take(np.argsort(queries))
    return refinement, np.sort(queries), np.concatenate([part.numbers for part in parts])[source[used]]
