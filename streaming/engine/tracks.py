"""Queries about tracks in a batch: home servers follow them, and regions tell what these have found."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from streaming.engine.layout import Layout
from streaming.engine.quarantine import home_place
from streaming.operators.failures import Unused, UnusedReports
from streaming.results import result_schema
from streaming.servers.answers.tuples import Results
from streaming.servers.control.border import Border, left_out_of_rows, left_out_rows
from streaming.servers.control.step import ControlStep
from streaming.servers.home import Home, routed
from streaming.servers.routing import Routed
from streaming.servers.runs_codec import first_number
from streaming.servers.ways.tracks import home as tracking
from streaming.servers.ways.tracks.state import Tracking
from streaming.spaces import Space

# What home servers send: changes of answers, and snapshots.
TABLES = ("tracked", "tracked_snapshots")


def followed(
    layout: Layout, partition: int, batch: int, state: Home, elements: pa.Table, control: ControlStep
) -> tuple[Home, dict[str, Routed], dict[str, Any]]:
    """Follow tracks in the home server of a partition, whose state has taken the elements of a batch.

    Returns
    -------
    state : Home
    tables : dict of str to Routed
        What it sends to regions.
    head : dict
        What it says of queries, to region 0. JSON can hold it.
    """
    space = control.after.space
    was = state.tracking or Tracking.empty(space, first_number(batch))
    border = Border(control, was.left_out, layout.watched(home_place(partition), batch))
    found, tracked = border.passed(lambda control: tracking.step(was, elements, control, state.now_us))
    tables = [routed(state, rows) for rows in (tracked.changes, tracked.snapshots)]
    head = {
        "errors": list(border.errors.items()),
        "refused": sorted(border.refused),
        "left_out": left_out_rows({query: out for query, out in border.left_out.items() if query in border.errors}),
        "lost": sorted(border.lost),
        "quarantined": [[query, why] for query, why in border.quarantined.items() if query in border.lost],
        "warnings": list(tracked.failures.errors.items()),
        "unused": [[*of, *told] for of, told in tracked.failures.unused.items()],
        "seconds": list(tracked.failures.seconds.items()),
        "counters": {"doubted": tracked.doubted, "late": tracked.late, "waiting": found.waiting.num_rows},
    }
    kept = replace(found, left_out=border.left_out) if len(control.after.tracks) else None
    return replace(state, tracking=kept), dict(zip(TABLES, tables, strict=True)), {"tracks": head}


def told(inputs: Sequence[Any], border: Border, space: Space) -> Results:
    """Return what the home servers tell of tracks by the fragment of a region.

    Parameters
    ----------
    inputs : sequence of RegionInput
        Of the region. Region 0 also tells what the home servers say of queries.
    border : Border
        Learns which queries failed there.
    space : Space
    """
    none = result_schema(space).empty_table()
    tables = [[sent.tables[name] for sent in inputs if name in sent.tables] for name in TABLES]
    changes, snapshots = (pa.concat_tables([none, *some]) for some in tables)
    counters = Counter({"results": changes.num_rows})
    seconds: dict[int, float] = defaultdict(float)
    warnings: dict[int, str] = {}
    unused: UnusedReports = {}
    for known in (one.head["tracks"] for one in inputs if "tracks" in one.head):
        border.errors.update(dict(known["errors"]))
        border.refused.update(known["refused"])
        border.elsewhere.update(left_out_of_rows(known["left_out"]))
        border.lost.update(known["lost"])
        border.quarantined.update(dict(known["quarantined"]))
        warnings |= dict(known["warnings"])
        for query, kind, reason, reports in known["unused"]:
            before = unused.get((query, kind))
            unused[query, kind] = Unused(reason, reports + (before.reports if before else 0))
        counters.update(known["counters"])
        for query, cost_s in known["seconds"]:
            seconds[query] += cost_s
    return Results(changes, snapshots, dict(counters), warnings, seconds=dict(seconds), unused=unused)
