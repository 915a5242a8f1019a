"""What a question to a sketch is answered with: a value, its bounds, and what they are based on."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist

from streaming.sketch.chosen import ChosenLeaves
from streaming.sketch.settings import InvalidSketch

# The confidence of bounds that hold for certain.
CERTAIN = 1.0
# A part of the values' size that is larger than rounding errors of sums.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Basis:
    """What an answer is based on.

    Parameters
    ----------
    leaves, cut : int
        How many leaves, and how many of them the selection cuts.
    elements : float
        How many elements match; an estimate if leaves are cut.
    first_us, last_us : int or None
        The earliest and the latest time of the leaves' elements, in microseconds since 1970 UTC.
    """

    leaves: int
    cut: int
    elements: float
    first_us: int | None
    last_us: int | None


@dataclass(frozen=True)
class Answer:
    """A value with its bounds.

    Parameters
    ----------
    value : float
        NaN if nothing matches, as far as is estimated.
    low, high : float
        The exact answer lies between them, both included, with the probability `confidence`.
    confidence : float
        1 if the bounds hold for certain.
    basis : Basis
    """

    value: float
    low: float
    high: float
    confidence: float
    basis: Basis

    @property
    def width(self) -> float:
        """The distance of the bounds."""
        return self.high - self.low


def basis_of(chosen: ChosenLeaves) -> Basis:
    """Return what answers about chosen leaves are based on."""
    return chosen.once("basis", lambda: _basis(chosen))


def _basis(chosen: ChosenLeaves) -> Basis:
    elements = float(chosen.whole("count").sum()) + float((chosen.partial("count") * chosen.cut.share).sum())
    first, last = chosen.column("first_us"), chosen.column("last_us")
    times = (int(first.min()), int(last.max())) if len(first) else (None, None)
    return Basis(chosen.leaves, len(chosen.cut.share), elements, *times)


@functools.lru_cache(maxsize=64)
def deviations(confidence: float) -> float:
    """Return within how many standard deviations an error lies with some confidence, if it is a normal one.

    Raises
    ------
    InvalidSketch
        If the confidence is not between 0 and 1.

    Examples
    --------
    >>> round(deviations(0.95), 2)
    1.96
    """
    if not 0 < confidence <= 1:
        raise InvalidSketch("confidence must be above 0 and at most 1; got %(confidence)s", confidence=repr(confidence))
    return math.inf if confidence == CERTAIN else NormalDist().inv_cdf((1 + confidence) / 2)


def nothing(confidence: float, basis: Basis) -> Answer:
    """Return the answer if nothing matches."""
    return Answer(math.nan, math.nan, math.nan, confidence, basis)


def estimated(answer: Answer, n: float, least: int = 1) -> Answer:
    """Return an answer without its value if it is estimated that fewer than `least` values match.

    Its bounds stay: more may match.
    """
    return answer if n >= least - ROUNDING else replace(answer, value=math.nan)


def contrast(one: Answer, other: Answer) -> Answer:
    """Return by how much an answer is above another one: of two places, two times, or two selections of any kind.

    The errors of the two count as independent, unless the bounds are certain.
    """
    confidence = min(one.confidence, other.confidence)
    value = one.value - other.value
    if confidence == CERTAIN:
        low, high = one.low - other.high, one.high - other.low
    else:
        low = value - math.hypot(one.value - one.low, other.high - other.value)
        high = value + math.hypot(one.high - one.value, other.value - other.low)
    bases = one.basis, other.basis
    times = [
        [getattr(basis, name) for basis in bases if basis.first_us is not None] for name in ("first_us", "last_us")
    ]
    basis = Basis(
        sum(basis.leaves for basis in bases),
        sum(basis.cut for basis in bases),
        sum(basis.elements for basis in bases),
        min(times[0], default=None),
        max(times[1], default=None),
    )
    return Answer(value, low, high, confidence, basis)


def root(function: Callable[[float], float], low: float, high: float, precision: float) -> float:
    """Return a point at or above which a falling function is no longer positive, between `low` and `high`.

    The point is at most `precision` beyond the root. By the Illinois rule: regula falsi that halves the value at an end
    that stays.

    References
    ----------
    M. Dowell, P. Jarratt, "A modified regula falsi method for computing the root of an equation", BIT 11, 1971.
    """
    at_low, at_high, side = function(low), function(high), 0
    if at_low <= 0:
        return low
    if at_high > 0:
        return high
    for _ in range(60):
        if high - low <= precision or at_high == 0:
            return high
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        middle = min(max(middle, low + 0.01 * (high - low)), high - 0.01 * (high - low))
        value = function(middle)
        if value > 0:
            low, at_low = middle, value
            at_high = at_high / 2 if side == 1 else at_high
            side = 1
        else:
            high, at_high = middle, value
            at_low = at_low / 2 if side == -1 else at_low
            side = -1
    return high
