"""Maps and series: a statistic for each cell, and statistics for each step of time.

References
----------
Synopsis (2017), sections 3.6.2 and 4.4: statistics of areas and times, as maps and charts show them.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from streaming.language import thousands
from streaming.sketch import groups
from streaming.sketch.answers import basis_of
from streaming.sketch.asking.documents import basis_document, numbers
from streaming.sketch.asking.question import Question
from streaming.sketch.calendar import steps_us
from streaming.sketch.cells import cell_bounds, cell_boxes
from streaming.sketch.chosen import ChosenLeaves
from streaming.sketch.groups import GroupMembers, GroupStatistics
from streaming.sketch.settings import InvalidSketch

# Cells and steps that one answer can have.
MOST_CELLS, MOST_STEPS = 20_000, 20_000


def _cells(question: Question) -> dict[str, Any]:
    ask, chosen = question.ask, question.leaves(level=question.ask.level)
    settings = chosen.settings
    cells, level, of = groups.by_cell(chosen, ask.level)
    if len(cells) > MOST_CELLS:
        raise InvalidSketch(
            "an answer has at most %(most_cells)s cells; got %(count)s at the level %(level)s",
            most_cells=thousands(MOST_CELLS),
            count=thousands(len(cells)),
            level=level,
        )
    found = _grouped(question, chosen, of)
    boxes = cell_boxes(cells, np.full(len(cells), level), *cell_bounds(settings))
    columns = {"cell": cells.tolist(), "lo": boxes[:2].T.tolist(), "hi": boxes[2:].T.tolist()}
    return {"level": level, "cells": columns | found, "basis": basis_document(basis_of(chosen))}


def _grouped(question: Question, chosen: ChosenLeaves, of: GroupMembers) -> dict[str, Any]:
    """Return the statistic of a question for each group, with its bounds."""
    ask = question.ask
    if not ask.features:
        found = groups.counted(chosen, of)
    else:
        found = groups.described(chosen, of, ask.features[0], question.confidence)
    value, low, high = _statistic(found, ask.statistic)
    return {"value": numbers(value), "low": numbers(low), "high": numbers(high), "n": numbers(found.n)}


def _statistic(found: GroupStatistics, statistic: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a statistic of groups, and its bounds; without an own estimate these are what the extremes allow."""
    if statistic == "count":
        return found.n, found.n_low, found.n_high
    if statistic == "mean":
        return found.mean, found.mean_low, found.mean_high
    if statistic == "sum":
        ends = [n * mean for n in (found.n_low, found.n_high) for mean in (found.mean_low, found.mean_high)]
        return found.n * found.mean, np.min(ends, axis=0), np.max(ends, axis=0)
    if statistic == "std":
        widest = (found.high - found.low) / math.sqrt(2)
        return found.std, np.where(found.sure, found.std, 0.0), np.where(found.sure, found.std, widest)
    some = ~np.isnan(found.mean)
    if statistic == "min":
        return np.where(some, found.low, np.nan), found.low, np.where(found.sure, found.low, found.high)
    return np.where(some, found.high, np.nan), np.where(found.sure, found.high, found.low), found.high


def _series(question: Question) -> dict[str, Any]:
    ask, chosen = question.ask, question.leaves(apart=True)
    for name in ask.features:
        chosen.settings.position(name)
    first, last = chosen.column("first_us"), chosen.column("last_us")
    if not len(first):
        return {"from_us": [], "series": {name: {} for name in ask.features}, "basis": basis_document(basis_of(chosen))}
    edges = steps_us(ask.every, question.plan.time.zone, int(first.min()), int(last.max()))
    if len(edges) > MOST_STEPS:
        raise InvalidSketch(
            "an answer has at most %(most_steps)s steps; got %(count)s of a %(every)s",
            most_steps=thousands(MOST_STEPS),
            count=thousands(len(edges) - 1),
            every=ask.every,
        )
    of = groups.by_step(chosen, edges)
    columns: dict[str, dict[str, Any]] = {}
    for name in ask.features:
        found = groups.described(chosen, of, name, question.confidence)
        columns[name] = {"n": numbers(found.n)}
        for statistic in ("sum", "mean", "std", "min", "max"):
            value, low, high = _statistic(found, statistic)
            columns[name][statistic] = {"value": numbers(value), "low": numbers(low), "high": numbers(high)}
    return {"from_us": edges[:-1].tolist(), "to_us": edges[1:].tolist(), "series": columns} | {
        "basis": basis_document(basis_of(chosen))
    }


BY_QUESTION: Mapping[str, Callable[[Question], dict[str, Any]]] = {"cells": _cells, "series": _series}
