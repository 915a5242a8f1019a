"""Distances of boxes from places, over the surface of the earth or in a plane.

A place is a point in the first two dimensions. The distance of a box from it is that of the nearest place in the box.
"""

import numpy as np

from streaming.operators.edges import Edges, least_m
from streaming.operators.geodesics import arc_m, error_m, geodesic_m, margins_deg, within_m
from streaming.spaces import Space


def distances(boxes: np.ndarray, places: np.ndarray, space: Space, limit: float | np.ndarray = np.nan) -> np.ndarray:
    """Return the distances of boxes from places, a pair a row.

    Parameters
    ----------
    boxes, places : ndarray of float64, shapes (P, 2n) and (P, 2)
    space : Space
    limit : float or ndarray of float64, shape (P,), optional
        The limit that the caller will compare the distances with. A distance beyond it need not be exact.

    Returns
    -------
    ndarray of float64, shape (P,)
        In a geographic space the lengths of geodesics in metres, see `geodesics.geodesic_m`; elsewhere the lengths of
        straight lines in the plane of the first two dimensions, in their unit. NaN if the place is NaN.
    """
    offset = offsets(boxes, places, space)
    if not space.geographic:
        return np.hypot(offset[:, 0], offset[:, 1])
    return _beside(geodesic_m(*_ends(places, offset), limit_m=limit), boxes, places, offset, space, limit)


def within(boxes: np.ndarray, places: np.ndarray, limit: np.ndarray, space: Space) -> np.ndarray:
    """Tell which boxes (P, 2n) are no farther from places (P, 2) than a limit (P,), bool of shape (P,).

    This takes less time than `distances`.
    """
    if not space.geographic:
        return distances(boxes, places, space) <= limit
    offset = offsets(boxes, places, space)
    near = within_m(*_ends(places, offset), limit_m=limit)
    return _beside(np.where(near, 0.0, np.inf), boxes, places, offset, space, limit) <= limit


def surely_within(points: np.ndarray, places: np.ndarray, limit: np.ndarray, space: Space) -> np.ndarray:
    """Tell which points (P, 2) are surely no farther from places (P, 2) than a limit (P,), bool of shape (P,).

    False also for some points within the limit.
    """
    if not space.geographic:
        return np.hypot(*(points - places).T) <= limit
    arc = arc_m(*places.T, *points.T)
    return arc + error_m(arc) <= limit


def _ends(places: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the longitudes and latitudes of places, and those of the places at an offset from them."""
    return places[:, 0], places[:, 1], places[:, 0] + offset[:, 0], np.clip(places[:, 1] + offset[:, 1], -90.0, 90.0)


def _beside(
    distance: np.ndarray,
    boxes: np.ndarray,
    places: np.ndarray,
    offset: np.ndarray,
    space: Space,
    limit: float | np.ndarray,
) -> np.ndarray:
    """Return distances, corrected for boxes to the east or west of their place: those of the nearer side.

    On such a side, which is a meridian, the nearest place does not have the latitude of the given place.
    """
    south, north = (np.clip(boxes[:, column], -90.0, 90.0) for column in (1, space.n + 1))
    beside = np.flatnonzero((offset[:, 0] != 0) & (north > south))
    if len(beside):
        number, side = np.arange(len(beside)), np.stack([places[:, 0] + offset[:, 0], south], axis=1)[beside]
        way = np.stack([np.zeros(len(beside)), (north - south)[beside]], axis=1)
        points = Edges.cut(places[beside], np.zeros((len(beside), 2)), number, len(beside))
        sides = Edges.cut(side, way, number, len(beside))
        distance[beside] = least_m(points, sides, np.broadcast_to(limit, len(boxes))[beside])
    return distance


def offsets(boxes: np.ndarray, places: np.ndarray, space: Space) -> np.ndarray:
    """Return the offset from each place (P, 2) to the nearest place of its box (P, 2n), float64 of shape (P, 2)."""
    way = np.zeros((len(boxes), 2))
    for axis, dimension in enumerate(space.dimensions[:2]):
        low, high = boxes[:, axis] - places[:, axis], boxes[:, space.n + axis] - places[:, axis]
        way[:, axis] = _nearest(low, high)
        for turn in (dimension.extent, -dimension.extent) if dimension.wraps else ():
            turned = _nearest(low + turn, high + turn)
            way[:, axis] = np.where(np.abs(turned) < np.abs(way[:, axis]), turned, way[:, axis])
    return way


def _nearest(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the number nearest to 0 in each interval."""
    return np.maximum(low, 0) + np.minimum(high, 0)


def middles(boxes: np.ndarray, space: Space) -> np.ndarray:
    """Return the middles of boxes (N, 2n), float64 of shape (N, max(2, n)).

    In a dimension in which a box is unbounded the middle is NaN, but 0 in the first two, so that each box has a place.
    A second dimension that the space lacks is 0, too.
    """
    middle = np.zeros((len(boxes), max(2, space.n)))
    middle[:, 2:] = np.nan
    for axis in range(space.n):
        low, high = boxes[:, axis], boxes[:, space.n + axis]
        bounded = np.isfinite(low) & np.isfinite(high)
        middle[bounded, axis] = (low[bounded] + high[bounded]) / 2
    return middle


def within_boxes(places: np.ndarray, reach: np.ndarray, space: Space) -> np.ndarray:
    """Return boxes of the plane, (Q, 4), that contain all places within reach (Q,) of places (Q, 2).

    The reach is in metres in a geographic space, otherwise in the unit of the first two dimensions. A box that reaches
    around a whole circle becomes infinite in that dimension.
    """
    margin = np.stack(margins_deg(places[:, 1], reach) if space.geographic else (reach, reach), axis=1)
    boxes = np.hstack([places - margin, places + margin])
    for axis, dimension in enumerate(space.dimensions[:2]):
        if dimension.wraps:
            around = boxes[:, 2 + axis] - boxes[:, axis] >= dimension.extent
            boxes[around, axis], boxes[around, 2 + axis] = -np.inf, np.inf
    return boxes
