"""The length of the least geodesic between two geometries of any kind, anywhere on earth.

An edge is a straight line in longitude and latitude (RFC 7946, 3.1.1), so in space it is a curve. First, all edges are
compared as straight lines in space between their ends; the error of this has a known bound. Then only the edges that
may be the nearest within these bounds are compared as curves.

References
----------
C. Ericson, "Real-Time Collision Detection", 2005, section 5.1.9: the nearest points of two segments.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import shapely

from streaming.operators.geodesics import (
    ECCENTRICITY_2,
    WGS84_AXIS_M,
    arc_of_chord,
    error_m,
    geodesic_m,
    rectangular,
)
from streaming.operators.runs import expand
from streaming.spaces import FULL_TURN_DEG

# Longer edges are cut, so that each piece has only one place that is nearest to another.
PIECE_DEG = 4.0
# The number of pairs of edges that are compared at once.
EDGES_AT_ONCE = 100_000
# Newton's method needs two or three rounds. It ends when a step is so small that the next one would change nothing:
# when the square of the step is at most `STILL` times the distance, both in metres.
ROUNDS = 12
STILL = 1e-3
# The nearest places on the straight lines are good enough if the distance is exact to this.
EXACT_M = 1e-6
# If the determinant ``a c - b b`` is at most this part of ``a c``, the function in `_least` is a saddle or a trough.
FLAT = 1e-9
TINY_M = 1e-12
# Up to this distance, the geodesic between the places that are nearest in space is the least one, to a micrometre.
# Farther away it is longer than the least one by less than the part `FAR_ERROR`.
FAR_M = 500_000.0
FAR_ERROR = 2e-3
FAR_ROUNDS = 8
# After this many steps, a golden section of a piece of 4 degrees ends within a decimetre.
SECTIONS = 32
GOLDEN = (3 - np.sqrt(5)) / 2
Bounds = tuple[float, float] | tuple[np.ndarray, np.ndarray]
TURNS = np.array([[0.0, 0.0], [-FULL_TURN_DEG, 0.0], [FULL_TURN_DEG, 0.0]])
COLLECTIONS = shapely.GeometryType.MULTIPOINT


def apart_m(shapes: np.ndarray, geometries: np.ndarray, limit_m: float | np.ndarray = np.nan) -> np.ndarray:
    """Return the lengths of the least geodesics between points, lines and outlines, a pair a row.

    Parameters
    ----------
    shapes, geometries : ndarray of geometries, shape (P,)
        In degrees; none is missing or empty. Of a polygon only the outline counts.
    limit_m : float or ndarray of float64, shape (P,), optional
        See `geodesics.geodesic_m`.

    Returns
    -------
    ndarray of float64, shape (P,)
        Metres.
    """
    pairs, limit_m = _edges(shapes) * _edges(geometries), np.broadcast_to(limit_m, len(shapes))
    parts = [_of_pairs(shapes[rows], geometries[rows], limit_m[rows]) for rows in _chunks(pairs)]
    return np.concatenate([np.empty(0), *parts])


def nearest_places(shapes: np.ndarray, geometries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places at which points, lines and outlines are nearest to each other, a pair a row.

    Parameters
    ----------
    shapes, geometries : ndarray of geometries, shape (P,)
        As `apart_m` takes them.

    Returns
    -------
    ndarray of float64, ndarray of float64, shape (P, 2)
        Longitudes and latitudes of the places on the shapes, and of those on the geometries. Beyond `FAR_M`, the two
        may be up to `FAR_ERROR` farther apart than the nearest ones.
    """
    one, other = Edges.of(shapes), Edges.of(geometries)
    edge, facing, pair, share, across = _nearest(one, other, *_facing(one, other))
    here, there = one.at(edge, share), other.at(facing, across)
    order = np.lexsort((geodesic_m(*here, *there), pair))
    first = order[_starts(pair[order])]
    return here[:, first].T, there[:, first].T


def _edges(geometries: np.ndarray) -> np.ndarray:
    """Return about how many edges each geometry has, counting the pieces of edges that are cut."""
    return shapely.get_num_coordinates(geometries) + shapely.length(geometries) * (2 / PIECE_DEG)


def _chunks(work: np.ndarray) -> Iterator[slice]:
    """Yield slices of rows whose work adds up to at most `EDGES_AT_ONCE`, each with at least one row."""
    total, start = np.cumsum(work), 0
    while start < len(work):
        done = total[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(total, done + EDGES_AT_ONCE, "right")))
        yield slice(start, stop)
        start = stop


@dataclass(frozen=True)
class Edges:
    """The E edges of G geometries, in the order of the geometries.

    Parameters
    ----------
    start, way : ndarray of float64, shape (E, 2)
        The start of each edge, and the vector from there to its end, in degrees. A point is an edge whose `way` is 0.
    begin, chord : ndarray of float64, shape (3, E)
        The same in rectangular coordinates, in metres.
    first, count : ndarray of int64, shape (G,)
        Geometry g has the edges ``first[g], ..., first[g] + count[g] - 1``.
    """

    start: np.ndarray
    way: np.ndarray
    begin: np.ndarray
    chord: np.ndarray
    first: np.ndarray
    count: np.ndarray

    @classmethod
    def of(cls, geometries: np.ndarray) -> "Edges":
        """Return the edges of geometries, none longer than `PIECE_DEG` in either direction."""
        lines, geometry = _lines(geometries)
        places, line = shapely.get_coordinates(lines, return_index=True)
        vertices = np.bincount(line, minlength=len(lines))
        if (vertices == 1).all():
            return cls.cut(places, np.zeros_like(places), geometry, len(geometries))
        line, at = expand(np.cumsum(vertices) - vertices, np.maximum(vertices - 1, 1))
        after = at + (vertices > 1)[line]
        return cls.cut(places[at], places[after] - places[at], geometry[line], len(geometries))

    @classmethod
    def cut(cls, start: np.ndarray, way: np.ndarray, of: np.ndarray, geometries: int) -> "Edges":
        """Return edges cut into pieces of at most `PIECE_DEG`.

        Parameters
        ----------
        start, way : ndarray of float64, shape (K, 2)
            As for the class, in degrees, before they are cut.
        of : ndarray of int64, shape (K,)
            The geometry of each edge, ascending.
        geometries : int
            How many geometries there are.
        """
        if max(way.max(initial=0.0), -way.min(initial=0.0)) > PIECE_DEG:
            pieces = np.maximum(np.ceil(np.abs(way).max(axis=1) / PIECE_DEG), 1).astype(np.int64)
            edge, number = expand(np.zeros_like(pieces), pieces)
            way = way[edge] / pieces[edge, None]
            start, of = start[edge] + number[:, None] * way, of[edge]
        begin = rectangular(*start.T)
        chord = rectangular(*(start + way).T) - begin if way.any() else np.zeros_like(begin)
        count = np.bincount(of, minlength=geometries)
        return cls(start, way, begin, chord, np.cumsum(count) - count, count)

    @functools.cached_property
    def length_2(self) -> np.ndarray:
        """The squared lengths of the straight lines between the ends, in square metres, float64 of shape (E,)."""
        return _dot(self.chord, self.chord)

    @functools.cached_property
    def sagitta(self) -> np.ndarray:
        """Upper bounds of how far edges are from the straight lines between their ends, in metres, float64 of (E,)."""
        # The error of linear interpolation is at most an eighth of the largest second derivative.
        along, up = np.abs(np.radians(self.way)).T
        from_axis = np.hypot(self.begin[0], self.begin[1]) / WGS84_AXIS_M + up
        return WGS84_AXIS_M / 8 * (from_axis * along * along + 2 * along * up + 1.01 * up * up)

    def spheres(self, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return spheres about runs of edges: middles (3, R) and radii (R,), in metres.

        Parameters
        ----------
        first : ndarray of int64, shape (R,)
            The first edge of each run, ascending from 0; a run ends where the next one begins.
        """
        end = self.begin + self.chord
        low = np.minimum.reduceat(np.minimum(self.begin, end), first, axis=1)
        high = np.maximum.reduceat(np.maximum(self.begin, end), first, axis=1)
        radius = np.sqrt(_dot(high - low, high - low)) / 2 + np.maximum.reduceat(self.sagitta, first)
        return (low + high) / 2, radius

    def take(self, edges: np.ndarray, count: np.ndarray) -> "Edges":
        """Return the edges at positions, which may repeat, as those of other geometries with so many (G,) each."""
        start, way = self.start[edges], self.way[edges]
        return Edges(start, way, self.begin[:, edges], self.chord[:, edges], np.cumsum(count) - count, count)

    @property
    def pointed(self) -> bool:
        """Tell whether each geometry is a point."""
        return len(self.count) == len(self.way) and not self.way.any()

    def at(self, edge: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return places on edges: longitudes and latitudes in degrees, float64 of shape (2, K).

        Parameters
        ----------
        edge : ndarray of int64, shape (K,)
        share : ndarray of float64, shape (K,)
            How far along the edge each place is: 0 at its start, 1 at its end.
        """
        return (self.start[edge] + share[:, None] * self.way[edge]).T

    def curves(self, edge: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the places of `at` in rectangular coordinates, with their first and second derivatives by the share.

        Returns
        -------
        place, first, second : ndarray of float64, shape (3, K)
            Metres.
        """
        longitude, latitude = np.radians(self.at(edge, share))
        along, up = np.radians(self.way[edge]).T
        (sine, cosine), (sine_lat, cosine_lat) = ((np.sin(a), np.cos(a)) for a in (longitude, latitude))
        curved = 1 - ECCENTRICITY_2 * sine_lat * sine_lat
        across_m = WGS84_AXIS_M / np.sqrt(curved)
        meridian_m = across_m * (1 - ECCENTRICITY_2) / curved
        none = np.zeros_like(sine)
        out, east = np.stack([cosine, sine, none]), np.stack([-sine, cosine, none])
        axis = np.array([[0.0], [0.0], [1.0]])
        north = cosine_lat * axis - sine_lat * out
        from_axis, lift = across_m * cosine_lat, across_m * (1 - ECCENTRICITY_2) * sine_lat
        first = from_axis * along * east + meridian_m * up * north
        # This leaves out the small change of the meridian's radius: a step is a little less exact, the result is not.
        inward = -from_axis * along * along * out - meridian_m * up * up * (cosine_lat * out + sine_lat * axis)
        return from_axis * out + lift * axis, first, inward - 2 * meridian_m * sine_lat * along * up * east


def _lines(geometries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points, lines and rings of geometries, and the geometry that each belongs to, ascending."""
    parts, of = geometries, np.arange(len(geometries))
    while (shapely.get_type_id(parts) >= COLLECTIONS).any():
        parts, part = shapely.get_parts(parts, return_index=True)
        of = of[part]
    regions = shapely.get_type_id(parts) == shapely.GeometryType.POLYGON
    if not regions.any():
        return parts, of
    rings, ring = shapely.get_rings(parts[regions], return_index=True)
    parts, of = np.r_[parts[~regions], rings], np.r_[of[~regions], of[regions][ring]]
    order = np.argsort(of, kind="stable")
    return parts[order], of[order]


def _of_pairs(shapes: np.ndarray, geometries: np.ndarray, limit_m: np.ndarray) -> np.ndarray:
    one, other = Edges.of(shapes), Edges.of(geometries)
    many = len(shapes) == 1 and len(one.way) * len(other.way) > EDGES_AT_ONCE
    if not many or min(len(one.way), len(other.way)) == 1:
        return least_m(one, other, limit_m)
    edge, facing = _that_may_meet(one, other, _at_most_m(shapes, geometries))
    parts = [slice(start, start + EDGES_AT_ONCE) for start in range(0, len(edge), EDGES_AT_ONCE)]
    pair = np.zeros(len(edge), dtype=np.int64)
    return np.min([_least_m(one, other, (edge[p], facing[p], pair[p]), limit_m) for p in parts], axis=0)


def _at_most_m(shapes: np.ndarray, geometries: np.ndarray) -> float:
    """Return an upper bound of the distance of the first pair, in metres: that of its nearest places in degrees."""
    turned = [shapely.transform(shapes[:1], lambda places, turn=turn: places + turn) for turn in TURNS]
    ends = shapely.get_coordinates(shapely.shortest_line(np.concatenate(turned), geometries[:1].repeat(3)))
    return geodesic_m(*ends[::2].T, *ends[1::2].T).min() + EXACT_M


def _that_may_meet(one: Edges, other: Edges, reach_m: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of edges that may be within reach of each other, by the spheres around runs of edges."""
    (middle, radius, first, count), (others, other_radius, other_first, other_count) = (_runs(e) for e in (one, other))
    apart = np.sqrt(((middle[:, :, None] - others[:, None]) ** 2).sum(axis=0))
    here, there = np.nonzero(apart - radius[:, None] - other_radius <= reach_m)
    pair, edge = expand(first[here], count[here])
    which, facing = expand(other_first[there[pair]], other_count[there[pair]])
    return edge[which], facing


def _runs(edges: Edges) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return spheres about runs of edges: middles (3, R), radii, and each run's first edge and number of edges (R,)."""
    length = int(np.ceil(np.sqrt(len(edges.way))))
    first = np.arange(0, len(edges.way), length)
    return *edges.spheres(first), first, np.diff(np.r_[first, len(edges.way)])


def least_m(one: Edges, other: Edges, limit_m: float | np.ndarray = np.nan) -> np.ndarray:
    """Return the lengths of the least geodesics between geometries, a pair a row, given their edges.

    Parameters
    ----------
    one, other : Edges
        Of P geometries each; every geometry has an edge.
    limit_m : float or ndarray of float64, shape (P,), optional
        See `geodesics.geodesic_m`.

    Returns
    -------
    ndarray of float64, shape (P,)
        Metres.
    """
    return _least_m(one, other, _facing(one, other), limit_m) if len(one.count) else np.empty(0)


def _least_m(
    one: Edges, other: Edges, compared: tuple[np.ndarray, np.ndarray, np.ndarray], limit_m: float | np.ndarray
) -> np.ndarray:
    """Return the lengths of the least geodesics of pairs of geometries, given the pairs of edges to compare."""
    edge, facing, pair, share, across = _nearest(one, other, *compared)
    limit_m = np.broadcast_to(limit_m, len(one.count))[pair]
    length = geodesic_m(*one.at(edge, share), *other.at(facing, across), limit_m=limit_m)
    starts = _starts(pair)
    least = np.repeat(np.minimum.reduceat(length, starts), np.diff(np.r_[starts, len(pair)]))
    if least.max() > FAR_M:
        likely = (length <= (1 + FAR_ERROR) * least) & ~(length > (1 + FAR_ERROR) * limit_m)
        rows = np.flatnonzero((least > FAR_M) & likely)
        length[rows] = np.minimum(length[rows], _far_m(one, other, edge[rows], facing[rows], share[rows], across[rows]))
    return np.minimum.reduceat(length, starts)


def _far_m(
    one: Edges, other: Edges, edge: np.ndarray, facing: np.ndarray, share: np.ndarray, across: np.ndarray
) -> np.ndarray:
    """Return the lengths of the least geodesics between edges that are far apart, given about where these end.

    Far apart, the places that are nearest in space may not be the nearest over the ground. So this runs a golden
    section search along one edge, then along the other one, and so on.
    """

    def length(share: np.ndarray, across: np.ndarray) -> np.ndarray:
        return geodesic_m(*one.at(edge, share), *other.at(facing, across))

    for _ in range(FAR_ROUNDS if one.way.any() and other.way.any() else 1):
        if one.way.any():
            share = _golden(functools.partial(length, across=across), len(edge))
        if other.way.any():
            across = _golden(functools.partial(length, share), len(edge))
    return length(share, across)


def _golden(length: Callable[[np.ndarray], np.ndarray], count: int) -> np.ndarray:
    """Return where each of many functions of a number from 0 to 1 is least, float64 of shape (count,).

    `length` evaluates all functions at once: it takes a number for each and returns a value for each.
    """
    low, high = np.zeros(count), np.ones(count)
    for _ in range(SECTIONS):
        part = GOLDEN * (high - low)
        left, right = low + part, high - part
        before = length(left) < length(right)
        low, high = np.where(before, low, left), np.where(before, right, high)
    # The search comes near an end, but never to it.
    found = np.stack([(low + high) / 2, np.zeros(count), np.ones(count)])
    return found[np.argmin([length(share) for share in found], axis=0), np.arange(count)]


def _starts(pair: np.ndarray) -> np.ndarray:
    """Return the first row of each pair."""
    return np.flatnonzero(np.r_[True, pair[1:] != pair[:-1]])


def _nearest(
    one: Edges, other: Edges, edge: np.ndarray, facing: np.ndarray, pair: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs of edges that may be the nearest, the pair of geometries of each, and their nearest places."""
    gap = one.begin[:, edge] - other.begin[:, facing]
    share, across = _feet(one, other, edge, facing, gap)
    gap -= across * other.chord[:, facing]
    error = other.sagitta[facing]
    if not one.pointed:
        gap += share * one.chord[:, edge]
        error = error + one.sagitta[edge]
    length = np.sqrt(_dot(gap, gap))
    starts = _starts(pair)
    nearest = np.minimum.reduceat(length + error, starts)
    # The places that are nearest along a straight line may not be nearest along the ground.
    nearest += 2 * error_m(arc_of_chord(nearest))
    near = np.flatnonzero(length - error <= np.repeat(nearest, np.diff(np.r_[starts, len(pair)])))
    edge, facing, share, across = edge[near], facing[near], share[near], across[near]
    bent = _bent(one, other, edge, facing, length[near])
    share[bent], across[bent] = _settled(one, other, edge[bent], facing[bent], share[bent], across[bent])
    return edge, facing, pair[near], share, across


def nearest_shares(one: Edges, other: Edges) -> np.ndarray:
    """Return where edges are nearest to others, a pair a row: shares of the ways of `one`, float64 of shape (P,).

    Parameters
    ----------
    one, other : Edges
        Of P geometries with an edge each.
    """
    pair = np.arange(len(one.count))
    return _nearest(one, other, pair, pair, pair)[3] if len(pair) else np.empty(0)


def _facing(one: Edges, other: Edges) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all pairs of edges to compare, and the pair of geometries that each belongs to."""
    if one.pointed:
        pair, facing = expand(other.first, other.count)
        return pair, facing, pair
    pair, edge = expand(one.first, one.count)
    which, facing = expand(other.first[pair], other.count[pair])
    return edge[which], facing, pair[which]


def _feet(
    one: Edges, other: Edges, edge: np.ndarray, facing: np.ndarray, gap: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the straight lines between the ends of edges are nearest to each other, as shares of their ways."""
    there = other.chord[:, facing]
    length_2, beside = other.length_2[facing], _dot(there, gap)
    if one.pointed:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.zeros(len(edge)), np.clip(np.nan_to_num(beside / length_2), 0.0, 1.0)
    here = one.chord[:, edge]
    products = one.length_2[edge], _dot(here, there), length_2, _dot(here, gap), beside
    return _least(*products, (0.0, 1.0), (0.0, 1.0))


def _bent(one: Edges, other: Edges, edge: np.ndarray, facing: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Return the pairs of edges that are too bent to take the nearest places on straight lines for theirs."""
    moved = np.zeros(len(length))
    for side, at in ((one, edge), (other, facing)):
        # A curve is at most a sagitta away from its straight line, at a slope of at most 4 sagittas over the length.
        sagitta, length_2 = side.sagitta[at], side.length_2[at]
        moved += sagitta * (1 + 4 * length / np.sqrt(np.maximum(length_2, TINY_M)))
    # The nearest place is at most `moved` metres from the one found; the distance errs by the square of it.
    return np.flatnonzero(moved * moved > EXACT_M * (2 * length + moved))


def _settled(
    one: Edges, other: Edges, edge: np.ndarray, facing: np.ndarray, share: np.ndarray, across: np.ndarray
) -> np.ndarray:
    """Return where edges are nearest to each other, as shares, by Newton's method from shares that are about right."""
    left, found, least = np.arange(len(edge)), np.stack([share, across]), np.full(len(edge), np.inf)
    share, across = found.copy()
    for _ in range(ROUNDS):
        if not len(left):
            break
        here, way, bend = one.curves(edge[left], share[left])
        there, way_there, bend_there = other.curves(facing[left], across[left])
        gap = here - there
        length_2, squares = _dot(gap, gap), (_dot(way, way), _dot(way_there, way_there))
        nearer = length_2 < least[left]
        least[left] = np.minimum(length_2, least[left])
        found[:, left[nearer]] = share[left[nearer]], across[left[nearer]]
        # Far away the distance may have no minimum along an edge. With these lower bounds a step still goes downhill.
        bent = np.maximum(squares[0] + _dot(gap, bend), squares[0] / 8)
        bent_there = np.maximum(squares[1] - _dot(gap, bend_there), squares[1] / 8)
        products = bent, _dot(way, way_there), bent_there, _dot(way, gap), _dot(way_there, gap)
        step, step_there = _lowest(*products, (-share[left], 1 - share[left]), (-across[left], 1 - across[left]))
        share[left] += step
        across[left] += step_there
        moved_2 = squares[0] * step * step + squares[1] * step_there * step_there
        still = moved_2 <= STILL * np.sqrt(length_2)
        found[:, left[still]] = share[left[still]], across[left[still]]
        left = left[~still]
    return found


def _lowest(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    d: np.ndarray,
    e: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    others: tuple[np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the same as `_least`, but right for a saddle, too, which is lowest at one of the bounds."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        tried = [(s, np.clip(np.nan_to_num((b * s + e) / c), *others)) for s in bounds]
        tried += [(np.clip(np.nan_to_num((b * t - d) / a), *bounds), t) for t in others]
        height = [a * s * s - 2 * b * s * t + c * t * t + 2 * d * s - 2 * e * t for s, t in tried]
    lowest = np.argmin(height, axis=0)
    s, t = (np.choose(lowest, axis) for axis in zip(*tried, strict=True))
    bowl = a * c - b * b > FLAT * a * c
    inner, inner_there = _least(a, b, c, d, e, bounds, others)
    return np.where(bowl, inner, s), np.where(bowl, inner_there, t)


def _least(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray, e: np.ndarray, bounds: Bounds, others: Bounds
) -> tuple[np.ndarray, np.ndarray]:
    """Return s and t between bounds for which ``a s s - 2 b s t + c t t + 2 d s - 2 e t`` is least."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        s = np.clip(np.nan_to_num((b * e - c * d) / (a * c - b * b)), *bounds)
        t = np.clip(np.nan_to_num((b * s + e) / c), *others)
        return np.clip(np.nan_to_num((b * t - d) / a), *bounds), t


def _dot(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", one, other)
