"""Joins over event time as a way of evaluation."""

from collections.abc import Mapping, Sequence
from typing import Any

from streaming.operators.watermarks import Progress
from streaming.servers.answers.tuples import Results
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.home import Home
from streaming.servers.home_turn import HomeTurn
from streaming.servers.way import RegionTurn, Way, WayState
from streaming.servers.ways.time_joins import home, region
from streaming.servers.ways.time_joins.home import REPORTS, ProgressPart, progress_of
from streaming.servers.ways.time_joins.region import TimeJoins
from streaming.servers.ways.time_joins.region_codec import time_join_codec
from streaming.servers.ways.time_joins.reports import reports_schema

STATE = "time_join"


class TimeJoinWay(Way):
    """Regions compare reports of two streams by place and time."""

    states = (WayState(STATE, time_join_codec),)
    home_part = ProgressPart()
    element_tables = (REPORTS,)

    def in_home(self, turn: HomeTurn) -> Mapping[int, Progress] | None:
        """Send the reports of the streams that are joined."""
        return home.step(turn)

    def reported(self, homes: Sequence[Home], registry: Registry) -> Mapping[str, Any]:
        """Return how many reports of each joined stream home servers have read, by which drivers are chosen."""
        return {"reports": home.reports_read(homes, registry)} if registry.time_join_plans else {}

    def concerns(self, control: ControlStep) -> bool:
        """Tell whether there are such joins, or were some."""
        return bool(control.before.report_reach or control.after.report_reach)

    def reads_before(self, control: ControlStep) -> bool:
        """Tell whether the other stream drives a join from now on."""
        return control.before.by_partner != control.after.by_partner

    def told_by_clock(self, registry: Registry) -> bool:
        """Tell whether there are such queries."""
        return bool(registry.time_join_plans)

    def in_region(self, turn: RegionTurn) -> Results:
        """Run a region's joins; return their results."""
        was, place = _before(turn), turn.place
        reports = turn.sent(REPORTS, reports_schema(turn.states.space).empty_table())
        homes = [progress_of(sent.head) for sent in turn.inputs]
        state, results = turn.border.passed(lambda control: region.step(was, reports, homes, control, place))
        turn.leave(STATE, state)
        return results

    def left_by_regions(self, registry: Registry) -> tuple[str, ...]:
        """Return the state of the joins, while there are some."""
        return (STATE,) if registry.report_reach else ()


def _before(turn: RegionTurn) -> TimeJoins:
    """Return the state of a region's joins before a batch, as if its map, and what drives joins, had been in force."""
    before, after = turn.control.before, turn.control.after
    if not before.report_reach:
        return TimeJoins.empty(turn.states.space, turn.following)
    if turn.rescaling:
        return region.divided(turn.before_of_all(STATE), turn.place, before, after, turn.following)
    if before.by_partner != after.by_partner:
        return region.driven(turn.before_of_all(STATE), turn.place, before, after)
    return turn.before(STATE)
