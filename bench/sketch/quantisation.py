"""Memory and error by the number of bins, on the axes of the paper's section 3.1.2 and its table 1."""

from dataclasses import replace

import numpy as np

from bench.sketch.recordings import Recording
from streaming.sketch.bins import Bins, equal_bins, fan_out_order, vertices
from streaming.sketch.cells import cells_of
from streaming.sketch.settings import Plane

BINS = (16, 29, 48, 64)
# The paper: about 80 % of the values have this normalised error.
USUAL_ERROR = 0.005


def errors(values: np.ndarray, bins: int) -> tuple[float, float, float]:
    """Return which part of the values lies in bins of at most `USUAL_ERROR`, the error of 80 %, and of the worst bin.

    The error of a bin is the root mean square of the values' differences from their mean, as a part of the range.
    """
    code = np.searchsorted(equal_bins(values, bins), values, "right")
    n = np.bincount(code)
    mean = np.bincount(code, values) / n
    error = np.sqrt(np.bincount(code, (values - mean[code]) ** 2) / n) / np.ptp(values)
    own = error[code]
    return float((own <= USUAL_ERROR).mean()), float(np.quantile(own, 0.8)), float(error.max())


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
