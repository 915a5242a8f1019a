"""Queries about tracks in a batch: home servers follow them."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from streaming.engine.layout import Layout
from streaming.engine.quarantine import home_place
from streaming.servers.control.border import Border, left_out_rows
from streaming.servers.control.step import ControlStep
from streaming.servers.home import Home, routed
from streaming.servers.routing import Routed
from streaming.servers.runs_codec import first_number
from streaming.servers.ways.tracks import home as tracking
from streaming.servers.ways.tracks.state import Tracking
from streaming.servers.ways.tracks.way import TABLES


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
