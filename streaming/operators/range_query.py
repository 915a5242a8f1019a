"""Continuous range queries, evaluated together.

References
----------
BBoxDB Streams (2022), section 4.4.1: the query ``q_cr(S, alpha, sigma(tau, theta, beta))``.
"""

import copy
import functools
from collections.abc import Sequence
from dataclasses import dataclass, fields
from time import perf_counter

import numpy as np

from streaming.elements import stream_number
from streaming.kinds.parts import Enlargement
from streaming.kinds.range.plan import RangePlan
from streaming.operators.boxes import bounded_axes, box_array, enlarged, in_plane, intersects, with_turns
from streaming.operators.conditions import Conditions
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.numbered import Numbered
from streaming.operators.query_index import FAR, QueryIndex
from streaming.operators.runs import distinct
from streaming.spaces import Space


@dataclass(frozen=True)
class _QueryColumns:
    """What the places of queries decide, a row for each query: see `RangePlan`.

    `reach` has boxes (Q, 2n) that an element must meet.
    """

    area: np.ndarray
    compare: np.ndarray
    outside: np.ndarray
    stream: np.ndarray
    reach: np.ndarray
    transform: Numbered

    @classmethod
    def of(cls, plans: Sequence[RangePlan], space: Space) -> "_QueryColumns":
        """Return the columns of plans."""
        area = box_array([plan.area for plan in plans], space)
        compare = box_array([plan.compare for plan in plans], space)
        outside = np.array([plan.report == "outside" for plan in plans], dtype=bool)
        streams = Numbered.of([plan.stream for plan in plans])
        stream = np.array([stream_number(name) for name in streams.values], dtype=np.int64)[streams.number]
        transform = Numbered.of([plan.transform for plan in plans])
        reach = _reach(area, compare, outside, _all_margins(transform)[transform.number], space)
        return cls(area, compare, outside, stream, reach, transform)

    def take(self, rows: np.ndarray) -> "_QueryColumns":
        """Return the rows at positions."""
        arrays = {field.name: getattr(self, field.name)[rows] for field in fields(self)[:-1]}
        return _QueryColumns(**arrays, transform=self.transform.take(rows).used()[0])

    @classmethod
    def together(cls, parts: "Sequence[_QueryColumns]") -> "_QueryColumns":
        """Return the rows of all parts, one part after the other."""
        names = [field.name for field in fields(cls)[:-1]]
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return cls(**arrays, transform=Numbered.together([part.transform for part in parts])[0])


class RangeQueries:
    """An immutable set of range queries of one space, ready to be matched.

    Sets are made of others without a look at the plans: see `take`, `together` and `masked`.

    Parameters
    ----------
    plans : sequence of RangePlan, length Q
    space : Space
    """

    def __init__(self, plans: Sequence[RangePlan], space: Space) -> None:
        self._use(_QueryColumns.of(plans, space), Conditions(plans, space))

    def _use(self, columns: _QueryColumns, conditions: Conditions) -> None:
        self.space, self._columns, self._conditions = conditions.space, columns, conditions
        self._transforms, self._transform = columns.transform.values, columns.transform.number
        self._factor = max(map(_factor, self._transforms), default=1.0)
        self._metres = 2 * _all_margins(columns.transform)[:, 1].max(initial=0.0)
        # If area and compare are the same box and nothing is transformed, one comparison is enough.
        self._twofold = columns.outside | (columns.area != columns.compare).any(1)
        self._twofold |= np.array([bool(steps) for steps in self._transforms], dtype=bool)[self._transform]
        self._axes = {name: bounded_axes(getattr(columns, name), self.space) for name in ("area", "compare")}
        self._kept: np.ndarray | None = None

    @classmethod
    def _of(cls, columns: _QueryColumns, conditions: Conditions) -> "RangeQueries":
        queries = cls.__new__(cls)
        queries._use(columns, conditions)
        return queries

    def __len__(self) -> int:
        return len(self._transform)

    def take(self, queries: np.ndarray) -> "RangeQueries":
        """Return the set of the queries at positions, in that order."""
        return self._of(self._columns.take(queries), self._conditions.take(queries))

    @classmethod
    def together(cls, parts: Sequence["RangeQueries"]) -> "RangeQueries":
        """Return the queries of all parts, one part after the other; needs at least one part."""
        conditions = Conditions.together([part._conditions for part in parts])
        return cls._of(_QueryColumns.together([part._columns for part in parts]), conditions)

    def masked(self, kept: np.ndarray) -> "RangeQueries":
        """Return the set such that only queries that are kept (bool, shape (Q,)) match; positions stay as they are.

        A query that is not kept is found in the index, but is not evaluated.
        """
        _ = self._index  # which both share from now on
        queries = copy.copy(self)
        queries._kept = kept
        return queries

    @functools.cached_property
    def _index(self) -> dict[int, QueryIndex]:
        """The index of the queries of each stream, by the stream's number."""
        streams, reach = self._columns.stream, self._columns.reach
        return {
            int(stream): _index(np.flatnonzero(streams == stream), reach, self.space) for stream in np.unique(streams)
        }

    def match(self, elements: Elements, failures: Failures | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs (element, query) where the element satisfies the query.

        Parameters
        ----------
        elements : Elements
            The cold columns are read only when a filter must be evaluated.
        failures : Failures, optional
            Receives the errors of user-defined filters, and what queries cost, by their positions.

        Returns
        -------
        row, query : ndarray of int64, shape (P,)
            Positions in `elements` and in `plans`, ordered by row, then query; each pair once.
        """
        failures, found = failures or Failures(), [np.empty((2, 0), dtype=np.int64)]
        for number, index in self._index.items():
            rows = np.flatnonzero(elements.stream == number)
            if len(rows):
                found.append(self._of_stream(index, rows, elements.bounds, failures))
        row, query = _ordered(np.hstack(found), len(self._transform))
        keep = self._conditions.passing(row, query, elements, failures)
        return row[keep], query[keep]

    def meets(self, stream: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Tell which elements may satisfy a query, filters aside, given their streams (N,) and boxes: bool of (N,)."""
        meets = np.zeros(len(stream), dtype=bool)
        for number, index in self._index.items():
            mine = stream == number
            if mine.all():
                meets[self._candidates(index, bounds)[0]] = True
            elif mine.any():
                rows = np.flatnonzero(mine)
                meets[rows[self._candidates(index, bounds[rows])[0]]] = True
        return meets

    def lies(self, elements: Elements, row: np.ndarray, query: np.ndarray) -> np.ndarray:
        """Tell which pairs of an element and a query, (P,) each, satisfy the query, filters aside: bool of shape (P,).

        The shape of an area is no filter here.
        """
        lies = self._satisfies(elements.bounds, row, query)
        lies[lies] = self._conditions.met(row[lies], query[lies], elements)
        return lies

    def _of_stream(self, index: QueryIndex, rows: np.ndarray, bounds: np.ndarray, failures: Failures) -> np.ndarray:
        """Match the elements at `rows`, all of one stream, with that stream's queries."""
        began = perf_counter()
        row, query = self._candidates(index, bounds[rows])
        row = rows[row]
        keep = self._satisfies(bounds, row, query)
        failures.share(query, perf_counter() - began)
        return np.stack([row[keep], query[keep]])

    def _candidates(self, index: QueryIndex, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of boxes and queries that are kept and that may meet."""
        row, query = index.at(bounds, self.space, self._grown)
        if self._kept is None:
            return row, query
        kept = self._kept[query]
        return row[kept], query[kept]

    def _grown(self, bounds: np.ndarray, space: Space) -> np.ndarray:
        """Return boxes of the plane, enlarged by the largest factor and twice the largest metres of any query."""
        bounds = enlarged(bounds, "enlarge_factor", self._factor, space)
        if self._metres:
            bounds = enlarged(bounds, "enlarge_m", self._metres, space)
        return in_plane(bounds, space)

    def _satisfies(self, bounds: np.ndarray, row: np.ndarray, query: np.ndarray) -> np.ndarray:
        """Evaluate area, transformation, query box and report for candidate pairs."""
        columns = self._columns
        keep = intersects(bounds, row, columns.area, query, self.space, self._axes["area"])
        again = np.flatnonzero(keep & self._twofold[query])
        for number in np.unique(self._transform[query[again]]):
            pair = again[self._transform[query[again]] == number]
            boxes = bounds[row[pair]]
            for step in self._transforms[number]:
                boxes = enlarged(boxes, step.by, step.amount, self.space)
            compared = columns.compare, query[pair], self.space, self._axes["compare"]
            inside = intersects(boxes, np.arange(len(pair)), *compared)
            keep[pair] = inside != columns.outside[query[pair]]
        return keep


def _factor(transform: Sequence[Enlargement]) -> float:
    """Return an upper bound of the factor by which a transformation enlarges the extent of a box, at least 1."""
    return float(np.prod([max(1.0, step.amount) for step in transform if step.by == "enlarge_factor"]))


def _reach(area: np.ndarray, compare: np.ndarray, outside: np.ndarray, margins: np.ndarray, space: Space) -> np.ndarray:
    """Return a box for each query (Q, 2n) that an element must meet to satisfy it: area or compare, the smaller one.

    The compare box grows by twice the margins, since an element within reach may lie nearer to a pole, where metres
    span more degrees. It is not used if the query reports what lies outside, or if it crosses the end of a circle.
    """
    grown = compare.copy()
    for query in np.flatnonzero(margins.any(1)):
        value, metres = margins[query]
        grown[[query]] = enlarged(grown[[query]], "enlarge_value", 2 * value, space)
        if metres:
            grown[[query]] = enlarged(grown[[query]], "enlarge_m", 2 * metres, space)
    narrower = ~outside & ~_leaves_circle(grown, space) & (_plane(grown, space) < _plane(area, space))
    return np.where(narrower[:, None], grown, area)


def _plane(boxes: np.ndarray, space: Space) -> np.ndarray:
    """Return the areas of boxes in the first two dimensions, which are those of the index."""
    return np.prod(np.minimum(boxes[:, space.n :] - boxes[:, : space.n], FAR)[:, :2], axis=1)


def _leaves_circle(boxes: np.ndarray, space: Space) -> np.ndarray:
    """Tell which boxes cross an end of a dimension that wraps, so that their bounds cannot be compared directly."""
    leaves = np.zeros(len(boxes), dtype=bool)
    for axis, dimension in enumerate(space.dimensions):
        if dimension.wraps:
            low, high = boxes[:, axis], boxes[:, space.n + axis]
            leaves |= np.isfinite(low) & ((low < dimension.lo) | (high >= dimension.hi))
    return leaves


def _all_margins(transforms: Numbered) -> np.ndarray:
    """Return the margins of each distinct transformation, float64 of shape (T, 2); see `_margins`."""
    return np.array([_margins(transform) for transform in transforms.values]).reshape(-1, 2)


def _margins(transform: Sequence[Enlargement]) -> tuple[float, float]:
    """Return upper bounds of how far a transformation moves a side: in the dimension's own unit, and in metres.

    They do not include how far factors enlarge the box's own extent; see `_factor`.
    """
    length = {"enlarge_value": 0.0, "enlarge_m": 0.0}
    factor = 1.0
    for step in reversed(transform):
        if step.by == "enlarge_factor":
            factor *= max(1.0, step.amount)
        else:
            length[step.by] += step.amount * factor
    return length["enlarge_value"], length["enlarge_m"]


def _index(queries: np.ndarray, reach: np.ndarray, space: Space) -> QueryIndex:
    """Index the reach of queries in the first two dimensions; boxes that wrap are indexed a turn away, too."""
    queries, boxes = with_turns(queries, in_plane(reach[queries], space), space)
    return QueryIndex(boxes, queries)


def _ordered(pairs: np.ndarray, queries: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs (2, P) ordered by row, then query, without repetitions."""
    code = distinct(pairs[0] * queries + pairs[1])
    return code // max(1, queries), code % max(1, queries)
