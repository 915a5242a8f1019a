"""Answers to the inferential questions of a plan, from the leaves of a sketch that its selection chooses."""

import math
from dataclasses import dataclass

import numpy as np

from streaming.kinds.sketch.asks import Forecast, Regression
from streaming.language import thousands
from streaming.sketch.answers import Answer, Basis, basis_of
from streaming.sketch.chosen import ChosenLeaves
from streaming.sketch.inference.cut_regression import bounds, fit_errors
from streaming.sketch.inference.registry import model_of
from streaming.sketch.inference.regression import LinearFit, regression
from streaming.sketch.inference.seasons import Trend, trend
from streaming.sketch.inference.series import MeanSeries
from streaming.sketch.levels import bin_us
from streaming.sketch.moments import moments_of
from streaming.sketch.settings import InvalidSketch

# A forecast has at most so many steps.
MOST_STEPS = 20_000


@dataclass(frozen=True)
class RegressionAnswer:
    """The answer to `regression`.

    Parameters
    ----------
    fit : LinearFit
    coefficients : tuple of Answer, length P + 1
        The intercept, and a coefficient for each feature of `by`: between their bounds lies the fit over the elements.
    intervals : ndarray of float64, shape (P + 1, 2)
        Between which numbers those of the population lie: the errors of the sample, and of leaves that are cut.
    prediction : Answer or None
        The value at `at`, with the bounds of one element's value; None if it is not asked for.
    """

    fit: LinearFit
    coefficients: tuple[Answer, ...]
    intervals: np.ndarray
    prediction: Answer | None


@dataclass(frozen=True)
class ForecastAnswer:
    """The answer to `forecast`.

    Parameters
    ----------
    series : MeanSeries
        What the model has learnt.
    start_us : ndarray of int64, shape (H,)
        When each step to come begins.
    band : ndarray of float64, shape (H, 3)
        The mean of each step to come, and its bounds.
    trend : Trend or None
        None if there are too few steps.
    basis : Basis
    """

    series: MeanSeries
    start_us: np.ndarray
    band: np.ndarray
    trend: Trend | None
    basis: Basis


def regressed(chosen: ChosenLeaves, ask: Regression, confidence: float) -> RegressionAnswer:
    """Return the answer to a question `regression` about chosen leaves.

    Raises
    ------
    InvalidSketch
        If the sketch does not keep co-moments of all its features.
    """
    known, basis = moments_of(chosen), basis_of(chosen)
    fit = regression(known, ask.features[0], ask.by)
    errors = fit_errors(chosen, known, fit)
    value, limits = np.append(fit.intercept, fit.coefficients), bounds(fit, errors, confidence)
    coefficients = tuple(
        Answer(float(one), float(low), float(high), confidence, basis)
        for one, (low, high) in zip(value, limits, strict=True)
    )
    half = np.hypot((limits[:, 1] - limits[:, 0]) / 2, np.ptp(fit.intervals(confidence), axis=1) / 2)
    intervals = np.column_stack([value - half, value + half])
    return RegressionAnswer(fit, coefficients, intervals, _prediction(fit, ask, errors, confidence, basis))


def _prediction(fit: LinearFit, ask: Regression, errors: np.ndarray, confidence: float, basis: Basis) -> Answer | None:
    if not ask.at:
        return None
    at = np.array([ask.at])
    value, low, _ = fit.predicted(at, confidence)[0].tolist()
    # The error of the fit at that place; the intercept's has the coefficients' in it, so it is an upper bound.
    of_fit = (bounds(fit, errors, confidence)[:, 1] - np.append(fit.intercept, fit.coefficients)) @ np.abs(
        np.append(1.0, at[0])
    )
    half = math.hypot(value - low, float(of_fit))
    return Answer(value, value - half, value + half, confidence, basis)


def series_of(chosen: ChosenLeaves, feature: str) -> MeanSeries:
    """Return the mean of a feature in each time bin of chosen leaves.

    Leaves must come apart: `choose` merges those of different times if a selection has neither a place nor times; the
    box of the whole space is a place. Leaves whose time bins are longer, because they are old, are left out. A leaf
    that is cut counts with its mean, and with the part of its elements that is estimated to match.
    """
    settings, position = chosen.settings, chosen.settings.position(feature)
    level = chosen.column("level").astype(np.int64)
    weight = chosen.share * chosen.column("n", position)
    rows = np.flatnonzero((weight > 0) & (level <= settings.last_spatial_level))
    start_us, of = np.unique(chosen.column("start_us")[rows], return_inverse=True)
    n = np.bincount(of, weight[rows], minlength=len(start_us))
    total = np.bincount(of, weight[rows] * chosen.column("mean", position)[rows], minlength=len(start_us))
    return MeanSeries(start_us, total / n, bin_us(settings, 0))


def forecast(chosen: ChosenLeaves, ask: Forecast, confidence: float) -> ForecastAnswer:
    """Return the answer to a question `forecast`: the model learns the series of chosen leaves.

    The last bin of time may not be complete; it counts as it is.

    Raises
    ------
    InvalidSketch
        If the feature is not sketched, the model is not installed, or the horizon has too many steps.
    """
    model, series = model_of(ask.model), series_of(chosen, ask.features[0])
    horizon = math.ceil(ask.horizon_s * 1_000_000 / series.every_us)
    if horizon > MOST_STEPS:
        raise InvalidSketch(
            "a forecast has at most %(most_steps)s steps; got %(horizon)s in %(horizon_s)g s",
            most_steps=thousands(MOST_STEPS),
            horizon=thousands(horizon),
            horizon_s=ask.horizon_s,
        )
    if not len(series):
        return ForecastAnswer(series, np.empty(0, np.int64), np.empty((0, 3)), None, basis_of(chosen))
    band = model.predict(model.learn_many(model.begin(series.every_us), series), horizon, confidence)
    start_us = series.start_us[-1] + np.arange(1, horizon + 1) * series.every_us
    return ForecastAnswer(series, start_us, band, trend(series, confidence), basis_of(chosen))
