"""From JSON documents to plans and back."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from streaming.errors import InvalidPlan
from streaming.plans.moving import Plan
from streaming.plans.parts import (
    box_document,
    filters_document,
    parse_amount,
    parse_box,
    parse_filters,
    parse_text,
    parse_transform,
    parse_where,
    transform_document,
)
from streaming.plans.queries import EMITS, KINDS, PREDICATES, REPORTS, SOURCES, JoinPlan, Partners, RangePlan
from streaming.spaces import EARTH, Space

RANGE_KEYS = tuple(field.name for field in fields(RangePlan))
JOIN_KEYS = ("join", *(field.name for field in fields(JoinPlan) if field.name != "partners"))
PARTNERS_KEYS = (*SOURCES, "predicate", "distance", "where", "filters", "pair_filters")


def parse_plan(document: Any, space: Space = EARTH) -> Plan:
    """Return the plan that a JSON document describes.

    Parameters
    ----------
    document : dict
        See docs/plans.md. A range query needs `area` or `compare`, boxes ``{"lo": [...], "hi": [...]}``: a missing
        `area` is `compare` when matches inside are reported, the whole space otherwise; a missing `compare` is `area`.
        A join needs `join`; its missing `area` is the whole space.
    space : Space

    Raises
    ------
    InvalidPlan
        With the rule that the document breaks, and the value.

    Examples
    --------
    >>> parse_plan({"stream": "vessels", "compare": {"lo": [24, 60], "hi": [25, 61]}}).compare[:2]
    (24.0, 60.0)
    >>> parse_plan({"stream": "buses", "kind": "join", "join": {"layer": "forests"}}).partners.predicate
    'intersects'
    """
    if not isinstance(document, dict):
        raise InvalidPlan(f"a plan must be a JSON object; got {type(document).__name__}")
    kind = _choice(document, "kind", KINDS)
    return _range(document, space) if kind == "range" else _join(document, space)


def plan_document(plan: Plan, space: Space = EARTH) -> dict[str, Any]:
    """Return the JSON document of a plan, such that ``parse_plan(plan_document(plan)) == plan``."""
    document: dict[str, Any] = {"stream": plan.stream, "kind": plan.kind}
    if isinstance(plan, JoinPlan):
        document["join"] = _partners_document(plan.partners, space)
    else:
        document |= {"compare": box_document(plan.compare, space), "report": plan.report}
    document |= {"transform": transform_document(plan.transform), "where": plan.where, "emit": plan.emit}
    if plan.filters:
        document["filters"] = filters_document(plan.filters, space)
    if any(map(math.isfinite, plan.area)) or plan.area != _default_area(plan, space):
        document["area"] = box_document(plan.area, space)
    return document


def _default_area(plan, space):
    """Return the area of a plan whose document names none."""
    inside = isinstance(plan, RangePlan) and plan.report == "inside"
    return plan.compare if inside else _whole(space)


def _range(document, space):
    _check_keys(document, RANGE_KEYS, "a range query")
    if document.get("area") is None and document.get("compare") is None:
        raise InvalidPlan("a plan needs an area or a compare box; got neither")
    report = _choice(document, "report", REPORTS)
    compare = _box(document, "compare", space) or _box(document, "area", space)
    area = _box(document, "area", space) or (compare if report == "inside" else _whole(space))
    return RangePlan(area=area, compare=compare, report=report, **_common(document, space))


def _join(document, space):
    _check_keys(document, JOIN_KEYS, "a join")
    area = _box(document, "area", space) or _whole(space)
    return JoinPlan(partners=_partners(document.get("join"), space), area=area, **_common(document, space))


def _common(document, space):
    """Return what both kinds of plans have."""
    return {
        "stream": _stream(document),
        "transform": parse_transform(document.get("transform", []), space),
        "where": parse_where(document.get("where", "")),
        "filters": parse_filters(document.get("filters", []), "filters", space),
        "emit": _choice(document, "emit", EMITS),
    }


def _partners(document, space):
    if not isinstance(document, dict):
        raise InvalidPlan(f"join must be an object with one of {', '.join(SOURCES)}; got {document!r:.200}")
    _check_keys(document, PARTNERS_KEYS, "join")
    named = [source for source in SOURCES if document.get(source) is not None]
    if len(named) != 1:
        raise InvalidPlan(f"join must have one of {', '.join(SOURCES)}; got {', '.join(named) or 'none'}")
    predicate = _choice(document, "predicate", PREDICATES)
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


def _check_keys(document: Mapping[str, Any], keys, what):
    unknown = sorted(set(document) - set(keys))
    if unknown:
        raise InvalidPlan(f"{what} has the keys {', '.join(keys)}; got the unknown {', '.join(unknown)}")


def _box(document, name, space):
    return parse_box(document.get(name), name, space)


def _whole(space):
    return tuple(space.whole().tolist())


def _choice(document, name, choices):
    value = document.get(name, choices[0])
    if value not in choices:
        raise InvalidPlan(f"{name} must be one of {', '.join(choices)}; got {value!r:.200}")
    return value


def _stream(document):
    stream = document.get("stream")
    if not isinstance(stream, str) or not stream:
        raise InvalidPlan(f"stream must be the name of a stream; got {stream!r:.200}")
    return stream
