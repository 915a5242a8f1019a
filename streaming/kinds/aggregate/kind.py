"""Aggregates over the answers of range queries: its rules, its words, and how it is evaluated."""

from collections.abc import Mapping
from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds import declared
from streaming.kinds.aggregate.plan import (
    FUNCTIONS,
    Aggregate,
    AggregatePlan,
    Threshold,
)
from streaming.kinds.aggregate.schema import aggregate_schema
from streaming.kinds.around import Focus
from streaming.kinds.base import Evaluation, Fact, Kind, Plan, Source
from streaming.kinds.fields import check_kept
from streaming.kinds.moving_range.kind import MovingRangeKind
from streaming.kinds.parts import Box, UserFilter, check_keys, given
from streaming.kinds.range.kind import RangeKind
from streaming.kinds.schema import Schema
from streaming.language import gettext, gettext_noop
from streaming.spaces import Space

_WORDS = {
    "count": gettext_noop("count"),
    "min": gettext_noop("smallest"),
    "max": gettext_noop("largest"),
    "sum": gettext_noop("sum of"),
    "avg": gettext_noop("average"),
}
# The kinds whose answers can be aggregated; the first that claims a document reads it.
_RANGES: tuple[Kind[Any], ...] = (MovingRangeKind(), RangeKind())


class AggregateKind(Kind[AggregatePlan]):
    """A value of all elements in the answer of a range query, or of each group of them."""

    name, written, plan_class = "aggregate", "range", AggregatePlan
    called = gettext_noop("a range query")
    explained = "streaming.explaining.moving:aggregate_term"

    def claims(self, document: dict[str, Any]) -> bool:
        return document.get("aggregate") is not None

    def parse(self, document: dict[str, Any], space: Space) -> AggregatePlan:
        of = next((kind for kind in _RANGES if kind.claims(document)), None)
        if of is None:
            raise InvalidPlan("aggregate belongs to the kind range; got %(kind)s", kind=document["kind"])
        plan = of.parse(document, space)
        check_kept(plan.emit)
        return AggregatePlan(plan, parse_aggregate(document["aggregate"], space))

    def document(self, plan: AggregatePlan, space: Space) -> dict[str, Any]:
        return _of(plan).document(plan.range, space) | {"aggregate": declared.write(plan.aggregate, space)}

    def words(self, document: dict[str, Any], unit: str) -> str:
        aggregate = document["aggregate"]
        of = aggregate.get("property") or aggregate.get("dimension")
        members = next(kind for kind in _RANGES if kind.claims(document)).words(document, unit)
        groups = gettext(", by %(group_by)s") % {"group_by": aggregate["group_by"]} if aggregate.get("group_by") else ""
        thresholds = ", ".join(Threshold(**threshold).name for threshold in aggregate.get("thresholds", ()))
        words = " ".join(filter(None, [gettext(_WORDS[aggregate["function"]]), of, members]))
        return words + groups + (thresholds and f"; {thresholds}")

    def definition(self) -> Schema:
        return aggregate_schema(declared.definition(Aggregate))

    def condition(self) -> None:
        return None

    def definitions(self) -> Mapping[str, Schema]:
        return declared.definitions(Aggregate)

    def evaluation(self, plan: AggregatePlan) -> Evaluation:
        return Evaluation.AGGREGATE

    def facts(self, plan: AggregatePlan) -> tuple[Fact, ...]:
        return ("groups",)

    def sources(self, plan: AggregatePlan) -> tuple[Source, ...]:
        return _of(plan).sources(plan.range)

    def user_filters(self, plan: AggregatePlan) -> tuple[tuple[UserFilter, bool], ...]:
        return _of(plan).user_filters(plan.range)

    def members(self, plan: AggregatePlan) -> Plan:
        return plan.range

    def focus(self, plan: AggregatePlan) -> Focus | None:
        return _of(plan).focus(plan.range)

    def box(self, plan: AggregatePlan) -> Box:
        return _of(plan).box(plan.range)

    def reach(self, plan: AggregatePlan) -> float:
        return _of(plan).reach(plan.range)


def _of(plan: AggregatePlan) -> Kind[Any]:
    """Return the kind of the range query of an aggregate."""
    return next(kind for kind in _RANGES if kind.plan_class is type(plan.range))


def parse_aggregate(document: Any, space: Space) -> Aggregate:
    """Return the aggregate that a JSON object describes."""
    if not isinstance(document, dict):
        raise InvalidPlan(
            "aggregate must be an object with a function; got %(document)s", document=f"{document!r:.200}"
        )
    check_keys(document, declared.keys_of(Aggregate), "aggregate")
    if "function" not in document:
        raise InvalidPlan("aggregate needs a function, one of %(functions)s; got none", functions=", ".join(FUNCTIONS))
    found = Aggregate(**declared.read(Aggregate, document, space, "aggregate: "))
    named = given(document, ("property", "dimension"))
    if found.function == "count" and named:
        raise InvalidPlan("aggregate: count has neither property nor dimension; got %(named)s", named=", ".join(named))
    if found.function != "count" and len(named) != 1:
        got = ", ".join(named) or "none"
        raise InvalidPlan(
            "aggregate: %(function)s must have one of property, dimension; got %(got)s",
            function=found.function,
            got=got,
        )
    return found
