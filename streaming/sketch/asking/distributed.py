"""How the values of a feature are distributed: parts, probabilities, deciles, outliers, histograms.

References
----------
Synopsis (2017), section 3.6.3: density queries.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from streaming.sketch import density, statistics
from streaming.sketch.answers import basis_of
from streaming.sketch.asking.documents import document, listed
from streaming.sketch.asking.question import Question


def _density(question: Question) -> dict[str, Any]:
    ask, (name,) = question.ask, question.ask.features
    low, high = (-math.inf if ask.lo is None else ask.lo), (math.inf if ask.hi is None else ask.hi)
    chosen = question.leaves(name)
    answer = density.integral(chosen, name, low, high, question.confidence)
    return listed([document(name, answer)], answer.basis)


def _probability(question: Question) -> dict[str, Any]:
    (name,) = question.ask.features
    answer = density.probability(question.leaves(name), name, question.ask.value, confidence=question.confidence)
    return listed([document(name, answer)], answer.basis)


def _deciles(question: Question) -> dict[str, Any]:
    answers, basis = [], None
    for name in question.ask.features:
        chosen = question.leaves(name)
        found = density.quantiles(chosen, name, density.DECILES, question.confidence)
        answers += [document(name, one, part=part) for part, one in zip(density.DECILES, found, strict=True)]
        basis = basis or basis_of(chosen)
    return listed(answers, basis)


def _outliers(question: Question) -> dict[str, Any]:
    answers, basis = [], None
    for name in question.ask.features:
        chosen = question.leaves(name)
        found = density.outliers(chosen, name, question.ask.deviations, question.confidence)
        answers.append(document(name, found))
        basis = basis or basis_of(chosen)
    return listed(answers, basis)


def _histogram(question: Question) -> dict[str, Any]:
    ask, (name,) = question.ask, question.ask.features
    chosen = question.leaves(name)
    low, high = (function(chosen, name, 1.0).value for function in (statistics.minimum, statistics.maximum))
    basis = basis_of(chosen)
    if not low <= high:
        return listed([], basis)
    edges = np.linspace(low, high, ask.bins + 1) if low < high else np.array([low, high])
    # A value that equals an edge belongs to the bin above it, but for the last one.
    ends = [*np.nextafter(edges[1:-1], -np.inf).tolist(), float(edges[-1])]
    rows = [
        document(name, density.integral(chosen, name, lo, end, question.confidence), lo=lo, hi=hi)
        for lo, hi, end in zip(edges.tolist(), edges[1:].tolist(), ends, strict=False)
    ]
    return listed(rows, basis)


BY_QUESTION: Mapping[str, Callable[[Question], dict[str, Any]]] = {
    "density": _density,
    "probability": _probability,
    "deciles": _deciles,
    "outliers": _outliers,
    "histogram": _histogram,
}
