"""Aggregates over the answers of range queries: how a plan is read, written, described and evaluated."""

from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.aggregate.plan import (
    AGGREGATE_KEYS,
    FUNCTIONS,
    MAX_FOR_S,
    MAX_THRESHOLDS,
    THRESHOLD_KEYS,
    Aggregate,
    AggregatePlan,
    Threshold,
)
from streaming.kinds.aggregate.schema import definition, definitions
from streaming.kinds.around import Focus
from streaming.kinds.base import Evaluation, Fact, Kind, Plan, Source
from streaming.kinds.fields import check_kept
from streaming.kinds.moving_range.kind import MovingRangeKind
from streaming.kinds.parts import Box, UserFilter, check_keys, given, parse_choice, parse_number, parse_text
from streaming.kinds.range.kind import RangeKind
from streaming.language import gettext, gettext_noop
from streaming.property_columns import checked_name
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
        return _of(plan).document(plan.range, space) | {"aggregate": aggregate_document(plan.aggregate)}

    def words(self, document: dict[str, Any], unit: str) -> str:
        aggregate = document["aggregate"]
        of = aggregate.get("property") or aggregate.get("dimension")
        members = next(kind for kind in _RANGES if kind.claims(document)).words(document, unit)
        groups = gettext(", by %(group_by)s") % {"group_by": aggregate["group_by"]} if aggregate.get("group_by") else ""
        thresholds = ", ".join(Threshold(**threshold).name for threshold in aggregate.get("thresholds", ()))
        words = " ".join(filter(None, [gettext(_WORDS[aggregate["function"]]), of, members]))
        return words + groups + (thresholds and f"; {thresholds}")

    def definition(self) -> dict[str, Any]:
        return definition()

    def condition(self) -> None:
        return None

    def definitions(self) -> dict[str, dict[str, Any]]:
        return definitions()

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
    check_keys(document, AGGREGATE_KEYS, "aggregate")
    if "function" not in document:
        raise InvalidPlan("aggregate needs a function, one of %(functions)s; got none", functions=", ".join(FUNCTIONS))
    function = parse_choice(document, "function", FUNCTIONS)
    named = given(document, ("property", "dimension"))
    if function == "count" and named:
        raise InvalidPlan("aggregate: count has neither property nor dimension; got %(named)s", named=", ".join(named))
    if function != "count" and len(named) != 1:
        got = ", ".join(named) or "none"
        raise InvalidPlan(
            "aggregate: %(function)s must have one of property, dimension; got %(got)s", function=function, got=got
        )
    texts = {name: _text(document, name) for name in ("property", "dimension", "group_by")}
    dimensions = [dimension.name for dimension in space.dimensions]
    if texts["dimension"] and texts["dimension"] not in dimensions:
        raise InvalidPlan(
            "aggregate: dimension must be one of %(dimensions)s; got %(dimension)s",
            dimensions=", ".join(dimensions),
            dimension=f"{texts['dimension']!r:.200}",
        )
    return Aggregate(function, thresholds=_thresholds(document.get("thresholds", [])), **texts)


def _text(document: dict[str, Any], name: str) -> str:
    if document.get(name) is None:
        return ""
    where = f"aggregate: {name}"
    text = parse_text(document[name], where)
    return text if name == "dimension" else checked_name(text, where)


def _thresholds(documents: Any) -> tuple[Threshold, ...]:
    if not isinstance(documents, list) or len(documents) > MAX_THRESHOLDS:
        raise InvalidPlan(
            "thresholds must be a list of at most %(max_thresholds)s objects; got %(documents)s",
            max_thresholds=MAX_THRESHOLDS,
            documents=f"{documents!r:.200}",
        )
    thresholds = tuple(map(_threshold, documents))
    if len(set(thresholds)) < len(thresholds):
        names = ", ".join(threshold.name for threshold in thresholds)
        raise InvalidPlan("thresholds must differ from each other; got %(names)s", names=names)
    return thresholds


def _threshold(document: Any) -> Threshold:
    if not isinstance(document, dict):
        raise InvalidPlan(
            "a threshold must be an object with above or below; got %(document)s", document=f"{document!r:.200}"
        )
    check_keys(document, THRESHOLD_KEYS, gettext("a threshold"))
    named = given(document, ("above", "below"))
    if len(named) != 1:
        raise InvalidPlan(
            "a threshold must have one of above, below; got %(named)s", named=", ".join(named) or gettext("none")
        )
    limit = {named[0]: parse_number(document[named[0]], gettext("a threshold: %(named)s") % {"named": named[0]})}
    return Threshold(
        **limit, for_s=parse_number(document.get("for_s", 0.0), gettext("a threshold: for_s"), lo=0.0, hi=MAX_FOR_S)
    )


def aggregate_document(aggregate: Aggregate) -> dict[str, Any]:
    """Return the JSON form of an aggregate."""
    named = {name: getattr(aggregate, name) for name in ("property", "dimension", "group_by")}
    document = {"function": aggregate.function} | {name: value for name, value in named.items() if value}
    if aggregate.thresholds:
        document["thresholds"] = [_threshold_document(threshold) for threshold in aggregate.thresholds]
    return document


def _threshold_document(threshold: Threshold) -> dict[str, Any]:
    limit = {"below": threshold.below} if threshold.above is None else {"above": threshold.above}
    return limit | ({"for_s": threshold.for_s} if threshold.for_s else {})
