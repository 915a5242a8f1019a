"""How the state of a region's joins over event time is stored: each run of reports as a part of its own."""

from streaming.operators.region_map import RegionMap
from streaming.servers.region.reports import ReportRun, ReportTable
from streaming.servers.region.time_join import TimeJoins, Waiting
from streaming.servers.region.windows import EndedWindow, WindowProgress
from streaming.servers.runs_codec import first_number
from streaming.servers.sorted_runs import Run
from streaming.spaces import Space
from streaming.state.codec import HEAD, NOTHING, Codec, Tables, head_of, with_head


def time_join_codec(space: Space) -> Codec:
    """Return the codec of `TimeJoins` in a space."""

    def decode(parts):
        (table,) = parts[HEAD].tables()
        head = head_of(table)

        def run(number):
            part = parts[_part(number)]
            return part if isinstance(part, Run) else Run.of_tables(number, part.tables())

        runs = tuple(ReportRun(*bin_, run(number)) for number, *bin_ in head["runs"])
        queries = {query: Waiting(*told, _ended(ended, space)) for query, *told, ended in head["queries"]}
        return TimeJoins(ReportTable(space, runs, head["following"]), queries, head["turn"])

    return Codec(lambda batch: TimeJoins.empty(space, first_number(batch)), _encode, decode)


def _encode(state):
    reports = state.reports
    head = {
        "runs": [[run.run.number, *run.bin] for run in reports.runs],
        "following": reports.following,
        "queries": [[query, *_written(waiting)] for query, waiting in state.queries.items()],
        "turn": state.turn,
    }
    runs = {_part(run.run.number): run.run for run in reports.runs}
    return {HEAD: Tables([with_head(NOTHING, head)])} | runs


def _written(waiting):
    ended = [
        [one.start_us, one.turn, one.position, [_told_written(told) for told in one.earlier]] for one in waiting.ended
    ]
    return waiting.since, waiting.since_us, waiting.watermark_us, ended


def _told_written(told):
    return [told.region_map.document(), told.partner_drives, told.positions]


def _ended(rows, space):
    windows = []
    for *numbers, earlier in rows:
        told = (WindowProgress(RegionMap.of(space, known), drives, tuple(told)) for known, drives, told in earlier)
        windows.append(EndedWindow(*numbers, tuple(told)))
    return tuple(windows)


def _part(number):
    return f"reports-{number}"
