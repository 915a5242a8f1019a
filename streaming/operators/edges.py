"""The least geodesic between two geometries, whatever they are and wherever on earth.

An edge is a straight line in longitude and latitude (RFC 7946, 3.1.1), so in space it is a curve. First all edges are
taken for the straight lines between their ends, which is wrong by a bound that is known. Those that may be the nearest
by these bounds are then looked at as the curves that they are.

References
----------
C. Ericson, "Real-Time Collision Detection", 2005, section 5.1.9: the nearest points of two segments.
"""

import functools
from collections.abc import Iterator
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

# A longer edge is cut, so that each piece has one place that is nearest to another.
PIECE_DEG = 4.0
# So many pairs of edges are compared at once.
EDGES_AT_ONCE = 100_000
# Newton's method, which needs two or three rounds, ends when a step is so small that the next one tells nothing.
ROUNDS = 12
STILL = 1e-3
# Places that are nearest on straight lines do where the distance is as exact as that.
EXACT_M = 1e-6
# A function with a smaller determinant, over the product of its squares, is a saddle or a trough.
FLAT = 1e-9
TINY_M = 1e-12
# Up to so far what is nearest in space is nearest over the ground, to a micrometre; farther, to less than this part.
FAR_M = 500_000.0
FAR_ERROR = 2e-3
FAR_ROUNDS = 8
# A section of a piece of 4 degrees ends within a decimetre.
SECTIONS = 32
GOLDEN = (3 - np.sqrt(5)) / 2
TURNS = np.array([[0.0, 0.0], [-FULL_TURN_DEG, 0.0], [FULL_TURN_DEG, 0.0]])
COLLECTIONS = shapely.GeometryType.MULTIPOINT


def apart_m(shapes: np.ndarray, geometries: np.ndarray, limit_m: float = np.nan) -> np.ndarray:
    """Return the least geodesic from a point, line or outline to another, a pair a row.

    Parameters
    ----------
    shapes, geometries : ndarray of geometries, shape (P,)
        None is missing or empty. Regions are taken for their outlines.
    limit_m : float, optional
        As for `geodesics.geodesic_m`.

    Returns
    -------
    ndarray of float64, shape (P,)
        Metres.
    """
    pairs = _edges(shapes) * _edges(geometries)
    parts = [_of_pairs(shapes[rows], geometries[rows], limit_m) for rows in _chunks(pairs)]
    return np.concatenate([np.empty(0), *parts])


def _edges(geometries):
    """Return about how many edges geometries have, cut ones with all pieces."""
    return shapely.get_num_coordinates(geometries) + shapely.length(geometries) * (2 / PIECE_DEG)


def _chunks(work) -> Iterator[slice]:
    """Yield slices of rows, as many as are worked off at once, each with one row at least."""
    total, start = np.cumsum(work), 0
    while start < len(work):
        done = total[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(total, done + EDGES_AT_ONCE, "right")))
        yield slice(start, stop)
        start = stop


@dataclass(frozen=True)
class Edges:
    """Edges of geometries, E of them, in the order of their geometries.

    Parameters
    ----------
    start, way : ndarray of float64, shape (E, 2)
        Where each begins, and from there the way to its end, in degrees. A point is an edge without a way.
    begin, chord : ndarray of float64, shape (3, E)
        The same in rectangular coordinates, in metres.
    first, count : ndarray of int64, shape (G,)
        The edges of a geometry: ``first, ..., first + count - 1``.
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
        """Return edges, given of which geometry each is, in pieces."""
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
        """The squares of the lengths of straight lines between the ends, in square metres."""
        return _dot(self.chord, self.chord)

    @functools.cached_property
    def sagitta(self) -> np.ndarray:
        """By how much each edge is no straight line at the most, in metres."""
        # The error of linear interpolation: an eighth of the second derivative, at its largest.
        along, up = np.abs(np.radians(self.way)).T
        from_axis = np.hypot(self.begin[0], self.begin[1]) / WGS84_AXIS_M + up
        return WGS84_AXIS_M / 8 * (from_axis * along * along + 2 * along * up + 1.01 * up * up)

    @property
    def pointed(self) -> bool:
        """Tell whether each geometry is a point."""
        return len(self.count) == len(self.way) and not self.way.any()

    def at(self, edge: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return the places after a share of the way along edges, longitude and latitude, float64 of shape (2, K)."""
        return (self.start[edge] + share[:, None] * self.way[edge]).T

    def curves(self, edge: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return places as `at` does, but in rectangular coordinates, with their first and second derivatives."""
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
        # Without the change of the meridian's radius, which is small: a step is a little less exact, the end is not.
        inward = -from_axis * along * along * out - meridian_m * up * up * (cosine_lat * out + sine_lat * axis)
        return from_axis * out + lift * axis, first, inward - 2 * meridian_m * sine_lat * along * up * east


def _lines(geometries):
    """Return the points, lines and rings of geometries, and of which geometry each is."""
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


def _of_pairs(shapes, geometries, limit_m):
    one, other = Edges.of(shapes), Edges.of(geometries)
    many = len(shapes) == 1 and len(one.way) * len(other.way) > EDGES_AT_ONCE
    if not many or min(len(one.way), len(other.way)) == 1:
        return least_m(one, other, limit_m)
    edge, facing = _that_may_meet(one, other, _at_most_m(shapes, geometries))
    parts = [slice(start, start + EDGES_AT_ONCE) for start in range(0, len(edge), EDGES_AT_ONCE)]
    pair = np.zeros(len(edge), dtype=np.int64)
    return np.min([_least_m(one, other, (edge[p], facing[p], pair[p]), limit_m) for p in parts], axis=0)


def _at_most_m(shapes, geometries):
    """Return the distance of two places of the first pair that are near each other, in metres."""
    turned = [shapely.transform(shapes[:1], lambda places, turn=turn: places + turn) for turn in TURNS]
    ends = shapely.get_coordinates(shapely.shortest_line(np.concatenate(turned), geometries[:1].repeat(3)))
    return geodesic_m(*ends[::2].T, *ends[1::2].T).min() + EXACT_M


def _that_may_meet(one, other, reach_m):
    """Return the pairs of edges that may be within reach of each other, by the spheres about runs of edges."""
    (middle, radius, first, count), (others, other_radius, other_first, other_count) = (_runs(e) for e in (one, other))
    apart = np.sqrt(((middle[:, :, None] - others[:, None]) ** 2).sum(axis=0))
    here, there = np.nonzero(apart - radius[:, None] - other_radius <= reach_m)
    pair, edge = expand(first[here], count[here])
    which, facing = expand(other_first[there[pair]], other_count[there[pair]])
    return edge[which], facing


def _runs(edges):
    """Return spheres about runs of edges, their middles (3, R) and radii, and the first edge and the count of each."""
    length = int(np.ceil(np.sqrt(len(edges.way))))
    first = np.arange(0, len(edges.way), length)
    end = edges.begin + edges.chord
    low = np.minimum.reduceat(np.minimum(edges.begin, end), first, axis=1)
    high = np.maximum.reduceat(np.maximum(edges.begin, end), first, axis=1)
    radius = np.sqrt(_dot(high - low, high - low)) / 2 + np.maximum.reduceat(edges.sagitta, first)
    return (low + high) / 2, radius, first, np.diff(np.r_[first, len(edges.way)])


def least_m(one: Edges, other: Edges, limit_m=np.nan) -> np.ndarray:
    """Return the least geodesics between geometries, given their edges; see `apart_m`."""
    return _least_m(one, other, _facing(one, other), limit_m) if len(one.count) else np.empty(0)


def _least_m(one, other, facing, limit_m):
    """Return the least geodesics of pairs, given the edges of theirs that are compared."""
    edge, facing, pair, share, across = _nearest(one, other, *facing)
    limit_m = np.broadcast_to(limit_m, len(one.count))[pair]
    length = geodesic_m(*one.at(edge, share), *other.at(facing, across), limit_m=limit_m)
    starts = _starts(pair)
    least = np.repeat(np.minimum.reduceat(length, starts), np.diff(np.r_[starts, len(pair)]))
    if least.max() > FAR_M:
        likely = (length <= (1 + FAR_ERROR) * least) & ~(length > (1 + FAR_ERROR) * limit_m)
        rows = np.flatnonzero((least > FAR_M) & likely)
        length[rows] = np.minimum(length[rows], _far_m(one, other, edge[rows], facing[rows], share[rows], across[rows]))
    return np.minimum.reduceat(length, starts)


def _far_m(one, other, edge, facing, share, across):
    """Return the least geodesics between edges, given about where; what is least in space is not over far ground.

    A golden section along one edge, then along the other one, and so on.
    """

    def length(share, across):
        return geodesic_m(*one.at(edge, share), *other.at(facing, across))

    for _ in range(FAR_ROUNDS if one.way.any() and other.way.any() else 1):
        if one.way.any():
            share = _golden(lambda shares, there=across: length(shares, there), len(edge))
        if other.way.any():
            across = _golden(lambda shares, here=share: length(here, shares), len(edge))
    return length(share, across)


def _golden(length, count):
    """Return where functions of a number from 0 to 1 are least, float64 of shape (count,), given all of them as one."""
    low, high = np.zeros(count), np.ones(count)
    for _ in range(SECTIONS):
        part = GOLDEN * (high - low)
        left, right = low + part, high - part
        before = length(left) < length(right)
        low, high = np.where(before, low, left), np.where(before, right, high)
    return (low + high) / 2


def _starts(pair):
    """Return where each pair's rows begin."""
    return np.flatnonzero(np.r_[True, pair[1:] != pair[:-1]])


def _nearest(one, other, edge, facing, pair):
    """Return those edges that may be the nearest of their pair, of which pair, and where on them they are nearest."""
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
    # What is nearest along a straight line may not be nearest along the ground.
    nearest += 2 * error_m(arc_of_chord(nearest))
    near = np.flatnonzero(length - error <= np.repeat(nearest, np.diff(np.r_[starts, len(pair)])))
    edge, facing, share, across = edge[near], facing[near], share[near], across[near]
    bent = _bent(one, other, edge, facing, length[near])
    share[bent], across[bent] = _settled(one, other, edge[bent], facing[bent], share[bent], across[bent])
    return edge, facing, pair[near], share, across


def _facing(one, other):
    """Return all pairs of edges, and of which pair of geometries each is."""
    if one.pointed:
        pair, facing = expand(other.first, other.count)
        return pair, facing, pair
    pair, edge = expand(one.first, one.count)
    which, facing = expand(other.first[pair], other.count[pair])
    return edge[which], facing, pair[which]


def _feet(one, other, edge, facing, gap):
    """Return where straight lines in the place of edges are nearest to each other, as shares of their ways."""
    there = other.chord[:, facing]
    length_2, beside = other.length_2[facing], _dot(there, gap)
    if one.pointed:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.zeros(len(edge)), np.clip(np.nan_to_num(beside / length_2), 0.0, 1.0)
    here = one.chord[:, edge]
    products = one.length_2[edge], _dot(here, there), length_2, _dot(here, gap), beside
    return _least(*products, (0.0, 1.0), (0.0, 1.0))


def _bent(one, other, edge, facing, length):
    """Return the pairs of edges that are too much bent for the places that are nearest on straight lines."""
    moved = np.zeros(len(length))
    for side, at in ((one, edge), (other, facing)):
        # A curve leaves its straight line by a sagitta, at a slope of 4 sagittas a length, at the most.
        sagitta, length_2 = side.sagitta[at], side.length_2[at]
        moved += sagitta * (1 + 4 * length / np.sqrt(np.maximum(length_2, TINY_M)))
    # So far is the nearest place from where it was looked for; the distance is wrong by the square of it.
    return np.flatnonzero(moved * moved > EXACT_M * (2 * length + moved))


def _settled(one, other, edge, facing, share, across):
    """Return where edges are nearest to each other, by Newton's method, given about where."""
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
        # Far away the distance may have no least place along an edge: then a step goes downhill.
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


def _lowest(a, b, c, d, e, bounds, others):
    """Return what `_least` does, also where the function is a saddle, lowest at one of the bounds."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        tried = [(s, np.clip(np.nan_to_num((b * s + e) / c), *others)) for s in bounds]
        tried += [(np.clip(np.nan_to_num((b * t - d) / a), *bounds), t) for t in others]
        height = [a * s * s - 2 * b * s * t + c * t * t + 2 * d * s - 2 * e * t for s, t in tried]
    lowest = np.argmin(height, axis=0)
    s, t = (np.choose(lowest, axis) for axis in zip(*tried, strict=True))
    bowl = a * c - b * b > FLAT * a * c
    inner, inner_there = _least(a, b, c, d, e, bounds, others)
    return np.where(bowl, inner, s), np.where(bowl, inner_there, t)


def _least(a, b, c, d, e, bounds, others):
    """Return s and t between bounds for which ``a s s - 2 b s t + c t t + 2 d s - 2 e t`` is least."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        s = np.clip(np.nan_to_num((b * e - c * d) / (a * c - b * b)), *bounds)
        t = np.clip(np.nan_to_num((b * s + e) / c), *others)
        return np.clip(np.nan_to_num((b * t - d) / a), *bounds), t


def _dot(one, other):
    return np.einsum("ij,ij->j", one, other)
