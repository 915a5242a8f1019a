"""Joins over event time in a home server: every report goes to each region that must know it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_of, stream_number
from streaming.operators.watermarks import LONG_AGO_US, Progress, seen_before, slowest
from streaming.servers.control.registry import Registry
from streaming.servers.home import Home
from streaming.servers.home_turn import EncodedPart, HomePart, HomeTurn
from streaming.servers.ways.time_joins.reports import reports_schema
from streaming.spaces import Space
from streaming.state.codec import Parts

PROGRESS, REPORTS = "progress", "reports"


class ProgressPart(HomePart):
    """How far a home server is with each stream that is joined over event time: a mapping of int to `Progress`."""

    name = PROGRESS

    def encode(self, part: Mapping[int, Progress]) -> EncodedPart:
        """Return how it is stored."""
        return EncodedPart({PROGRESS: rows_of(part)})

    def decode(
        self, head: Mapping[str, Any], parts: Parts, rows: Iterator[pa.Table], space: Space
    ) -> Mapping[int, Progress]:
        """Return what is stored."""
        return progress_of(head)

    def divided(self, found: Sequence[Mapping[int, Progress]], partitions: int) -> Sequence[Mapping[int, Progress]]:
        """Return how far other home servers are: no report is late there that would have been on time."""
        return [slowest(found)] * partitions


def rows_of(progress: Mapping[int, Progress]) -> list[list[int]]:
    """Return how far a home server is as lists of numbers, which JSON can hold."""
    return [[stream, *told] for stream, told in progress.items()]


def progress_of(head: Mapping[str, Any]) -> dict[int, Progress]:
    """Return how far a home server is, given what it says; the inverse of `rows_of`."""
    return {stream: Progress(*told) for stream, *told in head.get(PROGRESS, ())}


def step(turn: HomeTurn) -> Mapping[int, Progress] | None:
    """Send the reports of the streams that are joined, and say how far they are; None if none are joined.

    The reports have `reports.reports_schema`: all elements, stale or not.
    """
    elements, control = turn.elements, turn.control
    reach, region_map = control.after.report_reach, control.after.region_map
    if not reach:
        return None
    known: Mapping[int, Progress] = turn.home.parts.get(PROGRESS, {})
    progress = {number: told for number, told in known.items() if number not in control.applied.dropped}
    columns = {name: elements[name].to_numpy() for name in ("stream", "time_us", "heard_us")}
    seen_us = np.zeros(elements.num_rows, dtype=np.int64)
    for number in reach.streams.tolist():
        mine = np.flatnonzero(columns["stream"] == number)
        if len(mine):
            before = progress.get(number, Progress(LONG_AGO_US, 0))
            seen_us[mine] = seen_before(columns["time_us"][mine], before.newest_us)
            heard_us = int(columns["heard_us"][mine].max())
            progress[number] = Progress(int(seen_us[mine[-1]]), heard_us, before.reports + len(mine))
    rows, region = np.nonzero(reach.regions(bounds_of(elements["bounds"]), columns["stream"], region_map))
    reports = elements.append_column(reports_schema(reach.space).field("seen_us"), pa.array(seen_us))
    turn.route(REPORTS, reports, rows, region)
    kept = {number: told for number, told in progress.items() if number in reach.streams}
    turn.head_of_all[PROGRESS] = rows_of(kept)
    return kept


def reports_read(homes: Iterable[Home], registry: Registry) -> dict[str, int]:
    """Return how many reports of each stream that is joined home servers have read, by its name."""
    names = {name for plan in registry.time_join_plans.values() for name in (plan.stream, plan.partners.name)}
    heard = [home.parts.get(PROGRESS, {}) for home in homes]
    return {
        name: sum(progress[stream_number(name)].reports for progress in heard if stream_number(name) in progress)
        for name in sorted(names)
    }
