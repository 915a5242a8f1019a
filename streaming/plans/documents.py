"""Plans from JSON documents and back."""

import math
from dataclasses import fields
from typing import Any

from streaming.errors import InvalidPlan
from streaming.plans.around import (
    FOCUS_KEYS,
    SHAPES,
    aggregate_document,
    focus_document,
    parse_aggregate,
    parse_focus,
    parse_length,
    parse_shape,
    shape_document,
)
from streaming.plans.moving import AggregatePlan, MovingRangePlan, NearestPlan, Plan
from streaming.plans.parts import (
    box_document,
    check_keys,
    filters_document,
    parse_amount,
    parse_box,
    parse_choice,
    parse_filters,
    parse_number,
    parse_text,
    parse_transform,
    parse_where,
    transform_document,
)
from streaming.plans.queries import EMITS, KINDS, PREDICATES, REPORTS, SOURCES, JoinPlan, Partners, RangePlan
from streaming.spaces import EARTH, Space

RANGE_KEYS = (*(field.name for field in fields(RangePlan)), "aggregate")
MOVING_KEYS = ("stream", "kind", "around", "area", "where", "filters", "emit", "aggregate")
NEAREST_KEYS = ("stream", "kind", "k", "around", "max_distance", "alpha", "area", "where", "filters", "emit")
MAX_K = 1_000
MAX_ALPHA = 10.0
JOIN_KEYS = ("join", *(field.name for field in fields(JoinPlan) if field.name != "partners"))
PARTNERS_KEYS = (*SOURCES, "predicate", "distance", "where", "filters", "pair_filters")


def parse_plan(document: Any, space: Space = EARTH) -> Plan:
    """Return the plan that a JSON document describes.

    Parameters
    ----------
    document : dict
        See docs/plans.md. A range query needs `area` or `compare`, boxes ``{"lo": [...], "hi": [...]}``, or `around`. A
        missing `area` is `compare` if the query reports matches inside, else the whole space; a missing `compare` is
        `area`. A join needs `join`. In a join, and in a query with `around`, a missing `area` is the whole space.
    space : Space

    Raises
    ------
    InvalidPlan
        If the document breaks a rule. The message says the rule and the value.

    Examples
    --------
    >>> parse_plan({"stream": "vessels", "compare": {"lo": [24, 60], "hi": [25, 61]}}).compare[:2]
    (24.0, 60.0)
    >>> parse_plan({"stream": "buses", "kind": "join", "join": {"layer": "forests"}}).partners.predicate
    'intersects'
    >>> parse_plan({"stream": "vessels", "around": {"key": "230992000", "radius": 9260}}).focus.stream
    'vessels'
    """
    if not isinstance(document, dict):
        raise InvalidPlan(f"a plan must be a JSON object; got {type(document).__name__}")
    kind = parse_choice(document, "kind", KINDS)
    if kind != "range" and document.get("aggregate") is not None:
        raise InvalidPlan(f"aggregate belongs to the kind range; got {kind}")
    return {"range": _range, "join": _join, "knn": _nearest}[kind](document, space)


def plan_document(plan: Plan, space: Space = EARTH) -> dict[str, Any]:
    """Return the JSON document of a plan, such that ``parse_plan(plan_document(plan)) == plan``."""
    if isinstance(plan, AggregatePlan):
        return plan_document(plan.range, space) | {"aggregate": aggregate_document(plan.aggregate)}
    document: dict[str, Any] = {"stream": plan.stream, "kind": plan.kind}
    if isinstance(plan, JoinPlan):
        document["join"] = _partners_document(plan.partners, space)
    elif isinstance(plan, RangePlan):
        document |= {"compare": box_document(plan.compare, space), "report": plan.report}
    else:
        document |= _around_document(plan)
    if isinstance(plan, RangePlan | JoinPlan):
        document["transform"] = transform_document(plan.transform)
    document |= {"where": plan.where, "emit": plan.emit}
    if plan.filters:
        document["filters"] = filters_document(plan.filters, space)
    if any(map(math.isfinite, plan.area)) or plan.area != _default_area(plan, space):
        document["area"] = box_document(plan.area, space)
    return document


def _around_document(plan):
    """Return the keys that only documents of plans with a focus have."""
    if isinstance(plan, MovingRangePlan):
        return {"around": focus_document(plan.focus) | shape_document(plan.shape)}
    limit = {"max_distance": plan.max_distance} if math.isfinite(plan.max_distance) else {}
    return {"k": plan.k, "around": focus_document(plan.focus), "alpha": plan.alpha} | limit


def _default_area(plan, space):
    """Return the area that a plan has if its document names none."""
    inside = isinstance(plan, RangePlan) and plan.report == "inside"
    return plan.compare if inside else _whole(space)


def _range(document, space):
    moves = document.get("around") is not None
    plan = _moving(document, space) if moves else _static(document, space)
    if document.get("aggregate") is None:
        return plan
    _check_kept(plan.emit)
    return AggregatePlan(plan, parse_aggregate(document["aggregate"], space))


def _static(document, space):
    check_keys({name: value for name, value in document.items() if name != "around"}, RANGE_KEYS, "a range query")
    if document.get("area") is None and document.get("compare") is None:
        raise InvalidPlan("a plan needs an area or a compare box, or around; got none of them")
    report = parse_choice(document, "report", REPORTS)
    compare = _box(document, "compare", space) or _box(document, "area", space)
    area = _box(document, "area", space) or (compare if report == "inside" else _whole(space))
    return RangePlan(area=area, compare=compare, report=report, **_compared(document, space))


def _moving(document, space):
    static = [name for name in ("compare", "report", "transform") if name in document]
    if static:
        raise InvalidPlan(f"a plan has around, or compare, report and transform; got around and {', '.join(static)}")
    check_keys(document, MOVING_KEYS, "a range query with around")
    around, common = document["around"], _common(document, space)
    _check_kept(common["emit"])
    focus = parse_focus(around, common["stream"], space)
    check_keys(around, (*FOCUS_KEYS, *SHAPES), "around")
    return MovingRangePlan(
        focus=focus, shape=parse_shape(around, space), area=_box(document, "area", space) or _whole(space), **common
    )


def _nearest(document, space):
    check_keys(document, NEAREST_KEYS, "a query for nearest neighbours")
    around, common = document.get("around"), _common(document, space)
    _check_kept(common["emit"])
    focus = parse_focus(around, common["stream"], space)
    check_keys(around, FOCUS_KEYS, "around, of a query for nearest neighbours,")
    limit = document.get("max_distance")
    return NearestPlan(
        focus=focus,
        k=_whole_number(document.get("k"), "k", MAX_K),
        area=_box(document, "area", space) or _whole(space),
        max_distance=math.inf if limit is None else parse_length(limit, "max_distance", space),
        alpha=parse_number(document.get("alpha", NearestPlan.alpha), "alpha", lo=0.0, hi=MAX_ALPHA),
        **common,
    )


def _whole_number(value, name, most):
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in range(1, most + 1):
        raise InvalidPlan(f"{name} must be a whole number of 1 to {most:,}; got {value!r:.200}")
    return int(value)


def _check_kept(emit):
    """Raise InvalidPlan unless the plan keeps its answer."""
    if emit == "all":
        raise InvalidPlan("emit must be changes or membership with around or an aggregate; got 'all'")


def _join(document, space):
    check_keys(document, JOIN_KEYS, "a join")
    area = _box(document, "area", space) or _whole(space)
    return JoinPlan(partners=_partners(document.get("join"), space), area=area, **_compared(document, space))


def _compared(document, space):
    """Return the fields that plans of joins and of range queries with fixed boxes share."""
    return _common(document, space) | {"transform": parse_transform(document.get("transform", []), space)}


def _common(document, space):
    """Return the fields that plans of all kinds share."""
    return {
        "stream": _stream(document),
        "where": parse_where(document.get("where", "")),
        "filters": parse_filters(document.get("filters", []), "filters", space),
        "emit": parse_choice(document, "emit", EMITS),
    }


def _partners(document, space):
    if not isinstance(document, dict):
        raise InvalidPlan(f"join must be an object with one of {', '.join(SOURCES)}; got {document!r:.200}")
    check_keys(document, PARTNERS_KEYS, "join")
    named = [source for source in SOURCES if document.get(source) is not None]
    if len(named) != 1:
        raise InvalidPlan(f"join must have one of {', '.join(SOURCES)}; got {', '.join(named) or 'none'}")
    predicate = parse_choice(document, "predicate", PREDICATES)
    if predicate == "disjoint" and named == ["stream"]:
        raise InvalidPlan("the partners of disjoint must be a layer, or stored; got a stream")
    if (predicate == "dwithin") != ("distance" in document):
        raise InvalidPlan(f"distance belongs to the predicate dwithin, which needs it; got {document!r:.200}")
    return Partners(
        source=named[0],
        name=parse_text(document[named[0]], f"join: {named[0]}"),
        predicate=predicate,
        distance=parse_amount(document.get("distance", 0.0), "join: distance"),
        where=parse_where(document.get("where", ""), "join: where"),
        filters=parse_filters(document.get("filters", []), "join: filters", space),
        pair_filters=parse_filters(document.get("pair_filters", []), "join: pair_filters", space, ("udf",)),
    )


def _partners_document(partners, space):
    document = {partners.source: partners.name, "predicate": partners.predicate}
    if partners.predicate == "dwithin":
        document["distance"] = partners.distance
    if partners.where:
        document["where"] = partners.where
    for name in ("filters", "pair_filters"):
        if getattr(partners, name):
            document[name] = filters_document(getattr(partners, name), space)
    return document


def _box(document, name, space):
    return parse_box(document.get(name), name, space)


def _whole(space):
    return tuple(space.whole().tolist())


def _stream(document):
    stream = document.get("stream")
    if not isinstance(stream, str) or not stream:
        raise InvalidPlan(f"stream must be the name of a stream; got {stream!r:.200}")
    return stream
