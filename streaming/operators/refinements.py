"""Refinements: how kinds of queries choose among the elements that ranges find, each region for itself."""

from collections.abc import Callable, Mapping, Sequence
from pkgutil import resolve_name
from typing import Any, Protocol

import numpy as np

from streaming.kinds.base import Plan
from streaming.kinds.range.plan import RangePlan
from streaming.kinds.registry import kind_of
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.features import Features
from streaming.operators.runs import find
from streaming.operators.spatial_join import Pairs
from streaming.spaces import Space


class Refinement(Protocol):
    """An immutable set of queries that look at the elements that ranges find; for example `SpatialJoins`.

    It is made of the plans by the positions of the queries, the space, and a callable that returns the `Features` of a
    layer by its name.
    """

    ranges: list[RangePlan]
    """The ranges whose elements the queries look at."""

    def of(self, number: int) -> np.ndarray:
        """Return the positions of the queries of a range, given its position in `ranges`; int64."""

    def range_of(self, queries: np.ndarray) -> np.ndarray:
        """Return the position in `ranges` of each query's range, int64."""

    def refined(self, elements: Elements, row: np.ndarray, number: np.ndarray, failures: Failures) -> Pairs:
        """Return the pairs of an element and a query that it satisfies, in any order.

        Parameters
        ----------
        elements : Elements
        row, number : ndarray of int64, shape (P,)
            The positions of elements, and of the ranges that they satisfy, in `ranges`; ordered by row.
        failures : Failures
            Receives the errors of user-defined filters, and what queries cost, by their positions.
        """

    def charge(self, failures: Failures, seconds: np.ndarray) -> None:
        """Charge the queries with the seconds that their ranges took, float64 of (R,)."""

    def lies(self, elements: Elements, pairs: Pairs) -> np.ndarray:
        """Tell which pairs satisfy their query, ranges and filters aside: bool of shape (P,)."""

    def reached(self, bounds: np.ndarray) -> np.ndarray:
        """Tell which elements, given their boxes (N, 2n), may have a partner in one of the queries: bool of (N,)."""


def refinement_of(plans: Mapping[int, Plan], space: Space, features_of: Callable[[str], Features]) -> Refinement | None:
    """Return the refinement of some plans, by the positions of the queries; None if no plan needs one."""
    places: dict[str, dict[int, Any]] = {}
    for query, plan in plans.items():
        if place := kind_of(plan).refinement:
            places.setdefault(place, {})[query] = plan
    made = [(resolve_name(place)(some, space, features_of), list(some)) for place, some in places.items()]
    return made[0][0] if len(made) == 1 else _Together(made) if made else None


class _Together:
    """Refinements of several kinds as one: its ranges are those of each, one after the other."""

    def __init__(self, parts: Sequence[tuple[Refinement, list[int]]]) -> None:
        self._parts = [(part, np.sort(np.array(queries, dtype=np.int64))) for part, queries in parts]
        self._first = np.cumsum([0, *(len(part.ranges) for part, _ in parts)])
        self.ranges = [entry for part, _ in parts for entry in part.ranges]

    def of(self, number):
        at = int(np.searchsorted(self._first, number, "right")) - 1
        return self._parts[at][0].of(number - self._first[at])

    def range_of(self, queries):
        numbers = np.empty(len(queries), dtype=np.int64)
        for (part, own), first in zip(self._parts, self._first, strict=False):
            mine = find(own, queries)[1]
            numbers[mine] = first + part.range_of(queries[mine])
        return numbers

    def refined(self, elements, row, number, failures):
        found = []
        for (part, _), first, last in self._slices():
            mine = (first <= number) & (number < last)
            found.append(part.refined(elements, row[mine], number[mine] - first, failures))
        return Pairs.together(found)

    def charge(self, failures, seconds):
        for (part, _), first, last in self._slices():
            part.charge(failures, seconds[first:last])

    def lies(self, elements, pairs):
        lies = np.zeros(len(pairs.row), dtype=bool)
        for part, own in self._parts:
            mine = np.flatnonzero(find(own, pairs.query)[1])
            lies[mine] = part.lies(elements, pairs.take(mine))
        return lies

    def reached(self, bounds):
        return np.logical_or.reduce([part.reached(bounds) for part, _ in self._parts])

    def _slices(self):
        return zip(self._parts, self._first[:-1], self._first[1:], strict=True)
