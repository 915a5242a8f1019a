"""Partitioners cut a space into regions; all regions together are the global index.

References
----------
BBoxDB Streams (2022), section 3.2 (distribution regions); PLACE* (2007), section 3 (regional servers).
"""

from typing import Protocol

import numpy as np

from streaming.spaces import Space


class Partitioner(Protocol):
    """What the home stage asks of a global index."""

    regions: int

    def region_of(self, bounds: np.ndarray) -> np.ndarray:
        """Return the one region that keeps each box: that of its low corner, int64 of shape (N,)."""


class GridPartitioner:
    """A grid of equal cells over the first two dimensions.

    Parameters
    ----------
    space : Space
    regions : int
        Laid out as columns x rows, as near to a square as the number allows.

    Raises
    ------
    ValueError
        When `regions` is below 1.
    """

    def __init__(self, space: Space, regions: int) -> None:
        if regions < 1:
            raise ValueError(f"regions must be at least 1; got {regions!r}")
        axes = space.dimensions[:2]
        rows = max(d for d in range(1, int(regions**0.5) + 1) if regions % d == 0) if len(axes) > 1 else 1
        self.regions = regions
        self._lo = np.array([axis.lo for axis in axes])
        self._cells = np.array([regions // rows, rows][: len(axes)])
        self._size = np.array([axis.extent for axis in axes]) / self._cells

    def region_of(self, bounds: np.ndarray) -> np.ndarray:
        """Return the region of each box's low corner, int64 of shape (N,); boxes (N, 2n) outside go to the border."""
        cell = np.floor((bounds[:, : len(self._cells)] - self._lo) / self._size)
        cell = np.clip(cell, 0, self._cells - 1).astype(np.int64)
        return cell[:, 0] if len(self._cells) == 1 else cell[:, 0] * self._cells[1] + cell[:, 1]
