"""Partitioners cut a space into regions; all regions together are the global index.

References
----------
BBoxDB Streams (2022), section 3.2 (distribution regions); PLACE* (2007), section 3 (regional servers).
"""

from typing import Protocol

import numpy as np

from streaming.spaces import Space

# A part of a turn that is larger than the rounding error when a coordinate is moved by a turn.
ROUNDING = 1e-12


class Partitioner(Protocol):
    """The global index, as home servers use it."""

    regions: int

    def region_of(self, bounds: np.ndarray) -> np.ndarray:
        """Return the one region that keeps each box (N, 2n): the region of its low corner, int64 of shape (N,)."""

    def regions_of(self, bounds: np.ndarray) -> np.ndarray:
        """Tell which regions each box meets, bool of shape (N, regions); boxes that meet have a region in common."""


class GridPartitioner:
    """A grid of equal cells over the first two dimensions.

    Parameters
    ----------
    space : Space
    regions : int
        How many; laid out as columns x rows, as near to a square as the number allows.

    Raises
    ------
    ValueError
        If `regions` is below 1.
    """

    def __init__(self, space: Space, regions: int) -> None:
        if regions < 1:
            raise ValueError(f"regions must be at least 1; got {regions!r}")
        axes = space.dimensions[:2]
        rows = max(d for d in range(1, int(regions**0.5) + 1) if regions % d == 0) if len(axes) > 1 else 1
        self.regions = regions
        self._axes = axes
        self._lo = np.array([axis.lo for axis in axes])
        self._cells = np.array([regions // rows, rows][: len(axes)])
        self._size = np.array([axis.extent for axis in axes]) / self._cells

    def region_of(self, bounds: np.ndarray) -> np.ndarray:
        """Return the region of each box's low corner, int64 of (N,); a box (N, 2n) outside gets the nearest region."""
        cell = self._cell(bounds[:, : len(self._cells)], slice(None))
        return cell[:, 0] if len(self._cells) == 1 else cell[:, 0] * self._cells[1] + cell[:, 1]

    def regions_of(self, bounds: np.ndarray) -> np.ndarray:
        """Tell which regions each box (N, 2n) meets, bool of shape (N, regions); `region_of` is one of them.

        In a dimension that wraps, boxes that meet after a turn have a region in common, too.
        """
        n = bounds.shape[1] // 2
        met = [self._met(axis, bounds[:, axis], bounds[:, n + axis]) for axis in range(len(self._cells))]
        if len(met) == 1:
            return met[0]
        return (met[0][:, :, None] & met[1][:, None, :]).reshape(len(bounds), self.regions)

    def cell(self, region: int) -> tuple[list[float], list[float]]:
        """Return the lower and the upper corner of a region, in the dimensions that the grid cuts."""
        place = np.array(divmod(region, self._cells[1]) if len(self._cells) > 1 else [region])
        return (self._lo + place * self._size).tolist(), (self._lo + (place + 1) * self._size).tolist()

    def _cell(self, value, axis):
        cell = np.floor((value - self._lo[axis]) / self._size[axis])
        # Only a box that meets nothing has NaN for a bound.
        return np.clip(np.nan_to_num(cell), 0, self._cells[axis] - 1).astype(np.int64)

    def _met(self, axis, low, high):
        """Tell which cells of an axis each interval meets, bool of shape (N, cells)."""

        def between(low, high):
            return (self._cell(low, axis)[:, None] <= cells) & (cells <= self._cell(high, axis)[:, None])

        cells, dimension = np.arange(self._cells[axis]), self._axes[axis]
        met = between(low, high)
        for turn in (dimension.extent, -dimension.extent) if dimension.wraps else ():
            # A turn rounds: without slack, two intervals that meet at the border of a cell might lie on its two sides.
            slack = abs(turn) * ROUNDING
            first, last = low + turn - slack, high + turn + slack
            met |= ((first <= dimension.hi) & (last >= dimension.lo))[:, None] & between(first, last)
        return met
