"""Rules as a way of evaluation."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from streaming.operators.schedules import NEVER_US
from streaming.servers.answers.tuples import Results
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.elements import no_elements
from streaming.servers.home_turn import HomeTurn
from streaming.servers.way import AssemblerTurn, Part, RegionInput, RegionTurn, States, Way, WayState
from streaming.servers.ways.rules import assembler, due, home
from streaming.servers.ways.rules.assembler_codec import rules_codec
from streaming.servers.ways.rules.home import HEARD, SILENCES, STEPS
from streaming.servers.ways.rules.measures import measures_of
from streaming.servers.ways.rules.steps import steps_of
from streaming.servers.ways.rules.watched import SPELLS, WATCHED, Heard, WatchedAnswers, concern_rules
from streaming.state.codec import frame_of_table

TOLD, WAITING, RULES = "watched", "watching", "rules"
# The tables with the newest elements of objects.
OF_OBJECTS = ("arrivals", "departures", "copies", "removed_copies")


class RuleWay(Way):
    """Regions tell what becomes of the answers that rules watch, and the assembler compares it in time.

    It is the last way, since it looks at what the others tell.
    """

    states = (
        WayState(TOLD, lambda space: WATCHED, passed_on=True),
        WayState(WAITING, lambda space: WATCHED),
        WayState(RULES, rules_codec),
    )
    element_tables = (STEPS,)

    def in_home(self, turn: HomeTurn) -> None:
        """Send the steps of objects, and the silences that reports ended."""
        home.step(turn)

    def concerns(self, control: ControlStep) -> bool:
        """Tell whether rules watch answers, or did."""
        return bool(len(control.before.watched) or len(control.after.watched))

    def assembles(self, control: ControlStep) -> bool:
        """Tell whether rules are looked at."""
        return concern_rules(control.before, control.after, control.applied)

    def in_region(self, turn: RegionTurn) -> Results:
        """Keep what a region has to tell of watched answers, or pass it on if it is time to."""
        control, border, batch = turn.control, turn.border, turn.batch
        heard, measures = Heard(turn.changed.known, [turn.tables[name] for name in OF_OBJECTS]), None
        if "members" in turn.noted:
            were, are = turn.noted["members"]
            measures = measures_of(were, are, control, turn.changed, heard, batch)
        found = WatchedAnswers.of(turn.results, control, batch, turn.changed.was.now_us, heard)
        steps = border.passed(
            partial(steps_of, turn.sent(STEPS, no_elements(turn.states.space)), turn.changed, batch=batch)
        )
        found = found.lacks(border.left_out, control.after.watched)
        _watch(turn, _reported(found, measures, steps, turn.inputs, batch), self.assembles(control))
        return Results.nothing(turn.states.space)

    def in_assembler(self, turn: AssemblerTurn) -> Part:
        """Compare the answers that rules watch, given also what the ways before this one tell."""
        told, was, batch = turn.of_regions(TOLD), turn.before(RULES), turn.batch
        for results, left, _ in turn.parts:
            found = WatchedAnswers.of(results, turn.control, batch, was.now_us)
            told.append(found.lacks(left.left_out, turn.control.after.watched))
        border = turn.border(was.left_out)
        state, results = border.passed(lambda control: assembler.step(was, told, control, turn.all_regions, batch))
        if len(turn.control.after.watched):
            turn.attempt.save(RULES, replace(state, left_out=border.left_out))
        return Part(results, border)

    def due_us(self, states: States, batch: int, registry: Registry, now_us: int) -> int:
        """Return when rules are to be looked at next."""
        return due.next_us(states.before(RULES, batch), registry.rules, now_us) if len(registry.rules) else NEVER_US

    def waits(self, states: States, batch: int, registry: Registry) -> bool:
        """Tell whether alarms wait for those before them: they ended as they began."""
        return bool(len(registry.rules)) and states.before(RULES, batch).over.num_rows > 0

    def left_by_regions(self, registry: Registry) -> tuple[str, ...]:
        """Return what waits for the assembler, while there are rules."""
        return (WAITING,) if len(registry.watched) else ()

    def kept_by_assembler(self, registry: Registry) -> tuple[str, ...]:
        """Return what is known of rules, while there are some."""
        return (RULES,) if len(registry.watched) else ()


def _reported(
    found: WatchedAnswers,
    measures: pl.DataFrame | None,
    steps: pl.DataFrame,
    inputs: Sequence[RegionInput],
    batch: int,
) -> WatchedAnswers:
    """Return what a region has to tell with measures, steps and silences, and up to when home servers have heard.

    In another region than the first, the inputs do not say that, and have no silences.
    """
    heard_us = min((heard_us for one in inputs if (heard_us := one.head.get("newest_us"))), default=NEVER_US)
    ended = [frame_of_table(one.tables[SILENCES]) for one in inputs if SILENCES in one.tables]
    silences = [found.silences, *(frame.with_columns(batch=pl.lit(batch, pl.Int64)) for frame in ended)]
    rows = [spell for one in inputs for spell in one.head.get(HEARD, ())]
    measures = found.measures if measures is None else measures
    spells = pl.DataFrame(rows, SPELLS, orient="row")
    return replace(
        found, measures=measures, steps=steps, silences=pl.concat(silences), spells=spells, heard_us=heard_us
    )


def _watch(turn: RegionTurn, found: WatchedAnswers, ruled: bool) -> None:
    """Keep what a region has to tell of the answers that rules watch, or pass it on if rules are looked at."""
    before, after = turn.control.before, turn.control.after
    if len(before.watched):
        earlier = [turn.before(WAITING)] if turn.number < before.region_map.regions else []
        if turn.number == 0:  # what regions had to tell that there are no more
            gone = range(after.region_map.regions, before.region_map.regions)
            earlier += [turn.before_of(WAITING, other) for other in gone]
        for one in earlier:
            found = found.after(one)
    if ruled:
        turn.save(TOLD, found)
    turn.leave(WAITING, WatchedAnswers() if ruled else found)
