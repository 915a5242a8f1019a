"""Regressions and forecasts.

References
----------
Synopsis (2017), section 3.6.5: inferential queries.
"""

from collections.abc import Callable, Mapping
from typing import Any

from streaming.sketch.answers import basis_of
from streaming.sketch.asking.documents import basis_document, document, number, numbers
from streaming.sketch.asking.question import Question
from streaming.sketch.inference.answers import forecast, regressed

MICROSECONDS = 1_000_000


def _regression(question: Question) -> dict[str, Any]:
    ask, chosen = question.ask, question.leaves()
    found = regressed(chosen, ask, question.confidence)
    fit = found.fit
    intercept, *coefficients = (
        document(name, answer, interval=numbers(interval))
        for name, answer, interval in zip((None, *ask.by), found.coefficients, found.intervals, strict=True)
    )
    told = {"intercept": intercept, "coefficients": coefficients, "n": fit.n}
    told |= {"r2": number(fit.r2), "residual_std": number(fit.residual_std)}
    if found.prediction is not None:
        told["prediction"] = document(ask.features[0], found.prediction)
    return told | {"basis": basis_document(basis_of(chosen))}


def _forecast(question: Question) -> dict[str, Any]:
    """Return the means of the steps so far, and a forecast of those that follow."""
    found = forecast(question.leaves(apart=True), question.ask, question.confidence)
    value, low, high = found.band.T
    past = {"from_us": found.series.start_us.tolist(), "value": numbers(found.series.mean)}
    told = {"every_s": found.series.every_us / MICROSECONDS, "past": past, "from_us": found.start_us.tolist()}
    told |= {"value": numbers(value), "low": numbers(low), "high": numbers(high)}
    if found.trend is not None:
        told["trend"] = {"per_year": found.trend.per_year, "low": found.trend.low, "high": found.trend.high}
    return told | {"basis": basis_document(found.basis)}


BY_QUESTION: Mapping[str, Callable[[Question], dict[str, Any]]] = {"regression": _regression, "forecast": _forecast}
