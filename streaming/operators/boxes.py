"""Intersection and enlargement of boxes: arrays of shape (N, 2n), each row ``[lo_1 .. lo_n, hi_1 .. hi_n]``."""

import itertools
from collections.abc import Sequence

import numpy as np

from streaming.kinds.parts import Box, Enlargement
from streaming.operators.geodesics import EARTH_RADIUS_M, POLE_DEG
from streaming.spaces import Space

# The length of a degree of latitude on the sphere.
METRES_PER_DEGREE = EARTH_RADIUS_M * np.pi / 180
# What a move by a turn may round away, as a part of the turn.
ROUNDED = 1e-12


def box_array(boxes: Sequence[Box], space: Space) -> np.ndarray:
    """Return boxes as float64 of shape (N, 2n)."""
    bounds = itertools.chain.from_iterable(boxes)
    # Four times as fast as `np.array` of tuples.
    return np.fromiter(bounds, np.float64, 2 * space.n * len(boxes)).reshape(len(boxes), 2 * space.n)


def intersects(
    boxes: np.ndarray,
    row: np.ndarray,
    others: np.ndarray,
    other_row: np.ndarray,
    space: Space,
    axes: Sequence[int] | None = None,
) -> np.ndarray:
    """Tell which pairs of boxes intersect; boxes are closed, so touching counts.

    Parameters
    ----------
    boxes, others : ndarray of float64, shapes (N, 2n) and (M, 2n)
    row, other_row : ndarray of int, shape (P,)
        The pairs, as positions in `boxes` and `others`.
    space : Space
        In a dimension that wraps, boxes also intersect if they meet after one is moved by a turn.
    axes : sequence of int, optional
        What `bounded_axes` returns for `others`. A caller that knows it saves a look at all of them.

    Returns
    -------
    ndarray of bool, shape (P,)
    """
    keep = np.ones(len(row), dtype=bool)
    for axis in bounded_axes(others, space) if axes is None else axes:
        dimension = space.dimensions[axis]
        if _unbounded(boxes, axis, space):
            continue
        low, high = boxes[row, axis], boxes[row, space.n + axis]
        other_low, other_high = others[other_row, axis], others[other_row, space.n + axis]
        meet = (low <= other_high) & (other_low <= high)
        if dimension.wraps:
            turn = dimension.extent
            meet |= (low + turn <= other_high) & (other_low <= high + turn)
            meet |= (low - turn <= other_high) & (other_low <= high - turn)
        keep &= meet
    return keep


def bounded_axes(boxes: np.ndarray, space: Space) -> list[int]:
    """Return the dimensions in which some of the boxes (N, 2n) are bounded."""
    return [axis for axis in range(space.n) if not _unbounded(boxes, axis, space)]


def _unbounded(boxes: np.ndarray, axis: int, space: Space) -> bool:
    """Tell whether all boxes are unbounded in a dimension, on both sides."""
    low, high = boxes[:, axis], boxes[:, space.n + axis]
    # Most arrays are either unbounded in all rows or in none, so the first row tells.
    if len(low) and not (np.isneginf(low[0]) and np.isposinf(high[0])):
        return False
    return bool(np.isneginf(low).all() and np.isposinf(high).all())


def enlarged(boxes: np.ndarray, by: str, amount: float, space: Space) -> np.ndarray:
    """Return boxes enlarged about their centres (theta of BBoxDB Streams, section 4.3.1).

    Parameters
    ----------
    boxes : ndarray of float64, shape (N, 2n)
    by : {"enlarge_factor", "enlarge_value", "enlarge_m"}
        See `plans.Enlargement`.
    amount : float
        A factor, a length in each dimension's own unit, or metres, according to `by`.
    space : Space

    Returns
    -------
    ndarray of float64, shape (N, 2n)
        A new array. A box that reaches around a whole circle becomes infinite in that dimension.
    """
    low, high = boxes[:, : space.n], boxes[:, space.n :]
    by_value = by == "enlarge_value"
    if by == "enlarge_m":
        margin = _margin_of_metres(low, high, amount)
    elif by_value:
        margin = np.full(low.shape, amount)
    else:
        margin = _widths(low, high) * ((amount - 1) / 2)
    low, high = low - margin, high + margin
    for axis, dimension in enumerate(space.dimensions):
        if dimension.wraps:
            around = _widths(low[:, axis], high[:, axis]) >= dimension.extent
            low[around, axis], high[around, axis] = -np.inf, np.inf
    return np.hstack([low, high])


def _widths(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return how wide intervals are; 0 where one has no place, or no end."""
    return np.subtract(high, low, out=np.zeros(low.shape), where=np.isfinite(low) & np.isfinite(high))


def transformed(boxes: np.ndarray, transform: Sequence[Enlargement], space: Space) -> np.ndarray:
    """Apply enlargements to boxes (N, 2n), one after the other; return the enlarged boxes (N, 2n)."""
    for step in transform:
        boxes = enlarged(boxes, step.by, step.amount, space)
    return boxes


def _margin_of_metres(low: np.ndarray, high: np.ndarray, metres: float) -> np.ndarray:
    """Return how far each side moves, in its own unit; longitudes as measured at the edge nearest to a pole."""
    margin = np.zeros(low.shape)
    margin[:, 1] = metres / METRES_PER_DEGREE
    nearest_pole = np.maximum(np.abs(low[:, 1]), np.abs(high[:, 1])) + margin[:, 1]
    cosine = np.cos(np.radians(np.minimum(nearest_pole, POLE_DEG)))
    margin[:, 0] = np.where(nearest_pole >= POLE_DEG, np.inf, margin[:, 1] / cosine)
    return margin


def differences(were: np.ndarray, are: np.ndarray, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Return boxes that cover where boxes differ: of each pair, what lies in only one of the two.

    An element that meets none of them meets both boxes of the pair, or neither.

    Parameters
    ----------
    were, are : ndarray of float64, shape (N, 2n)
    space : Space

    Returns
    -------
    number : ndarray of int64, shape (M,)
        The pair to which each box belongs.
    boxes : ndarray of float64, shape (M, 2n)
        Closed, and a little wider than needed in dimensions that wrap.
    """
    n, numbers, parts = space.n, [np.empty(0, dtype=np.int64)], [np.empty((0, 2 * space.n))]
    for one, other in ((were, are), (are, were)):
        for axis in range(n):
            below, above = one[:, axis] < other[:, axis], one[:, n + axis] > other[:, n + axis]
            for rows, side, nearest in ((below, n + axis, np.minimum), (above, axis, np.maximum)):
                number = np.flatnonzero(rows)
                part = one[number]
                part[:, side] = nearest(part[:, side], other[number, (side + n) % (2 * n)])
                numbers.append(number)
                parts.append(part)
    boxes = np.concatenate(parts)
    for axis, dimension in enumerate(space.dimensions):
        if dimension.wraps:  # a move by a turn rounds
            boxes[:, axis] -= ROUNDED * dimension.extent
            boxes[:, n + axis] += ROUNDED * dimension.extent
    return np.concatenate(numbers), boxes


def in_plane(boxes: np.ndarray, space: Space) -> np.ndarray:
    """Return boxes (N, 2n) in the first two dimensions, (N, 4); in a space of one dimension y is 0."""
    if space.n == 1:
        return np.stack([boxes[:, 0], np.zeros(len(boxes)), boxes[:, 1], np.zeros(len(boxes))], axis=1)
    return boxes[:, [0, 1, space.n, space.n + 1]]


def points_of(plane: np.ndarray) -> np.ndarray | None:
    """Return the places (N, 2) of boxes of the plane (N, 4) if all of them are points, otherwise None."""
    return plane[:, :2] if (plane[:, :2] == plane[:, 2:]).all() else None


def with_turns(numbers: np.ndarray, plane: np.ndarray, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Return numbered boxes of the plane, and copies, moved by a turn, of those that reach an end of a circle.

    Parameters
    ----------
    numbers : ndarray of int64, shape (N,)
    plane : ndarray of float64, shape (N, 4)
    space : Space

    Returns
    -------
    numbers : ndarray of int64, shape (M,)
        A copy has the number of its box.
    plane : ndarray of float64, shape (M, 4)
        The boxes that were given come first.
    """
    for axis, dimension in enumerate(space.dimensions[:2]):
        if dimension.wraps:
            low, high = plane[:, axis], plane[:, 2 + axis]
            finite = np.isfinite(low) & np.isfinite(high)
            over, under = np.flatnonzero(finite & (high >= dimension.hi)), np.flatnonzero(finite & (low < dimension.lo))
            turn = np.zeros(4)
            turn[[axis, 2 + axis]] = dimension.extent
            numbers = np.r_[numbers, numbers[over], numbers[under]]
            plane = np.vstack([plane, plane[over] - turn, plane[under] + turn])
    return numbers, plane


def turns(space: Space) -> np.ndarray:
    """Return the moves by turns after which boxes may meet in the plane, float64 of shape (T, 2); first (0, 0)."""
    whole = [(0.0, axis.extent, -axis.extent) if axis.wraps else (0.0,) for axis in space.dimensions[:2]]
    return np.array(list(itertools.product(*whole, *[(0.0,)] * (2 - len(whole)))))
