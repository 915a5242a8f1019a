"""Continuous spatial joins: the plan, from JSON and back.

References
----------
BBoxDB Streams (2022), section 4.4.2: continuous spatial join queries.
"""

from dataclasses import dataclass, fields
from typing import Protocol

from streaming.kinds.base import Plan
from streaming.kinds.parts import (
    Box,
    Enlargement,
    Filter,
    UserFilter,
)

SOURCES = ("layer", "stream", "stored")
# No layer's name begins with this.
STORED_PREFIX = "stored:"
# OGC 06-103r4 (simple features), section 6.1.15; besides, a distance (dwithin), and the boxes alone (boxes).
PREDICATES = (
    "intersects",
    "within",
    "contains",
    "covers",
    "covered_by",
    "touches",
    "crosses",
    "overlaps",
    "equals",
    "disjoint",
    "dwithin",
    "boxes",
)
PARTNERS_KEYS = (*SOURCES, "predicate", "distance", "where", "filters", "pair_filters")


@dataclass(frozen=True)
class Partners:
    """What the elements of a stream are joined with, and how.

    Parameters
    ----------
    source : {"layer", "stream", "stored"}
        Features of a layer, the last known elements of a stream, or the stored elements of one (which may be the
        query's own), as of the last snapshot.
    name : str
        The name of the layer or stream.
    predicate : str
        The relation that must hold between the element and its partner. The element is compared by its transformed box
        if the plan has transformations, otherwise by its geometry, or by its box if it has no geometry.
    distance : float
        The largest distance of ``dwithin``: metres in a space with longitude and latitude, the unit of the first
        dimension elsewhere.
    where : str
        CQL2 text over the partner's properties (lambda); empty for none.
    filters : tuple of Filter
        A partner must pass all of them.
    pair_filters : tuple of UserFilter
        A pair must pass all of them.
    """

    source: str
    name: str
    predicate: str = "intersects"
    distance: float = 0.0
    where: str = ""
    filters: tuple[Filter, ...] = ()
    pair_filters: tuple[UserFilter, ...] = ()

    @property
    def layer(self) -> str:
        """The name under which the engine knows the features of a layer, or a snapshot of stored elements."""
        return f"{STORED_PREFIX}{self.name}" if self.source == "stored" else self.name


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
    partners: Partners
    area: Box
    transform: tuple[Enlargement, ...] = ()
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: str = "changes"
    kind: str = "join"


JOIN_KEYS = ("join", *(field.name for field in fields(JoinPlan) if field.name != "partners"))
