"""Accuracy circles and areas: which circles are within an area or outside of it, and where they come and go on a way.

A *way* is the straight line in longitude and latitude between two places. A circle of constant radius moves along it.
The border of an area is made of edges: those of polygons; of a circle its centre, and of a corridor its line, at a
distance. Along a way, the distance from an edge first falls and then rises. So the shares of the way at which the edge
is nearer than some limit are one interval, whose ends are found as roots; all intervals together say where the circle
is within the area, outside, or on the border.

Distances are those of `edges.least_m`: exact to a millimetre up to 500 km. The place of a passage is where the
distance is within `EXACT_M` of the limit. In a corridor, a circle counts as within if its centre is no farther from the
line than half of the width without the accuracy. At the inside of a bend this asks for a little more than that it lies
within.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import shapely

from streaming.kinds.areas import AreaFilter
from streaming.operators.allowance import pieces
from streaming.operators.areas import POLYGON, Areas
from streaming.operators.edges import FAR_M, PIECE_DEG, Edges, least_m, nearest_shares
from streaming.operators.geodesics import margins_deg
from streaming.operators.lines import BOXES, FAR, Look, without_limit
from streaming.operators.metres import ROUNDING_DEG
from streaming.operators.runs import expand, first_of_runs, last_of_runs
from streaming.spaces import FULL_TURN_DEG, Space

WITHIN, BETWEEN, OUTSIDE = 1, 0, -1
# How exact the distance is at the place of a passage.
EXACT_M = 1e-4
# On a way, a circle is never smaller: less is less than coordinates tell.
LEAST_RADIUS_M = 1e-3
# The search for a root halves its interval at least each third time.
ROUNDS = 150
# Measured: it mostly takes about so many.
ROUNDS_MOSTLY = 16
# A way that is longer in one of its directions is none that an object went between two reports.
MOST_WAY_DEG = PIECE_DEG


class Passages(NamedTuple):
    """Where circles begin to be within areas, or outside of them, on their ways.

    Parameters
    ----------
    pair : ndarray of int64, shape (K,)
        Ascending.
    share : ndarray of float64, shape (K,)
        How far along the way, above 0 and below 1; ascending for each pair.
    is_within : ndarray of bool, shape (K,)
        Whether the circle begins to be within the area, or outside of it.
    """

    pair: np.ndarray
    share: np.ndarray
    is_within: np.ndarray


class AreaBorders:
    """An immutable list of areas, and the edges of their borders.

    Parameters
    ----------
    areas : sequence of AreaFilter, length A
        At most half a turn wide.
    space : Space
    """

    def __init__(self, areas: Sequence[AreaFilter], space: Space) -> None:
        known = Areas(areas, space)
        self._geometry, self._is_polygon = known.geometry, known.form == POLYGON
        # How far the border is from the edges; 0 for polygons, which have their edges for border.
        self._away_m = known.reach_m
        self._edges = Edges.of(known.geometry)
        bounds = shapely.bounds(known.geometry).reshape(-1, 4)
        self._low, self._high = bounds[:, 0], bounds[:, 2]

    def sides(
        self, places: np.ndarray, area: np.ndarray, radius_m: np.ndarray, look: Look = without_limit
    ) -> np.ndarray:
        """Tell on which side of the border circles are.

        Parameters
        ----------
        places : ndarray of float64, shape (P, 2)
            Their centres.
        area : ndarray of int64, shape (P,)
        radius_m : ndarray of float64, shape (P,)
        look : callable, optional
            Counts the edges that are looked at, before they are. A circle for which there is no room is between.

        Returns
        -------
        ndarray of int8, shape (P,)
            `WITHIN`, `OUTSIDE`, or `BETWEEN` if some of the circle is on either side.
        """
        sides = np.full(len(area), BETWEEN, dtype=np.int8)
        places, limit_m = self._turned(places, places, area), self._away_m[area] + radius_m
        for rows, pair, edge in self._looked_at(places, places, area, limit_m, look, 1):
            least = np.full(len(rows), np.inf)
            if len(pair):
                points = _single(places[rows[pair]], np.zeros((len(pair), 2)))
                distance_m = least_m(points, self._single_edges(edge), limit_m[rows[pair]])
                np.minimum.at(least, pair, distance_m)
            sides[rows] = self._sides(places[rows], area[rows], radius_m[rows], least)
        return sides

    def _sides(self, places: np.ndarray, area: np.ndarray, radius_m: np.ndarray, least: np.ndarray) -> np.ndarray:
        """Return `sides`, given how far each circle's centre is from the nearest edge, if that is near."""
        away_m, polygon = self._away_m[area], self._is_polygon[area]
        inside = self._contain(places, area)
        within = np.where(polygon, inside & (least >= radius_m), least + radius_m <= away_m)
        outside = np.where(polygon, ~inside & (least >= radius_m), least - radius_m > away_m)
        return np.where(within, WITHIN, np.where(outside, OUTSIDE, BETWEEN))

    def passages(
        self, start: np.ndarray, end: np.ndarray, area: np.ndarray, radius_m: np.ndarray, look: Look = without_limit
    ) -> Passages:
        """Return where circles come to be within areas, and outside of them, on their ways.

        Parameters
        ----------
        start, end : ndarray of float64, shape (P, 2)
            The ends of the ways, at most `MOST_WAY_DEG` apart in both directions.
        area : ndarray of int64, shape (P,)
        radius_m : ndarray of float64, shape (P,)
        look : callable, optional
            Counts the edges that are looked at, before they are. Where there is no room, there are no passages.
        """
        ahead = end - start
        ahead[:, 0] -= FULL_TURN_DEG * np.round(ahead[:, 0] / FULL_TURN_DEG)
        start, radius_m = self._turned(start, start + ahead, area), np.maximum(radius_m, LEAST_RADIUS_M)
        found = [Passages(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0, dtype=bool))]
        reach_m = self._away_m[area] + radius_m
        for rows, pair, edge in self._looked_at(start, start + ahead, area, reach_m, look, ROUNDS_MOSTLY):
            some = self._passages(start[rows], ahead[rows], area[rows], radius_m[rows], (pair, edge))
            found.append(some._replace(pair=rows[some.pair]))
        return Passages(*map(np.concatenate, zip(*found, strict=True)))

    def _passages(
        self,
        start: np.ndarray,
        ahead: np.ndarray,
        area: np.ndarray,
        radius_m: np.ndarray,
        near: tuple[np.ndarray, np.ndarray],
    ) -> Passages:
        """Return `passages`, given the pairs of a way and an edge that may be near it."""
        (pair, edge), away_m = near, self._away_m[area]
        facing = _Facing(start[pair], ahead[pair], self._single_edges(edge))
        zones = _joined(pair, *facing.nearer_than(away_m[pair] + radius_m[pair]))
        of, begin, stop = _gaps(zones, len(area))
        middle = start[of] + ((begin + stop) / 2)[:, None] * ahead[of]
        is_within = self._is_polygon[area[of]] & self._contain(middle, area[of])
        round_ones = np.flatnonzero(~self._is_polygon[area[pair]] & (away_m[pair] >= radius_m[pair]))
        inner = pair[round_ones]
        deep = facing.take(round_ones).nearer_than(away_m[inner] - radius_m[inner])
        within = _joined(inner, *deep)
        share = np.r_[begin, within[1]]
        pair, is_within = np.r_[of, within[0]], np.r_[is_within, np.ones(len(within[0]), dtype=bool)]
        chosen = np.flatnonzero((share > 0) & (share < 1))
        order = chosen[np.lexsort((share[chosen], pair[chosen]))]
        return Passages(pair[order], share[order], is_within[order])

    def _turned(self, start: np.ndarray, end: np.ndarray, area: np.ndarray) -> np.ndarray:
        """Return places moved by turns of longitude, so that the ways to others are beside their areas."""
        west, east = np.minimum(start[:, 0], end[:, 0]), np.maximum(start[:, 0], end[:, 0])
        # The middle of the way is less than half a turn from the middle of the area.
        apart = (self._low[area] + self._high[area]) / 2 - (west + east) / 2
        return start + np.stack([FULL_TURN_DEG * np.round(apart / FULL_TURN_DEG), np.zeros(len(start))], axis=1)

    def _contain(self, places: np.ndarray, area: np.ndarray) -> np.ndarray:
        inside = np.zeros(len(area), dtype=bool)
        polygon = np.flatnonzero(self._is_polygon[area])
        inside[polygon] = shapely.intersects_xy(self._geometry[area[polygon]], *places[polygon].T)
        return inside

    def _looked_at(
        self, start: np.ndarray, end: np.ndarray, area: np.ndarray, reach_m: np.ndarray, look: Look, times: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Cut ways, and return the edges of their areas that may be within reach, if there is room for all.

        So few of them are looked at at once. An edge that may be within reach is compared so many `times`.

        Yields
        ------
        rows : ndarray of int64, shape (R,)
            The ways of a piece, ascending.
        pair, edge : ndarray of int64, shape (E,)
            Positions in `rows`, ascending, and edges.
        """
        number, near, has_room = np.arange(len(area)), [], True
        # To find the edges takes little of the time. So all are found first, and looked at if there is room for all.
        for piece in pieces(self._edges.count[area]):
            if has_room := look(number[piece], -(-self._edges.count[area[piece]] // BOXES)):
                pair, edge = self._near(*(column[piece] for column in (start, end, area, reach_m)))
                count = np.bincount(pair, minlength=piece.stop - piece.start)
                work = count * np.where(reach_m[piece] > FAR_M, FAR, 1) * times
                near.append((number[piece], pair, edge, count, work))
                has_room = look(number[piece], work)
        for rows, pair, edge, count, work in near if has_room else ():
            stop = np.cumsum(count)
            for some in pieces(work):
                chosen = slice(stop[some.start] - count[some.start], stop[some.stop - 1])
                yield rows[some], pair[chosen] - some.start, edge[chosen]

    def _near(
        self, start: np.ndarray, end: np.ndarray, area: np.ndarray, reach_m: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of ways and edges of their areas that may be within reach, by boxes in degrees."""
        first, count = self._edges.first[area], self._edges.count[area]
        pair, edge = expand(first, count)
        low, high = np.minimum(start, end), np.maximum(start, end)
        east, north = margins_deg(np.maximum(np.abs(low[:, 1]), np.abs(high[:, 1])), reach_m)
        margin = np.stack([east, north], axis=1) + ROUNDING_DEG
        low, high = low - margin, high + margin
        begin = self._edges.start[edge]
        other = begin + self._edges.way[edge]
        beside = (np.minimum(begin, other) <= high[pair]) & (np.maximum(begin, other) >= low[pair])
        # Around a centre, or beyond a pole, places are near whose longitudes are not.
        round_ones = ~self._is_polygon[area[pair]]
        met = beside[:, 1] & (beside[:, 0] | round_ones)
        return pair[met], edge[met]

    def _single_edges(self, edge: np.ndarray) -> Edges:
        return _single(self._edges.start[edge], self._edges.way[edge])


class _Facing(NamedTuple):
    """Ways, and an edge that each of them faces."""

    start: np.ndarray
    ahead: np.ndarray
    edges: Edges

    def take(self, rows: np.ndarray) -> "_Facing":
        return _Facing(self.start[rows], self.ahead[rows], _of_rows(self.edges, rows))

    def nearer_than(self, limit_m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the interval of shares at which each edge is nearer than its limit; NaN where it never is."""
        low, high = np.full((2, len(limit_m)), np.nan)
        if not len(limit_m):
            return low, high

        def beyond(rows: np.ndarray, share: np.ndarray) -> np.ndarray:
            places = self.start[rows] + share[:, None] * self.ahead[rows]
            return least_m(_single(places, np.zeros_like(places)), _of_rows(self.edges, rows)) - limit_m[rows]

        nearest = nearest_shares(_single(self.start, self.ahead), self.edges)
        least = beyond(np.arange(len(limit_m)), nearest)
        near = np.flatnonzero(least < 0)
        for end, found in ((0.0, low), (1.0, high)):
            at_end = beyond(near, np.full(len(near), end))
            found[near] = end
            left = np.flatnonzero(at_end > 0)
            rows = near[left]
            ends = (nearest[rows], least[rows]), (np.full(len(rows), end), at_end[left])
            found[rows] = _roots(partial(_of, beyond, rows), *ends)
        return low, high


def _of(
    beyond: Callable[[np.ndarray, np.ndarray], np.ndarray], rows: np.ndarray, some: np.ndarray, share: np.ndarray
) -> np.ndarray:
    return beyond(rows[some], share)


def _roots(
    value: Callable[[np.ndarray, np.ndarray], np.ndarray],
    below: tuple[np.ndarray, np.ndarray],
    above: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Return where functions cross zero, float64 of shape (K,); what is found for one does not depend on the others.

    Parameters
    ----------
    value : callable
        Given positions (M,) and numbers (M,), returns the values of these functions.
    below, above : tuple of ndarray of float64, shape (K,)
        Numbers at which the functions are negative, and positive, with the values there.

    References
    ----------
    M. Dowell, P. Jarratt, "A modified regula falsi method", BIT 11, 1971: the Illinois method.
    """
    (low, under), (high, over) = (tuple(column.copy() for column in side) for side in (below, above))
    left, found, side = np.arange(len(low)), low.copy(), np.zeros(len(low), dtype=np.int8)
    for turn in range(ROUNDS):
        if not len(left):
            break
        ends = low[left], high[left], under[left], over[left]
        middle = (ends[0] + ends[1]) / 2
        if turn % 3 < 2:
            middle = (ends[0] * ends[3] - ends[1] * ends[2]) / (ends[3] - ends[2])
        told = value(left, middle)
        found[left] = middle
        negative = told < 0
        one, other = left[negative], left[~negative]
        low[one], under[one] = middle[negative], told[negative]
        over[one[side[one] < 0]] /= 2
        high[other], over[other] = middle[~negative], told[~negative]
        under[other[side[other] > 0]] /= 2
        side[one], side[other] = -1, 1
        left = left[(np.abs(told) > EXACT_M) & (np.abs(high[left] - low[left]) > np.finfo(float).eps)]
    return found


def _joined(pair: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return intervals that overlap as one, by pair and in their order: pair, low and high; NaN is no interval."""
    there = np.flatnonzero(~np.isnan(low))
    order = there[np.lexsort((low[there], pair[there]))]
    pair, low, high = pair[order], low[order], high[order]
    if not len(pair):
        return pair, low, high
    values, rank = np.unique(high, return_inverse=True)
    offset = pair * len(values)
    high = values[np.maximum.accumulate(offset + rank) - offset]
    begins = first_of_runs(pair)
    begins[1:] |= low[1:] > high[:-1]
    first = np.flatnonzero(begins)
    return pair[first], low[first], high[np.r_[first[1:], len(pair)] - 1]


def _gaps(zones: tuple[np.ndarray, np.ndarray, np.ndarray], pairs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the intervals between, before and behind those of pairs, which do not overlap: pair, low and high."""
    pair, low, high = zones
    first, last = first_of_runs(pair), last_of_runs(pair)
    before = np.r_[0.0, high[:-1]][: len(pair)]
    before[first] = 0.0
    none = np.setdiff1d(np.arange(pairs), pair)
    of = np.r_[pair, pair[last], none]
    begin = np.r_[before, high[last], np.zeros(len(none))]
    stop = np.r_[low, np.ones(len(last)), np.ones(len(none))]
    there = stop > begin
    return of[there], begin[there], stop[there]


def _single(start: np.ndarray, way: np.ndarray) -> Edges:
    """Return edges, each a geometry of its own."""
    return Edges.cut(start, way, np.arange(len(start)), len(start))


def _of_rows(edges: Edges, rows: np.ndarray) -> Edges:
    one = np.ones(len(rows), dtype=np.int64)
    return Edges(
        edges.start[rows], edges.way[rows], edges.begin[:, rows], edges.chord[:, rows], np.arange(len(rows)), one
    )
