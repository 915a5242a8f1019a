"""Regression of a series on time and on harmonics of the day, the week and the year.

References
----------
R. J. Hyndman, G. Athanasopoulos, "Forecasting: Principles and Practice", third edition, 2021, section 7.4: Fourier
series for seasons. B. D. Santer et al., "Statistical significance of trends", Journal of Geophysical Research 105(D6),
2000, equation 6: the number of independent values in a series whose errors follow each other.
"""

import math
from dataclasses import dataclass

import numpy as np

from streaming.sketch.inference.series import MeanSeries
from streaming.sketch.inference.student import t_quantile
from streaming.sketch.settings import DAY_US

YEAR_US = round(365.2425 * DAY_US)
# The length of a period, how many harmonics of it there are, and how many periods a series must have for them.
PERIODS = ((DAY_US, 3, 2.0), (7 * DAY_US, 2, 3.0), (YEAR_US, 2, 1.5))
# A trend is told apart from a season that is not known only over more than a year, or by a series without seasons.
LEAST_STEPS = 10


@dataclass(frozen=True)
class SeasonTerms:
    """What a series is regressed on: a constant, time, and P - 2 harmonics.

    Parameters
    ----------
    origin_us : int
        Where the time is 0.
    span_us : int
        How long a unit of time is.
    waves : tuple of float
        The angular frequencies of the harmonics, per microsecond.
    """

    origin_us: int
    span_us: int
    waves: tuple[float, ...]

    def columns(self, time_us: np.ndarray) -> np.ndarray:
        """Return the terms at some times, float64 of shape (T, P)."""
        time = (time_us - self.origin_us).astype(np.float64)
        angle = time[:, None] * np.array(self.waves)
        return np.column_stack([np.ones(len(time)), time / self.span_us, np.cos(angle), np.sin(angle)])


def terms_of(series: MeanSeries) -> SeasonTerms:
    """Return the terms for a series: the harmonics of those periods that it is long and fine enough for."""
    first, last = int(series.start_us[0]), int(series.start_us[-1])
    span_us = last - first + series.every_us
    waves = [
        2 * math.pi * number / period
        for period, harmonics, times in PERIODS
        if span_us >= times * period
        for number in range(1, harmonics + 1)
        if 2 * number * series.every_us < period
    ]
    return SeasonTerms(first, span_us, tuple(dict.fromkeys(waves)))


@dataclass(frozen=True)
class Trend:
    """How a series rises, besides its seasons.

    Parameters
    ----------
    per_year : float
        By how much the feature rises in a year.
    low, high : float
        The confidence interval.
    intercept : float
        The trend's line at the first step.
    """

    per_year: float
    low: float
    high: float
    intercept: float


def trend(series: MeanSeries, confidence: float = 0.95) -> Trend | None:
    """Return the trend of a series; None if it has fewer than `LEAST_STEPS` steps more than terms."""
    if len(series) < LEAST_STEPS:
        return None
    terms = terms_of(series)
    x = terms.columns(series.start_us)
    if len(series) < x.shape[1] + LEAST_STEPS:
        return None
    fitted, *_ = np.linalg.lstsq(x, series.mean, rcond=None)
    residual = series.mean - x @ fitted
    follows = max(0.0, autocorrelation(series.start_us // series.every_us, residual))
    freedom = max(1.0, len(x) * (1 - follows) / (1 + follows) - x.shape[1])
    variance = float(residual @ residual) / freedom * np.linalg.pinv(x.T @ x)[1, 1]
    half = t_quantile((1 + confidence) / 2, freedom) * math.sqrt(max(variance, 0.0))
    slope, year = float(fitted[1]), YEAR_US / terms.span_us
    return Trend(slope * year, (slope - half) * year, (slope + half) * year, float(fitted[0]))


def autocorrelation(step: np.ndarray, residual: np.ndarray) -> float:
    """Return the correlation of residuals of steps that follow each other, at most 0.9999; 0 if there are too few."""
    following = np.flatnonzero(np.diff(step) == 1)
    one, other = residual[following], residual[following + 1]
    spread = math.sqrt(float(one @ one) * float(other @ other))
    return min(float(one @ other) / spread, 0.9999) if spread > 0 else 0.0
