"""Interval joins: the plan.

References
----------
Li et al., "Distributed join query method for large-scale spatial data streams", 2023, definition 7 and section 2.3.2.
"""

from dataclasses import dataclass, fields

from streaming.kinds.join.plan import Partners
from streaming.kinds.join.times import IDLE_S, LATENESS_S
from streaming.kinds.parts import Box, Enlargement, Filter


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
    partners: Partners
    area: Box
    lower_s: float
    upper_s: float
    bin_s: float
    lateness_s: float = LATENESS_S
    idle_s: float = IDLE_S
    mirrored: bool = False
    transform: tuple[Enlargement, ...] = ()
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: str = "all"
    kind: str = "interval_join"


KEYS = ("join", *(field.name for field in fields(IntervalJoinPlan) if field.name != "partners"))
