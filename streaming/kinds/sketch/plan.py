"""Queries of a stream's sketch: the plan.

References
----------
Synopsis (2017), sections 3.5 and 3.6: queries over the sketch, discrete and continuous.
"""

import math
from dataclasses import dataclass, field

from streaming.kinds.base import Unfiltered
from streaming.kinds.parts import Box
from streaming.kinds.sketch.asks import Ask
from streaming.kinds.sketch.places import Ring
from streaming.kinds.sketch.times import SelectedTimes


@dataclass(frozen=True)
class FeatureRange:
    """The values of a feature that a selection has.

    Parameters
    ----------
    feature : str
        The name of the feature.
    lo : float or None
        The least value. A range has at least one bound, and at most one on each side.
    above : float or None
        All values are above this.
    hi : float or None
        The largest value.
    below : float or None
        All values are below this.
    """

    feature: str
    lo: float | None = None
    above: float | None = None
    hi: float | None = None
    below: float | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest double of the range; infinite where it has no bound.

        Examples
        --------
        >>> FeatureRange("wind", above=3.0, hi=5.0).bounds
        (3.0000000000000004, 5.0)
        """
        lo = self.lo if self.above is None else math.nextafter(self.above, math.inf)
        hi = self.hi if self.below is None else math.nextafter(self.below, -math.inf)
        return -math.inf if lo is None else lo, math.inf if hi is None else hi


@dataclass(frozen=True)
class Other:
    """The place and the time with which a selection is contrasted.

    Parameters
    ----------
    area : tuple of float, length 2n
        The box of the place, or about its polygon; the place of the selection if neither is given.
    polygon : tuple of tuple of float
        The vertices of the place, a simple ring; empty if it is a box.
    time : SelectedTimes
        Its times; those of the selection if they are missing.
    """

    area: Box
    polygon: Ring
    time: SelectedTimes


@dataclass(frozen=True)
class SketchPlan(Unfiltered):
    """Questions about what has passed, answered from the sketch of a stream with the bound of the error.

    Parameters
    ----------
    stream : str
        The stream whose sketch is asked.
    ask : tuple of Ask
        The questions, 1 to 16, all about the same selection.
    area : tuple of float, length 2n
        The box of the selection; the whole space if it is missing. Of a polygon, the box about it.
    polygon : tuple of tuple of float
        The vertices of the selection in the first two dimensions, a simple ring, in place of `area`.
    time : SelectedTimes
        The event times of the selection.
    ranges : tuple of FeatureRange
        The selection has only elements whose features lie in all of these ranges, at most 8.
    other : Other or None
        The place and the time of the other selection, which `contrast` needs.
    confidence : float
        How probable it is that the truth lies within the bound of an answer, for bounds that are not certain; 0.5 to
        0.9999.
    once : bool
        The question is answered once. Otherwise each answer is sent that differs from the last one by more than its
        bound.
    """

    stream: str
    ask: tuple[Ask, ...]
    area: Box
    polygon: Ring = ()
    time: SelectedTimes = field(default_factory=SelectedTimes)
    ranges: tuple[FeatureRange, ...] = ()
    other: Other | None = None
    confidence: float = 0.95
    once: bool = False
    kind: str = "sketch"

    @property
    def emit(self) -> str:
        """Each change of the answer is reported."""
        return "changes"


MAX_RANGES = 8
SKETCH_KEYS = ("stream", "kind", "ask", "area", "polygon", "time", "ranges", "other", "confidence", "once")
OTHER_KEYS = ("area", "polygon", "time")
BOUNDS = ("lo", "above", "hi", "below")
RANGE_KEYS = ("feature", *BOUNDS)
