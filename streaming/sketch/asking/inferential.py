"""Regressions and forecasts.

References
----------
Synopsis (2017), section 3.6.5: inferential queries.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from streaming.sketch import groups
from streaming.sketch.answers import basis_of
from streaming.sketch.asking.documents import basis_document, number, numbers
from streaming.sketch.asking.grouped import MOST_STEPS
from streaming.sketch.asking.question import Question
from streaming.sketch.inference.cut_regression import bounds as fit_bounds
from streaming.sketch.inference.cut_regression import fit_errors
from streaming.sketch.inference.registry import model_of
from streaming.sketch.inference.regression import regression
from streaming.sketch.inference.series import Series
from streaming.sketch.moments import moments_of

MICROSECONDS = 1_000_000
# A model learns from about so many steps, of one of these lengths: an hour, a day, a week.
FORECAST_STEPS = 4_000
_STEPS_US = (3_600_000_000, 86_400_000_000, 7 * 86_400_000_000)


def _regression(question):
    ask, chosen = question.ask, question.leaves()
    known = moments_of(chosen)
    fit = regression(known, ask.features[0], ask.by)
    bounds = fit_bounds(fit, fit_errors(chosen, known, fit), question.confidence)
    intervals = fit.intervals(question.confidence)
    values = np.append(fit.intercept, fit.coefficients)
    rows = [
        {
            "of": name,
            "value": number(value),
            "low": number(low),
            "high": number(high),
            "interval": numbers(interval),
        }
        for name, value, (low, high), interval in zip((None, *ask.by), values, bounds, intervals, strict=True)
    ]
    found = {"intercept": rows[0], "coefficients": rows[1:], "n": fit.n}
    found |= {"r2": number(fit.r2), "residual_std": number(fit.residual_std)}
    if ask.at:
        value, low, high = fit.predicted(np.array([ask.at]), question.confidence)[0]
        found["prediction"] = {"value": number(value), "low": number(low), "high": number(high)}
    return found | {"basis": basis_document(basis_of(chosen))}


def _forecast(question):
    """Return the means of the steps so far, and a forecast of those that follow."""
    ask, chosen = question.ask, question.leaves(apart=True)
    (name,) = ask.features
    chosen.settings.position(name)
    model = model_of(ask.model)
    first, last = chosen.column("first_us"), chosen.column("last_us")
    basis = {"basis": basis_document(basis_of(chosen))}
    if not len(first):
        return {"from_us": [], "value": [], "low": [], "high": [], "past": {}} | basis
    every_us = _step_us(chosen.settings, int(first.min()), int(last.max()))
    edges = np.arange(int(first.min()) // every_us, int(last.max()) // every_us + 2) * every_us
    found = groups.described(chosen, groups.by_step(chosen, edges), name, question.confidence)
    known = np.flatnonzero(found.known)
    state = model.learn_many(model.begin(every_us), Series(edges[known], found.mean[known], every_us))
    horizon = min(max(1, math.ceil(ask.horizon_s * MICROSECONDS / every_us)), MOST_STEPS)
    value, low, high = model.predict(state, horizon, question.confidence).T
    start_us = edges[known[-1]] + every_us * np.arange(1, horizon + 1)
    past = {"from_us": edges[known].tolist(), "value": numbers(found.mean[known])}
    past |= {"low": numbers(found.mean_low[known]), "high": numbers(found.mean_high[known])}
    told = {"from_us": start_us.tolist(), "value": numbers(value), "low": numbers(low), "high": numbers(high)}
    return {"every_s": every_us / MICROSECONDS, "past": past} | told | basis


def _step_us(settings, first_us, last_us):
    """Return the length of the steps of a forecast: the shortest that makes few of them."""
    finest = [step for step in _STEPS_US if step >= settings.time_bin_us]
    few = [step for step in finest if (last_us - first_us) // step <= FORECAST_STEPS]
    return few[0] if few else _STEPS_US[-1]


BY_QUESTION: Mapping[str, Callable[[Question], dict[str, Any]]] = {"regression": _regression, "forecast": _forecast}
