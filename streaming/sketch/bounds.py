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
# Bounds of parts have so much room for rounding errors.
ROOM = 1e-8
# With this factor, the logistic function is within 0.01 of the distribution function of normal values.
LOGISTIC = 1.702
# The squared correlation of what different leaves do not know about how their values are distributed.
ALIKE_SHAPES = 0.3


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
    with np.errstate(all="ignore"):
        most = _largest(limit, mean, known.variance, low, high)
        least = 1 - _largest(-limit, -mean, known.variance, -high, -low)
        # One value is the lowest of the leaf, and one the highest.
        edge = 1 / np.maximum(known.n, 1)
        within = (limit > low) & (limit < high)
        most = np.where(within, np.minimum(most, 1 - edge), most)
        least = np.where(within, np.maximum(least, edge), least)
    sure = all_ | none
    least, most = np.maximum(least - ROOM, 0), np.minimum(np.maximum(most, least) + ROOM, 1)
    return np.where(sure, all_, least), np.where(sure, all_, most)


def _largest(limit, mean, variance, low, high):
    """Return the largest part of values that may lie at or below a limit."""
    under = mean - limit
    # Rounding may have made the variance too small, or too large.
    room = ROUNDING * (high - low) ** 2
    larger, smaller = variance + room, variance - room
    cantelli = larger / (larger + under**2)
    cornered = 1 - (smaller + (mean - low) * under) / ((high - low) * (high - limit))
    far = (under > 0) & (limit + (larger + under**2) / under <= high)
    near = (under > 0) | ((mean - low) * -under < smaller)
    return np.where((limit >= high) | ~(far | near), 1.0, np.where(far, cantelli, cornered))


def _guess(limit, known):
    """Return an estimate of the part of the values at or below a limit; outside of the extremes it has no meaning.

    Values whose variance is that of even densities below and above the mean are taken as spread so; the less their
    variance, the more they are taken as a logistic distribution, which is nearly a normal one.
    """
    mean, low, high = known.mean, known.low, known.high
    with np.errstate(all="ignore"):
        lower = (high - mean) / (high - low)
        down = 1 - (1 - lower) * (high - limit) / (high - mean)
        even = np.where(limit < mean, lower * (limit - low) / (mean - low), down)
        logistic = 1 / (1 + np.exp(-LOGISTIC * (limit - mean) / np.sqrt(known.variance)))
        evenness = np.minimum(3 * known.variance / ((high - mean) * (mean - low)), 1.0)
        return logistic + evenness * (even - logistic)


def range_parts(low: float, high: float, known: Summary) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return which part of the values lies from `low` to `high`; both belong to the range.

    Returns
    -------
    part, least, most, doubt : ndarray of float64, shape (K,)
        An estimate, its bounds for certain, and its standard deviation.
    """
    limit = np.array([[high], [low]])
    all_ = np.stack([known.high <= high, known.high < low])
    none = np.stack([known.low > high, known.low >= low])
    least, most = _parts(limit, known, all_, none)
    # A guess that is not a number, since all values are equal, becomes a bound.
    guess = np.fmax(np.fmin(_guess(limit, known), most), least)
    least, most = np.maximum(least[0] - most[1], 0), np.minimum(most[0] - least[1], 1)
    return _with_doubt(guess[0] - guess[1], least, most, (known.low == high) | (known.high == low))


def parts_up_to(limit: np.ndarray, known: Summary) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return which part of the values lies at or below limits, (G, 1): as `range_parts`, each of shape (G, K)."""
    least, most = at_most(limit, known)
    return _with_doubt(_guess(limit, known), least, most, known.low == limit)


def _with_doubt(part, least, most, common):
    """Return estimates with their bounds and doubts.

    If a limit is the very extreme of a leaf, then the value is probably a common one, such as 0 mm of rain, and nothing
    is known of how common it is: all such leaves are wrong together.
    """
    doubt = (most - least) / np.sqrt(12)
    part = np.where(common, (least + most) / 2, np.fmax(np.fmin(part, most), least))
    return part, least, most, np.where(common, doubt / np.sqrt(ALIKE_SHAPES), doubt)


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
