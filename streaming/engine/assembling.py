"""The assembler in a batch: it makes one answer of what all regions have told of a query, and a fragment more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from streaming.engine.fragments import Spent, costs_of, failures_of
from streaming.engine.layout import Layout
from streaming.operators.region_map import MOST_REGIONS
from streaming.results import Fragment
from streaming.servers.answers.tuples import Results
from streaming.servers.control.border import Border
from streaming.servers.control.step import ControlStep
from streaming.servers.region.all_regions import AllRegions
from streaming.servers.ways.encounters import assembler as answers_of_encounters
from streaming.servers.ways.encounters.assembler import EncounterAnswers
from streaming.servers.ways.encounters.event_times import EncounterClock, EventTimes
from streaming.servers.ways.moving import assembler
from streaming.servers.ways.moving.partial import Tracks
from streaming.servers.ways.rules import assembler as rules
from streaming.servers.ways.rules.watched import WatchedAnswers
from streaming.servers.ways.sketches import assembler as answers_of_sketches
from streaming.state.versions import Attempt

# What a part of the assembler returns: results, its border, and what regions sent for each query.
Part = tuple[Results, Border, dict[int, tuple[int, ...]]]


@dataclass(frozen=True)
class AssemblerInput:
    """What there is to assemble in a batch.

    Parameters
    ----------
    tracks : Tracks or None
        Where the focal objects are, if there are distributed queries.
    times : EventTimes or None
        How far the home servers are, if there are queries for encounters.
    due : sequence of int, optional
        Which queries of sketches are answered, if there are any; see `asked_leaves.due`.
    ruled : bool
        Whether rules are looked at; see `concern_rules`.
    """

    tracks: Tracks | None = None
    times: EventTimes | None = None
    due: Sequence[int] | None = None
    ruled: bool = False


def assembled(
    layout: Layout,
    attempt: Attempt,
    control: ControlStep,
    told: AssemblerInput,
    began: Spent,
    seconds: Mapping[int, float],
) -> Fragment:
    """Run the assembler on what all regions have told; return its fragment.

    Parameters
    ----------
    layout : Layout
    attempt : Attempt
        Saves the assembler's states.
    control : ControlStep
    told : AssemblerInput
    began : Spent
        When the region that ended last began its step. The fragment reports what was spent since then.
    seconds : mapping of int to float
        What each query has cost in that region.
    """
    parts = []
    if told.tracks is not None:
        parts.append(_distributed(layout, attempt, control, told.tracks))
    if told.times is not None:
        parts.append(_encounters(layout, attempt, control, told.times))
    if told.due is not None:
        parts.append(_sketches(layout, attempt, control, told.due))
    if told.ruled:
        parts.append(_rules(layout, attempt, control, parts))
    return _fragment(layout, attempt.batch, control, parts, began, seconds)


def _distributed(layout: Layout, attempt: Attempt, control: ControlStep, tracks: Tracks) -> Part:
    """Run the assembler of distributed queries on the partials of all regions; return results, border, and `sent`."""
    store, regions, batch = layout.store, control.after.region_map.regions, attempt.batch
    partials = [store.partial(number, batch) for number in range(regions)]
    all_regions = _all_regions(layout, batch)
    was = store.assembly(batch)
    if rescaling := layout.rescaling(batch, control.after):
        was = rescaling.assembly(was, partial(store.members, batch=batch, keep=False))
    border = Border(control, was.left_out, layout.watched(MOST_REGIONS, batch))
    border.leave_out(assembler.lacking(partials, control))
    state, results, sent = border.passed(lambda control: assembler.step(was, partials, control, tracks, all_regions))
    if len(control.after.distributed_ids):
        attempt.save("assembly", replace(state, left_out=border.left_out))
    return results, border, sent


def _encounters(layout: Layout, attempt: Attempt, control: ControlStep, times: EventTimes) -> Part:
    """Join the spans of all regions to encounters; return results, border, and `sent`."""
    store, batch = layout.store, attempt.batch
    spans = [store.spans(number, batch) for number in range(control.after.region_map.regions)]
    was = store.encounter_answers(batch)
    border = Border(control, was.left_out, layout.watched(MOST_REGIONS, batch))
    border.leave_out(answers_of_encounters.lacking(spans, control))

    def step(control: ControlStep) -> tuple[EncounterAnswers, Results, dict[int, EncounterClock]]:
        return *answers_of_encounters.step(was, spans, control, times), times.advanced(control)

    state, results, clocks = border.passed(step)
    if control.after.orderings:
        attempt.save("encounter_answers", replace(state, left_out=border.left_out))
        attempt.save("clocks", clocks)
    return results, border, answers_of_encounters.sent(spans)


def _sketches(layout: Layout, attempt: Attempt, control: ControlStep, due: Sequence[int]) -> Part:
    """Answer the queries of sketches that are due; return results, border, and nothing sent."""
    store, batch = layout.store, attempt.batch
    found = [store.asked_leaves(number, batch) for number in range(control.after.region_map.regions)]
    was = store.told_answers(batch)
    border = Border(control, was.left_out, layout.watched(MOST_REGIONS, batch))
    border.leave_out(query for one in found for query in one.lacking if query in control.after.sketch_plans)
    state, results = border.passed(lambda control: answers_of_sketches.step(was, found, due, control))
    if control.after.sketch_plans:
        pace = answers_of_sketches.paced(was.pace, found, due, control)
        attempt.save("told", replace(state, left_out=border.left_out, pace=pace))
    return results, border, {}


def _rules(layout: Layout, attempt: Attempt, control: ControlStep, assembled: Sequence[Part]) -> Part:
    """Compare the answers that rules watch, given what the other parts return; return results, border, nothing sent."""
    store, batch = layout.store, attempt.batch
    told = [store.watched(number, batch) for number in range(control.after.region_map.regions)]
    was = store.rules(batch)
    for results, left, _ in assembled:
        found = WatchedAnswers.of(results, control, batch, was.now_us)
        told.append(found.lacks(left.left_out, control.after.watched))
    border = Border(control, was.left_out, layout.watched(MOST_REGIONS, batch))
    state, results = border.passed(lambda control: rules.step(was, told, control, _all_regions(layout, batch), batch))
    if len(control.after.watched):
        attempt.save("rules", replace(state, left_out=border.left_out))
    return results, border, {}


def _all_regions(layout: Layout, batch: int) -> AllRegions:
    """Return the objects of all regions before and after a batch."""
    store = layout.store
    before, after = partial(store.regions, batch), list(store.regions(batch + 1))
    return AllRegions(before, after, store.space, partial(layout.known.indexed, store.space))


def _fragment(
    layout: Layout, batch: int, control: ControlStep, parts: Sequence[Part], began: Spent, seconds: Mapping[int, float]
) -> Fragment:
    """Return the fragment of the assembler, given what its parts returned.

    The fragment reports what was spent since `began`, when the region that ended last began its step, and for each
    query the time that the assembler took plus that of the region, in `seconds`.
    """
    results = parts[0][0]
    for more, _, _ in parts[1:]:
        results = results.plus(more)
    layout.known.count(results.seconds)
    seconds = {query: seconds.get(query, 0.0) + cost for query, cost in results.seconds.items()}
    failures = [failures_of(told, border, control.after) for told, border, _ in parts]
    return Fragment(
        layout.store.epoch(),
        batch,
        MOST_REGIONS,
        control.after.region_map.regions + 1,
        results.changes,
        results.snapshots,
        control.applied.snapshots,
        counters=results.counters,
        failures=tuple(failure for some in failures for failure in some),
        sent={query: counts for _, _, sent in parts for query, counts in sent.items()},
        aggregates=results.aggregates,
        costs=costs_of(seconds, control, began.since(), results.snapshots),
        clocks=results.clocks,
    )
