"""How a sketch is stored: each run of elements or leaves as a part of its own, and everything else in the head."""

from typing import Any

import numpy as np

from streaming.sketch.bins import Bins
from streaming.sketch.leaves import Leaves
from streaming.sketch.observations import Observations
from streaming.sketch.runs import ElementRun, LeafRun
from streaming.sketch.settings import SketchSettings, parse_settings, settings_document
from streaming.sketch.sketch import Sketch
from streaming.spaces import Space
from streaming.state.codec import HEAD, NOTHING, Parts, StatePart, Tables, head_of, with_head

_NUMBERS = ("following", "newest_us", "coarseness", "count", "unplaced", "since")


def encode(sketch: Sketch, name: str = "leaves") -> dict[str, StatePart]:
    """Return the parts of a sketch: its head, and a part for each run.

    Parameters
    ----------
    sketch : Sketch
    name : str
        With which the names of the runs' parts begin. The name and the number of a run never stand for another run.
    """
    head = {
        "settings": settings_document(sketch.settings),
        "bins": None if sketch.bins is None else _bins_document(sketch.bins),
        "waiting": [run.number for run in sketch.waiting],
        "runs": [run.number for run in sketch.runs],
    } | {field: getattr(sketch, field) for field in _NUMBERS}
    runs: tuple[ElementRun | LeafRun, ...] = (*sketch.waiting, *sketch.runs)
    return {HEAD: Tables([with_head(NOTHING, head)])} | {f"{name}-{run.number}": run for run in runs}


def decode(parts: Parts, space: Space, name: str = "leaves") -> Sketch:
    """Return the sketch of parts; the inverse of `encode`. Runs that are in memory are the very ones that are given."""
    (table,) = parts[HEAD].tables()
    head = head_of(table)
    settings = parse_settings(head["settings"], space)

    return Sketch(
        settings,
        None if head["bins"] is None else _bins(head["bins"]),
        tuple(_elements(number, parts[f"{name}-{number}"], settings) for number in head["waiting"]),
        tuple(_leaves(number, parts[f"{name}-{number}"], settings) for number in head["runs"]),
        **{field: head[field] for field in _NUMBERS},
    )


def _elements(number: int, part: StatePart, settings: SketchSettings) -> ElementRun:
    if isinstance(part, ElementRun):
        return part
    (table,) = part.tables()
    return ElementRun(number, Observations.of_table(table, len(settings.features)))


def _leaves(number: int, part: StatePart, settings: SketchSettings) -> LeafRun:
    if isinstance(part, LeafRun):
        return part
    (table,) = part.tables()
    return LeafRun(number, Leaves.of_table(table, len(settings.features), len(settings.pairs)), settings.pairs)


def _bins_document(bins: Bins) -> dict[str, Any]:
    return {"edges": [edges.tolist() for edges in bins.edges], "order": list(bins.order), "kept": list(bins.kept)}


def _bins(document: dict[str, Any]) -> Bins:
    edges = tuple(np.array(edges, dtype=np.float64) for edges in document["edges"])
    return Bins(edges, tuple(document["order"]), tuple(document.get("kept", ())))
