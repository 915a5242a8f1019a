"""Continuous spatial joins: the plan.

References
----------
BBoxDB Streams (2022), section 4.4.2: continuous spatial join queries.
"""

from dataclasses import dataclass
from typing import Annotated, Protocol

from streaming.kinds.base import Plan
from streaming.kinds.join.partners import Partners, PartnersIn
from streaming.kinds.parts import Box, Enlargement, Filter


class PlanWithPartners(Plan, Protocol):
    """What the plans of all kinds of joins have besides what every plan has."""

    @property
    def partners(self) -> Partners:
        """What the stream is joined with, and what a pair must satisfy."""


@dataclass(frozen=True)
class JoinPlan:
    """A continuous spatial join: its answer is a set of pairs of an element and a partner.

    Parameters
    ----------
    stream : str
        The stream whose elements the query evaluates.
    partners : Partners
    area : tuple of float, length 2n
        The area in which the query is registered (alpha). Elements outside of it are ignored.
    transform : tuple of Enlargement
        Applied in order to the element's box before it is compared (theta).
    where : str
        CQL2 text over the element's properties; empty for none.
    filters : tuple of Filter
        An element must pass all of them.
    emit : {"changes", "membership", "all"}
        ``changes``: each entry, exit and change of a pair is a result tuple; ``membership``: only entries and exits;
        ``all``: each matching pair is reported as it arrives, and no answer is kept.
    """

    stream: str
    partners: Annotated[Partners, PartnersIn()]
    area: Box
    transform: tuple[Enlargement, ...] = ()
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: str = "changes"
    kind: str = "join"
