"""Window joins: the plan.

References
----------
Li et al., "Distributed join query method for large-scale spatial data streams", 2023, definitions 5 and 6.
"""

from dataclasses import dataclass
from operator import itemgetter
from typing import Annotated

from streaming.kinds.fields import EMIT_ONCE
from streaming.kinds.join.partners import Partners, PartnersIn
from streaming.kinds.join.times import IDLE_S, LATENESS_S, Duration
from streaming.kinds.parts import Box, Enlargement, Filter
from streaming.kinds.values import FiniteNumber, Flag


@dataclass(frozen=True)
class WindowJoinPlan:
    """A window join: in each window of event time, all pairs of a report of one stream and a report of another.

    Parameters
    ----------
    stream : str
        The stream whose reports the query evaluates.
    partners : Partners
        The stream that it is joined with, and what a pair must satisfy.
    area : tuple of float, length 2n
        Reports of `stream` outside of the area are ignored.
    window_s : float
        How long a window is, in seconds. A window has the reports from its start to just before its end.
    slide_s : float
        How long after a window the next one begins, in seconds; by default `window_s`, so that windows do not overlap.
        A pair is told once for each window that has it.
    start_s : float
        When one of the windows begins, in seconds since 1970 UTC. All others follow from it.
    lateness_s : float
        How late a report may be, in seconds: how much older than the newest report of its stream that came before it.
        Reports that are later are counted, and not joined. Windows are told so much later.
    idle_s : float
        After so many seconds without a report, a stream is no longer waited for.
    mirrored : bool
        In the join of a stream with itself: whether two reports that satisfy the join both ways are told both ways.
    transform : tuple of Enlargement
        Applied in order to the box of a report before it is compared.
    where : str
        CQL2 text over the report's properties; empty for none.
    filters : tuple of Filter
        A report must pass all of them.
    emit : {"all"}
        Each pair is told once, and no answer is kept.
    """

    stream: str
    partners: Annotated[Partners, PartnersIn(sources=("stream",))]
    area: Box
    window_s: Annotated[float, Duration(above=0)]
    slide_s: Annotated[float, Duration(above=0, follows=itemgetter("window_s"))]
    start_s: Annotated[float, FiniteNumber(least=-1e10, most=1e10, digits=6)] = 0.0
    lateness_s: Annotated[float, Duration(least=0)] = LATENESS_S
    idle_s: Annotated[float, Duration(above=0)] = IDLE_S
    mirrored: Annotated[bool, Flag()] = False
    transform: tuple[Enlargement, ...] = ()
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: Annotated[str, EMIT_ONCE] = "all"
    kind: str = "window_join"
