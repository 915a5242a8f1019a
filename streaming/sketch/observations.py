"""Observations: what a sketch takes of elements."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Observations:
    """N elements, of F features.

    Parameters
    ----------
    time_us : ndarray of int64, shape (N,)
        Microseconds since 1970 UTC.
    place : ndarray of float64, shape (2, N)
        Coordinates in the two dimensions that make the cells.
    values : ndarray of float64, shape (F, N)
        In the order of the settings' features; NaN where an element lacks a feature.
    """

    time_us: np.ndarray
    place: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.time_us)

    def take(self, rows: np.ndarray | slice) -> "Observations":
        """Return some of them, given their positions, a mask, or a slice."""
        return Observations(self.time_us[rows], self.place[:, rows], self.values[:, rows])

    @classmethod
    def together(cls, parts: Sequence["Observations"]) -> "Observations":
        """Return the observations of several, one after the other; at least one part."""
        return cls(
            np.concatenate([part.time_us for part in parts]),
            np.concatenate([part.place for part in parts], axis=1),
            np.concatenate([part.values for part in parts], axis=1),
        )
