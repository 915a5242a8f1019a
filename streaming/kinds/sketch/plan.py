"""Queries of a stream's sketch: the plan.

References
----------
Synopsis (2017), sections 3.5 and 3.6: queries over the sketch, discrete and continuous.
"""

from dataclasses import dataclass, field
from typing import Annotated

from streaming.kinds.base import Unfiltered
from streaming.kinds.parts import Box
from streaming.kinds.schema import list_of
from streaming.kinds.sketch.asks import MAX_ASKS, Ask, ask_document, parse_asks
from streaming.kinds.sketch.schema import ask_schemas
from streaming.kinds.sketch.selection import (
    BOX_OF_PLACE,
    RANGES,
    TIMES,
    FeatureRange,
    Other,
    OtherOf,
    Ring,
    RingOfPlace,
)
from streaming.kinds.sketch.times import SelectedTimes
from streaming.kinds.values import FiniteNumber, Flag, PlanPart

ASKS = PlanPart(
    reads=lambda value, _: parse_asks(value),
    writes=lambda asks, _: [ask_document(ask) for ask in asks],
    described=list_of(MAX_ASKS, *ask_schemas()) | {"minItems": 1},
    defines=ask_schemas,
)


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
    ask: Annotated[tuple[Ask, ...], ASKS]
    area: Annotated[Box, BOX_OF_PLACE]
    polygon: Annotated[Ring, RingOfPlace()] = ()
    time: Annotated[SelectedTimes, TIMES] = field(default_factory=SelectedTimes)
    ranges: Annotated[tuple[FeatureRange, ...], RANGES] = ()
    other: Annotated[Other | None, OtherOf()] = None
    confidence: Annotated[float, FiniteNumber(least=0.5, most=0.9999)] = 0.95
    once: Annotated[bool, Flag()] = False
    kind: str = "sketch"

    @property
    def emit(self) -> str:
        """Each change of the answer is reported."""
        return "changes"
