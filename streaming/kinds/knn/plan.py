"""Continuous queries for nearest neighbours (kNN): the plan, from JSON and back.

References
----------
PLACE* (2007), section 5: kNN queries whose focal objects move.
"""

import math
from dataclasses import dataclass
from typing import Annotated

from streaming.kinds.around import Focus
from streaming.kinds.fields import EMIT_KEPT, FOCUS, LENGTH
from streaming.kinds.parts import Box, Filter
from streaming.kinds.values import FiniteNumber, WholeNumber

MAX_K = 1_000
MAX_ALPHA = 10.0


@dataclass(frozen=True)
class NearestPlan:
    """A continuous query for the nearest neighbours of a focus (kNN).

    Parameters
    ----------
    stream : str
        The stream whose elements the query evaluates.
    focus : Focus
        The object that the query follows, which is never in its answer, or the place where it is.
    k : int
        The number of neighbours, 1 to 1000. The answer has fewer if there are no more.
    area : tuple of float, length 2n
        The area in which elements are evaluated; the whole space if it is missing.
    max_distance : float
        Elements that are farther away are ignored. Above 0; metres in a space with longitude and latitude, units of the
        first dimensions elsewhere; null for no limit.
    alpha : float
        How much larger the search region is than the answer, 0 to 10: 0.2 makes it a fifth larger.
    where : str
        CQL2 text over the element's properties; empty for none.
    filters : tuple of Filter
        An element must pass all of them.
    emit : {"changes", "membership"}
        ``changes``: each entry, exit and change of element, distance or rank is a result tuple; ``membership``: only
        entries and exits.
    """

    stream: str
    focus: Annotated[Focus, FOCUS]
    k: Annotated[int, WholeNumber(most=MAX_K)]
    area: Box
    max_distance: Annotated[float, LENGTH] = math.inf
    alpha: Annotated[float, FiniteNumber(least=0, most=MAX_ALPHA)] = 0.2
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: Annotated[str, EMIT_KEPT] = "changes"
    kind: str = "knn"

    @property
    def shape(self) -> None:
        """No shape: the assembler of the query sets the radius of its search region."""
        return None
