"""Continuous range queries over fixed boxes: the plan, from JSON and back.

References
----------
BBoxDB Streams (2022), section 4.4.1: continuous range queries.
"""

from dataclasses import dataclass
from typing import Annotated

from streaming.kinds.fields import BOX
from streaming.kinds.parts import (
    Box,
    Enlargement,
    Filter,
)
from streaming.kinds.values import choice

REPORTS = ("inside", "outside")


@dataclass(frozen=True)
class RangePlan:
    """A continuous range query.

    Parameters
    ----------
    stream : str
        The stream whose elements the query evaluates.
    area : tuple of float, length 2n
        The area in which the query is registered (alpha). Elements outside of it are ignored.
    compare : tuple of float, length 2n
        The query box (tau).
    report : {"inside", "outside"}
        ``inside``: the answer has the elements of the area whose transformed box intersects `compare`; ``outside``: the
        other elements of the area (beta).
    transform : tuple of Enlargement
        Applied in order to the element's box before it is compared (theta).
    where : str
        CQL2 text over the element's properties; empty for none.
    filters : tuple of Filter
        An element must pass all of them.
    emit : {"changes", "membership", "all"}
        ``changes``: each entry, exit and change of a member is a result tuple; ``membership``: only entries and exits;
        ``all``: each matching element is reported as it arrives, and no answer is kept.
    """

    stream: str
    area: Box
    compare: Annotated[Box, BOX]
    report: Annotated[str, choice("report", REPORTS)] = "inside"
    transform: tuple[Enlargement, ...] = ()
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: str = "changes"
    kind: str = "range"
