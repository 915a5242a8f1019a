"""Memory and error by the number of bins, on the axes of the paper's section 3.1.2 and its table 1."""

from dataclasses import dataclass, replace

import numpy as np

from bench.sketch.recordings import Recording
from streaming.sketch.bins import Bins, equal_bins, fan_out_order, vertices
from streaming.sketch.cells import cells_of
from streaming.sketch.settings import MOST_BINS, Plane
from streaming.sketch.sketch import Sketch, add

BINS = (16, 29, 48, 64)
# The paper: about 80 % of the values have this normalised error.
USUAL_ERROR = 0.005
# Features with an error budget.
BUDGETED = {
    "beijing": ("TEMP", "PM2.5", "WSPM", "PRES", "O3"),
    "globe": ("u", "v", "z"),
    "ships": ("SOG", "COG"),
}


@dataclass(frozen=True)
class Budgeted:
    """How an error budget was kept: for which part of the values, by how many bins, made how often; what it takes."""

    kept: float
    bins: int
    made: int
    leaves: int
    nbytes: int

    def row(self, name: str, feature: str, error: float) -> str:
        """Return a row of a table."""
        told = f"{self.kept:.1%} | {self.bins} | {self.made} | {self.leaves:,} | {self.nbytes / 1e6:.1f}"
        return f"| {name} | {feature} | {error:.2%} | {told} |"


def errors(values: np.ndarray, bins: int) -> tuple[float, float, float]:
    """Return which part of the values lies in bins of at most `USUAL_ERROR`, the error of 80 %, and of the worst bin.

    The error of a bin is the root mean square of the values' differences from their mean, as a part of the range.
    """
    code = np.searchsorted(equal_bins(values, bins), values, "right")
    own = _errors_of(code, values)
    return float((own <= USUAL_ERROR).mean()), float(np.quantile(own, 0.8)), float(own.max())


def _errors_of(code, values):
    """Return the error of each value's bin."""
    code = np.unique(code, return_inverse=True)[1]
    n = np.bincount(code)
    mean = np.bincount(code, values) / n
    return np.sqrt(np.bincount(code, (values - mean[code]) ** 2) / n)[code] / np.ptp(values)


def budgeted(recording: Recording, feature: str, error: float, follow: int = 1_000_000) -> Budgeted:
    """Sketch a recording with an error budget of a feature; return how it was kept, by the values themselves."""
    settings = replace(recording.settings, planes=(Plane(feature, error=error),), follow=follow)
    column, sketch, codes, used = recording.elements.values[settings.position(feature)], Sketch.empty(settings), [], []
    for start in range(0, len(recording.elements), settings.first):
        part = slice(start, start + settings.first)
        before, sketch = sketch.bins, add(sketch, recording.elements.take(part))
        # Bins are made anew after a multiple of `first`, so all elements of the part have the same.
        bins = sketch.bins if before is None else before
        if not used or bins is not used[-1]:
            used.append(bins)
        codes.append(bins.codes([column[part]])[0] + MOST_BINS * len(used))
    known = ~np.isnan(column)
    own = _errors_of(np.concatenate(codes)[known], column[known])
    most = max(len(bins.edges[0]) + 1 for bins in used)
    return Budgeted(float((own <= error).mean()), most, len(used), len(sketch), sketch.nbytes)


def rows_of(recording: Recording, planes: tuple[str, ...]) -> list[str]:
    """Return rows of a table: for each number of bins of some planes, what the sketch takes and how wrong bins are."""
    full = _full(recording, planes)
    rows = [f"| {recording.name} | all values | {full[0]:,} | {full[1]:,} | {full[2] / 1e6:.1f} | | | | |"]
    column = recording.elements.values[recording.settings.position(planes[0])]
    for bins in BINS:
        settings = replace(recording.settings, planes=tuple(Plane(name, bins) for name in planes))
        sketch = replace(recording, settings=settings).sketch()
        leaves = sketch.leaves()
        share, usual, worst = errors(column[~np.isnan(column)], bins)
        codes = _codes(leaves, len(planes))
        told = [f"{len(leaves):,}", f"{vertices(codes, range(len(codes))):,}", f"{leaves.nbytes / 1e6:.1f}"]
        told += [f"{1 - leaves.nbytes / full[2]:.1%}", f"{share:.0%}", f"{usual:.2%}", f"{worst:.1%}"]
        rows.append(f"| {recording.name} | {bins} | " + " | ".join(told) + " |")
    return rows


def _full(recording, planes):
    """Return leaves, vertices and bytes of a sketch whose planes have a vertex for each value."""
    settings, elements = recording.settings, recording.elements
    coarse = replace(recording, settings=replace(settings, planes=())).sketch().leaves()
    dimensions = [settings.space.dimensions[axis] for axis in settings.axes]
    corner, extent = (np.array([getattr(one, name) for one in dimensions]) for name in ("lo", "extent"))
    cell = cells_of(elements.place, corner, extent, settings.cell_bits)
    columns = [elements.values[settings.position(name)] for name in planes]
    prefix, count = np.zeros(len(elements), dtype=np.int64), 0
    for column in (elements.time_us // settings.time_bin_us, cell, *columns):
        code = np.unique(column, return_inverse=True)[1]
        prefix = np.unique(prefix * (int(code.max()) + 1) + code, return_inverse=True)[1]
        count += int(prefix.max()) + 1
    leaves = int(prefix.max()) + 1
    return leaves, count, leaves * coarse.nbytes / len(coarse)


def _codes(leaves, planes):
    columns = [leaves.start_us, leaves.cell]
    columns += [(leaves.planes >> (8 * (planes - 1 - place))) & 0xFF for place in range(planes)]
    return np.stack([np.unique(column, return_inverse=True)[1] for column in columns])


def orders(recording: Recording, planes: tuple[str, ...], bins: int = 16) -> str:
    """Return how many vertices planes of a recording have in the order of their fan-out, and in the opposite one."""
    columns = [recording.elements.values[recording.settings.position(name)][:10_000] for name in planes]
    edges = tuple(equal_bins(column[~np.isnan(column)], bins) for column in columns)
    codes = Bins(edges).codes(columns)
    order = fan_out_order(codes)
    counts = [vertices(codes, one) for one in (order, order[::-1])]
    return f"vertices of the first 10,000: {counts[0]:,} by fan-out, {counts[1]:,} the other way"
