"""Queries of sketches as a way of evaluation."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from streaming.elements import stream_number
from streaming.servers.answers.tuples import Results
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.home_turn import HomeTurn
from streaming.servers.way import AssemblerTurn, Part, RegionTurn, Way, WayState
from streaming.servers.ways.sketches import asked_leaves, assembler, observing, region
from streaming.servers.ways.sketches.assembler_codec import TOLD_ANSWERS
from streaming.servers.ways.sketches.observing import observed
from streaming.servers.ways.sketches.region import Sketchlet
from streaming.servers.ways.sketches.region_codec import sketchlet_codec

SKETCH, ASKED, TOLD = "sketch", "asked", "told"
OBSERVED = "observed"


class SketchWay(Way):
    """Regions sketch what home servers observed, and the assembler answers from the sketches of all regions."""

    states = (
        WayState(SKETCH, sketchlet_codec),
        WayState(ASKED, lambda space: asked_leaves.ASKED_LEAVES, passed_on=True),
        WayState(TOLD, lambda space: TOLD_ANSWERS),
    )

    def in_home(self, turn: HomeTurn) -> None:
        """Observe the accepted elements of the streams that are sketched, in the order of arrival."""
        if sketched := turn.control.after.sketched:
            rows = np.sort(turn.accepted.rows)
            turn.tables[OBSERVED] = observed(turn.elements, rows, turn.accepted.place[rows], sketched)

    def concerns(self, control: ControlStep) -> bool:
        """Tell whether streams are sketched, or were, or queries are answered."""
        return bool(control.before.sketched or control.after.sketched) or self.assembles(control)

    def assembles(self, control: ControlStep) -> bool:
        """Tell whether there is something to say about queries."""
        return asked_leaves.concern_sketches(control.before, control.after, control.applied)

    def in_region(self, turn: RegionTurn) -> Results:
        """Sketch what home servers observed in a region, before the queries that are due are answered."""
        asked = self.assembles(turn.control)
        due = turn.noted["due"] = _due(turn) if asked else []
        if turn.control.before.sketched or turn.control.after.sketched:
            _sketch(turn, due)
        return _ask(turn, due) if asked else Results.nothing(turn.states.space)

    def in_assembler(self, turn: AssemblerTurn) -> Part:
        """Answer the queries that are due."""
        due, found, was = turn.last.noted["due"], turn.of_regions(ASKED), turn.before(TOLD)
        border = turn.border(was.left_out)
        border.leave_out(query for one in found for query in one.lacking if query in turn.control.after.sketch_plans)
        state, results = border.passed(lambda control: assembler.step(was, found, due, control))
        if turn.control.after.sketch_plans:
            pace = assembler.paced(was.pace, found, due, turn.control)
            turn.attempt.save(TOLD, replace(state, left_out=border.left_out, pace=pace))
        return Part(results, border)

    def left_by_regions(self, registry: Registry) -> tuple[str, ...]:
        """Return the sketches, while streams are sketched."""
        return (SKETCH,) if registry.sketched else ()

    def kept_by_assembler(self, registry: Registry) -> tuple[str, ...]:
        """Return the answers that were told, while there are queries."""
        return (TOLD,) if registry.sketch_plans else ()


def _due(turn: RegionTurn) -> list[int]:
    """Return the queries that are answered in a batch."""
    return asked_leaves.due(turn.control, turn.states.before(TOLD, turn.batch, keep=False).pace)


def _sketch(turn: RegionTurn, due: Sequence[int]) -> None:
    """Sketch what home servers observed in a region."""
    before, after = turn.control.before, turn.control.after
    if not before.sketched:
        was = Sketchlet()
    elif turn.rescaling:
        was = region.divided(turn.before_of_all(SKETCH), turn.place, turn.following)
    else:
        was = turn.before(SKETCH)
    asked = {stream_number(after.sketch_plans[query].stream) for query in due}
    observed = turn.sent(OBSERVED, observing.NOTHING, promote=True)
    turn.leave(SKETCH, region.step(was, observed, after, turn.following, asked))


def _ask(turn: RegionTurn, due: Sequence[int]) -> Results:
    """Find the leaves of a region that the queries which are due need; return what that cost as results."""
    left = turn.states.left(f"{SKETCH}/{turn.number}", turn.batch) if turn.control.after.sketched else Sketchlet()
    found = turn.border.passed(partial(asked_leaves.step, left, due))
    turn.save(ASKED, replace(found, lacking=frozenset(turn.border.left_out)))
    return Results.nothing(turn.states.space, seconds=dict(found.seconds))
