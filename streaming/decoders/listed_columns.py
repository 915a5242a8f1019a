"""Make boxes of any space from columns of text: one or two columns for each dimension."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.decoders.base import OUT_OF_RANGE
from streaming.decoders.columns import numbers
from streaming.errors import InvalidOptions
from streaming.language import gettext_noop
from streaming.spaces import Space

Column: TypeAlias = pa.Array | None


def check_lists(coordinates: Sequence[Any], lo: Sequence[Any], hi: Sequence[Any]) -> None:
    """Raise InvalidOptions unless the lists name columns of a point, `coordinates`, or of a box, `lo` and `hi`."""
    if coordinates and (lo or hi):
        raise InvalidOptions(
            "coordinates are those of points, lo and hi those of boxes; got both, %(coordinates)s",
            coordinates=repr(coordinates),
        )
    if len(lo) != len(hi):
        raise InvalidOptions(
            "lo and hi must name equally many columns; got %(lo)s and %(hi)s", lo=repr(lo), hi=repr(hi)
        )
    for name, columns in (("coordinates", coordinates), ("lo", lo), ("hi", hi)):
        for column in columns:
            if column is not None and (not isinstance(column, str) or not column):
                raise InvalidOptions(
                    "%(name)s must be a list of columns, null for a dimension without; got %(column)s",
                    name=name,
                    column=repr(column),
                )
    if all(column is None for column in (*coordinates, *lo, *hi)):
        raise InvalidOptions(
            "a place must have a column for one dimension at least; got %(value)s", value=repr([*coordinates, *lo])
        )


def boxes(
    lo: Sequence[Column], hi: Sequence[Column], rows: int, space: Space, decimal: str = "."
) -> tuple[np.ndarray, dict[str, pa.Array]]:
    """Return the boxes of rows whose bounds are texts, and the rows that have a fault.

    Parameters
    ----------
    lo, hi : sequence of pyarrow.StringArray or None
        At most n each, in the order of the space's dimensions. A null means that the row has no bound, None that no row
        has one.
    rows : int
        Number of rows.
    space : Space
    decimal : {".", ","}, optional
        The decimal sign.

    Returns
    -------
    bounds : ndarray of float64, shape (rows, 2n)
        ``[lo.., hi..]``, infinite where a row has no bound.
    faults : dict of str to pyarrow.BooleanArray, length `rows`
        By reason; true for rows with that fault.
    """
    n = space.n
    bounds = np.hstack([np.full((rows, n), -np.inf), np.full((rows, n), np.inf)])
    unread = np.zeros(rows, dtype=bool)
    for first, columns in ((0, lo), (n, hi)):
        for position, texts in enumerate(columns, first):
            if texts is not None:
                values = numbers(texts, decimal).to_numpy(zero_copy_only=False)
                known = ~np.isnan(values)
                unread |= pc.is_valid(texts).to_numpy(zero_copy_only=False) & ~known
                bounds[known, position] = values[known]
    faults = {
        gettext_noop("no position"): unread | np.isinf(bounds).all(axis=1),
        OUT_OF_RANGE: _outside(bounds, space),
        gettext_noop("lo above hi"): (bounds[:, :n] > bounds[:, n:]).any(axis=1),
    }
    return bounds, {reason: pa.array(bad) for reason, bad in faults.items()}


def _outside(bounds: np.ndarray, space: Space) -> np.ndarray:
    """Return which boxes lie outside the space, as booleans of shape (rows,).

    A dimension that wraps allows bounds one turn beyond it, and a width of one turn at most. A box with a single bound
    in such a dimension becomes unbounded there; `bounds` is changed in place.
    """
    outside = np.zeros(len(bounds), dtype=bool)
    for axis, dimension in enumerate(space.dimensions):
        sides = bounds[:, [axis, space.n + axis]]
        finite = np.isfinite(sides)
        turn = dimension.extent if dimension.wraps else 0.0
        if space.geographic and axis == 0:
            # Only boxes go on beyond the antimeridian.
            is_point = sides[:, 0] == sides[:, 1]
            outside |= is_point & ((sides[:, 0] < dimension.lo) | (sides[:, 0] > dimension.hi))
        outside |= (finite & ((sides < dimension.lo - turn) | (sides > dimension.hi + turn))).any(axis=1)
        if dimension.wraps:
            half = finite.any(axis=1) & ~finite.all(axis=1)
            # On a circle, everything lies above, or below, a single bound.
            bounds[half, axis], bounds[half, space.n + axis] = -np.inf, np.inf
            # Not by a difference, which would be infinite for the largest numbers.
            outside |= finite.all(axis=1) & (sides[:, 1] > sides[:, 0] + turn)
    return outside
