"""Encounters: the plan.

References
----------
Li et al., "Distributed join query method for large-scale spatial data streams", 2023, section 2.3: pairs of reports by
place and time; here, what lies between the reports of an object counts, too.
"""

from dataclasses import dataclass
from typing import Annotated

from streaming.kinds.declared import Object
from streaming.kinds.fields import EMIT_KEPT
from streaming.kinds.join.partners import Partners, PartnersIn
from streaming.kinds.join.times import IDLE_S, LATENESS_S, Duration
from streaming.kinds.parts import Box, Enlargement, Filter
from streaming.kinds.values import AMOUNT, TEXT, Flag

GAP_S = 600.0


@dataclass(frozen=True)
class AwayFrom:
    """What both objects of an encounter must be away from.

    Parameters
    ----------
    layer : str
        The name of a layer of the same space.
    distance : float
        Both objects must be farther than this from each feature of the layer: metres in a space with longitude and
        latitude, the unit of the first dimension elsewhere.
    """

    layer: Annotated[str, TEXT]
    distance: Annotated[float, AMOUNT]


@dataclass(frozen=True)
class EncounterPlan:
    """Encounters: all pairs of an object of one stream and an object of another that stay near each other for a while.

    Parameters
    ----------
    stream : str
        The stream whose objects the query evaluates.
    partners : Partners
        The stream that it is joined with, and what a pair must satisfy.
    area : tuple of float, length 2n
        Objects of `stream` are near nothing while they are outside of the area.
    for_s : float
        How long a pair must be near, in seconds, without a break.
    gap_s : float
        An object is taken to be where it reported last until its next report, but for at most so many seconds.
    away_from : AwayFrom or None
        What both objects must be away from; null for nothing.
    lateness_s : float
        How late a report may be, in seconds: how much older than the newest report of its stream that came before it.
        Reports that are later are counted, and ignored. Encounters are told so much later.
    idle_s : float
        After so many seconds without a report, a stream is no longer waited for.
    mirrored : bool
        In the join of a stream with itself: whether two objects that satisfy the join both ways are told both ways.
    transform : tuple of Enlargement
        Applied in order to the box of an object before it is compared.
    where : str
        CQL2 text over the object's properties; empty for none.
    filters : tuple of Filter
        An object must pass all of them.
    emit : {"changes", "membership"}
        ``changes``: the beginning of an encounter, its end, and each time that the two have come closer;
        ``membership``: beginnings and ends only.
    """

    stream: str
    partners: Annotated[Partners, PartnersIn(sources=("stream",))]
    area: Box
    for_s: Annotated[float, Duration(least=0)]
    gap_s: Annotated[float, Duration(above=0)] = GAP_S
    away_from: Annotated[AwayFrom | None, Object(of=AwayFrom, definition="away_from")] = None
    lateness_s: Annotated[float, Duration(least=0)] = LATENESS_S
    idle_s: Annotated[float, Duration(above=0)] = IDLE_S
    mirrored: Annotated[bool, Flag()] = False
    transform: tuple[Enlargement, ...] = ()
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: Annotated[str, EMIT_KEPT] = "changes"
    kind: str = "encounter"
