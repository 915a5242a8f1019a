"""How the state of a region's joins over event time is stored: each run of reports as a part of its own."""

from dataclasses import astuple

from streaming.servers.region.reports import ReportRun, ReportTable
from streaming.servers.region.time_join import TimeJoins, Waiting
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
        queries = {query: Waiting(*told) for query, *told in head["queries"]}
        return TimeJoins(ReportTable(space, runs, head["following"]), queries, head["turn"])

    return Codec(lambda batch: TimeJoins.empty(space, first_number(batch)), _encode, decode)


def _encode(state):
    reports = state.reports
    head = {
        "runs": [[run.run.number, *run.bin] for run in reports.runs],
        "following": reports.following,
        "queries": [[query, *astuple(waiting)] for query, waiting in state.queries.items()],
        "turn": state.turn,
    }
    runs = {_part(run.run.number): run.run for run in reports.runs}
    return {HEAD: Tables([with_head(NOTHING, head)])} | runs


def _part(number):
    return f"reports-{number}"
