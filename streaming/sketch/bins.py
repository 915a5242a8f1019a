"""Bins of the planes: of about equally many elements, so that what is common is told apart finely.

Synopsis finds them from an online density estimate. Here they come from the exact quantiles of the first elements, and
later from the leaves, which say how many elements lie in which short interval. A KLL sketch would do as well, but the
library's compacts by coins that it throws, so a state would be another one after a restart.

References
----------
Synopsis (2017), sections 3.1.1 (the order of the planes) and 3.1.2 (density-driven quantisation).
"""

import functools
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streaming.operators.runs import expand
from streaming.sketch.settings import SketchSettings

# A key has a byte for each plane, then a bit for elements with all features of co-moments, then the tag of the bins.
BITS_A_PLANE = 8
COMPLETE_BIT = 48
COMPLETE = np.int64(1 << COMPLETE_BIT)
TAG_BIT = COMPLETE_BIT + 1
# New bins come from so many points in each leaf, and so many for each bin.
LEAST_POINTS = 4
# Such a part of the bins divides the range of the values, and not their mass.
BY_RANGE = 0.1
POINTS_A_BIN = 16
# With an error budget, a leaf has at most so many.
MOST_POINTS = 256
_TAGS = (1 << 14) - 1


@dataclass(frozen=True)
class Bins:
    """The edges between the bins of each plane.

    Parameters
    ----------
    edges : tuple of ndarray of float64, shape (bins - 1,)
        For each plane of the settings, ascending. A value that equals an edge belongs to the bin above it.
    order : tuple of int
        The planes from the top of the key down.
    kept : tuple of float or None
        For each plane: for which part of the values from which they were made the bins keep the error budget; None
        without a budget. Empty: not known.
    """

    edges: tuple[np.ndarray, ...] = ()
    order: tuple[int, ...] = ()
    kept: tuple[float | None, ...] = ()

    @functools.cached_property
    def tag(self) -> np.int64:
        """What tells leaves of these bins from those of others, at its place in a key."""
        told = b"".join(np.ascontiguousarray(edges).tobytes() for edges in self.edges) + bytes(self.order)
        return np.int64((zlib.crc32(told) & _TAGS) << TAG_BIT)

    def codes(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Return the bins of values.

        Parameters
        ----------
        values : sequence of ndarray of float64, shape (N,)
            For each plane; NaN if the feature is missing.

        Returns
        -------
        ndarray of int64, shape (planes, N)
            From 1 up, in the order of the planes in the settings; 0 for a missing value.
        """
        codes = np.zeros((len(self.edges), len(values[0]) if values else 0), dtype=np.int64)
        for code, edges, column in zip(codes, self.edges, values, strict=True):
            code[:] = np.searchsorted(edges, column, "right") + 1
            code[np.isnan(column)] = 0
        return codes

    def packed(self, codes: np.ndarray) -> np.ndarray:
        """Return the part of a key that codes make, int64 of shape (N,), with the tag of these bins."""
        key = np.full(codes.shape[1], self.tag)
        for place, plane in enumerate(reversed(self.order)):
            key |= codes[plane] << (BITS_A_PLANE * place)
        return key


def halved(planes: np.ndarray, times: np.ndarray, settings: SketchSettings) -> np.ndarray:
    """Return keys of planes after neighbouring bins were merged so many times.

    Parameters
    ----------
    planes : ndarray of int64, shape (K,)
        As `Bins.packed` returns them, with or without `COMPLETE`.
    times : ndarray of int64, shape (K,)
        How often, against the bins as they are in `planes`. At the settings' `bin_levels` only `COMPLETE` is left.
    settings : SketchSettings
    """
    result = planes & ~np.int64((1 << COMPLETE_BIT) - 1)
    for place in range(len(settings.planes)):
        code = (planes >> (BITS_A_PLANE * place)) & 0xFF
        result |= np.where(code > 0, (np.maximum(code - 1, 0) >> times) + 1, 0) << (BITS_A_PLANE * place)
    return result


def equal_bins(values: np.ndarray, bins: int) -> np.ndarray:
    """Return the edges between bins of about equally many values, float64 of shape (up to bins - 1,).

    A few of the bins (`BY_RANGE`) are spent on what is rare, so that no bin is very wide. A value that is so common
    that it would fill several bins fills one.

    Parameters
    ----------
    values : ndarray of float64, shape (N,)
        Without NaN.
    bins : int
    """
    return BinnedValues.of(values).edges(bins)


def equal_bins_of_intervals(low: np.ndarray, high: np.ndarray, n: np.ndarray, bins: int) -> np.ndarray:
    """Return such edges as `equal_bins`, given how many elements lie in which interval."""
    return BinnedValues.of_intervals(low, high, n, bins).edges(bins)


@dataclass(frozen=True)
class BinnedValues:
    """Values from which bins are made, ascending: arrays of shape (N,).

    Parameters
    ----------
    values : ndarray of float64
    n : ndarray of float64
        How many values each of them stands for.
    variance : ndarray of float64
        Of these values.
    """

    values: np.ndarray
    n: np.ndarray
    variance: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> "BinnedValues":
        """Return the points of values, without NaN."""
        return cls(np.sort(values), np.ones(len(values)), np.zeros(len(values)))

    @classmethod
    def of_intervals(
        cls, low: np.ndarray, high: np.ndarray, n: np.ndarray, bins: int, error: float | None = None
    ) -> "BinnedValues":
        """Return points, given how many elements lie in which interval, for about so many bins.

        The elements of an interval count as spread evenly. The result depends on nothing that rounding could change:
        not on the order of the intervals, nor on means.

        Parameters
        ----------
        low, high : ndarray of float64, shape (K,)
        n : ndarray of int64, shape (K,)
        bins : int
        error : float or None
            The error that bins shall keep: points are no further apart, as far as may be.
        """
        order = np.lexsort((n, high, low))
        low, extent, n = low[order], (high - low)[order], n[order]
        # Each interval stands for so many points, at the middles of its equal parts.
        points = np.full(len(n), max(LEAST_POINTS, POINTS_A_BIN * bins // max(len(n), 1)))
        if error is not None:
            points = np.ceil(extent / (error or 1.0)).clip(1, MOST_POINTS).astype(np.int64)
        row, place = expand(np.zeros(len(n), dtype=np.int64), points)
        part = extent / points
        values = low[row] + part[row] * (place + 0.5)
        order = np.argsort(values, kind="stable")
        row = row[order]
        return cls(values[order], (n / points)[row], (part**2 / 12)[row])

    @functools.cached_property
    def _reached(self) -> np.ndarray:
        """The part of the mass below each point, and of the range for a few bins."""
        mass = (np.cumsum(self.n) - self.n) / self.n.sum()
        return (1 - BY_RANGE) * mass + BY_RANGE * (self.values - self.values[0]) / (self.extent or 1.0)

    @functools.cached_property
    def _sums(self) -> np.ndarray:
        """The sums of numbers, values and squares of all points before each, float64 of shape (3, N + 1)."""
        values = self.values - self.values[len(self.values) // 2]
        columns = np.stack([self.n, self.n * values, self.n * (values**2 + self.variance)])
        return np.cumsum(np.pad(columns, ((0, 0), (1, 0))), axis=1)

    @property
    def extent(self) -> float:
        """The range of the values."""
        return float(self.values[-1] - self.values[0]) if len(self.values) else 0.0

    def edges(self, bins: int) -> np.ndarray:
        """Return the edges between so many bins at the most, of about equally many values: see `equal_bins`."""
        if not len(self.values):
            return np.empty(0)
        place = np.searchsorted(self._reached, np.arange(1, bins) / bins)
        edges = np.unique(self.values[place.clip(max=len(self.values) - 1)])
        return edges[edges > self.values[0]]

    def kept(self, edges: np.ndarray, error: float) -> float:
        """Return which part of the values lies in bins whose root mean square error is at most `error`; 1 of none."""
        if not len(self.values):
            return 1.0
        at = np.concatenate([[0], np.searchsorted(self.values, edges), [len(self.values)]])
        n, total, squares = np.diff(self._sums[:, at])
        some = np.where(n > 0, n, 1.0)
        variance = squares / some - (total / some) ** 2
        return float(n[variance <= error**2].sum() / n.sum())

    def edges_within(self, error: float, most: int, part: float) -> np.ndarray:
        """Return the edges of the fewest bins that keep an error for a part of the values; if none do, of the most.

        Parameters
        ----------
        error : float
            The root mean square of the values' differences from the mean of their bin.
        most : int
            The largest number of bins.
        part : float
        """
        found = (edges for edges in map(self.edges, range(1, most + 1)) if self.kept(edges, error) >= part)
        return next(found, self.edges(most))


def fan_out_order(codes: np.ndarray) -> tuple[int, ...]:
    """Return the order of planes, from the top down, that makes few vertices; greedily, plane by plane.

    A vertex at a depth is a distinct prefix of codes, so the plane that makes the fewest prefixes goes next; the
    opposite order is taken if it makes fewer all the same.

    Parameters
    ----------
    codes : ndarray of int64, shape (planes, N)

    Examples
    --------
    >>> fan_out_order(np.array([[1, 2, 3, 4], [1, 1, 2, 2]]))
    (1, 0)
    """
    left, order = list(range(len(codes))), []
    prefix = np.zeros(codes.shape[1], dtype=np.int64)
    while left:
        prefixes = [np.unique((prefix << BITS_A_PLANE) | codes[plane], return_inverse=True) for plane in left]
        best = min(range(len(left)), key=lambda place: len(prefixes[place][0]))
        prefix = prefixes[best][1]
        order.append(left.pop(best))
    return min(tuple(order), tuple(reversed(order)), key=lambda planes: vertices(codes, planes))


def vertices(codes: np.ndarray, order: Sequence[int]) -> int:
    """Return how many vertices a graph of planes in some order has: the distinct prefixes of all lengths."""
    prefix, count = np.zeros(codes.shape[1], dtype=np.int64), 0
    for plane in order:
        distinct, prefix = np.unique((prefix << BITS_A_PLANE) | codes[plane], return_inverse=True)
        count += len(distinct)
    return count
