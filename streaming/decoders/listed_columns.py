"""Boxes of any space from columns of text: one column, or two, for each dimension."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.decoders.base import OUT_OF_RANGE
from streaming.decoders.columns import numbers
from streaming.errors import InvalidOptions
from streaming.spaces import Space

Column = pa.Array | None


def check_lists(coordinates: Sequence[Any], lo: Sequence[Any], hi: Sequence[Any]) -> None:
    """Raise InvalidOptions unless lists of columns describe a point, by `coordinates`, or a box, by `lo` and `hi`."""
    if coordinates and (lo or hi):
        raise InvalidOptions(f"coordinates are those of points, lo and hi those of boxes; got both, {coordinates!r}")
    if len(lo) != len(hi):
        raise InvalidOptions(f"lo and hi must name equally many columns; got {lo!r} and {hi!r}")
    for name, columns in (("coordinates", coordinates), ("lo", lo), ("hi", hi)):
        for column in columns:
            if column is not None and (not isinstance(column, str) or not column):
                raise InvalidOptions(f"{name} must be a list of columns, null for a dimension without; got {column!r}")
    if all(column is None for column in (*coordinates, *lo, *hi)):
        raise InvalidOptions(f"a place must have a column for one dimension at least; got {[*coordinates, *lo]!r}")


def boxes(
    lo: Sequence[Column], hi: Sequence[Column], rows: int, space: Space
) -> tuple[np.ndarray, dict[str, pa.Array]]:
    """Return the boxes of rows whose bounds are texts, and which rows have no good box.

    Parameters
    ----------
    lo, hi : sequence of pyarrow.StringArray or None
        At most n each, in the order of the space's dimensions; null where a row has no bound, None where no row has.
    rows : int
    space : Space

    Returns
    -------
    bounds : ndarray of float64, shape (rows, 2n)
    faults : dict of str to pyarrow.BooleanArray
        By reason.
    """
    n = space.n
    bounds = np.hstack([np.full((rows, n), -np.inf), np.full((rows, n), np.inf)])
    unread = np.zeros(rows, dtype=bool)
    for first, columns in ((0, lo), (n, hi)):
        for position, texts in enumerate(columns, first):
            if texts is not None:
                values = numbers(texts).to_numpy(zero_copy_only=False)
                known = ~np.isnan(values)
                unread |= pc.is_valid(texts).to_numpy(zero_copy_only=False) & ~known
                bounds[known, position] = values[known]
    faults = {
        "no position": unread | np.isinf(bounds).all(axis=1),
        OUT_OF_RANGE: _outside(bounds, space),
        "lo above hi": (bounds[:, :n] > bounds[:, n:]).any(axis=1),
    }
    return bounds, {reason: pa.array(bad) for reason, bad in faults.items()}


def _outside(bounds, space):
    """Tell which boxes have a bound beyond its dimension, a turn beyond it where that wraps; open circles in place."""
    outside = np.zeros(len(bounds), dtype=bool)
    for axis, dimension in enumerate(space.dimensions):
        sides = bounds[:, [axis, space.n + axis]]
        finite = np.isfinite(sides)
        turn = dimension.extent if dimension.wraps else 0.0
        outside |= (finite & ((sides < dimension.lo - turn) | (sides > dimension.hi + turn))).any(axis=1)
        if dimension.wraps:
            half = finite.any(axis=1) & ~finite.all(axis=1)
            # On a circle, all above a bound is everything.
            bounds[half, axis], bounds[half, space.n + axis] = -np.inf, np.inf
            # Compared without a difference, which is infinite for the largest numbers.
            outside |= finite.all(axis=1) & (sides[:, 1] > sides[:, 0] + turn)
    return outside
