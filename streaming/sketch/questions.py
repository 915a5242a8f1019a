"""The questions of a plan, put to the sketches of several regions.

Each region finds the leaves that a question needs (`parts`). Leaves of all regions together answer it (`answered`): as
they would if one region had them all.

References
----------
Synopsis (2017), section 3.5: a query is evaluated at the sketchlets that have something about it, and merged.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import shapely

from streaming.kinds.sketch.plan import SketchPlan
from streaming.kinds.sketch.times import Times as PlanTimes
from streaming.sketch import density, groups, statistics
from streaming.sketch.answers import Answer, basis_of, contrast
from streaming.sketch.calendar import steps_us
from streaming.sketch.cells import cell_boxes
from streaming.sketch.chosen import Chosen, choose
from streaming.sketch.leaves import Leaves
from streaming.sketch.runs import LeafRun
from streaming.sketch.selection import FeatureRange, Selection, Times
from streaming.sketch.settings import InvalidSketch, SketchSettings
from streaming.sketch.sketch import Sketch

# Cells and steps that one answer can have.
MOST_CELLS, MOST_STEPS = 20_000, 20_000
_LONG_AGO_US, _FAR_US = -(2**62), 2**62
# Questions about how the values of a feature are distributed.
_OF_VALUES = ("density", "probability", "deciles", "histogram", "outliers")


class Need(NamedTuple):
    """Leaves that a question needs.

    Parameters
    ----------
    other : bool
        Of the selection with which the other one is contrasted.
    feature : str
        The feature whose distribution is asked for; empty if leaves of different values may come merged.
    apart : bool
        Whether leaves of different places and times must come apart.
    """

    other: bool = False
    feature: str = ""
    apart: bool = False


def needs(plan: SketchPlan) -> dict[Need, None]:
    """Return what the questions of a plan need, each once."""
    found = {}
    for ask in plan.ask:
        feature = ask.features[0] if ask.question in _OF_VALUES else ""
        names = ask.features if ask.question in ("deciles", "outliers") else (feature,)
        for name in names:
            found[Need(False, name, ask.question in ("cells", "series", "forecast", "select"))] = None
        if ask.question == "contrast":
            found[Need(True)] = None
    return found


def parts(plan: SketchPlan, sketch: Sketch, now_us: int) -> dict[Need, Leaves]:
    """Return the leaves of a sketch that the questions of a plan need."""
    return {need: _chosen(plan, need, sketch, now_us).sketch() for need in needs(plan)}


def checked(plan: SketchPlan, settings: SketchSettings) -> None:
    """Raise InvalidSketch unless a sketch keeps what the questions of a plan need."""
    if error := _error(plan, settings):
        raise InvalidSketch(error)


@functools.lru_cache(maxsize=1024)
def _error(plan, settings):
    """Return what a sketch lacks, an empty text for nothing: what stops the questions even if there are no leaves."""
    try:
        answered(plan, settings, dict.fromkeys(needs(plan), ()), 0)
    except InvalidSketch as error:
        return str(error)
    return ""


def answered(
    plan: SketchPlan, settings: SketchSettings, found: Mapping[Need, Sequence[Leaves]], now_us: int
) -> list[dict[str, Any]]:
    """Return the answers to the questions of a plan, as JSON documents, in their order.

    Parameters
    ----------
    plan : SketchPlan
    settings : SketchSettings
        Of the sketches.
    found : mapping of Need to sequence of Leaves
        What `parts` returned for each region.
    now_us : int
        The moment of the answer, the same as for `parts`.

    Raises
    ------
    InvalidSketch
        If a feature is not sketched, or the sketch does not keep what a question needs.
    """
    chosen = {}
    for need, leaves in found.items():
        runs = tuple(LeafRun(number, some, settings.pairs) for number, some in enumerate(leaves) if len(some))
        chosen[need] = _chosen(plan, need, Sketch(settings, runs=runs), now_us)
    return [_answer(_Question(ask, plan, chosen, now_us)) for ask in plan.ask]


def _chosen(plan, need, sketch, now_us):
    selection = _selection(plan, need.other, sketch.settings, now_us)
    if need.apart and not selection.areas:
        selection = Selection((_box(sketch.settings, sketch.settings.space.whole()),)) & selection
    return choose(sketch, selection, need.feature or None)


def _selection(plan, other, settings, now_us):
    """Return what a plan selects, or what it contrasts that with."""
    place = plan.other if other else plan
    ranges = tuple(FeatureRange(one.feature, *one.bounds) for one in plan.ranges)
    return Selection(_areas(place, settings), _times(place.time, now_us), ranges)


def _areas(place, settings):
    if place.polygon:
        return (shapely.Polygon(place.polygon),)
    whole = settings.space.whole()
    return () if tuple(place.area) == tuple(whole) else (_box(settings, place.area),)


def _box(settings, area):
    n = settings.space.n
    limits = [(settings.space.dimensions[axis].lo, settings.space.dimensions[axis].hi) for axis in settings.axes]
    sides = [(area[axis], area[n + axis]) for axis in settings.axes]
    clipped = [
        (lo if side_lo == -math.inf else side_lo, hi if side_hi == math.inf else side_hi)
        for (lo, hi), (side_lo, side_hi) in zip(limits, sides, strict=True)
    ]
    (x_lo, x_hi), (y_lo, y_hi) = clipped
    return x_lo, y_lo, x_hi, y_hi


def _times(times: PlanTimes, now_us):
    if times == PlanTimes(zone=times.zone):
        return None
    return Times.of(times.intervals_us(now_us, _LONG_AGO_US, _FAR_US).tolist())


@dataclass(frozen=True)
class _Question:
    """A question of a plan, and the leaves that answer it."""

    ask: Any
    plan: SketchPlan
    chosen: Mapping[Need, Chosen]
    now_us: int

    @property
    def confidence(self) -> float:
        return self.plan.confidence

    def leaves(self, feature: str = "", apart: bool = False, other: bool = False) -> Chosen:
        return self.chosen[Need(other, feature, apart)]


def _answer(question):
    """Return the JSON document of an answer."""
    ask = question.ask
    asked = {"question": ask.question, "features": list(ask.features), "confidence": question.confidence}
    return asked | _BY_QUESTION[ask.question](question)


def _document(of, answer: Answer, **more: Any) -> dict[str, Any]:
    figures = {name: _number(getattr(answer, name)) for name in ("value", "low", "high")}
    return {"of": of} | more | figures


def _basis(basis):
    names = ("leaves", "cut", "first_us", "last_us")
    return {"elements": _number(basis.elements)} | {name: getattr(basis, name) for name in names}


def _number(value):
    """Return a number as JSON can have it: null for NaN and infinity."""
    return float(value) if math.isfinite(value) else None


def _numbers(column):
    return [_number(value) for value in column.tolist()]


def _listed(answers, basis):
    return {"answers": answers, "basis": _basis(basis)}


def _each(function: Callable[..., Answer]):
    """Return what answers a question about each feature by itself."""

    def answer(question):
        chosen = question.leaves()
        answers = [_document(name, function(chosen, name, question.confidence)) for name in question.ask.features]
        return _listed(answers, basis_of(chosen))

    return answer


def _count(question):
    chosen = question.leaves()
    names = question.ask.features or (None,)
    answers = [_document(name, statistics.count(chosen, name, question.confidence)) for name in names]
    return _listed(answers, basis_of(chosen))


def _correlation(question):
    chosen, names = question.leaves(), question.ask.features
    pairs = [(one, other) for place, one in enumerate(names) for other in names[place + 1 :]]
    answers = [
        _document([one, other], statistics.correlation(chosen, one, other, question.confidence)) for one, other in pairs
    ]
    return _listed(answers, basis_of(chosen))


def _contrast(question):
    ask, chosen = question.ask, [question.leaves(), question.leaves(other=True)]
    if ask.statistic == "correlation":
        names = [(one, other) for place, one in enumerate(ask.features) for other in ask.features[place + 1 :]]
    else:
        names = [(name,) for name in ask.features]
    answers = []
    for features in names:
        one, other = (STATISTICS[ask.statistic](part, *features, question.confidence) for part in chosen)
        both = [_document(None, part) for part in (one, other)]
        of = list(features) if len(features) > 1 else features[0]
        answers.append(_document(of, contrast(one, other), one=both[0], other=both[1]))
    return _listed(answers, basis_of(chosen[0])) | {"basis_of_other": _basis(basis_of(chosen[1]))}


def _density(question):
    ask, (name,) = question.ask, question.ask.features
    low, high = (-math.inf if ask.lo is None else ask.lo), (math.inf if ask.hi is None else ask.hi)
    chosen = question.leaves(name)
    answer = density.integral(chosen, name, low, high, question.confidence)
    return _listed([_document(name, answer)], answer.basis)


def _probability(question):
    (name,) = question.ask.features
    answer = density.probability(question.leaves(name), name, question.ask.value, confidence=question.confidence)
    return _listed([_document(name, answer)], answer.basis)


def _deciles(question):
    answers, basis = [], None
    for name in question.ask.features:
        chosen = question.leaves(name)
        found = density.quantiles(chosen, name, density.DECILES, question.confidence)
        answers += [_document(name, one, part=part) for part, one in zip(density.DECILES, found, strict=True)]
        basis = basis or basis_of(chosen)
    return _listed(answers, basis)


def _outliers(question):
    answers, basis = [], None
    for name in question.ask.features:
        chosen = question.leaves(name)
        found = density.outliers(chosen, name, question.ask.deviations, question.confidence)
        answers.append(_document(name, found))
        basis = basis or basis_of(chosen)
    return _listed(answers, basis)


def _histogram(question):
    ask, (name,) = question.ask, question.ask.features
    chosen = question.leaves(name)
    low, high = (function(chosen, name, 1.0).value for function in (statistics.minimum, statistics.maximum))
    basis = basis_of(chosen)
    if not low <= high:
        return _listed([], basis)
    edges = np.linspace(low, high, ask.bins + 1) if low < high else np.array([low, high])
    # A value that equals an edge belongs to the bin above it, but for the last one.
    ends = [*np.nextafter(edges[1:-1], -np.inf).tolist(), float(edges[-1])]
    rows = [
        _document(name, density.integral(chosen, name, lo, end, question.confidence), lo=lo, hi=hi)
        for lo, hi, end in zip(edges.tolist(), edges[1:].tolist(), ends, strict=False)
    ]
    return _listed(rows, basis)


def _cells(question):
    ask, chosen = question.ask, question.leaves(apart=True)
    settings = chosen.settings
    cells, level, of = groups.by_cell(chosen, ask.level)
    if len(cells) > MOST_CELLS:
        raise InvalidSketch(f"an answer has at most {MOST_CELLS:,} cells; got {len(cells):,} at the level {level}")
    found = _grouped(question, chosen, of)
    dimensions = [settings.space.dimensions[axis] for axis in settings.axes]
    low, extent = (np.array([getattr(d, name) for d in dimensions]) for name in ("lo", "extent"))
    boxes = cell_boxes(cells, np.full(len(cells), level), low, extent)
    columns = {"cell": cells.tolist(), "lo": boxes[:2].T.tolist(), "hi": boxes[2:].T.tolist()}
    return {"level": level, "cells": columns | found, "basis": _basis(basis_of(chosen))}


def _grouped(question, chosen, of):
    """Return the statistic of a question for each group, with its bounds."""
    ask = question.ask
    if not ask.features:
        found = groups.counted(chosen, of)
    else:
        found = groups.described(chosen, of, ask.features[0], question.confidence)
    value, low, high = _statistic(found, ask.statistic)
    return {"value": _numbers(value), "low": _numbers(low), "high": _numbers(high), "n": _numbers(found.n)}


def _statistic(found, statistic):
    """Return a statistic of groups, and its bounds; without an own estimate these are what the extremes allow."""
    if statistic == "count":
        return found.n, found.n_low, found.n_high
    if statistic == "mean":
        return found.mean, found.mean_low, found.mean_high
    if statistic == "sum":
        ends = [n * mean for n in (found.n_low, found.n_high) for mean in (found.mean_low, found.mean_high)]
        return found.n * found.mean, np.min(ends, axis=0), np.max(ends, axis=0)
    if statistic == "std":
        sure = found.cut == 0
        widest = (found.high - found.low) / math.sqrt(2)
        return found.std, np.where(sure, found.std, 0.0), np.where(sure, found.std, widest)
    if statistic == "min":
        return found.low, found.low, np.where(found.cut == 0, found.low, found.high)
    return found.high, np.where(found.cut == 0, found.high, found.low), found.high


def _series(question):
    ask, chosen = question.ask, question.leaves(apart=True)
    for name in ask.features:
        chosen.settings.position(name)
    first, last = chosen.column("first_us"), chosen.column("last_us")
    if not len(first):
        return {"from_us": [], "series": {name: {} for name in ask.features}, "basis": _basis(basis_of(chosen))}
    edges = steps_us(ask.every, question.plan.time.zone, int(first.min()), int(last.max()))
    if len(edges) > MOST_STEPS:
        raise InvalidSketch(f"an answer has at most {MOST_STEPS:,} steps; got {len(edges) - 1:,} of a {ask.every}")
    of = groups.by_step(chosen, edges)
    columns = {}
    for name in ask.features:
        found = groups.described(chosen, of, name, question.confidence)
        columns[name] = {"n": _numbers(found.n)}
        for statistic in ("sum", "mean", "std", "min", "max"):
            value, low, high = _statistic(found, statistic)
            columns[name][statistic] = {"value": _numbers(value), "low": _numbers(low), "high": _numbers(high)}
    return {"from_us": edges[:-1].tolist(), "to_us": edges[1:].tolist(), "series": columns} | {
        "basis": _basis(basis_of(chosen))
    }


def _select(question):
    """Return what a sub-sketch has, feature by feature."""
    chosen = question.leaves(apart=True)
    names = question.ask.features or chosen.settings.features
    answers = []
    for name in names:
        for statistic in ("count", "mean", "std", "min", "max"):
            found = STATISTICS[statistic](chosen, name, question.confidence)
            answers.append(_document(name, found, statistic=statistic))
    return _listed(answers, basis_of(chosen))


def _sum(chosen, feature, confidence):
    """Return the sum of a feature: the count times the mean, each within its bounds."""
    many, mean = statistics.count(chosen, feature, confidence), statistics.mean(chosen, feature, confidence)
    ends = [n * value for n in (many.low, many.high) for value in (mean.low, mean.high)]
    return Answer(many.value * mean.value, min(ends), max(ends), confidence, mean.basis)


STATISTICS: Mapping[str, Callable[..., Answer]] = {
    "count": statistics.count,
    "sum": _sum,
    "mean": statistics.mean,
    "std": statistics.std,
    "min": statistics.minimum,
    "max": statistics.maximum,
    "correlation": statistics.correlation,
}
_BY_QUESTION: Mapping[str, Callable[[_Question], dict[str, Any]]] = {
    "select": _select,
    "count": _count,
    **{name: _each(STATISTICS[name]) for name in ("sum", "mean", "std", "min", "max")},
    "correlation": _correlation,
    "outliers": _outliers,
    "contrast": _contrast,
    "density": _density,
    "probability": _probability,
    "deciles": _deciles,
    "histogram": _histogram,
    "cells": _cells,
    "series": _series,
}
