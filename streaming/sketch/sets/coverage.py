"""Which entries of sets a selection meets, and which lie within it as a whole."""

import numpy as np

from streaming.sketch.areas import PreparedArea
from streaming.sketch.cells import cell_bounds, cell_boxes
from streaming.sketch.selection import Selection
from streaming.sketch.sets.entries import EntryKeys
from streaming.sketch.sets.questions import Coverage
from streaming.sketch.sets.settings import SetSettings
from streaming.sketch.settings import SketchSettings


def coverage_of(selection: Selection, sketch: SketchSettings, sets: SetSettings) -> Coverage:
    """Return the coverage of a selection, for `questions.chosen`.

    Sets know where and when a value was, and not with which other values. So no entry lies within a selection that has
    ranges of features, and answers about it are bounded from above alone.

    Parameters
    ----------
    selection : Selection
    sketch : SketchSettings
        Of the sketch of the same stream: its space, and the dimensions that make the cells.
    sets : SetSettings
    """
    regions = [PreparedArea(area, sketch) for area in selection.areas]
    low, extent = cell_bounds(sketch)

    def coverage(keys: EntryKeys, level: int) -> tuple[np.ndarray, np.ndarray]:
        inside = np.full(len(keys.cell), not selection.ranges)
        meeting = np.ones(len(keys.cell), dtype=bool)
        if regions and len(keys.cell):
            cell, which = np.unique(keys.cell, return_inverse=True)
            boxes = cell_boxes(cell, np.full(len(cell), sets.bits(level)), low, extent)
            for region in regions:
                touched, within = region.relation(boxes)
                inside &= within[which]
                meeting &= touched[which]
        if selection.times is not None:
            length = sets.bin_us(level)
            covered = selection.times.covered(keys.start_us + length) - selection.times.covered(keys.start_us)
            inside &= covered == length
            meeting &= covered > 0
        return inside, meeting

    return coverage
