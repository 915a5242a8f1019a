"""What the questions of a plan need of a sketch: where, when, and which leaves or sets."""

import functools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import shapely

from streaming.kinds.parts import Box as PlanBox
from streaming.kinds.sketch.asks import Cells
from streaming.kinds.sketch.plan import SketchPlan
from streaming.kinds.sketch.selection import Other
from streaming.kinds.sketch.times import SelectedTimes as PlanTimes
from streaming.sketch.chosen import ChosenLeaves, choose
from streaming.sketch.partials import by_cell, chosen_of, condensed, partial_tables
from streaming.sketch.selection import Area, Box, Selection, TimeIntervals, ValueRange
from streaming.sketch.sets import codec as sets_of
from streaming.sketch.sets.coverage import coverage_of
from streaming.sketch.sets.sets import SetRun, Sets
from streaming.sketch.sets.sets import merge as merge_sets
from streaming.sketch.settings import InvalidSketch, SketchSettings
from streaming.sketch.sketch import Sketch

_LONG_AGO_US, _FAR_US = -(2**62), 2**62
# Questions about how the values of a feature are distributed, and questions to sets.
_OF_VALUES = ("density", "probability", "deciles", "histogram", "outliers")
_OF_SETS = ("contains", "frequency", "distinct")
# To merge so many leaves costs as much as to send one, and to answer from it.
MERGED_AS_ONE = 4


class Need(NamedTuple):
    """Leaves that a question needs.

    Parameters
    ----------
    other : bool
        Of the selection with which the other one is contrasted.
    feature : str
        The feature whose distribution is asked for; empty if leaves of different values may come merged.
    apart : bool
        Whether leaves of different places and times must come apart.
    sets : bool
        Whether sets are needed, and not leaves.
    level : int
        The bits of the cells whose leaves must come apart; -1 if leaves of different cells may come merged.
    """

    other: bool = False
    feature: str = ""
    apart: bool = False
    sets: bool = False
    level: int = -1


# What a region finds for a need, as tables.
Partial = list[pa.Table]


_SETS = Need(sets=True)
_OVER_BUDGET = b"over_budget"


def needs(plan: SketchPlan) -> dict[Need, None]:
    """Return what the questions of a plan need, each once."""
    found: dict[Need, None] = {}
    for ask in plan.ask:
        if ask.question in _OF_SETS:
            found[_SETS] = None
            continue
        if isinstance(ask, Cells):
            found[Need(level=ask.level)] = None
            continue
        feature = ask.features[0] if ask.question in _OF_VALUES else ""
        names = ask.features if ask.question in ("deciles", "outliers") else (feature,)
        for name in names:
            found[Need(False, name, ask.question in ("series", "forecast", "select"))] = None
        if ask.question == "contrast":
            found[Need(True)] = None
    return found


def parts(plan: SketchPlan, sketch: Sketch, sets: Sets | None, now_us: int) -> dict[Need, Partial]:
    """Return the leaves of a sketch, and the sets, that the questions of a plan need, as tables.

    Raises
    ------
    InvalidSketch
        If a question needs sets, and there are none.
    """
    return asked_parts(plan, sketch, sets, now_us)[0]


def asked_parts(plan: SketchPlan, sketch: Sketch, sets: Sets | None, now_us: int) -> tuple[dict[Need, Partial], int]:
    """Return what `parts` returns, and how many leaves it took: those that are sent, and a part of the merged ones.

    The number depends on the sketch alone, and not on what was computed of it before.
    """
    found, looked = {}, 0
    for need in needs(plan):
        if need.sets:
            found[need] = sets_of.partial_tables(_met(plan, sketch.settings, _kept(sets), now_us))
        else:
            chosen, leaves = _chosen(plan, need, sketch, now_us)
            found[need] = _with_over_budget(partial_tables(chosen), sketch)
            looked += leaves // MERGED_AS_ONE
        looked += sum(table.num_rows for table in found[need])
    return found, looked


def _with_over_budget(partial: Partial, sketch: Sketch) -> Partial:
    """Return tables whose first one says for which features bins do not suffice for the error budget."""
    if not sketch.over_budget:
        return partial
    first, *others = partial
    return [first.replace_schema_metadata({_OVER_BUDGET: json.dumps(sketch.over_budget)}), *others]


def over_budget(partials: Iterable[Partial]) -> dict[str, float]:
    """Return features whose bins do not suffice for their error budget, with the least part that keeps it.

    Parameters
    ----------
    partials : iterable of list of pyarrow.Table
        Of all needs and regions.
    """
    told = [json.loads((partial[0].schema.metadata or {}).get(_OVER_BUDGET, "{}")) for partial in partials if partial]
    return {name: min(one[name] for one in told if name in one) for name in {name for one in told for name in one}}


def _kept(sets: Sets | None) -> Sets:
    if sets is None:
        raise InvalidSketch("the sketch of the stream keeps no sets: name their features in the admin")
    return sets


def _met(plan: SketchPlan, settings: SketchSettings, sets: Sets, now_us: int) -> Sets:
    """Return the part of sets that a selection meets."""
    coverage = coverage_of(selection_of(plan, False, settings, now_us), settings, sets.settings)
    entries = sets.entries()
    met = coverage(entries.keys, entries.level)[1]
    return replace(sets, runs=(SetRun(0, entries.take(met)),) if met.any() else ())


def _chosen(plan: SketchPlan, need: Need, sketch: Sketch, now_us: int) -> tuple[ChosenLeaves, int]:
    """Return the leaves of a sketch that a question needs, as few as may be, and of how many they are made."""
    selection = selection_of(plan, need.other, sketch.settings, now_us)
    if need.level >= 0:
        return by_cell(sketch, selection, need.level)
    chosen = choose(sketch, selection, merge=not need.apart)
    return chosen if need.apart else condensed(chosen, need.feature or None), chosen.leaves


def together(
    plan: SketchPlan, need: Need, partials: Sequence[Partial], settings: SketchSettings, now_us: int
) -> ChosenLeaves | Sets:
    """Return what `parts` found for a need in several regions, as one."""
    if need.sets:
        return functools.reduce(merge_sets, map(sets_of.partial_of, partials))
    return chosen_of(partials, settings, selection_of(plan, need.other, settings, now_us))


def selection_of(plan: SketchPlan, other: bool, settings: SketchSettings, now_us: int) -> Selection:
    """Return what a plan selects, or what it contrasts that with."""
    place = plan.other if other and plan.other else plan
    ranges = tuple(ValueRange(one.feature, *one.bounds) for one in plan.ranges)
    return Selection(_areas(place, settings), _times(place.time, now_us), ranges)


def _areas(place: SketchPlan | Other, settings: SketchSettings) -> tuple[Area, ...]:
    if place.polygon:
        return (shapely.Polygon(place.polygon),)
    whole = settings.space.whole()
    return () if tuple(place.area) == tuple(whole) else (_box(settings, place.area),)


def _box(settings: SketchSettings, area: PlanBox) -> Box:
    n = settings.space.n
    for axis, dimension in enumerate(settings.space.dimensions):
        if axis not in settings.axes and (area[axis] > dimension.lo or area[n + axis] < dimension.hi):
            known = " and ".join(settings.space.dimensions[axis].name for axis in settings.axes)
            raise InvalidSketch(
                "the area of a question to a sketch has bounds of %(known)s alone; got %(name)s",
                known=known,
                name=dimension.name,
            )
    limits = [(settings.space.dimensions[axis].lo, settings.space.dimensions[axis].hi) for axis in settings.axes]
    sides = [(area[axis], area[n + axis]) for axis in settings.axes]
    clipped = [
        (lo if side_lo == -math.inf else side_lo, hi if side_hi == math.inf else side_hi)
        for (lo, hi), (side_lo, side_hi) in zip(limits, sides, strict=True)
    ]
    (x_lo, x_hi), (y_lo, y_hi) = clipped
    return x_lo, y_lo, x_hi, y_hi


def _times(times: PlanTimes, now_us: int) -> TimeIntervals | None:
    if times == PlanTimes(zone=times.zone):
        return None
    return TimeIntervals.of(times.intervals_us(now_us, _LONG_AGO_US, _FAR_US).tolist())
