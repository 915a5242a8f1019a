"""Named n-dimensional coordinate spaces (BBoxDB: distribution groups)."""

import math
from dataclasses import dataclass

import numpy as np

from streaming.errors import InvalidSpace

FULL_TURN_DEG = 360.0


@dataclass(frozen=True)
class Dimension:
    """One axis of a space.

    Parameters
    ----------
    name, unit : str
        As shown to people, e.g. ``longitude``, ``deg``.
    lo, hi : float
        Bounds of the axis.
    wraps : bool
        The axis is a circle: `hi` is the same place as `lo`, and a box may cross it by an upper bound beyond `hi`
        (longitude 170 to 190 crosses the antimeridian; RFC 7946 5.2 has the case).
    """

    name: str
    unit: str
    lo: float
    hi: float
    wraps: bool = False

    @property
    def extent(self) -> float:
        """Length of the axis, in its unit."""
        return self.hi - self.lo


@dataclass(frozen=True)
class Space:
    """A named space; a box in it is the array ``[lo_1 .. lo_n, hi_1 .. hi_n]``.

    Parameters
    ----------
    name : str
    dimensions : tuple of Dimension
    geographic : bool
        The first two axes are longitude and latitude in degrees, so lengths in metres have a meaning.
    """

    name: str
    dimensions: tuple[Dimension, ...]
    geographic: bool = False

    @property
    def n(self) -> int:
        """Number of dimensions."""
        return len(self.dimensions)

    def whole(self) -> np.ndarray:
        """Return the unbounded box, float64 of shape (2n,)."""
        return np.r_[np.full(self.n, -np.inf), np.full(self.n, np.inf)]

    def box(self, lo, hi) -> np.ndarray:
        """Return a box from its corners, unbounded in the dimensions that the corners leave out.

        Parameters
        ----------
        lo, hi : sequence of float
            One to n numbers each, equally many.

        Returns
        -------
        ndarray of float64, shape (2n,)

        Raises
        ------
        InvalidSpace
            When a corner has too many numbers, one is not finite, lo exceeds hi, or the box lies outside the space.
        """
        for name, corner in (("lo", lo), ("hi", hi)):
            if not isinstance(corner, list | tuple) or not 1 <= len(corner) <= self.n:
                raise InvalidSpace(f"{name} must be a list of 1 to {self.n} numbers; got {corner!r}")
        if len(lo) != len(hi):
            raise InvalidSpace(f"lo and hi must have equally many numbers; got {len(lo)} and {len(hi)}")
        bounds = self.whole()
        for axis, (dimension, low, high) in enumerate(zip(self.dimensions, lo, hi, strict=False)):
            _check_interval(dimension, low, high)
            bounds[axis], bounds[self.n + axis] = low, high
        return bounds


def _check_interval(dimension, low, high):
    """Raise InvalidSpace unless [low, high] is an interval that lies within the dimension."""
    for value in (low, high):
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InvalidSpace(f"{dimension.name} must be a finite number; got {value!r}")
    if low > high:
        raise InvalidSpace(f"{dimension.name}: lo must not exceed hi; got {low!r} > {high!r}")
    if not dimension.lo <= low <= dimension.hi:
        raise InvalidSpace(f"{dimension.name} must start within [{dimension.lo:g}, {dimension.hi:g}]; got {low!r}")
    limit = low + dimension.extent if dimension.wraps else dimension.hi
    if high > limit:
        raise InvalidSpace(f"{dimension.name} must end at {limit:g} or before; got {high!r}")


EARTH = Space(
    "earth",
    (
        Dimension("longitude", "deg", -180.0, 180.0, wraps=True),
        Dimension("latitude", "deg", -90.0, 90.0),
        Dimension("altitude", "m", -12_000.0, 1_000_000.0),
    ),
    geographic=True,
)

SPACES = {EARTH.name: EARTH}
