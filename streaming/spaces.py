"""Named n-dimensional coordinate spaces (BBoxDB: distribution groups)."""

import functools
import json
import math
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeGuard

import numpy as np

from streaming.errors import InvalidSpace
from streaming.language import gettext

FULL_TURN_DEG = 360.0
MAX_DIMENSIONS = 8
MAX_NAME_CHARACTERS = 40
# The names of logs and folders contain the name of their space.
SPACE_NAME = re.compile(r"[a-z][a-z0-9_-]*")
SPACE_KEYS = ("name", "dimensions", "geographic")
# All integers up to here are float64 numbers.
EXACT = 2**53
# The upper end of an interval that has a lower one only, in a dimension after the second: above every place, and below
# `elements.UNKNOWN`.
OPEN = sys.float_info.max
DIMENSION_KEYS = ("name", "unit", "lo", "hi", "wraps")


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
        The axis is a circle: `hi` is the same place as `lo`. A box that crosses this place has an upper bound beyond
        `hi`: longitude 170 to 190 crosses the antimeridian (the case of RFC 7946, section 5.2).
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

    def __hash__(self) -> int:
        """Return a hash that is quick: spaces of one name are seldom different."""
        return hash(self.name)

    @functools.cached_property
    def n(self) -> int:
        """Number of dimensions."""
        return len(self.dimensions)

    def whole(self) -> np.ndarray:
        """Return the unbounded box, float64 of shape (2n,)."""
        return np.repeat([-np.inf, np.inf], self.n)

    def box(self, lo: Sequence[float | None], hi: Sequence[float | None]) -> np.ndarray:
        """Return a box from its corners as float64 of shape (2n,); see `corners`.

        Examples
        --------
        >>> EARTH.box([None, 46], [None, 48]).tolist()
        [-inf, 46.0, -inf, inf, 48.0, inf]
        """
        return np.array(self.corners(lo, hi))

    def corners(self, lo: Sequence[float | None], hi: Sequence[float | None]) -> tuple[float, ...]:
        """Return a box from its corners, unbounded in the dimensions that the corners leave out.

        Parameters
        ----------
        lo, hi : sequence of float or None
            One to n numbers each, as many in `lo` as in `hi`; None if the box has no bound on that side.

        Returns
        -------
        tuple of float, length 2n

        Raises
        ------
        InvalidSpace
            If a corner has too few or too many numbers, a number is not finite, lo exceeds hi, the box reaches out of
            the space, or it has only one bound in a dimension that wraps.

        """
        # Without numpy: it takes many times as long for so few numbers, and plans are read by the thousand.
        for name, corner in (("lo", lo), ("hi", hi)):
            if not isinstance(corner, list | tuple) or not 1 <= len(corner) <= self.n:
                raise InvalidSpace(
                    "%(name)s must be a list of 1 to %(n)s numbers; got %(corner)s",
                    name=name,
                    n=self.n,
                    corner=repr(corner),
                )
        if len(lo) != len(hi):
            raise InvalidSpace(
                "lo and hi must have equally many numbers; got %(lo)s and %(hi)s",
                lo=len(lo),
                hi=len(hi),
            )
        intervals = [_interval(*bounded) for bounded in zip(self.dimensions, lo, hi, strict=False)]
        intervals = _beyond_plane(intervals)
        beyond = self.n - len(intervals)
        lower, upper = zip(*intervals, strict=True)
        return tuple(map(float, (*lower, *[-math.inf] * beyond, *upper, *[math.inf] * beyond)))

    def boxes(self, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return many boxes from their corners, as `box` does one by one, and tell which corners are sound.

        Parameters
        ----------
        lo, hi : ndarray of float64, shape (N, d)
            Any numbers.

        Returns
        -------
        boxes : ndarray of float64, shape (N, 2n)
            Unbounded in all dimensions but the first d. Only those of sound corners have a meaning.
        sound : ndarray of bool, shape (N,)
            False where `box` would raise an error, and where a number is so large that integers about it have no exact
            float64.

        Examples
        --------
        >>> boxes, sound = EARTH.boxes(np.array([[170.0], [20.0]]), np.array([[190.0], [10.0]]))
        >>> boxes[0].tolist(), sound.tolist()
        ([170.0, -inf, -inf, 190.0, inf, inf], [True, False])
        """
        count = lo.shape[1]
        bounds = np.tile(self.whole(), (len(lo), 1))
        if not 1 <= count <= self.n:
            return bounds, np.zeros(len(lo), dtype=bool)
        bounds[:, :count], bounds[:, self.n : self.n + count] = lo, hi
        sound = (np.abs(lo) <= EXACT).all(1) & (np.abs(hi) <= EXACT).all(1) & (lo <= hi).all(1)
        for axis, dimension in enumerate(self.dimensions[:count]):
            sound &= (dimension.lo <= lo[:, axis]) & (lo[:, axis] <= dimension.hi)
            sound &= hi[:, axis] <= (lo[:, axis] + dimension.extent if dimension.wraps else dimension.hi)
        return bounds, sound


def _interval(dimension: Dimension, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the bounds of an interval in a dimension, infinite for None; raise InvalidSpace if it breaks a rule."""
    known = [value for value in (low, high) if value is not None]
    for value in known:
        if not _is_finite(value):
            raise InvalidSpace(
                "%(name)s must be a finite number; got %(value)s", name=dimension.name, value=repr(value)
            )
    if low is not None and high is not None:
        _check_interval(dimension, low, high)
        return low, high
    if known and dimension.wraps:
        raise InvalidSpace(
            "%(name)s must have both bounds or none, since it wraps; got %(low)s and %(high)s",
            name=dimension.name,
            low=repr(low),
            high=repr(high),
        )
    if known and not dimension.lo <= known[0] <= dimension.hi:
        raise InvalidSpace(
            "%(name)s must lie within [%(lo)g, %(hi)g]; got %(known)s",
            name=dimension.name,
            lo=dimension.lo,
            hi=dimension.hi,
            known=repr(known[0]),
        )
    return -math.inf if low is None else low, math.inf if high is None else high


def _beyond_plane(intervals: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return intervals that have an end, where they are open, in dimensions after the second."""
    return [
        *intervals[:2],
        *((low, OPEN if low > -math.inf and high == math.inf else high) for low, high in intervals[2:]),
    ]


def _check_interval(dimension: Dimension, low: float, high: float) -> None:
    """Raise InvalidSpace unless [low, high] is an interval that lies within the dimension."""
    if low > high:
        raise InvalidSpace(
            "%(name)s: lo must not exceed hi; got %(low)s > %(high)s",
            name=dimension.name,
            low=repr(low),
            high=repr(high),
        )
    if not dimension.lo <= low <= dimension.hi:
        raise InvalidSpace(
            "%(name)s must start within [%(lo)g, %(hi)g]; got %(low)s",
            name=dimension.name,
            lo=dimension.lo,
            hi=dimension.hi,
            low=repr(low),
        )
    limit = low + dimension.extent if dimension.wraps else dimension.hi
    if high > limit:
        raise InvalidSpace(
            "%(name)s must end at %(limit)g or before; got %(high)s", name=dimension.name, limit=limit, high=repr(high)
        )


def _is_finite(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


EARTH = Space(
    "earth",
    (
        Dimension("longitude", "deg", -180.0, 180.0, wraps=True),
        Dimension("latitude", "deg", -90.0, 90.0),
        Dimension("altitude", "m", -12_000.0, 1_000_000.0),
    ),
    geographic=True,
)


def parse_space(document: Any) -> Space:
    """Return the space that a JSON document, or its text, describes.

    Parameters
    ----------
    document : dict or str or bytes
        See docs/spaces.md; `space_document` is the inverse.

    Raises
    ------
    InvalidSpace
        If the document breaks a rule. The message says the rule and the value.

    Examples
    --------
    >>> parse_space({"name": "prices", "dimensions": [{"name": "price", "unit": "USD", "lo": 0, "hi": 10000}]}).n
    1
    """
    document = _object(document)
    _check_keys(document, SPACE_KEYS, gettext("a space"))
    name = document.get("name")
    if not isinstance(name, str) or not SPACE_NAME.fullmatch(name) or len(name) > MAX_NAME_CHARACTERS:
        raise InvalidSpace(
            "a space's name must be lower case letters, digits, - and _, a letter first, at most "
            "%(max_name_characters)s; got %(name)s",
            max_name_characters=MAX_NAME_CHARACTERS,
            name=f"{name!r:.80}",
        )
    dimensions = document.get("dimensions")
    if not isinstance(dimensions, list) or not 1 <= len(dimensions) <= MAX_DIMENSIONS:
        raise InvalidSpace(
            "dimensions must be a list of 1 to %(max_dimensions)s objects; got %(dimensions)s",
            max_dimensions=MAX_DIMENSIONS,
            dimensions=f"{dimensions!r:.200}",
        )
    parsed = tuple(_dimension(dimension) for dimension in dimensions)
    names = [dimension.name for dimension in parsed]
    if len(set(names)) < len(names):
        raise InvalidSpace("the names of dimensions must be distinct; got %(names)s", names=", ".join(names))
    geographic = _flag(document, "geographic")
    if geographic:
        _check_geographic(parsed)
    return Space(name, parsed, geographic)


def space_document(space: Space) -> dict[str, Any]:
    """Return the JSON document of a space, such that ``parse_space(space_document(space)) == space``."""
    dimensions = [asdict(dimension) for dimension in space.dimensions]
    return {"name": space.name, "dimensions": dimensions, "geographic": space.geographic}


def space_text(space: Space) -> str:
    """Return the JSON text of a space; equal spaces have equal texts."""
    return json.dumps(space_document(space))


def _object(document: Any) -> dict[str, Any]:
    if isinstance(document, str | bytes):
        try:
            document = json.loads(document)
        except ValueError as error:
            raise InvalidSpace("a space must be a JSON object; %(error)s", error=error) from None
    if not isinstance(document, dict):
        raise InvalidSpace("a space must be a JSON object; got %(document)s", document=f"{document!r:.200}")
    return document


def _check_keys(document: Mapping[str, Any], keys: Collection[str], what: str) -> None:
    if unknown := sorted(set(document) - set(keys)):
        raise InvalidSpace(
            "%(what)s has the keys %(keys)s; got the unknown %(unknown)s",
            what=what,
            keys=", ".join(keys),
            unknown=f"{', '.join(unknown):.80}",
        )


def _dimension(document: Any) -> Dimension:
    if not isinstance(document, dict):
        raise InvalidSpace("a dimension must be an object; got %(document)s", document=f"{document!r:.200}")
    _check_keys(document, DIMENSION_KEYS, gettext("a dimension"))
    name, unit = document.get("name"), document.get("unit", "")
    if not isinstance(name, str) or not 1 <= len(name.strip()) <= MAX_NAME_CHARACTERS:
        raise InvalidSpace(
            "a dimension's name must be a text of 1 to %(max_name_characters)s characters; got %(name)s",
            max_name_characters=MAX_NAME_CHARACTERS,
            name=f"{name!r:.80}",
        )
    if not isinstance(unit, str) or len(unit) > MAX_NAME_CHARACTERS:
        raise InvalidSpace(
            "%(name)s: unit must be a text of at most %(max_name_characters)s characters; got %(unit)s",
            name=name,
            max_name_characters=MAX_NAME_CHARACTERS,
            unit=f"{unit!r:.80}",
        )
    for side in ("lo", "hi"):
        if not _is_finite(document.get(side)):
            raise InvalidSpace(
                "%(name)s: %(side)s must be a finite number; got %(document)s",
                name=name,
                side=side,
                document=f"{document.get(side)!r:.80}",
            )
    lo, hi = float(document["lo"]), float(document["hi"])
    if not lo < hi:
        raise InvalidSpace("%(name)s: lo must be below hi; got %(lo)g and %(hi)g", name=name, lo=lo, hi=hi)
    if not math.isfinite(hi - lo):
        raise InvalidSpace("%(name)s: hi - lo must be a finite number; got %(lo)g and %(hi)g", name=name, lo=lo, hi=hi)
    return Dimension(name.strip(), unit.strip(), lo, hi, _flag(document, "wraps"))


def _flag(document: Mapping[str, Any], name: str) -> bool:
    value = document.get(name, False)
    if not isinstance(value, bool):
        raise InvalidSpace("%(name)s must be true or false; got %(value)s", name=name, value=f"{value!r:.80}")
    return value


def _check_geographic(dimensions: Sequence[Dimension]) -> None:
    """Raise InvalidSpace unless dimensions begin as those of the earth do: computations in metres rely on it."""
    for number, dimension in enumerate(EARTH.dimensions[:2]):
        if number >= len(dimensions) or dimensions[number] != dimension:
            raise InvalidSpace(
                "dimension %(number)s of a geographic space must be %(rule)s; got %(value)s",
                number=number + 1,
                rule=json.dumps(asdict(dimension)),
                value=json.dumps(asdict(dimensions[number])) if number < len(dimensions) else "none",
            )
    altitude = EARTH.dimensions[2]
    if len(dimensions) > 2 and (dimensions[2].name, dimensions[2].unit) != (altitude.name, altitude.unit):
        raise InvalidSpace(
            "dimension 3 of a geographic space, where there is one, must be the altitude in m; got "
            "%(name)s in %(unit)s",
            name=dimensions[2].name,
            unit=dimensions[2].unit,
        )
