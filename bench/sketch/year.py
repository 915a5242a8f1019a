"""A year of fields like the recorded reanalysis: what the sketch takes beside what it was given, and how fast it is."""

import resource
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench.sketch.recordings import FOLDER, fields_of
from streaming.sketch.observations import Observations
from streaming.sketch.settings import DAY_US, HOUR_US, Plane, SketchSettings
from streaming.sketch.sketch import Sketch, add

SETTINGS = SketchSettings(
    ("u", "v", "z", "level"),
    (Plane("level", 3), Plane("u", 4)),
    cell_bits=6,
    time_bin_us=10 * DAY_US,
    comoments=("u", "v", "z"),
    study_us=30 * DAY_US,
)
# Every second point of the grid in each direction.
STEP = 2


@dataclass(frozen=True)
class Year:
    """What a year took."""

    elements: int
    given_bytes: int
    kept_bytes: np.ndarray
    process_bytes: np.ndarray
    cpu_s: float

    def rows(self) -> list[str]:
        """Return rows of a table."""
        kept, process = (np.array_split(column, 4) for column in (self.kept_bytes, self.process_bytes))
        most = [(sketch.max() / 1e6, all_.max() / 1e6) for sketch, all_ in zip(kept, process, strict=True)]
        quarters = " | ".join(f"{sketch:.2f}, {all_:.0f}" for sketch, all_ in most)
        ratio = self.given_bytes / self.kept_bytes.max()
        rate = self.elements / self.cpu_s
        return [f"| {self.elements:,} | {self.given_bytes / 1e6:,.0f} | {quarters} | {ratio:,.0f} | {rate:,.0f} |"]


def year(days: int = 365, folder: Path = FOLDER, step: int = STEP) -> Year:
    """Sketch a day's field after the other: between the two recorded months, with weather that drifts."""
    columns, drawn = fields_of(folder), np.random.default_rng(0)
    fields = np.stack([columns[name][:, :, ::step, ::step] for name in "uvz"])
    y, x = np.meshgrid(columns["latitude"][::step], columns["longitude"][::step], indexing="ij")
    place = np.tile(np.stack([x.ravel(), y.ravel()]), (1, 3))
    level = np.repeat(columns["level"], x.size)
    order = drawn.permutation(len(level))
    sketch, kept, process, cpu_s = Sketch.empty(SETTINGS), np.empty(days), np.empty(days), 0.0
    for day in range(days):
        part = (1 - np.cos(2 * np.pi * day / 365)) / 2
        field = (1 - part) * fields[:, 0] + part * fields[:, 1]
        moved = np.roll(field, int(drawn.integers(0, 20)), axis=3) + drawn.normal(0, 1, (3, 3, 1, 1))
        values = np.concatenate([moved.reshape(3, -1), level[None]])
        elements = Observations(np.full(len(level), day * DAY_US + 12 * HOUR_US), place, values).take(order)
        began = time.process_time()
        sketch = add(sketch, elements)
        cpu_s += time.process_time() - began
        kept[day], process[day] = sketch.nbytes, _process_bytes()
    width = 3 + len(SETTINGS.features)
    return Year(sketch.count, 8 * width * sketch.count, kept, process, cpu_s)


def _process_bytes():
    """Return the memory of the process that is in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def ingest(features: int = 8, count: int = 2_000_000, batch: int = 20_000, comoments: bool = True) -> float:
    """Return how many elements a second one core takes, with so many features in a plane of 16 bins and 4,096 cells."""
    names = tuple(f"f{number}" for number in range(features))
    settings = SketchSettings(names, (Plane("f0", 16),), cell_bits=12, comoments=names if comoments else ())
    drawn, sketch, cpu_s = np.random.default_rng(0), Sketch.empty(replace(settings, study_us=DAY_US)), 0.0
    middles = drawn.uniform([[-180], [-90]], [[180], [90]], (2, 200))
    for start in range(0, count, batch):
        time_us = start * 50 + np.arange(batch) * 50
        place = middles[:, drawn.integers(0, 200, batch)] + drawn.normal(0, 0.5, (2, batch))
        values = drawn.normal(size=(features, batch)) + place[1]
        began = time.process_time()
        sketch = add(sketch, Observations(time_us, place, values))
        cpu_s += time.process_time() - began
    return count / cpu_s
