"""Bands of forecasts from the errors of earlier forecasts.

References
----------
V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in a Random World", 2005: prediction sets from the quantiles of
past errors.
"""

import numpy as np

# Errors of distances within this factor of each other count together.
ALIKE = 1.5


def band_of(
    errors: np.ndarray, distances: np.ndarray, horizon: int, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far the truth is below and above a forecast of each distance, each float64 of shape (horizon,).

    Parameters
    ----------
    errors : ndarray of float64, shape (D, E)
        By how much the truth was above earlier forecasts, for each of some distances; NaN for none.
    distances : ndarray of int64, shape (D,)
        How many steps forecasts looked ahead, ascending.
    horizon : int
        The band is for 1 to so many steps. Beyond the last distance it is as wide as there.
    confidence : float
        The truth lies within the band with this probability, and as often below it as above.
    """
    low, high = np.empty(len(distances)), np.empty(len(distances))
    for place, distance in enumerate(distances):
        alike = (distances <= distance * ALIKE) & (distances >= distance / ALIKE)
        low[place], high[place] = _quantiles(errors[alike], (1 - confidence) / 2)
    # A forecast that looks farther is no better.
    low, high = np.minimum.accumulate(low), np.maximum.accumulate(high)
    ahead = np.arange(1, horizon + 1)
    return np.interp(ahead, distances, low), np.interp(ahead, distances, high)


def _quantiles(errors: np.ndarray, beyond: float) -> tuple[float, float]:
    """Return the errors beyond which the next one lies with a probability, on each side."""
    found = np.sort(errors[np.isfinite(errors)])
    if not len(found):
        return 0.0, 0.0
    place = min(max(int(np.floor((len(found) + 1) * beyond)) - 1, 0), len(found) - 1)
    return found[place], found[len(found) - 1 - place]
