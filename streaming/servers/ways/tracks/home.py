"""Tracks in a home server: what it keeps of them, and what it sends to the regions of the objects."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from streaming.servers.control.border import Border, left_out_of_rows, left_out_rows
from streaming.servers.home_turn import EncodedPart, HomePart, HomeTurn
from streaming.servers.runs_codec import table_of
from streaming.servers.ways.tracks import following
from streaming.servers.ways.tracks.fixes import no_fixes
from streaming.servers.ways.tracks.state import Tracking, no_members
from streaming.spaces import Space
from streaming.state.codec import Parts

TRACKING, TRACKS = "tracking", "tracks"
# What home servers send: changes of answers, and snapshots.
TABLES = ("tracked", "tracked_snapshots")


class TrackingPart(HomePart):
    """What a home server knows for queries about tracks: `Tracking`."""

    name = TRACKING

    def encode(self, part: Tracking) -> EncodedPart:
        """Return how it is stored."""
        tables = {"fixes": part.fixes, "members": part.members}
        return EncodedPart({TRACKING: left_out_rows(part.left_out)}, tables, rows=[part.waiting])

    def decode(self, head: Mapping[str, Any], parts: Parts, rows: Iterator[pa.Table], space: Space) -> Tracking:
        """Return what is stored."""
        fixes = table_of("fixes", no_fixes(space), head, parts)
        members = table_of("members", no_members(space), head, parts)
        return Tracking(fixes, members, next(rows), left_out_of_rows(head[TRACKING]))

    def divided(self, found: Sequence[Tracking], partitions: int) -> Sequence[Tracking]:
        """Return what other home servers know."""
        return following.divided(found, partitions)


def step(turn: HomeTurn) -> Tracking | None:
    """Follow tracks, and say what queries they concern; None if there are no such queries."""
    was: Tracking | None = turn.home.parts.get(TRACKING)
    if was is None and not len(turn.control.after.tracks):
        return None
    was = was or Tracking.empty(turn.control.after.space, turn.following)
    border = Border(turn.control, was.left_out, turn.watched())
    found, tracked = border.passed(lambda control: following.step(was, turn.elements, control, turn.now_us))
    for name, rows in zip(TABLES, (tracked.changes, tracked.snapshots), strict=True):
        turn.send_to_objects(name, rows)
    turn.head[TRACKS] = {
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
    return replace(found, left_out=border.left_out) if len(turn.control.after.tracks) else None
