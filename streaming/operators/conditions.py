"""The conditions that queries set for the elements in their range: the shape of an area, CQL2 text and filters."""

import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from streaming.filters import parse_filter
from streaming.kinds.areas import AreaFilter
from streaming.kinds.parts import BoxFilter, Filter, KeyFilter, KeysFilter
from streaming.operators.areas import Areas
from streaming.operators.asked import Asked
from streaming.operators.boxes import intersects
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.numbered import Numbered
from streaming.operators.runs import distinct
from streaming.property_columns import PropertyColumns, property_names
from streaming.spaces import Space
from streaming.udf import Judged, evaluate_element


@dataclass(frozen=True)
class Condition:
    """What a query asks of an element besides its place: CQL2 text (empty for none), and filters."""

    where: str
    filters: tuple[Filter, ...]

    @functools.cached_property
    def expression(self) -> pl.Expr | None:
        """The CQL2 text as an expression, parsed on first use; None without a text."""
        return parse_filter(self.where) if self.where else None


class Filtered(Protocol):
    """What `Conditions` ask of a plan."""

    @property
    def where(self) -> str:
        """See `Plan`."""

    @property
    def filters(self) -> tuple[Filter, ...]:
        """See `Plan`."""


class Conditions:
    """The conditions of queries; queries with equal conditions share one.

    The shapes of areas are apart, since many queries differ in nothing but their area.

    Parameters
    ----------
    plans : sequence of Plan, or of what has filters as plans have, length Q
    space : Space
    """

    def __init__(self, plans: Sequence[Filtered], space: Space) -> None:
        areas = [tuple(entry for entry in plan.filters if isinstance(entry, AreaFilter)) for plan in plans]
        column = Numbered.of([(plan.where, plan.filters[len(own) :]) for plan, own in zip(plans, areas, strict=True)])
        column = replace(column, values=tuple(Condition(*asked) for asked in column.values))
        self._use(column, Numbered.of([own[0] if own else None for own in areas]), space)

    def _use(self, column: Numbered, areas: Numbered, space: Space) -> None:
        self.space, self._column, self._condition, self._areas = space, column, column.number, areas
        self._asks = np.array([bool(one.where or one.filters) for one in column.values], dtype=bool)

    @classmethod
    def _of(cls, column: Numbered, areas: Numbered, space: Space) -> "Conditions":
        conditions = cls.__new__(cls)
        conditions._use(column, areas, space)
        return conditions

    @functools.cached_property
    def _shapes(self) -> tuple[Areas, np.ndarray]:
        """The areas that have a shape, and of each query the position of its area among these, -1 for none."""
        shaped = np.array([area is not None for area in self._areas.values], dtype=bool)
        place = np.where(shaped, np.cumsum(shaped) - 1, -1)
        return Areas([area for area in self._areas.values if area is not None], self.space), place[self._areas.number]

    def take(self, queries: np.ndarray) -> "Conditions":
        """Return the conditions of the queries at positions."""
        return self._of(self._column.take(queries).used()[0], self._areas.take(queries).used()[0], self.space)

    @classmethod
    def together(cls, parts: Sequence["Conditions"]) -> "Conditions":
        """Return the conditions of the queries of all parts, one part after the other; needs at least one part."""
        column, areas = ([getattr(part, name) for part in parts] for name in ("_column", "_areas"))
        return cls._of(Numbered.together(column)[0], Numbered.together(areas)[0], parts[0].space)

    def met(self, row: np.ndarray, query: np.ndarray, elements: Elements) -> np.ndarray:
        """Tell which pairs have an element that meets the area of the query, if that has a shape: bool of (P,)."""
        return self._meeting(query, lambda areas, pair, area: areas.met(elements, row[pair], area))

    def _met(self, row: np.ndarray, query: np.ndarray, elements: Elements, failures: Failures) -> np.ndarray:
        """Tell the same, as far as the step has room for it."""

        def compare(areas: Areas, pair: np.ndarray, area: np.ndarray) -> np.ndarray:
            def look(at: np.ndarray, count: np.ndarray) -> bool:
                return failures.ask(Asked.apart(query[pair[at]], count))

            return areas.met(elements, row[pair], area, look)

        return self._meeting(query, compare)

    def met_by_boxes(self, bounds: np.ndarray, row: np.ndarray, query: np.ndarray) -> np.ndarray:
        """Tell which pairs of a box (N, 2n) and a query meet, as `met` does for elements without a geometry."""
        return self._meeting(query, lambda areas, pair, area: areas.met_by_boxes(bounds, row[pair], area))

    def _meeting(self, query: np.ndarray, compare: Callable[[Areas, np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        met = np.ones(len(query), dtype=bool)
        areas, place = self._shapes
        if len(areas.form):
            pair = np.flatnonzero(place[query] >= 0)
            met[pair] = compare(areas, pair, place[query[pair]])
        return met

    def passing(self, row: np.ndarray, query: np.ndarray, elements: Elements, failures: Failures) -> np.ndarray:
        """Tell which pairs have an element that meets the area and passes the filters of the query.

        Each distinct condition sees an element once, however many queries share the condition.

        Parameters
        ----------
        row, query : ndarray of int64, shape (P,)
            The pairs, as positions in `elements` and in `plans`.
        elements : Elements
        failures : Failures
            Receives the errors of user-defined filters, and the time of each condition, which its pairs share evenly.

        Returns
        -------
        ndarray of bool, shape (P,)
        """
        shaped = self._shapes[1][query] >= 0
        if not shaped.any():
            return self._passing(row, query, elements, failures)
        began = perf_counter()
        met = self._met(row, query, elements, failures)
        failures.share(query[shaped], perf_counter() - began)
        # The other filters see only what meets the areas.
        met[met] = self._passing(row[met], query[met], elements, failures)
        return met

    def _passing(self, row: np.ndarray, query: np.ndarray, elements: Elements, failures: Failures) -> np.ndarray:
        """Tell which pairs have an element that passes the filters of the query, areas aside."""
        keep = np.ones(len(row), dtype=bool)
        if not self._asks[self._condition[query]].any():
            return keep
        seconds = np.zeros(len(row))
        asked = _asked(self._condition[query], self._asks, row)
        if not asked:
            return keep
        columns = self._columns(asked, elements)
        for one in asked:
            condition = self._column.values[one.condition]
            began = perf_counter()
            asking = condition.expression, condition.filters
            passing, failed = _passing(columns, elements, one.rows, *asking, self.space)
            keep[one.pair] = passing[one.place]
            for error, asked_of in failed:
                failures.note(query[one.pair[asked_of[one.place]]], error)
            seconds[one.pair] = (perf_counter() - began) / len(one.pair)
        failures.charge(query, seconds)
        return keep

    def _columns(self, asked: "list[_Asked]", elements: Elements) -> "_PropertyColumns":
        """Return the properties of all elements that a condition over properties must judge."""
        wheres = [(self._column.values[one.condition].expression, one.rows) for one in asked]
        wheres = [(where, rows) for where, rows in wheres if where is not None]
        place = np.zeros(len(elements), dtype=np.int64)
        for _, rows in wheres:
            place[rows] = 1
        rows = np.flatnonzero(place)
        place[rows] = np.arange(len(rows))
        wanted: dict[str, list[np.ndarray]] = defaultdict(list)
        for where, some in wheres:
            for name in property_names(where):
                wanted[name].append(some)
        properties = elements.cold(rows)["properties"] if wheres else pa.array([], pa.string())
        return _PropertyColumns(
            PropertyColumns(properties, lambda name: distinct(place[np.concatenate(wanted[name])])), place
        )


class _PropertyColumns(NamedTuple):
    """The properties of some elements, and for all elements (N,) their position among these."""

    columns: PropertyColumns
    place: np.ndarray


class _Asked(NamedTuple):
    """The pairs that a condition must judge, their elements, each once, and each pair's position among these."""

    condition: int
    pair: np.ndarray
    rows: np.ndarray
    place: np.ndarray


def _asked(condition: np.ndarray, asks: np.ndarray, row: np.ndarray) -> list[_Asked]:
    """Return what each condition that is not empty must judge, given the condition and the row of each pair."""
    pairs = np.flatnonzero(asks[condition])
    # Numpy sorts integers of at most 16 bits by radix sort, which is faster.
    pairs = pairs[np.argsort(condition[pairs].astype(np.min_scalar_type(len(asks))), kind="stable")]
    ascending = bool((row[1:] >= row[:-1]).all())
    start = np.flatnonzero(np.diff(condition[pairs]) != 0) + 1
    asked = []
    for pair in np.split(pairs, start) if len(pairs) else ():
        rows, place = _once(row[pair]) if ascending else np.unique(row[pair], return_inverse=True)
        asked.append(_Asked(int(condition[pair[0]]), pair, rows, place))
    return asked


def _once(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values of ordered numbers and the inverse, as `np.unique` does, but without sorting."""
    first = np.r_[True, ordered[1:] != ordered[:-1]]
    return ordered[first], np.cumsum(first) - 1


def _passing(
    columns: _PropertyColumns,
    elements: Elements,
    rows: np.ndarray,
    where: pl.Expr | None,
    filters: tuple[Filter, ...],
    space: Space,
) -> tuple[np.ndarray, list[tuple[str, np.ndarray]]]:
    """Tell which elements at `rows` pass a filter over properties and further filters.

    Also return what failed: for each error, which of the elements the filter was to judge.
    """
    keep, failed = np.ones(len(rows), dtype=bool), []
    if where is not None:
        keep &= columns.columns.passing(where, columns.place[rows])
    for entry in filters:
        left = np.flatnonzero(keep)
        told = judged(elements, rows[left], entry, space)
        if told.error is not None:
            failed.append((told.error, keep.copy()))
        keep[left] = told.passes
    return keep, failed


def judged(elements: Elements, rows: np.ndarray, entry: Any, space: Space) -> Judged:
    """Tell which elements at rows (K,) pass one filter, and why it failed, if it did. The shape of an area is none."""
    if isinstance(entry, BoxFilter):
        return Judged(intersects(elements.bounds, rows, np.array([entry.box]), np.zeros_like(rows), space), None)
    if isinstance(entry, KeyFilter):
        return Judged(elements.cold(rows)["key"].to_numpy() == entry.key, None)
    if isinstance(entry, KeysFilter):
        return Judged(_among(elements.cold(rows)["key"], entry.keys), None)
    return evaluate_element(entry.udf, elements.batch(rows), entry.argument)


def _among(keys: pa.ChunkedArray, wanted: tuple[str, ...]) -> np.ndarray:
    return pc.is_in(keys, value_set=pa.array(wanted, pa.string())).to_numpy(zero_copy_only=False)
