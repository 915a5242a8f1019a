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

from dataclasses import dataclass

import numpy as np

# A part of a range that is larger than rounding errors of moments.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Summary:
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


def at_most(limit: float | np.ndarray, known: Summary) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest part of the values that may lie at or below a limit, each of shape (K,).

    Examples
    --------
    >>> known = Summary(*map(np.array, ([100], [0.0], [1.0], [-10.0], [10.0])))
    >>> [float(part.round(3)) for bound in at_most(2.0, known) for part in bound]
    [0.8, 0.99]
    """
    return _parts(limit, known, limit >= known.high, limit < known.low)


def below(limit: float | np.ndarray, known: Summary) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest part of the values that may lie below a limit, each of shape (K,)."""
    return _parts(limit, known, limit > known.high, limit <= known.low)


def _parts(limit, known, all_, none):
    mean, low, high = known.mean, known.low, known.high
    extent = high - low
    variance = known.variance + ROUNDING * extent**2
    most = _largest(limit, mean, variance, low, high)
    least = 1 - _largest(-limit, -mean, variance, -high, -low)
    # One value is the lowest of the leaf, and one the highest.
    edge = 1 / np.maximum(known.n, 1)
    within = (limit > low) & (limit < high)
    most = np.where(within, np.minimum(most, 1 - edge), most)
    least = np.where(within, np.maximum(least, edge), least)
    sure = all_ | none
    return np.where(sure, all_ * 1.0, np.clip(least, 0, 1)), np.where(sure, all_ * 1.0, np.clip(most, 0, 1))


def _largest(limit, mean, variance, low, high):
    """Return the largest part of values that may lie at or below a limit."""
    under = mean - limit
    with np.errstate(all="ignore"):
        cantelli = variance / (variance + under**2)
        cornered = 1 - (variance + (mean - low) * under) / ((high - low) * (high - limit))
        far = (under > 0) & (limit + (variance + under**2) / under <= high)
        near = (mean - low) * -under < variance
    return np.where(limit >= high, 1.0, np.where(far, cantelli, np.where(near | (under > 0), cornered, 1.0)))


def part_of(limit: float | np.ndarray, known: Summary) -> np.ndarray:
    """Return an estimate of the part of the values at or below a limit, float64 of shape (K,).

    Values are taken as spread evenly below the mean, and evenly above it, such that the mean is right; where that
    breaks a bound, the bound is the estimate.
    """
    mean, low, high = known.mean, known.low, known.high
    extent = np.where(high > low, high - low, 1.0)
    lower = (high - mean) / extent
    with np.errstate(divide="ignore", invalid="ignore"):
        up = lower * (limit - low) / np.where(mean > low, mean - low, 1.0)
        down = 1 - (1 - lower) * (high - limit) / np.where(high > mean, high - mean, 1.0)
    guess = np.where(limit < mean, up, down)
    least, most = at_most(limit, known)
    return np.clip(guess, least, most)


def excess(limit: float, known: Summary) -> np.ndarray:
    """Return the largest mean excess of the values over a limit, E max(X - limit, 0), float64 of shape (K,).

    Examples
    --------
    >>> excess(0.0, Summary(*map(np.array, ([100], [0.0], [1.0], [-10.0], [10.0])))).tolist()
    [0.5]
    """
    over = known.mean - limit
    scarf = (np.sqrt(known.variance + over**2) + over) / 2
    extent = np.where(known.high > known.low, known.high - known.low, 1.0)
    chord = (known.high - limit) * np.clip((known.mean - known.low) / extent, 0, 1)
    result = np.minimum(scarf, chord)
    return np.where(limit >= known.high, 0.0, np.where(limit <= known.low, over, np.maximum(result, 0.0)))
