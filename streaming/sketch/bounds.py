"""What moments and extremes say for certain about parts of a leaf.

A leaf knows of each feature how many values there are, their mean, their variance, and their extremes. Of all sets of
values with these, the functions here tell the most and the least extreme.

References
----------
S. Karlin, W. J. Studden, "Tchebycheff Systems: With Applications in Analysis and Statistics", 1966, chapter XII: sharp
bounds of a distribution with given moments and support; F. P. Cantelli's inequality is the case without support.
H. Scarf, "A Min-Max Solution of an Inventory Problem", 1958: the largest mean excess over a limit.
A. Madansky, "Bounds on the expectation of a convex function of a multivariate random variable", 1959.
"""

import functools
from dataclasses import dataclass

import numpy as np

# A part of a range that is larger than rounding errors of moments.
ROUNDING = 1e-12
# Smaller squares have lost digits.
_LEAST_SQUARE = np.finfo(np.float64).tiny
# Bounds of parts have so much room for rounding errors.
ROOM = 1e-8
# With this factor, the logistic function is within 0.01 of the distribution function of normal values.
LOGISTIC = 1.702
# The squared correlation of what different leaves do not know about how their values are distributed.
ALIKE_SHAPES = 0.3
_ALIKE = ALIKE_SHAPES**0.5
# The standard deviation of what is spread evenly over a distance of 1.
_DEVIATION = 12**-0.5
# How to look at values at or below a limit, and at those above it.
_SIDES = np.array([-1.0, 1.0])[:, None, None]
_ROOMS = np.array([-ROOM, ROOM])[:, None, None]


@dataclass(frozen=True)
class LeafSummary:
    """What K leaves know of one feature: arrays of shape (K,).

    Parameters
    ----------
    n : ndarray of int64
        At least 1.
    mean : ndarray of float64
    variance : ndarray of float64
        Of the values themselves: divided by n.
    low, high : ndarray of float64
    """

    n: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def take(self, rows: np.ndarray) -> "LeafSummary":
        """Return what some of the leaves know."""
        return LeafSummary(self.n[rows], self.mean[rows], self.variance[rows], self.low[rows], self.high[rows])

    @functools.cached_property
    def edge(self) -> np.ndarray:
        """The part of one value: one is the lowest of the leaf, and one the highest."""
        return 1 / np.maximum(self.n, 1)

    @functools.cached_property
    def ends(self) -> np.ndarray:
        """The extremes that values at or below a limit, and above it, do not reach: float64 of shape (2, 1, K)."""
        return np.stack([self.high, self.low])[:, None]

    @functools.cached_property
    def arms(self) -> np.ndarray:
        """How far the mean is from the other extremes, float64 of shape (2, 1, K)."""
        return np.abs(self.ends[::-1] - self.mean)

    @functools.cached_property
    def variances(self) -> tuple[np.ndarray, np.ndarray]:
        """A smaller and a larger variance: rounding may have made it too large, or too small."""
        return self.variance - self.room, self.variance + self.room

    @functools.cached_property
    def room(self) -> np.ndarray:
        """How far rounding may have moved the variance."""
        return ROUNDING * (self.high - self.low) ** 2

    @functools.cached_property
    def even(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of even densities below and above the mean: the part below it, both densities, how well they fit."""
        with np.errstate(all="ignore"):
            up, down = self.high - self.mean, self.mean - self.low
            lower = up / (self.high - self.low)
            return lower, lower / down, (1 - lower) / up, np.minimum(3 * self.variance / (up * down), 1.0)

    @functools.cached_property
    def steepness(self) -> np.ndarray:
        """That of a logistic distribution of the same variance."""
        with np.errstate(all="ignore"):
            return -LOGISTIC / np.sqrt(self.variance)


def at_most(limit: float, known: LeafSummary) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest part of the values that may lie at or below a limit, each of shape (K,).

    Examples
    --------
    >>> known = LeafSummary(*map(np.array, ([100], [0.0], [1.0], [-10.0], [10.0])))
    >>> [float(part.round(3)) for bound in at_most(2.0, known) for part in bound]
    [0.8, 0.99]
    """
    least, most = _parts(np.array([[limit]]), known)
    return least[0], most[0]


def below(limit: float, known: LeafSummary) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest part of the values that may lie below a limit, each of shape (K,)."""
    return at_most(np.nextafter(limit, -np.inf), known)


def _parts(limit: float | np.ndarray, known: LeafSummary) -> np.ndarray:
    """Return the least and the largest part of values that may lie at or below limits, (G, 1): shape (2, G, K)."""
    smaller, larger = known.variances
    with np.errstate(all="ignore"):
        under, gap = _SIDES * (limit - known.mean), _SIDES * (limit - known.ends)
        beyond = np.maximum(under, 0)
        cantelli = larger / (larger + beyond * beyond)
        cornered = 1 - (smaller + known.arms * under) / ((known.high - known.low) * gap)
        # Each of the two bounds the part, so the smaller one does. Where the square of an extent is too small to be a
        # number, the variance is none either, and nothing is known.
        is_known = (gap > 0) & (known.room >= _LEAST_SQUARE)
        below_, above = np.where(is_known, np.fmin(np.fmin(cantelli, cornered), 1.0), 1.0)
        bounds = np.empty((2, *below_.shape))
        np.maximum(1 - above, known.edge, out=bounds[0])
        np.maximum(np.minimum(below_, 1 - known.edge), bounds[0], out=bounds[1])
    bounds += _ROOMS
    all_ = known.high <= limit
    return np.where(all_ | (known.low > limit), all_, np.minimum(np.maximum(bounds, 0), 1))


def _guess(limit: float | np.ndarray, known: LeafSummary) -> np.ndarray:
    """Return an estimate of the part of the values at or below limits; outside of the extremes it has no meaning.

    Values whose variance is that of even densities below and above the mean are taken as spread so; the less their
    variance, the more they are taken as a logistic distribution, which is nearly a normal one.
    """
    lower, density_below, density_above, evenness = known.even
    with np.errstate(all="ignore"):
        over = limit - known.mean
        even = lower + np.where(over < 0, density_below, density_above) * over
        logistic = 1 / (1 + np.exp(known.steepness * over))
        return logistic + evenness * (even - logistic)


def range_parts(low: float, high: float, known: LeafSummary) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return which part of the values lies from `low` to `high`; both belong to the range.

    Returns
    -------
    part, least, most, doubt : ndarray of float64, shape (K,)
        An estimate, its bounds for certain, and its standard deviation.
    """
    # What lies below a number lies at or below the one before it.
    limit = np.array([[high], [np.nextafter(low, -np.inf)]])
    least, most = _parts(limit, known)
    # A guess that is not a number, since all values are equal, becomes a bound.
    guess = np.fmax(np.fmin(_guess(limit, known), most), least)
    least, most = np.maximum(least[0] - most[1], 0), np.minimum(most[0] - least[1], 1)
    return _with_doubt(guess[0] - guess[1], least, most, (known.low == high) | (known.high == low))


def parts_up_to(limit: np.ndarray, known: LeafSummary) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return which part of the values lies at or below limits, (G, 1): as `range_parts`, each of shape (G, K)."""
    least, most = _parts(limit, known)
    return _with_doubt(_guess(limit, known), least, most, known.low == limit)


def _with_doubt(
    part: np.ndarray, least: np.ndarray, most: np.ndarray, common: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return estimates with their bounds and doubts.

    If a limit is the very extreme of a leaf, then the value is probably a common one, such as 0 mm of rain, and nothing
    is known of how common it is: all such leaves are wrong together.
    """
    doubt = (most - least) * _DEVIATION
    part = np.fmax(np.fmin(part, most), least)
    if not common.any():
        return part, least, most, doubt
    return np.where(common, (least + most) / 2, part), least, most, np.where(common, doubt / _ALIKE, doubt)


def excess(limit: float, known: LeafSummary) -> np.ndarray:
    """Return the largest mean excess of the values over a limit, E max(X - limit, 0), float64 of shape (K,).

    Examples
    --------
    >>> excess(0.0, LeafSummary(*map(np.array, ([100], [0.0], [1.0], [-10.0], [10.0])))).tolist()
    [0.5]
    """
    over = known.mean - limit
    scarf = (np.sqrt(known.variance + over**2) + over) / 2
    extent = np.where(known.high > known.low, known.high - known.low, 1.0)
    chord = (known.high - limit) * np.clip((known.mean - known.low) / extent, 0, 1)
    result = np.minimum(scarf, chord)
    return np.where(limit >= known.high, 0.0, np.where(limit <= known.low, over, np.maximum(result, 0.0)))
