"""Queries about tracks: where objects whose places are noisy enter and leave areas."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from streaming.elements import stream_number
from streaming.kinds.area_documents import shape_of
from streaming.kinds.areas import AreaFilter, PolygonArea
from streaming.kinds.parts import Box
from streaming.kinds.track.plan import MOST_ACCURACY_M, TrackPlan
from streaming.operators.asked import Asked
from streaming.operators.border_passages import BETWEEN, MOST_WAY_DEG, WITHIN, AreaBorders
from streaming.operators.boxes import box_array
from streaming.operators.conditions import Conditions
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.lines import Look
from streaming.operators.runs import find
from streaming.property_columns import number_columns
from streaming.spaces import FULL_TURN_DEG, Space

MICROSECONDS = 1_000_000
# The times of passages are whole milliseconds: reports do not tell places more exactly.
TIMES_US = 1_000


@dataclass(frozen=True)
class Legs:
    """Parts of the tracks of objects: each ends at a report, and begins at the one before it.

    Parameters
    ----------
    elements : Elements, N elements
        The reports.
    time_us : ndarray of int64, shape (N,)
    row, before : ndarray of int64, shape (L,)
        The report at the end of each leg, and the one before it; -1 without one.
    linked : ndarray of bool, shape (L,)
        Whether the object can have gone along the straight line.
    """

    elements: Elements
    time_us: np.ndarray
    row: np.ndarray
    before: np.ndarray
    linked: np.ndarray


@dataclass(frozen=True)
class Turns:
    """Where circles come to be within areas, or outside, on legs, and at reports: a row for each.

    Parameters
    ----------
    pair : ndarray of int64, shape (K,)
        The pair of a leg and a query, ascending.
    share : ndarray of float64, shape (K,)
        How far along its leg it is; 1 at the report. Ascending for each pair.
    is_within : ndarray of bool, shape (K,)
        Whether the object is in the answer from here on.
    by_filter : ndarray of bool, shape (K,)
        Whether the reason is that a filter passes the object, or no longer does.
    """

    pair: np.ndarray
    share: np.ndarray
    is_within: np.ndarray
    by_filter: np.ndarray


class TrackQueries:
    """An immutable set of queries about tracks.

    Parameters
    ----------
    plans : mapping of int to TrackPlan
        By query, ascending.
    space : Space

    Attributes
    ----------
    ids : ndarray of int64, shape (Q,)
    groups : tuple of (int, float)
        What reports are believed depends on: the number of the stream, and the speed in m/s.
    group : ndarray of int64, shape (Q,)
        The position of each query's group.
    """

    def __init__(self, plans: Mapping[int, Any], space: Space) -> None:
        self.space, self._plans = space, list(plans.values())
        self.ids = np.array(list(plans), dtype=np.int64)
        asked = [(stream_number(plan.stream), plan.fastest_m_s) for plan in self._plans]
        self.groups = tuple(dict.fromkeys(asked))
        self.group = np.array([self.groups.index(one) for one in asked], dtype=np.int64)
        self._gap_us = np.array([round(plan.gap_s * MICROSECONDS) for plan in self._plans], dtype=np.int64)
        self._boxes = box_array([plan.area for plan in self._plans], space)

    def __len__(self) -> int:
        return len(self.ids)

    @functools.cached_property
    def _borders(self) -> AreaBorders:
        return AreaBorders(
            [border_of(plan.area, shape_of(plan.filters), self.space) for plan in self._plans], self.space
        )

    @functools.cached_property
    def _conditions(self) -> Conditions:
        return Conditions([_Unplaced(plan) for plan in self._plans], self.space)

    @functools.cached_property
    def _tree(self) -> shapely.STRtree:
        return self._tree_of(np.arange(len(self)))

    def _tree_of(self, query: np.ndarray) -> shapely.STRtree:
        """Return an index over the areas of queries, each also a turn of longitude to the west and to the east."""
        n = self.space.n
        west, south, east, north = (self._boxes[query, axis] for axis in (0, 1, n, n + 1))
        turned = [shapely.box(west + turn, south, east + turn, north) for turn in (0, -FULL_TURN_DEG, FULL_TURN_DEG)]
        return shapely.STRtree(np.concatenate(turned))

    def near(self, boxes: np.ndarray, among: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of boxes of the plane (B, 4) and positions of queries whose areas they meet; int64.

        If positions of queries are given, it is only `among` these, and the positions are those in `among`.
        """
        tree, count = (self._tree, len(self)) if among is None else (self._tree_of(among), len(among))
        box, query = tree.query(shapely.box(*boxes.T))
        pairs = np.unique(np.stack([box, query % max(1, count)]), axis=1)
        return pairs[0], pairs[1]

    def passing(self, elements: Elements, row: np.ndarray, query: np.ndarray, failures: Failures) -> np.ndarray:
        """Tell which pairs have an element that passes the filters of the query, and is at its height: bool (P,)."""
        passes, n = np.ones(len(row), dtype=bool), self.space.n
        for axis in range(2, n):
            low, high = elements.bounds[row, axis], elements.bounds[row, n + axis]
            passes &= (low <= self._boxes[query, n + axis]) & (high >= self._boxes[query, axis])
        left = np.flatnonzero(passes)
        passes[left] = self._conditions.passing(row[left], query[left], elements, failures)
        return passes

    def accuracy_m(self, elements: Elements, row: np.ndarray, query: np.ndarray) -> np.ndarray:
        """Return the radii of the accuracy circles of pairs of an element and a query, float64 of shape (P,)."""
        asked = [plan.accuracy for plan in self._plans]
        radius_m = np.array([one.else_m for one in asked], dtype=np.float64)[query]
        names = sorted({one.property for one in asked if one.property})
        if not names or not len(row):
            return radius_m
        rows, place = np.unique(row, return_inverse=True)
        column = np.array([names.index(one.property) if one.property else -1 for one in asked], dtype=np.int64)[query]
        told = number_columns(elements.cold(rows)["properties"], names)
        told_m = np.where(column >= 0, told[column, place], np.nan)
        return np.where(told_m >= 0, np.minimum(told_m, MOST_ACCURACY_M), radius_m)

    def within(self, elements: Elements, row: np.ndarray, query: np.ndarray, failures: Failures) -> np.ndarray:
        """Tell which pairs have an element that passes, and whose circle is within the area of the query: bool (P,)."""
        passes = self.passing(elements, row, query, failures)
        left = np.flatnonzero(passes)
        sides = self._borders.sides(
            places_of(elements.bounds[row[left]], self.space.n),
            query[left],
            self.accuracy_m(elements, row[left], query[left]),
            _look(failures, query[left]),
        )
        passes[left] = sides == WITHIN
        return passes

    def turns(self, legs: Legs, leg: np.ndarray, query: np.ndarray, failures: Failures) -> Turns:
        """Return where objects come to be in answers, and in them no longer, along pairs of a leg and a query (P,)."""
        row, before = legs.row[leg], legs.before[leg]
        known = np.flatnonzero(before >= 0)
        passes = self.passing(legs.elements, row, query, failures)
        passed = np.ones(len(leg), dtype=bool)
        passed[known] = self.passing(legs.elements, before[known], query[known], failures)
        places = places_of(legs.elements.bounds, self.space.n)
        radius_m, other_m = self.accuracy_m(legs.elements, row, query), np.zeros(len(leg))
        other_m[known] = self.accuracy_m(legs.elements, before[known], query[known])
        side = self._borders.sides(places[row], query, radius_m, _look(failures, query))
        told = np.flatnonzero((side != BETWEEN) | ~passes)
        is_within = (side[told] == WITHIN) & passes[told]
        at_report = Turns(told, np.ones(len(told)), is_within, np.where(is_within, ~passed[told], ~passes[told]))
        way = places[row] - places[before]
        way[:, 0] -= FULL_TURN_DEG * np.round(way[:, 0] / FULL_TURN_DEG)
        gone = (before >= 0) & legs.linked[leg] & passed & way.any(axis=1) & (np.abs(way) <= MOST_WAY_DEG).all(axis=1)
        gone &= legs.time_us[row] - legs.time_us[before] <= self._gap_us[query]
        walked = np.flatnonzero(gone)
        start, end, larger_m = places[before[walked]], places[row[walked]], np.maximum(radius_m, other_m)[walked]
        found = self._borders.passages(start, end, query[walked], larger_m, _look(failures, query[walked]))
        pair, share = np.r_[walked[found.pair], told], np.r_[found.share, at_report.share]
        order = np.lexsort((share, pair))
        is_within = np.r_[found.is_within, at_report.is_within]
        by_filter = np.r_[np.zeros(len(found.pair), dtype=bool), at_report.by_filter]
        return Turns(*(column[order] for column in (pair, share, is_within, by_filter)))

    def positions(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of queries, given their numbers, and which of them are here."""
        return find(self.ids, ids)


def _look(failures: Failures, query: np.ndarray) -> Look:
    """Return what counts the edges that are looked at for pairs, given the query of each."""

    def look(pairs: np.ndarray, count: np.ndarray) -> bool:
        has_room = failures.ask(Asked.apart(query[pairs], count))
        if not has_room:
            failures.cut.update(np.unique(query[pairs]).tolist())
        return has_room

    return look


class _Unplaced:
    """What `Conditions` asks of a plan, without the shape of its area."""

    def __init__(self, plan: TrackPlan) -> None:
        self.where = plan.where
        self.filters = tuple(entry for entry in plan.filters if not isinstance(entry, AreaFilter))


def border_of(area: Box, shape: Any, space: Space) -> AreaFilter:
    """Return an area as a filter; of a box, its sides in the first two dimensions."""
    if shape is not None:
        return AreaFilter(shape)
    west, south, east, north = area[0], area[1], area[space.n], area[space.n + 1]
    ring = ((west, south), (east, south), (east, north), (west, north), (west, south))
    return AreaFilter(PolygonArea(((ring,),)))


def places_of(bounds: np.ndarray, n: int) -> np.ndarray:
    """Return the middles of boxes (N, 2n) in longitude and latitude, float64 of shape (N, 2)."""
    return (bounds[:, :2] + bounds[:, n : n + 2]) / 2


def passed_at(
    start: np.ndarray, end: np.ndarray, times_us: tuple[np.ndarray, np.ndarray], share: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return when and where objects were at shares of their ways, (K,) each: whole milliseconds, and places (K, 2)."""
    way = end - start
    way[:, 0] -= FULL_TURN_DEG * np.round(way[:, 0] / FULL_TURN_DEG)
    place = start + share[:, None] * way
    place[:, 0] = (place[:, 0] + FULL_TURN_DEG / 2) % FULL_TURN_DEG - FULL_TURN_DEG / 2
    from_us, to_us = times_us
    time_us = from_us + np.round(share * (to_us - from_us) / TIMES_US).astype(np.int64) * TIMES_US
    return np.minimum(time_us, to_us), place
