"""Interval joins: the plan.

References
----------
Li et al., "Distributed join query method for large-scale spatial data streams", 2023, definition 7 and section 2.3.2.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from streaming.kinds.fields import EMIT_ONCE
from streaming.kinds.join.partners import Partners, PartnersIn
from streaming.kinds.join.times import IDLE_S, LATENESS_S, MOST_S, Duration
from streaming.kinds.parts import Box, Enlargement, Filter
from streaming.kinds.values import Flag

# By default a bin is as long as the interval, but at least this long, and at most as long as it may be.
LEAST_BIN_S = 1.0


def _length_s(fields: Mapping[str, Any]) -> float:
    return min(max(fields["upper_s"] - fields["lower_s"], LEAST_BIN_S), MOST_S)


@dataclass(frozen=True)
class IntervalJoinPlan:
    """An interval join: all pairs of a report of one stream and a report of another whose times differ by an interval.

    Parameters
    ----------
    stream : str
        The stream whose reports the query evaluates.
    partners : Partners
        The stream that it is joined with, and what a pair must satisfy.
    area : tuple of float, length 2n
        Reports of `stream` outside of the area are ignored.
    lower_s : float
        The least that the partner's time minus the report's may be, in seconds.
    upper_s : float
        The most that the partner's time minus the report's may be, in seconds.
    bin_s : float
        The reports that wait for partners are kept in bins of so many seconds, each with an index; a bin is dropped as
        a whole. By default, as long as the interval.
    lateness_s : float
        How late a report may be, in seconds: how much older than the newest report of its stream that came before it.
        Reports that are later are counted, and not joined. Reports are kept so much longer.
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
    lower_s: Annotated[float, Duration(least=-MOST_S)]
    upper_s: Annotated[float, Duration(least=-MOST_S)]
    bin_s: Annotated[float, Duration(above=0, follows=_length_s)]
    lateness_s: Annotated[float, Duration(least=0)] = LATENESS_S
    idle_s: Annotated[float, Duration(above=0)] = IDLE_S
    mirrored: Annotated[bool, Flag()] = False
    transform: tuple[Enlargement, ...] = ()
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: Annotated[str, EMIT_ONCE] = "all"
    kind: str = "interval_join"
