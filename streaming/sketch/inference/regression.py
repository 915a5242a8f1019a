"""Multiple linear regression, and correlation, from counts, means and co-moments.

The normal equations need nothing but these sums, so the fit equals the least squares over the elements themselves, but
for rounding. Intervals are those of the linear model with normal errors.

References
----------
N. R. Draper, H. Smith, "Applied Regression Analysis", third edition, 1998, chapters 5 and 8. R. A. Fisher, "On the
'Probable Error' of a Coefficient of Correlation Deduced from a Small Sample", Metron 1, 1921.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from streaming.sketch.inference.student import t_quantile
from streaming.sketch.moments import Moments
from streaming.sketch.settings import InvalidSketch

# Features with less than this part of their variance beside the others do not determine a coefficient.
COLLINEAR = 1e-10


@dataclass(frozen=True)
class LinearFit:
    """A feature as a linear function of P others.

    Parameters
    ----------
    feature : str
        What is predicted.
    by : tuple of str
        What predicts it.
    n : float
        How many elements have all of the features.
    intercept : float
    coefficients : ndarray of float64, shape (P,)
        NaN, as all other numbers, if they are not determined: if there are fewer than P + 2 elements, or if one of `by`
        is a linear function of the others.
    covariance : ndarray of float64, shape (P + 1, P + 1)
        Of the errors of the intercept and the coefficients, in this order.
    residual_std : float
        The standard deviation of what the fit leaves unexplained.
    r2 : float
        Which part of the variance it explains.
    """

    feature: str
    by: tuple[str, ...]
    n: float
    intercept: float
    coefficients: np.ndarray
    covariance: np.ndarray
    residual_std: float
    r2: float

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the residuals."""
        return self.n - len(self.by) - 1

    def intervals(self, confidence: float = 0.95) -> np.ndarray:
        """Return the confidence intervals of the intercept and the coefficients, float64 of shape (P + 1, 2)."""
        value = np.append(self.intercept, self.coefficients)
        half = self._quantile(confidence) * np.sqrt(np.diag(self.covariance))
        return np.column_stack([value - half, value + half])

    def predicted(self, at: np.ndarray, confidence: float = 0.95, *, of_mean: bool = False) -> np.ndarray:
        """Return predictions with their intervals, float64 of shape (K, 3): the value, the lower and the upper bound.

        Parameters
        ----------
        at : ndarray of float64, shape (K, P)
            Values of the features `by`.
        confidence : float
        of_mean : bool
            The interval is of the mean of all elements with such values, not of the value of one of them.
        """
        at = np.column_stack([np.ones(len(at)), at])
        value = at @ np.append(self.intercept, self.coefficients)
        variance = np.einsum("kp,pq,kq->k", at, self.covariance, at) + (0.0 if of_mean else self.residual_std**2)
        half = self._quantile(confidence) * np.sqrt(variance)
        return np.column_stack([value, value - half, value + half])

    def _quantile(self, confidence: float) -> float:
        return t_quantile((1 + confidence) / 2, self.freedom) if self.freedom > 0 else math.nan


def regression(known: Moments, feature: str, by: Sequence[str]) -> LinearFit:
    """Return the least squares fit of a feature by others.

    Parameters
    ----------
    known : Moments
    feature : str
    by : sequence of str, length P

    Raises
    ------
    InvalidSketch
        If no co-moments are kept of a feature.
    """
    places = _places(known, (feature, *by))
    y, x = places[0], places[1:]
    free = known.n - len(by) - 1
    sxx, sxy, syy = known.comoment[np.ix_(x, x)], known.comoment[x, y], float(known.comoment[y, y])
    inverse = _inverse(sxx) if free > 0 else None
    if inverse is None:
        p, nan = len(by), math.nan
        return LinearFit(feature, tuple(by), known.n, nan, np.full(p, nan), np.full((p + 1, p + 1), nan), nan, nan)
    slopes = inverse @ sxy
    residual = max(0.0, float(syy - slopes @ sxy))
    variance = residual / free
    centre = known.mean[x]
    return LinearFit(
        feature,
        tuple(by),
        known.n,
        float(known.mean[y] - slopes @ centre),
        slopes,
        variance * _with_intercept(inverse, centre, known.n),
        math.sqrt(variance),
        1 - residual / syy if syy > 0 else math.nan,
    )


def _places(known: Moments, names: Sequence[str]) -> list[int]:
    missing = [name for name in names if name not in known.features]
    if missing:
        kept = ", ".join(known.features)
        raise InvalidSketch(
            "a regression must be of features with co-moments, %(kept)s; got %(missing)s",
            kept=f"{kept:.200}",
            missing=f"{missing[0]:.80}",
        )
    return [known.features.index(name) for name in names]


def _inverse(sxx: np.ndarray) -> np.ndarray | None:
    """Return the inverse of a matrix of co-moments; None if a feature is a linear function of the others."""
    scale = np.sqrt(np.diag(sxx))
    if not (scale > 0).all():
        return None
    inside = np.linalg.eigvalsh(sxx / np.outer(scale, scale))
    if inside[0] < COLLINEAR:
        return None
    return np.linalg.inv(sxx / np.outer(scale, scale)) / np.outer(scale, scale)


def _with_intercept(inverse: np.ndarray, centre: np.ndarray, n: float) -> np.ndarray:
    """Return the inverse of the normal equations with an intercept, given that of centred features."""
    at = inverse @ centre
    corner = 1 / n + centre @ at
    return np.block([[np.array([[corner]]), -at[None]], [-at[:, None], inverse]])


def correlations(known: Moments) -> np.ndarray:
    """Return the correlation of each pair of features, float64 of shape (F, F); NaN for features that do not vary."""
    spread = np.sqrt(np.diag(known.comoment))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(known.comoment / np.outer(spread, spread), -1, 1)


def correlation_interval(r: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return the confidence interval of a correlation of n pairs of a normal population.

    Examples
    --------
    >>> [round(bound, 3) for bound in correlation_interval(0.5, 100)]
    [0.337, 0.634]
    """
    if not n > 3 or math.isnan(r):
        return -1.0, 1.0
    if abs(r) == 1:
        return r, r
    half = NormalDist().inv_cdf((1 + confidence) / 2) / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)
