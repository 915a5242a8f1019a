"""The model `harmonic`: a trend and harmonics of day, week and year, with errors that follow each other.

A forecast is the regression's value, and what is left of the last residual: residuals follow each other by an
autoregression of the first order. How wrong such forecasts are is not taken from the regression, but measured: the
series is forecast from many of its own steps, of which each knows only what was before it, and the errors of these
forecasts at a similar distance are the band. So the band needs no assumption on how errors are distributed.

References
----------
L. J. Tashman, "Out-of-sample tests of forecasting accuracy: an analysis and review", International Journal of
Forecasting 16(4), 2000: rolling origins.
"""

from dataclasses import dataclass

import numpy as np

from streaming.sketch.inference.quantiles import band_of
from streaming.sketch.inference.seasons import LEAST_STEPS, SeasonTerms, autocorrelation, terms_of
from streaming.sketch.inference.series import MeanSeries, State, unknown

# From so many steps the series is forecast to measure errors.
ORIGINS = 128
# Errors are measured at so many distances, at most.
DISTANCES = 150
# Keeps the normal equations regular where terms are hardly told apart: so many steps' worth of "0".
RIDGE = 1e-6


class HarmonicModel:
    """A trend and harmonics; see the module. Its state is the series itself."""

    def begin(self, every_us: int) -> State:
        """Return the state before the first step."""
        return _state(MeanSeries(np.empty(0, dtype=np.int64), np.empty(0), every_us))

    def learn_many(self, state: State, steps: MeanSeries) -> State:
        """Return the state after some more steps."""
        return _state(_series(state).together(steps))

    def predict(self, state: State, horizon: int, confidence: float = 0.95) -> np.ndarray:
        """Return a forecast, float64 of shape (horizon, 3); see `Model`."""
        series = _series(state)
        grid = _grid(series) if len(series) > LEAST_STEPS else None
        if grid is None or len(series) < grid.x.shape[1] + LEAST_STEPS:
            return unknown(horizon)
        fitted = _fits(grid, np.array([len(grid.y)]))
        ahead = np.arange(1, horizon + 1)
        x = grid.terms.columns(series.start_us[-1] + ahead * series.every_us)
        residual, step = grid.y - grid.x @ fitted[0], np.arange(len(grid.y))
        kept = grid.known
        follows = max(0.0, autocorrelation(step[kept], residual[kept]))
        value = x @ fitted[0] + follows**ahead * residual[-1]
        low, high = _band(grid, follows, horizon, confidence)
        return np.column_stack([value, value + low, value + high])


@dataclass(frozen=True)
class _SeriesGrid:
    """A series with all of its T steps, the missing ones among them as NaN, and the terms at each."""

    y: np.ndarray
    x: np.ndarray
    terms: SeasonTerms

    @property
    def known(self) -> np.ndarray:
        return np.isfinite(self.y)


def _state(series: MeanSeries) -> State:
    return {"start_us": series.start_us, "mean": series.mean, "every_us": np.array([series.every_us])}


def _series(state: State) -> MeanSeries:
    return MeanSeries(state["start_us"], state["mean"], int(state["every_us"][0]))


def _grid(series: MeanSeries) -> _SeriesGrid:
    first, every = int(series.start_us[0]), series.every_us
    place = (series.start_us - first) // every
    y = np.full(int(place[-1]) + 1, np.nan)
    y[place] = series.mean
    terms = terms_of(series)
    return _SeriesGrid(y, terms.columns(first + np.arange(len(y)) * every), terms)


def _fits(grid: _SeriesGrid, ends: np.ndarray) -> np.ndarray:
    """Return the coefficients of fits to the first steps, up to each of some ends, float64 of shape (E, P)."""
    x, y = np.where(grid.known[:, None], grid.x, 0.0), np.where(grid.known, grid.y, 0.0)
    begins = np.concatenate([[0], ends[:-1]])
    pieces = [slice(*piece) for piece in zip(begins, ends, strict=True)]
    squares = np.cumsum([x[piece].T @ x[piece] for piece in pieces], axis=0)
    products = np.cumsum([x[piece].T @ y[piece] for piece in pieces], axis=0)
    ridge = RIDGE * np.eye(x.shape[1])
    return np.linalg.solve(squares + ridge, products[..., None])[..., 0]


def _band(grid: _SeriesGrid, follows: float, horizon: int, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return how far the truth is from forecasts of each distance: a lower and an upper quantile of errors, (H,)."""
    count, terms = grid.x.shape
    least = max(count // 3, terms + LEAST_STEPS // 2)
    ends = np.unique(np.linspace(least, count - 1, ORIGINS).astype(np.int64))
    farthest = min(horizon, count - least)
    distances = np.unique(np.geomspace(1, farthest, min(farthest, DISTANCES)).astype(np.int64))
    return band_of(_errors(grid, follows, ends, distances).T, distances, horizon, confidence)


def _errors(grid: _SeriesGrid, follows: float, ends: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Return the errors of forecasts, float64 of shape (origins, distances); NaN where the truth is missing."""
    fitted = _fits(grid, ends)
    # The last step with a value before each end, and how old it is.
    last = np.maximum.accumulate(np.where(grid.known, np.arange(len(grid.y)), -1))[ends - 1]
    residual = grid.y[last] - np.einsum("op,op->o", grid.x[last], fitted)
    target = ends[:, None] - 1 + distances
    inside = target < len(grid.y)
    target = np.where(inside, target, 0)
    told = np.einsum("ohp,op->oh", grid.x[target], fitted)
    told += follows ** (target - last[:, None]).clip(0) * residual[:, None]
    return np.where(inside, grid.y[target] - told, np.nan)
