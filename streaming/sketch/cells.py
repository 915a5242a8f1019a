"""Cells of two dimensions of a space: geohashes at the level of bits. Each bit halves a cell.

References
----------
Synopsis (2017), section 3.2: geohashes at the level of bits.
"""

import numpy as np

from streaming.sketch.settings import MOST_CELL_BITS, SketchSettings

# Bits of each of the two coordinates.
_BITS = MOST_CELL_BITS // 2
# Spreads or gathers every second bit, by steps that double (Warren, "Hacker's Delight", 2012, section 7-2).
_SPREAD = (
    (16, 0x0000FFFF0000FFFF),
    (8, 0x00FF00FF00FF00FF),
    (4, 0x0F0F0F0F0F0F0F0F),
    (2, 0x3333333333333333),
    (1, 0x5555555555555555),
)


def cell_bounds(settings: SketchSettings) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower bounds and the lengths of the two dimensions that make the cells, float64 of shape (2,)."""
    dimensions = [settings.space.dimensions[axis] for axis in settings.axes]
    return np.array([one.lo for one in dimensions]), np.array([one.extent for one in dimensions])


def cells_of(place: np.ndarray, low: np.ndarray, extent: np.ndarray, bits: int) -> np.ndarray:
    """Return the cell of each place: the first bit halves the first coordinate, the second bit the second, and so on.

    Parameters
    ----------
    place : ndarray of float64, shape (2, N)
        Finite. What lies outside of the bounds belongs to the cell at that border.
    low, extent : ndarray of float64, shape (2,)
        The lower bounds and the lengths of the two dimensions.
    bits : int
        0 to 48.

    Returns
    -------
    ndarray of int64, shape (N,)

    Examples
    --------
    >>> low, extent = np.array([-180.0, -90.0]), np.array([360.0, 180.0])
    >>> cells_of(np.array([[24.95, -24.95], [60.17, -60.17]]), low, extent, 4).tolist()
    [13, 2]
    """
    part = (place - low[:, None]) / extent[:, None]
    grid = np.clip(np.floor(part * (1 << _BITS)), 0, (1 << _BITS) - 1).astype(np.int64)
    return ((_spread(grid[0]) << 1) | _spread(grid[1])) >> (MOST_CELL_BITS - bits)


def cell_boxes(cell: np.ndarray, bits: np.ndarray, low: np.ndarray, extent: np.ndarray) -> np.ndarray:
    """Return the boxes of cells, float64 of shape (4, N): lower corners, then upper ones.

    Parameters
    ----------
    cell : ndarray of int64, shape (N,)
    bits : ndarray of int64, shape (N,)
        How many bits each cell has.
    low, extent : ndarray of float64, shape (2,)

    Examples
    --------
    >>> cell_boxes(np.array([13]), np.array([4]), np.array([-180.0, -90.0]), np.array([360.0, 180.0]))[:, 0].tolist()
    [0.0, 45.0, 90.0, 90.0]
    """
    whole = cell << (MOST_CELL_BITS - bits)
    corner = np.stack([_gathered(whole >> 1), _gathered(whole)]) / (1 << _BITS)
    size = np.stack([0.5 ** ((bits + 1) // 2), 0.5 ** (bits // 2)])
    corner, size = corner * extent[:, None] + low[:, None], size * extent[:, None]
    return np.concatenate([corner, corner + size])


def _spread(values: np.ndarray) -> np.ndarray:
    for shift, mask in _SPREAD:
        values = (values | (values << shift)) & mask
    return values


def _gathered(values: np.ndarray) -> np.ndarray:
    values = values & _SPREAD[-1][1]
    for (shift, _), (_, mask) in zip(
        reversed(_SPREAD), [*reversed(_SPREAD[:-1]), (0, 0x00000000FFFFFFFF)], strict=True
    ):
        values = (values | (values >> shift)) & mask
    return values
