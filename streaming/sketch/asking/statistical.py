"""Counts, sums, means, deviations, extremes, correlations, and contrasts of them.

References
----------
Synopsis (2017), sections 3.6.1 and 3.6.2: relational and statistical queries.
"""

from collections.abc import Callable, Mapping
from typing import Any

from streaming.sketch import statistics
from streaming.sketch.answers import CERTAIN, Answer, basis_of, contrast
from streaming.sketch.asking.documents import basis_document, document, listed
from streaming.sketch.asking.question import Question
from streaming.sketch.chosen import ChosenLeaves


def _each(function: Callable[..., Answer]) -> Callable[[Question], dict[str, Any]]:
    """Return what answers a question about each feature by itself."""

    def answer(question: Question) -> dict[str, Any]:
        chosen = question.leaves()
        answers = [document(name, function(chosen, name, question.confidence)) for name in question.ask.features]
        return listed(answers, basis_of(chosen))

    return answer


def _count(question: Question) -> dict[str, Any]:
    chosen = question.leaves()
    names = question.ask.features or (None,)
    answers = [document(name, statistics.count(chosen, name, question.confidence)) for name in names]
    return listed(answers, basis_of(chosen))


def _correlation(question: Question) -> dict[str, Any]:
    chosen, names = question.leaves(), question.ask.features
    pairs = [(one, other) for place, one in enumerate(names) for other in names[place + 1 :]]
    answers = [
        document([one, other], statistics.correlation(chosen, one, other, question.confidence)) for one, other in pairs
    ]
    return listed(answers, basis_of(chosen))


def _contrast(question: Question) -> dict[str, Any]:
    ask, chosen = question.ask, [question.leaves(), question.leaves(other=True)]
    names: list[tuple[str, ...]]
    if ask.statistic == "correlation":
        names = [(one, other) for place, one in enumerate(ask.features) for other in ask.features[place + 1 :]]
    else:
        names = [(name,) for name in ask.features]
    answers = []
    for features in names:
        one, other = (STATISTICS[ask.statistic](part, *features, question.confidence) for part in chosen)
        both = [document(None, part) for part in (one, other)]
        of = list(features) if len(features) > 1 else features[0]
        answers.append(document(of, contrast(one, other), one=both[0], other=both[1]))
    return listed(answers, basis_of(chosen[0])) | {"basis_of_other": basis_document(basis_of(chosen[1]))}


def _select(question: Question) -> dict[str, Any]:
    """Return what a sub-sketch has, feature by feature."""
    chosen = question.leaves(apart=True)
    names = question.ask.features or chosen.settings.features
    answers = []
    for name in names:
        for statistic in ("count", "mean", "std", "min", "max"):
            found = STATISTICS[statistic](chosen, name, question.confidence)
            answers.append(document(name, found, statistic=statistic))
    return listed(answers, basis_of(chosen))


def _certain(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Return what asks for bounds that hold for certain, whatever the confidence."""

    def answer(chosen: ChosenLeaves, feature: str, confidence: float) -> Answer:
        return function(chosen, feature, CERTAIN)

    return answer


def _sum(chosen: ChosenLeaves, feature: str, confidence: float) -> Answer:
    """Return the sum of a feature: the count times the mean, each within its bounds."""
    many, mean = statistics.count(chosen, feature, confidence), statistics.mean(chosen, feature, confidence)
    ends = [n * value for n in (many.low, many.high) for value in (mean.low, mean.high)]
    return Answer(many.value * mean.value, min(ends), max(ends), confidence, mean.basis)


STATISTICS: Mapping[str, Callable[..., Answer]] = {
    "count": statistics.count,
    "sum": _sum,
    "mean": statistics.mean,
    "std": statistics.std,
    "min": _certain(statistics.minimum),
    "max": _certain(statistics.maximum),
    "correlation": statistics.correlation,
}


BY_QUESTION: Mapping[str, Callable[[Question], dict[str, Any]]] = {
    "select": _select,
    "count": _count,
    **{name: _each(STATISTICS[name]) for name in ("sum", "mean", "std", "min", "max")},
    "correlation": _correlation,
    "contrast": _contrast,
}
