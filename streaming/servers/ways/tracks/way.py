"""Tracks as a way of evaluation: home servers follow them, and regions tell what these have found."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from streaming.operators.failures import Unused, UnusedReports
from streaming.results import result_schema
from streaming.servers.answers.tuples import Results
from streaming.servers.control.border import Border, left_out_of_rows
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.home_turn import HomeTurn
from streaming.servers.way import RegionTurn, Way
from streaming.servers.ways.tracks import home
from streaming.servers.ways.tracks.home import TABLES, TRACKS, TrackingPart
from streaming.servers.ways.tracks.state import Tracking


class TrackWay(Way):
    """Home servers follow the tracks of their objects. Region 0 also tells what they say of queries."""

    home_part = TrackingPart()
    followed_at_home = True

    def in_home(self, turn: HomeTurn) -> Tracking | None:
        """Follow the tracks of a home server's objects."""
        return home.step(turn)

    def concerns(self, control: ControlStep) -> bool:
        """Tell whether there are such queries, or were some."""
        return bool(len(control.before.tracks) or len(control.after.tracks))

    def told_by_clock(self, registry: Registry) -> bool:
        """Tell whether there are such queries."""
        return bool(len(registry.tracks))

    def in_region(self, turn: RegionTurn) -> Results:
        """Return what the home servers tell by the fragment of a region."""
        none = result_schema(turn.states.space).empty_table()
        changes, snapshots = (turn.sent(name, none) for name in TABLES)
        told = _Told(turn.border)
        told.take(sent.head[TRACKS] for sent in turn.inputs if TRACKS in sent.head)
        told.counters["results"] += changes.num_rows
        counters, seconds = dict(told.counters), dict(told.seconds)
        return Results(changes, snapshots, counters, told.warnings, seconds=seconds, unused=told.unused)


class _Told:
    """What home servers say of queries.

    Parameters
    ----------
    border : Border
        Learns which queries failed there.
    """

    def __init__(self, border: Border) -> None:
        self._border, self.counters, self.seconds = border, Counter[str](), defaultdict[int, float](float)
        self.warnings: dict[int, str] = {}
        self.unused: UnusedReports = {}

    def take(self, heads: Iterable[Mapping[str, Any]]) -> None:
        for known in heads:
            self._border.errors.update(dict(known["errors"]))
            self._border.refused.update(known["refused"])
            self._border.elsewhere.update(left_out_of_rows(known["left_out"]))
            self._border.lost.update(known["lost"])
            self._border.quarantined.update(dict(known["quarantined"]))
            self.warnings |= dict(known["warnings"])
            for query, kind, reason, reports in known["unused"]:
                before = self.unused.get((query, kind))
                self.unused[query, kind] = Unused(reason, reports + (before.reports if before else 0))
            self.counters.update(known["counters"])
            for query, cost_s in known["seconds"]:
                self.seconds[query] += cost_s
