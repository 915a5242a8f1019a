"""The assembler in a batch: it makes one answer of what all regions have told of a query, and a fragment more."""

from collections.abc import Sequence

from streaming.engine.fragments import Spent, costs_of, failures_of
from streaming.engine.layout import Layout
from streaming.operators.region_map import MOST_REGIONS
from streaming.results import Fragment
from streaming.servers.way import AssemblerTurn, Way


def assembled(layout: Layout, turn: AssemblerTurn, ways: Sequence[Way], began: Spent) -> Fragment:
    """Run the assembler on what all regions have told; return its fragment.

    The fragment reports what was spent since `began`, when the region that ended last began its step, and for each
    query the time that the assembler took plus that of the region.

    Parameters
    ----------
    layout : Layout
    turn : AssemblerTurn
    ways : sequence of Way
        Those that have something to assemble, at least one.
    began : Spent
    """
    for way in ways:
        turn.parts.append(way.in_assembler(turn))
    results = turn.parts[0].results
    for part in turn.parts[1:]:
        results = results.plus(part.results)
    layout.known.count(results.seconds)
    seconds = turn.last.results.seconds
    seconds = {query: seconds.get(query, 0.0) + cost for query, cost in results.seconds.items()}
    failures = [failures_of(told, border, turn.control.after) for told, border, _ in turn.parts]
    return Fragment(
        layout.store.epoch(),
        turn.batch,
        MOST_REGIONS,
        turn.control.after.region_map.regions + 1,
        results.changes,
        results.snapshots,
        turn.control.applied.snapshots,
        counters=results.counters,
        failures=tuple(failure for some in failures for failure in some),
        sent={query: counts for part in turn.parts for query, counts in part.sent.items()},
        aggregates=results.aggregates,
        costs=costs_of(seconds, turn.control, began.since(), results.snapshots),
        clocks=results.clocks,
    )
