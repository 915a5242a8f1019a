"""Encounters as a way of evaluation."""

from dataclasses import replace
from functools import partial

from streaming.operators.watermarks import Progress
from streaming.servers.answers.tuples import Results
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.home_turn import HomeTurn
from streaming.servers.region.object_index import ObjectIndex
from streaming.servers.region.objects import ObjectTable
from streaming.servers.way import AssemblerTurn, Part, RegionTurn, Way, WayState
from streaming.servers.ways.encounters import assembler, home, region
from streaming.servers.ways.encounters.assembler import EncounterAnswers, encounter_codec
from streaming.servers.ways.encounters.event_times import CLOCKS, EncounterClock, EventTimes
from streaming.servers.ways.encounters.home import LATE, ORDERINGS, RELEASED, TURN, OrderingsPart
from streaming.servers.ways.encounters.ordering import Late, Ordering, Orderings, released_schema
from streaming.servers.ways.encounters.region import Encounters
from streaming.servers.ways.encounters.region_codec import region_encounter_codec
from streaming.servers.ways.encounters.spans import SPANS

NEAR, TOLD, TIMES, ANSWERS = "encounters", "spans", "clocks", "encounter_answers"


class EncounterWay(Way):
    """Regions find the spans of time in which pairs are near, and the assembler joins those of all regions."""

    states = (
        WayState(NEAR, region_encounter_codec),
        WayState(TOLD, lambda space: SPANS, passed_on=True),
        WayState(TIMES, lambda space: CLOCKS),
        WayState(ANSWERS, encounter_codec),
    )
    home_part = OrderingsPart()

    def in_home(self, turn: HomeTurn) -> Orderings | None:
        """Release the reports of objects in the order of event time."""
        return home.step(turn)

    def concerns(self, control: ControlStep) -> bool:
        """Tell whether there are such queries, or were some."""
        return bool(control.before.orderings or control.after.orderings)

    assembles = concerns

    def told_by_clock(self, registry: Registry) -> bool:
        """Tell whether there are such queries."""
        return bool(registry.encounters)

    def in_region(self, turn: RegionTurn) -> Results:
        """Run a region's part; return its results, which tell of reports that came too late."""
        reports = turn.sent(RELEASED, released_schema(turn.states.space).empty_table())
        late = [(Ordering(*told[:3]), Late(*told[3:])) for sent in turn.inputs for told in sent.head.get(LATE, ())]
        times = turn.noted["times"] = _times(turn)
        step = partial(region.step, _before(turn), reports, late=late, times=times, place=turn.place)
        state, results, spans = turn.passed_on(partial(step, indexed=partial(_indexed, turn), following=turn.following))
        _forget(turn)
        turn.save(TOLD, replace(spans, lacking=turn.lacking))
        if turn.control.after.orderings:
            turn.save(NEAR, state)
        return results

    def in_assembler(self, turn: AssemblerTurn) -> Part:
        """Join the spans of all regions to encounters."""
        spans, was, times = turn.of_regions(TOLD), turn.before(ANSWERS), turn.last.noted["times"]
        border = turn.border(was.left_out)
        border.leave_out(assembler.lacking(spans, turn.control))

        def step(control: ControlStep) -> tuple[EncounterAnswers, Results, dict[int, EncounterClock]]:
            return *assembler.step(was, spans, control, times), times.advanced(control)

        state, results, clocks = border.passed(step)
        if turn.control.after.orderings:
            turn.attempt.save(ANSWERS, replace(state, left_out=border.left_out))
            turn.attempt.save(TIMES, clocks)
        return Part(results, border, assembler.sent(spans))


def _before(turn: RegionTurn) -> Encounters:
    """Return the state of a region before a batch, as if its map had been in force."""
    if turn.rescaling:
        return region.divided(turn.before_of_all(NEAR), turn.place, turn.control.before, turn.following)
    return turn.before(NEAR)


def _times(turn: RegionTurn) -> EventTimes:
    """Return how far the home servers, and the queries, are."""
    heads = [sent.head for sent in turn.inputs]
    homes = [{Ordering(*told[:3]): Progress(*told[3:]) for told in head.get(ORDERINGS, ())} for head in heads]
    clocks = turn.states.before(TIMES, turn.batch, keep=False)
    return EventTimes(clocks, homes, max(head.get(TURN, 0) for head in heads))


def _indexed(turn: RegionTurn, query: int, objects: ObjectTable) -> ObjectIndex:
    """Return the index over what a region knows for a query, which shares with the one before what is the same."""
    name = NEAR, turn.number, query
    turn.kept[name] = made = ObjectIndex.of(objects, turn.states.space, turn.kept.get(name))
    return made


def _forget(turn: RegionTurn) -> None:
    """Forget the indices of a region over what it knew for queries that have ended."""
    running, mine = turn.control.after.encounters, (NEAR, turn.number)
    for ended in [name for name in turn.kept if name[:2] == mine and name[2] not in running]:
        del turn.kept[ended]
