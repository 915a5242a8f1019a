"""Which boxes lie in an area: wholly, in part, or not at all."""

import numpy as np
import shapely

from streaming.sketch.selection import Area, Box
from streaming.sketch.settings import InvalidSketch, SketchSettings


class PreparedArea:
    """An area, ready to be compared with many boxes.

    Parameters
    ----------
    area : Area
        See `streaming.sketch.selection.Selection`.
    settings : SketchSettings
        Whose dimensions may wrap.

    Raises
    ------
    InvalidSketch
        If a box is not four numbers in order, or a geometry is empty or not valid.
    """

    def __init__(self, area: Area, settings: SketchSettings) -> None:
        if isinstance(area, shapely.Geometry):
            self._boxes = np.empty((4, 0))
            self._geometry = _unwrapped(area, settings)
            shapely.prepare(self._geometry)
        else:
            self._geometry = None
            self._boxes = _box_pieces(area, settings)

    def relation(self, box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tell which boxes touch the area, and which lie in it as a whole: bool, each of shape (N,).

        Parameters
        ----------
        box : ndarray of float64, shape (4, N)
            Lower corners, then upper ones.
        """
        if self._geometry is not None:
            return self._relation_of_geometry(box)
        touching, inside = np.zeros(box.shape[1], dtype=bool), np.zeros(box.shape[1], dtype=bool)
        for piece in self._boxes.T:
            apart = (box[0] > piece[2]) | (box[1] > piece[3]) | (box[2] < piece[0]) | (box[3] < piece[1])
            touching |= ~apart
            inside |= (box[0] >= piece[0]) & (box[1] >= piece[1]) & (box[2] <= piece[2]) & (box[3] <= piece[3])
        return touching, inside

    def share(self, box: np.ndarray) -> np.ndarray:
        """Return which part of each box, all of which touch the area, lies in it, float64 of shape (N,)."""
        if self._geometry is not None:
            return self._share_of_geometry(box)
        total = np.zeros(box.shape[1])
        for piece in self._boxes.T:
            low, high = np.maximum(box[:2], piece[:2, None]), np.minimum(box[2:], piece[2:, None])
            extent = box[2:] - box[:2]
            part = np.where(extent > 0, (high - low) / np.where(extent > 0, extent, 1.0), (high >= low) * 1.0)
            total += np.clip(part, 0, 1).prod(axis=0)
        return np.clip(total, 0, 1)

    def _relation_of_geometry(self, box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        west, south, east, north = shapely.bounds(self._geometry)
        near = (box[0] <= east) & (box[1] <= north) & (box[2] >= west) & (box[3] >= south)
        touching, inside = np.zeros(box.shape[1], dtype=bool), np.zeros(box.shape[1], dtype=bool)
        boxes = _geometries(box[:, near])
        touching[near] = shapely.intersects(self._geometry, boxes)
        inside[near] = shapely.covers(self._geometry, boxes)
        return touching, inside

    def _share_of_geometry(self, box: np.ndarray) -> np.ndarray:
        distinct, which = np.unique(box, axis=1, return_inverse=True)
        # A box without an extent gets one that is too small to matter.
        size = distinct[2:] - distinct[:2]
        least = 1e-9 * np.maximum(np.abs(distinct[:2]), 1.0)
        wide = np.concatenate([distinct[:2], distinct[:2] + np.maximum(size, least)])
        boxes = _geometries(wide)
        part = shapely.area(shapely.intersection(boxes, self._geometry)) / shapely.area(boxes)
        return np.clip(part, 0, 1)[which]


def _geometries(box: np.ndarray) -> np.ndarray:
    flat = (box[0] == box[2]) | (box[1] == box[3])
    geometries = shapely.box(*box)
    # A ring without an area is not valid; the diagonal of the box is the same set of points.
    lines = np.stack([box[:2].T, box[2:].T], axis=1)[flat]
    geometries[flat] = shapely.linestrings(lines)
    return geometries


def _box_pieces(area: Box, settings: SketchSettings) -> np.ndarray:
    """Return the boxes of an area, (4, B): those that reach beyond the end of a dimension that wraps are cut there."""
    numbers = np.array(area, dtype=np.float64)
    if numbers.shape != (4,) or np.isnan(numbers).any() or (numbers[:2] > numbers[2:]).any():
        raise InvalidSketch(
            "a box must be four numbers, x_lo <= x_hi and y_lo <= y_hi among them; got %(area)s",
            area=f"{area!r:.80}",
        )
    pieces = [numbers]
    for axis, number in enumerate(settings.axes):
        dimension = settings.space.dimensions[number]
        if dimension.wraps and numbers[2 + axis] > dimension.hi:
            beyond = numbers.copy()
            beyond[axis], beyond[2 + axis] = dimension.lo, min(numbers[2 + axis] - dimension.extent, dimension.hi)
            pieces.append(beyond)
    return np.array(pieces).T


def _unwrapped(geometry: shapely.Geometry, settings: SketchSettings) -> shapely.Geometry:
    """Return a geometry together with its parts beyond the end of a dimension that wraps, moved by a turn."""
    if geometry.is_empty or not geometry.is_valid:
        raise InvalidSketch(
            "an area must be a valid geometry that is not empty; got %(wkt)s", wkt=f"{geometry.wkt:.80}"
        )
    for axis, number in enumerate(settings.axes):
        dimension = settings.space.dimensions[number]
        low, high = geometry.bounds[axis], geometry.bounds[2 + axis]
        if dimension.wraps and (high > dimension.hi or low < dimension.lo):
            turn = -dimension.extent if high > dimension.hi else dimension.extent
            moved = shapely.transform(geometry, lambda at, axis=axis, turn=turn: at + turn * (np.arange(2) == axis))
            geometry = shapely.union(geometry, moved)
    return geometry
