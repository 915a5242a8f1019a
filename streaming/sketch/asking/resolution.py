"""How fine the cells of a sketch are for the area of a question, told before the question is answered.

Only what lies in whole cells is known exactly. Of cells that the border of an area cuts, it is estimated how much lies
within, and the bounds of the answer tell how wrong that can be.
"""

from dataclasses import dataclass

import numpy as np
import shapely

from streaming.kinds.sketch.plan import SketchPlan
from streaming.sketch.asking.needs import selection_of
from streaming.sketch.cells import cell_bounds
from streaming.sketch.selection import Area
from streaming.sketch.settings import MOST_CELL_BITS, SketchSettings

# Cells are too coarse for an area of which a smaller part is whole cells.
LEAST_WHOLE = 0.5
# With the proposed cells, so large a part is.
WISHED_WHOLE = 0.8


@dataclass(frozen=True)
class CoarseCells:
    """Cells that are too coarse for an area.

    Parameters
    ----------
    cells : float
        As how many cells the area is large.
    whole : float
        Which part of the area is whole cells, on the average of where the area may lie.
    cell_bits : int
        With so many bits, or the most that there can be, they would be fine enough.
    """

    cells: float
    whole: float
    cell_bits: int


def coarse_cells(plan: SketchPlan, settings: SketchSettings) -> CoarseCells | None:
    """Return how coarse the cells of a sketch are for the areas of a plan; None if they are fine enough.

    Of several areas, the one with the least part in whole cells counts.
    """
    areas = [area for other in (False, True) for area in selection_of(plan, other, settings, 0).areas]
    found = [(_sides(area, settings, settings.cell_bits), area) for area in areas]
    if not found:
        return None
    sides, area = min(found, key=lambda one: _whole(one[0]))
    if _whole(sides) >= LEAST_WHOLE:
        return None
    finer = range(settings.cell_bits, MOST_CELL_BITS + 1)
    bits = next((bits for bits in finer if _whole(_sides(area, settings, bits)) >= WISHED_WHOLE), MOST_CELL_BITS)
    return CoarseCells(float(np.prod(sides)), _whole(sides), bits)


def _sides(area: Area, settings: SketchSettings, bits: int) -> np.ndarray:
    """Return the sides of the box about an area in cells, float64 of shape (2,)."""
    box = np.array(area.bounds if isinstance(area, shapely.Geometry) else area)
    _, extent = cell_bounds(settings)
    return (box[2:] - box[:2]) / extent * 2.0 ** np.array([(bits + 1) // 2, bits // 2])


def _whole(sides: np.ndarray) -> float:
    return float(np.prod(np.maximum(1 - 1 / np.maximum(sides, 1e-12), 0)))
