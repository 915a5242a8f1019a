"""The smaller of two joined streams drives their join over event time: it is the one that is sent to several regions.

Which stream is smaller is decided from what the tasks report, and is a control entry. So it takes force in one batch,
for all servers at once. It is decided only if one stream is clearly smaller for several observations, and a join that
was changed stays as it is for a while, since all reports that wait are divided anew.

References
----------
Li et al., "Distributed join query method for large-scale spatial data streams", 2023, algorithm 3: the driving stream
is sent to each region that it reaches, and an optimiser lets the smaller one drive.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from streaming.logs import Log
from streaming.operators.time_joins import either_may_drive
from streaming.servers.control.registry import Registry

logger = logging.getLogger("lookout.engine")

# The driving stream must have so many times the reports of the other one, in so many observations in turn.
CLEARLY, OBSERVATIONS = 1.5, 5
# For so long, in seconds, a join is not changed again.
COOL_DOWN_S = 60.0
# Over what time reports a second are smoothed.
SMOOTHED_S = 10.0


class DrivenJoin(NamedTuple):
    """A join over event time, as the coordinator reports it: its two streams, and whether the second one drives."""

    query: int
    revision: int
    stream: str
    partner_stream: str
    by_partner: bool
    either: bool
    """Whether either stream may drive it; see `time_joins.either_may_drive`."""

    @property
    def driver(self) -> str:
        """The name of the driving stream."""
        return self.partner_stream if self.by_partner else self.stream

    @property
    def swapped(self) -> "DrivenJoin":
        """The join with the other stream driving."""
        return self._replace(by_partner=not self.by_partner)


@dataclass
class Optimiser:
    """Decides which stream drives each join, from one observation to the next."""

    rates: dict[str, float] = field(default_factory=dict, init=False)
    _counts: dict[str, int] = field(default_factory=dict, init=False)
    _at_s: float = field(default=math.nan, init=False)
    _held: dict[DrivenJoin, int] = field(default_factory=dict, init=False)
    _changed_s: dict[int, float] = field(default_factory=dict, init=False)

    def observed(self, joins: Sequence[DrivenJoin], counts: Mapping[str, int], now_s: float) -> list[DrivenJoin]:
        """Return the joins that are to change, as they are to be.

        Parameters
        ----------
        joins : sequence of DrivenJoin
            As they are.
        counts : mapping of str to int
            How many reports of each stream the engine has read.
        now_s : float
            A clock that never goes back, in seconds.
        """
        self._observe(counts, now_s)
        held = {join: self._held.get(join, 0) + 1 for join in joins if join.either and self._is_large(join)}
        self._held = held
        due = [join.swapped for join, times in held.items() if times >= OBSERVATIONS and self._may(join, now_s)]
        self._changed_s |= {join.query: now_s for join in due}
        return due

    def _observe(self, counts: Mapping[str, int], now_s: float) -> None:
        """Smooth the reports a second; a count that falls is that of an engine that has started anew."""
        span_s = now_s - self._at_s
        if span_s > 0:
            weight = 1 - math.exp(-span_s / SMOOTHED_S)
            for stream, count in counts.items():
                came = count - self._counts.get(stream, count)
                if came >= 0:
                    rate = self.rates.get(stream, came / span_s)
                    self.rates[stream] = rate + weight * (came / span_s - rate)
        self._counts, self._at_s = dict(counts), now_s

    def _is_large(self, join: DrivenJoin) -> bool:
        """Tell whether the driving stream is clearly the larger one."""
        rates = [self.rates.get(name, 0.0) for name in (join.driver, join.swapped.driver)]
        return rates[0] > CLEARLY * rates[1]

    def _may(self, join: DrivenJoin, now_s: float) -> bool:
        return now_s - self._changed_s.get(join.query, -math.inf) >= COOL_DOWN_S


class JoinWatch:
    """Looks at what the tasks report of joins over event time, and sends which streams are to drive them.

    Parameters
    ----------
    log : Log
    """

    def __init__(self, log: Log) -> None:
        self._log, self._optimiser = log, Optimiser()

    def look(self, now_s: float) -> None:
        """Look once, at a time by a clock that never goes back; to be called about once a second."""
        told = self._log.regions()
        joins = joins_of(told.get("joins", ()))
        # Within one region, no report has to be sent to another one.
        if not any(join.either for join in joins) or len(told["map"]["places"]) < 2:
            return
        for join in self._optimiser.observed(joins, reports_of(told), now_s):
            logger.info("%s drives query %d from now on: %s", join.driver, join.query, self._words(join))
            self._log.send("drive", query=join.query, revision=join.revision, by_partner=join.by_partner)

    def _words(self, join: DrivenJoin) -> str:
        rates = self._optimiser.rates
        return ", ".join(f"{rates.get(name, 0.0):.0f} {name}/s" for name in (join.stream, join.partner_stream))


def told_joins(registry: Registry) -> list[list[Any]]:
    """Return the joins over event time that run, as the coordinator reports them; `joins_of` is the inverse."""
    rows = []
    for query, plan in registry.time_join_plans.items():
        revision, streams = registry.registrations[query].revision, (plan.stream, plan.partners.name)
        rows.append([query, revision, *streams, query in registry.by_partner, either_may_drive(plan)])
    return rows


def joins_of(rows: Sequence[Sequence[Any]]) -> list[DrivenJoin]:
    """Return reported joins."""
    return [DrivenJoin(*row) for row in rows]


def reports_of(told: Mapping[str, Any]) -> dict[str, int]:
    """Return how many reports of each stream all tasks together have read, from what `Log.regions` returns."""
    counts: dict[str, int] = {}
    for name, some in told.items():
        if name.startswith("reports:"):
            for stream, count in some.items():
                counts[stream] = counts.get(stream, 0) + count
    return counts
