"""Continuous range queries about a focus: the plan, from JSON and back.

References
----------
PLACE* (2007), section 4: range queries whose focal objects move.
"""

from dataclasses import dataclass
from typing import Annotated

from streaming.kinds.around import (
    Focus,
    Shape,
)
from streaming.kinds.fields import EMIT_KEPT, FOCUS_OF_SHAPE, SHAPE
from streaming.kinds.parts import Box, Filter


@dataclass(frozen=True)
class MovingRangePlan:
    """A continuous range query whose range lies about a focus.

    Parameters
    ----------
    stream : str
        The stream whose elements the query evaluates.
    focus : Focus
        The object that the query follows, which is never in its answer, or the place where it is.
    shape : Circle or Rectangle or Carried
        The range about the focus; elements whose box meets it are in the answer.
    area : tuple of float, length 2n
        The area in which elements are evaluated; the whole space if it is missing.
    where : str
        CQL2 text over the element's properties; empty for none.
    filters : tuple of Filter
        An element must pass all of them.
    emit : {"changes", "membership"}
        ``changes``: each entry, exit and change of a member is a result tuple; ``membership``: only entries and exits.
    """

    stream: str
    focus: Annotated[Focus, FOCUS_OF_SHAPE]
    shape: Annotated[Shape, SHAPE]
    area: Box
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: Annotated[str, EMIT_KEPT] = "changes"
    kind: str = "range"
