"""Objects whose track is in an area: the plan."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

from streaming.kinds.declared import Object
from streaming.kinds.fields import EMIT_KEPT, NeededArea
from streaming.kinds.parts import Box, Filter
from streaming.kinds.schema import Schema
from streaming.kinds.values import PROPERTY_NAME, Definitions, FiniteNumber, Reading
from streaming.spaces import Space

GAP_S = 300.0
# A day: nothing is known of where an object was between two reports that are farther apart.
MOST_GAP_S = 86_400.0
# An accuracy that is worse than this says nothing of where an object is.
MOST_ACCURACY_M = 1_000_000.0
# So many reports in a row, each of which is not believed, but agrees with the one before, are believed.
BELIEVED_IN_A_ROW = 3


METRES = FiniteNumber(least=0, most=MOST_ACCURACY_M)


@dataclass(frozen=True)
class Accuracy:
    """How far a reported place may be from the true one: the radius of the *accuracy circle*.

    Parameters
    ----------
    property : str
        The property of a report that has the accuracy in metres; empty if all reports are equally accurate.
    else_m : float
        The accuracy, in metres, of reports that have no such property, or a value that is no number or negative.
    """

    property: Annotated[str, PROPERTY_NAME] = ""
    else_m: Annotated[float, METRES] = 0.0


@dataclass(frozen=True, kw_only=True)
class MetresOrProperty(Object):
    """A number of metres, or an object with a property that has it."""

    def read(self, value: Any, reading: Reading) -> Accuracy:
        if isinstance(value, dict):
            return super().read({"property": None, **value}, reading)
        return Accuracy("", METRES.read(value, reading))

    def write(self, plan: Any, name: str, space: Space) -> Any:
        return super().write(plan, name, space) if plan.accuracy.property else plan.accuracy.else_m

    def schema(self) -> Schema:
        return {"oneOf": [METRES.schema(), super().schema()]}

    def definitions(self) -> Definitions:
        return {name: schema | {"required": ["property"]} for name, schema in super().definitions().items()}


@dataclass(frozen=True)
class TrackPlan:
    """Objects whose track is in an area: accuracy, jumps, and what lies between two reports count.

    Parameters
    ----------
    stream : str
        The stream whose elements the query evaluates.
    area : tuple of float, length 2n
        The area: a box, or the box about its shape, which is the first filter.
    accuracy : Accuracy
        How accurate reported places are: a number of metres, or the property that has it. An object enters when its
        accuracy circle is within the area, and leaves when the circle is outside.
    fastest_m_s : float
        A report is not believed if its object would have moved faster than this since the last one that is believed.
    gap_s : float
        Between two believed reports that are at most so many seconds apart, the object moved along the straight line:
        it enters and leaves where this crosses the border. 0 if only reports count.
    where : str
        CQL2 text over the element's properties; empty for none.
    filters : tuple of Filter
        An element must pass all of them.
    emit : {"changes", "membership"}
        As in `RangePlan`.
    """

    stream: str
    area: Annotated[Box, NeededArea()]
    accuracy: Annotated[Accuracy, MetresOrProperty(of=Accuracy, definition="accuracy", null=False)] = Accuracy()
    fastest_m_s: Annotated[float, FiniteNumber(above=0, null=True)] = math.inf
    gap_s: Annotated[float, FiniteNumber(least=0, most=MOST_GAP_S, digits=6)] = GAP_S
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: Annotated[str, EMIT_KEPT] = "changes"
    kind: str = "track"
