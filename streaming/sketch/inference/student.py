"""Quantiles of Student's t distribution.

References
----------
NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov/8.17: the incomplete beta function, 8.17.22 its
continued fraction. W. J. Lentz, "Generating Bessel Functions in Mie Scattering Calculations Using Continued Fractions",
Applied Optics 15(3), 1976: how it is evaluated.
"""

import functools
import math
from statistics import NormalDist

_TINY = 1e-300


@functools.lru_cache(maxsize=256)
def t_quantile(probability: float, freedom: float) -> float:
    """Return below which number a variable of Student's t distribution lies with a probability.

    Parameters
    ----------
    probability : float
        Above 0 and below 1.
    freedom : float
        Degrees of freedom, above 0.

    Examples
    --------
    >>> round(t_quantile(0.975, 10), 4)
    2.2281
    """
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    if freedom > 1e7:
        return NormalDist().inv_cdf(probability)
    low, high = 0.0, 1.0
    while _t_probability(high, freedom) < probability:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _t_probability(middle, freedom) < probability else (low, middle)
        if middle in (low, high) and math.nextafter(low, high) >= high:
            break
    return (low + high) / 2


def _t_probability(t: float, freedom: float) -> float:
    """Return the probability that a variable lies below t, which is not negative."""
    return 1 - _beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2


def _beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function."""
    if x in (0.0, 1.0):
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d or _TINY)
            c = 1 + term / c or _TINY
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return math.exp(front) * fraction / a
