"""How the state of a region's joins over event time is stored: each run of reports as a part of its own."""

from collections.abc import Iterable
from typing import Any

from streaming.operators.region_map import RegionMap
from streaming.servers.runs_codec import first_number
from streaming.servers.sorted_runs import Run
from streaming.servers.ways.time_joins.ended_windows import EndedWindow, WindowProgress
from streaming.servers.ways.time_joins.region import TimeJoins, Waiting
from streaming.servers.ways.time_joins.reports import ReportRun, ReportTable
from streaming.spaces import Space
from streaming.state.codec import HEAD, NOTHING, Codec, Parts, Tables, head_of, with_head


def time_join_codec(space: Space) -> Codec:
    """Return the codec of `TimeJoins` in a space."""

    def decode(parts: Parts) -> TimeJoins:
        (table,) = parts[HEAD].tables()
        head = head_of(table)

        def run(number: int) -> Run:
            part = parts[_part(number)]
            return part if isinstance(part, Run) else Run.of_tables(number, part.tables())

        runs = tuple(
            ReportRun(stream, first_us, last_us, run(number)) for number, stream, first_us, last_us in head["runs"]
        )
        queries = {
            query: Waiting(since, since_us, watermark_us, _ended(ended, space))
            for query, since, since_us, watermark_us, ended in head["queries"]
        }
        return TimeJoins(ReportTable(space, runs, head["following"]), queries, head["turn"])

    return Codec(lambda batch: TimeJoins.empty(space, first_number(batch)), _encode, decode)


def _encode(state: TimeJoins) -> Parts:
    reports = state.reports
    head = {
        "runs": [[run.run.number, *run.bin] for run in reports.runs],
        "following": reports.following,
        "queries": [[query, *_written(waiting)] for query, waiting in state.queries.items()],
        "turn": state.turn,
    }
    runs = {_part(run.run.number): run.run for run in reports.runs}
    return {HEAD: Tables([with_head(NOTHING, head)])} | runs


def _written(waiting: Waiting) -> tuple[int, int, int, list[Any]]:
    ended = [
        [one.start_us, one.turn, one.position, [_told_written(told) for told in one.earlier]] for one in waiting.ended
    ]
    return waiting.since, waiting.since_us, waiting.watermark_us, ended


def _told_written(told: WindowProgress) -> list[Any]:
    return [told.region_map.document(), told.partner_drives, told.positions]


def _ended(rows: Iterable[Any], space: Space) -> tuple[EndedWindow, ...]:
    windows = []
    for start_us, turn, position, earlier in rows:
        told = (WindowProgress(RegionMap.of(space, known), drives, tuple(told)) for known, drives, told in earlier)
        windows.append(EndedWindow(start_us, turn, position, tuple(told)))
    return tuple(windows)


def _part(number: int) -> str:
    return f"reports-{number}"
