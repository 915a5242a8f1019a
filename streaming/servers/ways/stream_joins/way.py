"""Joins with a stream as a way of evaluation."""

from dataclasses import replace
from functools import partial

from streaming.operators.schedules import NEVER_US
from streaming.servers.answers.tuples import Results
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.region.codec import region_codec
from streaming.servers.way import RegionTurn, States, Way, WayState
from streaming.servers.ways.stream_joins import region
from streaming.servers.ways.stream_joins.join_input import JoinInput, found_elements
from streaming.servers.ways.stream_joins.rescaling import joined

STATE = "stream_join"


class StreamJoinWay(Way):
    """Regions compare their objects with the elements of a stream, also with those that other regions keep."""

    states = (WayState(STATE, region_codec),)

    def concerns(self, control: ControlStep) -> bool:
        """Tell whether there are such joins, or were some."""
        return bool(control.before.reach or control.after.reach)

    reads_before = reads_after = concerns

    def due_us(self, states: States, batch: int, registry: Registry, now_us: int) -> int:
        """Return when pairs pass their closest points next."""
        if not registry.reach:
            return NEVER_US
        return int(states.before(f"{STATE}/0", batch).dues.due_us.min(initial=NEVER_US))

    def in_region(self, turn: RegionTurn) -> Results:
        """Run a region's joins; return their results."""
        control, place, reach = turn.control, turn.place, turn.control.after.reach
        sent = JoinInput.of(turn.tables, reach)
        if reach.exceeds(control.before.reach):
            sent = replace(sent, found=found_elements(place, turn.states.regions(turn.batch), reach))
        was = turn.before(STATE)
        if turn.rescaling:
            was = joined(turn.rescaling, turn.number, was, partial(turn.before_of, STATE))
        state, results = turn.border.passed(lambda control: region.step(was, sent, control, place))
        if reach:
            turn.save(STATE, state)
        return results
