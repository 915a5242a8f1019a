"""The registry of kinds of continuous queries: the only list of them."""

from typing import Any

from streaming.kinds.aggregate.kind import AggregateKind
from streaming.kinds.approach.kind import ApproachKind
from streaming.kinds.base import Kind, Plan
from streaming.kinds.closest_approach.kind import ClosestApproachKind
from streaming.kinds.details import Detail
from streaming.kinds.encounter.kind import EncounterKind
from streaming.kinds.interval_join.kind import IntervalJoinKind
from streaming.kinds.join.kind import JoinKind
from streaming.kinds.knn.kind import NearestKind
from streaming.kinds.moving_range.kind import MovingRangeKind
from streaming.kinds.parts import Box, parse_choice
from streaming.kinds.range.kind import RangeKind
from streaming.kinds.rule.kind import RuleKind
from streaming.kinds.sketch.kind import SketchKind
from streaming.kinds.track.kind import TrackKind
from streaming.kinds.window_join.kind import WindowJoinKind

# A later kind may claim documents that an earlier one would claim, too.
KINDS: tuple[Kind[Any], ...] = (
    RangeKind(),
    MovingRangeKind(),
    NearestKind(),
    JoinKind(),
    AggregateKind(),
    WindowJoinKind(),
    IntervalJoinKind(),
    EncounterKind(),
    SketchKind(),
    RuleKind(),
    ApproachKind(),
    TrackKind(),
    ClosestApproachKind(),
)


def kind_of(plan: Plan) -> Kind[Any]:
    """Return the kind of a plan; raise KeyError if no kind that is registered has such plans."""
    return _BY_PLAN[type(plan)]


def moved(was: Plan, now: Plan) -> list[tuple[Box, Box]] | None:
    """Return what `Kind.moved` does; None for plans of two kinds."""
    kind = kind_of(now)
    return kind.moved(was, now) if kind_of(was) is kind else None


def claimed(document: dict[str, Any]) -> Kind[Any]:
    """Return the kind of the plan in a JSON document; raise `InvalidPlan` if `kind` is none that is known."""
    parse_choice(document, "kind", tuple(dict.fromkeys(kind.written for kind in KINDS)))
    return next(kind for kind in reversed(KINDS) if kind.claims(document))


# The details of all kinds, each once.
DETAILS: tuple[Detail, ...] = tuple({(*detail.columns,): detail for kind in KINDS for detail in kind.details}.values())
_BY_PLAN = {kind.plan_class: kind for kind in KINDS}
