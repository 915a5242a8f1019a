"""How long questions take in one process, at the size of the paper's sketch (its table 2: 203,216 leaves)."""

import time
from collections.abc import Callable

import numpy as np

from streaming.operators.geodesics import EARTH_RADIUS_M
from streaming.sketch import density, statistics
from streaming.sketch.chosen import choose
from streaming.sketch.observations import Observations
from streaming.sketch.relations import relate
from streaming.sketch.selection import Selection, ValueRange
from streaming.sketch.sets import questions
from streaming.sketch.sets.hashing import hashes_of_numbers
from streaming.sketch.sets.sets import Sets
from streaming.sketch.sets.sets import add as add_to_sets
from streaming.sketch.sets.settings import SetSettings
from streaming.sketch.settings import DAY_US, Plane, SketchSettings
from streaming.sketch.sketch import Sketch, add

LEAVES = 203_216
# North America, as the paper's forecasts.
WEST, SOUTH, EAST, NORTH = -130.0, 20.0, -60.0, 55.0
TURNS = 1_000
DEGREE_KM = np.pi * EARTH_RADIUS_M / 180_000
# Milliseconds in the paper.
PAPER = {
    "density": 0.007,
    "statistics": 0.002,
    "subgraph": 46.357,
    "member": 0.015,
    "frequency": 0.036,
    "cardinality": 0.154,
    "5": 40.510,
    "25": 47.619,
    "800": 53.620,
}


def paper_sized(seed: int = 0) -> Sketch:
    """Return a sketch of twelve months of four features over North America, of about as many leaves as the paper's."""
    settings = SketchSettings(
        ("temp", "humidity", "wind", "pressure"),
        (Plane("temp", 16),),
        cell_bits=17,
        time_bin_us=15 * DAY_US,
        comoments=("temp", "humidity"),
    )
    drawn, sketch = np.random.default_rng(seed), Sketch.empty(settings)
    month = 0
    while len(sketch) < LEAVES:
        sketch = add(sketch, _month(month % 12, 20_000, drawn))
        month += 1
    return sketch


def _month(month, count, drawn):
    place = drawn.uniform([[WEST], [SOUTH]], [[EAST], [NORTH]], (2, count))
    temp = 300 - 0.7 * (place[1] - SOUTH) + 10 * np.sin(month / 6 * np.pi) + drawn.normal(0, 4, count)
    values = np.stack([temp, drawn.uniform(0, 100, count), drawn.gamma(2, 3, count), drawn.normal(1013, 8, count)])
    return Observations(drawn.integers(month * 30 * DAY_US, (month + 1) * 30 * DAY_US, count), place, values)


def rows_of(sketch: Sketch, turns: int = TURNS) -> list[str]:
    """Return rows of a table: median and mean of each question, beside the paper's."""
    drawn = np.random.default_rng(1)

    def box(km):
        x, y = drawn.uniform(WEST + 10, EAST - 10), drawn.uniform(SOUTH + 5, NORTH - 5)
        half = km / 2 / DEGREE_KM
        across = half / np.cos(np.radians(y))
        return x - across, y - half, x + across, y + half

    def stat(km):
        return statistics.mean(choose(sketch, Selection((box(km),), None, (ValueRange("temp", 280, 290),))), "wind")

    def integral(feature, low, high):
        return density.integral(choose(sketch), feature, low, high)

    asked: list[tuple[str, Callable, str]] = [
        ("mean of everything", lambda: statistics.mean(choose(sketch), "temp"), "statistics"),
        ("standard deviation of everything", lambda: statistics.std(choose(sketch), "temp"), "statistics"),
        ("correlation of everything", lambda: statistics.correlation(choose(sketch), "temp", "humidity"), "statistics"),
        ("integral over a range, of a plane", lambda: integral("temp", 280.0, 290.0), "density"),
        ("integral, of another feature", lambda: integral("pressure", 1000.0, 1010.0), "density"),
        ("nine deciles", lambda: density.quantiles(choose(sketch), "temp"), "density"),
        ("mean of 5 km with temp in a range", lambda: stat(5), "subgraph"),
    ]
    asked += [
        (f"relational, {km} km", lambda km=km: relate(sketch, Selection((box(km),))), str(km)) for km in (5, 25, 800)
    ]
    asked += _of_sets()
    asked.append(("relational, 800 km, copied", lambda: relate(sketch, Selection((box(800),))).sketch, "800"))
    rows = []
    for name, ask, paper in asked:
        taken = _taken(ask, turns)
        rows.append(f"| {name} | {np.median(taken):.3f} | {np.mean(taken):.3f} | {taken.std():.3f} | {PAPER[paper]} |")
    return rows


def _of_sets(elements: int = 220_000, ships: int = 50_000) -> list[tuple[str, Callable, str]]:
    """Return questions to sets of about as many elements as the sketch: of ships, in three months and 16 cells."""
    drawn = np.random.default_rng(2)
    time_us, cell = drawn.integers(0, 90 * DAY_US, elements), drawn.integers(0, 16, elements)
    hashes = hashes_of_numbers(drawn.integers(0, ships, (1, elements)).astype(np.float64))
    settings = SetSettings(("ship",), cell_bits=4, time_bin_us=30 * DAY_US)
    sets = add_to_sets(Sets(settings), time_us, cell, hashes, np.ones((1, elements), dtype=bool))
    value, all_ = hashes[0, 0], questions.chosen(sets, "ship")
    return [
        ("set membership", lambda: questions.contains(sets, all_, value), "member"),
        ("set frequency", lambda: questions.frequency(sets, all_, value), "frequency"),
        ("set cardinality", lambda: questions.distinct(sets, all_), "cardinality"),
    ]


def _taken(ask, turns):
    """Return the processor time of each turn, in milliseconds; the first, which makes indexes, does not count."""
    ask()
    taken = np.empty(turns)
    for turn in range(turns):
        began = time.process_time()
        ask()
        taken[turn] = (time.process_time() - began) * 1e3
    return taken
