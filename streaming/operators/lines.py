"""Which points are within reach of lines with many vertices, looking at few of the edges.

In degrees, an index over its edges tells soon which place of a line is nearest to a point. The point is within reach of
the line if it is within reach of this place, and beyond it if so many degrees are longer than the reach wherever they
are. The points that are left lie near the border of what is within reach, or far in the north or south. They are
compared with the spheres about runs of edges, then with the boxes about the edges of the runs that decide, and last
with the edges that are left.

References
----------
C. Ericson, "Real-Time Collision Detection", 2005, section 6.1: hierarchies of bounding volumes.
"""

from collections.abc import Callable

import numpy as np
import shapely

from streaming.operators.allowance import pieces
from streaming.operators.edges import EXACT_M, FAR_M, Edges, least_m
from streaming.operators.geodesics import (
    POLE_DEG,
    arc_of_chord,
    error_m,
    local_metres,
    margins_deg,
    rectangular,
    within_m,
)
from streaming.operators.metres import ROUNDING_DEG
from streaming.operators.runs import expand
from streaming.spaces import FULL_TURN_DEG

# Measured: to look for the nearest place in an index over edges takes as long as to look at so many pairs of a join.
INDEXED = 5
# To compare with an edge that is farther away than `FAR_M` takes as long as with so many that are nearer.
FAR = 128
# To compare a place with the boxes of so many edges takes as long as to compare it with an edge.
BOXES = 8
# Near a pole, where degrees of longitude have no length, they keep this part of it: the place that is found is on the
# line, too, but is not the nearest.
LEAST_NARROW = 0.01
# Takes positions of pairs, and how many others are to be looked at for each; returns whether there is room for them.
Look = Callable[[np.ndarray, np.ndarray], bool]


def without_limit(pairs: np.ndarray, count: np.ndarray) -> bool:
    """Find room for everything: a `Look` for callers that have no limit."""
    return True


class IndexedLines:
    """An immutable list of lines.

    Parameters
    ----------
    lines : ndarray of geometries, shape (L,)
        In degrees; each has two places that differ.
    reach_m : ndarray of float64, shape (L,)
        How far points may be from each line, in metres.
    """

    def __init__(self, lines: np.ndarray, reach_m: np.ndarray) -> None:
        self._edges, self._reach_m = Edges.of(lines), reach_m
        first, count = self._edges.first, self._edges.count
        length = np.ceil(np.sqrt(count)).astype(np.int64)
        self._runs = -(-count // length)
        self._begin = np.cumsum(self._runs) - self._runs
        line, number = expand(np.zeros_like(self._runs), self._runs)
        self._first = first[line] + number * length[line]
        self._count = np.minimum(length[line], first[line] + count[line] - self._first)
        self._middle, self._radius = self._edges.spheres(self._first)
        self._half_x, self._half_y = np.abs(self._edges.way.T) / 2
        self._edge_x, self._edge_y = (self._edges.start + self._edges.way / 2).T.copy()
        low_x, low_y, high_x, high_y = shapely.bounds(lines).T
        self._middle_x = (low_x + high_x) / 2
        self._scale = np.ones((len(lines), 2))
        self._scale[:, 0] = np.maximum(np.cos(np.radians((low_y + high_y) / 2)), LEAST_NARROW)
        places, of = shapely.get_coordinates(lines, return_index=True)
        self._scaled = shapely.linestrings(places * self._scale[of], indices=of)
        shapely.prepare(self._scaled)
        self._beyond_deg = self._degrees_beyond((high_x - low_x) / 2, np.maximum(np.abs(low_y), np.abs(high_y)))

    def within(self, places: np.ndarray, line: np.ndarray, look: Look) -> np.ndarray:
        """Tell which pairs of a place and a line are within reach of each other.

        Parameters
        ----------
        places, line : ndarray of float64 and of int64, shapes (P, 2) and (P,)
        look : callable
            Counts what is looked at, before it is. Pairs for which there is no room are not met.

        Returns
        -------
        ndarray of bool, shape (P,)
        """
        if not look(np.arange(len(line)), np.full(len(line), INDEXED)):
            return np.zeros(len(line), dtype=bool)
        met, left = self._by_nearest(places, line)
        if not look(left, self._runs[line[left]]):
            return met
        for part in pieces(self._runs[line[left]]):
            self._compare(places, line, left[part], met, look)
        return met

    def _degrees_beyond(self, half_lon_deg: np.ndarray, lat_deg: np.ndarray) -> np.ndarray:
        """Return the distance in scaled degrees from which a place is out of reach of each line; infinite if not known.

        A path as long as the reach goes no farther north or south than the reach in degrees of latitude, so a degree is
        nowhere on it shorter than at these latitudes. A line that is almost as wide as the earth may be nearer the
        other way round.
        """
        reach_m, per_lat_m = self._reach_m, local_metres(0.0)[1]
        farthest = lat_deg + reach_m / per_lat_m
        per_lon_m = local_metres(np.minimum(farthest, POLE_DEG))[0]
        known = (farthest < POLE_DEG) & (half_lon_deg + reach_m / per_lon_m < FULL_TURN_DEG / 2)
        beyond = reach_m / np.minimum(per_lon_m / self._scale[:, 0], per_lat_m) + ROUNDING_DEG
        return np.where(known, beyond, np.inf)

    def _by_nearest(self, places: np.ndarray, line: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tell which places are within reach of about the nearest place of their line, and which others may be.

        Returns
        -------
        met : ndarray of bool, shape (P,)
        left : ndarray of int64
            Positions of the others.
        """
        moved = places.copy()
        moved[:, 0] += FULL_TURN_DEG * np.round((self._middle_x[line] - moved[:, 0]) / FULL_TURN_DEG)
        ways = shapely.shortest_line(self._scaled[line], shapely.points(moved * self._scale[line]))
        apart_deg, nearest = shapely.length(ways), shapely.get_coordinates(ways)[::2] / self._scale[line]
        met = np.zeros(len(line), dtype=bool)
        near = np.flatnonzero(apart_deg <= self._beyond_deg[line])
        met[near] = within_m(*moved[near].T, *nearest[near].T, limit_m=self._reach_m[line[near]])
        return met, near[~met[near]]

    def _compare(self, places: np.ndarray, line: np.ndarray, pair: np.ndarray, met: np.ndarray, look: Look) -> None:
        """Compare some pairs with the runs of their lines; write into `met` which of them are within reach."""
        of, run = expand(self._begin[line[pair]], self._runs[line[pair]])
        surely, unsure = self._by_spheres(rectangular(*places[pair].T), of, run, self._reach_m[line[pair[of]]])
        met[pair[of[surely]]] = True
        unsure = unsure[~met[pair[of[unsure]]]]
        of, run = pair[of[unsure]], run[unsure]
        for some in pieces(self._count[run]):
            if look(of[some], -(-self._count[run[some]] // BOXES)):
                self._compare_edges(places, line, of[some], run[some], met, look)

    def _compare_edges(
        self, places: np.ndarray, line: np.ndarray, pair: np.ndarray, run: np.ndarray, met: np.ndarray, look: Look
    ) -> None:
        """Compare pairs with the edges of a run each; write into `met` which of them are within reach."""
        of, edge = expand(self._first[run], self._count[run])
        reach_m = self._reach_m[line[pair]]
        close = self._may_reach(places[pair], of, edge, reach_m)
        edge, (row, count) = edge[close], np.unique(of[close], return_counts=True)
        work = count * np.where(reach_m[row] > FAR_M, FAR, 1)
        begin = np.cumsum(count) - count
        for some in pieces(work):
            if not look(pair[row[some]], work[some]):
                continue
            _, near = expand(begin[some], count[some])
            at = places[pair[row[some]]]
            points = Edges.cut(at, np.zeros((len(at), 2)), np.arange(len(at)), len(at))
            apart_m = least_m(points, self._edges.take(edge[near], count[some]), reach_m[row[some]])
            met[pair[row[some]][apart_m <= reach_m[row[some]]]] = True

    def _may_reach(self, places: np.ndarray, of: np.ndarray, edge: np.ndarray, reach_m: np.ndarray) -> np.ndarray:
        """Return the pairs of a place and an edge whose box is within reach of it, in degrees, as positions."""
        lon_deg, lat_deg = margins_deg(places[:, 1], reach_m)
        north = np.abs(places[of, 1] - self._edge_y[edge]) <= self._half_y[edge] + lat_deg[of]
        some = np.flatnonzero(north)
        of, edge = of[some], edge[some]
        east = places[of, 0] - self._edge_x[edge]
        east -= FULL_TURN_DEG * np.round(east / FULL_TURN_DEG)
        return some[np.abs(east) <= self._half_x[edge] + lon_deg[of]]

    def _by_spheres(
        self, at: np.ndarray, pair: np.ndarray, run: np.ndarray, reach_m: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return which runs are within reach as a whole, and of which others a part may be, as positions."""
        gap = at[:, pair] - self._middle[:, run]
        apart = np.sqrt(np.einsum("ij,ij->j", gap, gap))
        some = np.flatnonzero(apart - self._radius[run] <= reach_m + EXACT_M)
        farthest = arc_of_chord(apart[some] + self._radius[run[some]])
        whole = farthest + error_m(farthest) <= reach_m[some]
        return some[whole], some[~whole]
