"""Ranges about a focus, nearest neighbours and aggregates explained."""

from dataclasses import replace

import numpy as np
import shapely

from streaming.explaining.asked import asked_terms
from streaming.explaining.borders import border_of_lines
from streaming.explaining.explain import explain
from streaming.explaining.known import ExplanationFacts
from streaming.explaining.places import box_terms, side
from streaming.explaining.subject import Subject
from streaming.explaining.terms import BorderDistance, Term, every, some
from streaming.explaining.words import metres, span
from streaming.kinds.aggregate.plan import AggregatePlan, Threshold
from streaming.kinds.around import Focus
from streaming.kinds.fields import whole
from streaming.kinds.knn.plan import NearestPlan
from streaming.kinds.moving_range.plan import MovingRangePlan
from streaming.kinds.registry import kind_of
from streaming.kinds.words import number
from streaming.language import gettext
from streaming.operators.aggregates import NO_GROUP
from streaming.operators.focal_ranges import CIRCLE, RECTANGLE, FocalRanges, PlacedRanges, focal_keys
from streaming.operators.geodesics import along, local_metres
from streaming.operators.places import distances, within
from streaming.property_columns import PropertyColumns
from streaming.spaces import FULL_TURN_DEG

_ONE = np.zeros(1, dtype=np.int64)


def range_term(plan: MovingRangePlan, subject: Subject, known: ExplanationFacts) -> Term:
    """Explain a range about a focus."""
    return every(gettext("in the answer"), [*asked_terms(plan, subject), *_about(plan, subject, known)])


def _about(plan: MovingRangePlan, subject: Subject, known: ExplanationFacts) -> list[Term]:
    """Return the terms about the focus of a range, and about the range."""
    if lacking := _lacking(plan, subject, known):
        return lacking
    placed = _placed(plan, subject, known)
    lies = bool(placed.lies(subject.bounds, _ONE, _ONE, subject.key_hash)[0][0])
    kind, where = placed.ranges.kind[0], focus_words(plan.focus)
    if kind == CIRCLE:
        asks = gettext("within %(distance)s of %(where)s") % {
            "distance": _length(placed.radius[0], subject),
            "where": where,
        }
        return [_circle_term(asks, lies, placed.places[0], float(placed.radius[0]), subject)]
    if kind == RECTANGLE:
        box = tuple(placed.boxes[0].tolist())
        return [every(gettext("in the box about %(where)s") % {"where": where}, box_terms(box, subject))]
    border = _carried_border(placed, lies, subject) if subject.space.geographic else None
    return [Term(gettext("in the polygon about %(where)s") % {"where": where}, lies, side(lies, border), border=border)]


def _lacking(plan: MovingRangePlan | NearestPlan, subject: Subject, known: ExplanationFacts) -> list[Term]:
    """Return the terms that decide a range because of its focus: it is the element itself, is lost, or is not known."""
    if not plan.focus.key:
        return []
    if focal_keys([plan.focus])[0] == subject.key_hash[0]:
        return [
            Term(gettext("another object than the one that the query follows"), False, gettext("it is that object"))
        ]
    if known.focus is not None:
        return []
    asks = gettext("near %(focus)s") % {"focus": focus_words(plan.focus)}
    if known.lost:
        return [Term(asks, False, gettext("the object that the query follows has not reported lately"))]
    return [Term(asks, None, gettext("where the object that the query follows was is not known"))]


def focus_words(focus: Focus) -> str:
    """Return a focal object, or a fixed place, as text."""
    return f"{focus.stream} {focus.key}" if focus.key else gettext(", ").join(map(number, focus.at))


def _placed(plan: MovingRangePlan | NearestPlan, subject: Subject, known: ExplanationFacts) -> PlacedRanges:
    """Return the range of a plan where its focus is, without its area and filters."""
    bare = replace(plan, where="", filters=(), area=whole(subject.space))
    keys, bounds = np.empty(0, dtype=np.int64), np.empty((0, 2 * subject.space.n))
    if known.focus is not None:
        keys, bounds = known.focus.key_hash, known.focus.bounds
    return FocalRanges([bare], subject.space).placed(keys, bounds, np.full(1, np.nan))


def _length(length: float, subject: Subject) -> str:
    return metres(length) if subject.space.geographic else number(length)


def _circle_term(asks: str, holds: bool, place: np.ndarray, radius: float, subject: Subject) -> Term:
    apart = float(distances(subject.bounds, place[None], subject.space)[0])
    return Term(
        asks,
        holds,
        gettext("%(distance)s away") % {"distance": _length(apart, subject)},
        border=_ring(place, apart, radius, subject),
    )


def _ring(place: np.ndarray, apart: float, radius: float, subject: Subject) -> BorderDistance | None:
    """Return the border of a circle about a place, given how far the element is from the place."""
    if not subject.space.geographic:
        return None
    middle = (float(place[0]), float(place[1]))
    return BorderDistance(apart - radius, subject.place, along(middle, subject.place, radius))


def _carried_border(placed: PlacedRanges, lies: bool, subject: Subject) -> BorderDistance | None:
    ring = np.array(shapely.get_coordinates(placed.ranges.carried[0].exterior))
    place = placed.places[0]
    degrees = place + ring / np.array(local_metres(place[1]))
    if np.ptp(degrees[:, 0]) >= FULL_TURN_DEG:  # about a pole it is no polygon in degrees
        return None
    degrees[:, 1] = np.clip(degrees[:, 1], -90.0, 90.0)
    return border_of_lines(shapely.LineString(degrees), lies, subject)


def nearest_term(plan: NearestPlan, subject: Subject, known: ExplanationFacts) -> Term:
    """Explain a query for nearest neighbours: the rank of the element, and how far the last of the answer is."""
    terms = asked_terms(plan, subject)
    if lacking := _lacking(plan, subject, known):
        return every(gettext("in the answer"), [*terms, *lacking])
    place = _placed(plan, subject, known).places[0]
    if np.isfinite(plan.max_distance):
        near = bool(within(subject.bounds, place[None], np.array([plan.max_distance]), subject.space)[0])
        asks = gettext("within %(distance)s of %(focus)s") % {
            "distance": _length(plan.max_distance, subject),
            "focus": focus_words(plan.focus),
        }
        terms.append(_circle_term(asks, near, place, float(plan.max_distance), subject))
    return every(gettext("in the answer"), [*terms, _rank_term(plan, place, subject, known)])


def _rank_term(plan: NearestPlan, place: np.ndarray, subject: Subject, known: ExplanationFacts) -> Term:
    asks = gettext("among the %(k)s nearest of %(focus)s") % {"k": plan.k, "focus": focus_words(plan.focus)}
    apart = float(distances(subject.bounds, place[None], subject.space)[0])
    away = gettext("%(distance)s away") % {"distance": _length(apart, subject)}
    if known.neighbours is None:
        return Term(asks, None, gettext("%(away)s; who was nearer is not known") % {"away": away})
    mine = next((one for one in known.neighbours if one.key == subject.key), None)
    if mine is not None:
        return Term(
            asks,
            True,
            gettext("rank %(rank)s of %(count)s, %(away)s")
            % {"rank": mine.rank, "count": len(known.neighbours), "away": away},
        )
    if not known.neighbours:
        return Term(asks, False, gettext("%(away)s; the answer is empty") % {"away": away})
    last = known.neighbours[-1]
    far = "" if last.distance is None else gettext(" at %(distance)s") % {"distance": _length(last.distance, subject)}
    border = None if last.distance is None else _ring(place, apart, last.distance, subject)
    return Term(
        asks,
        False,
        gettext("%(away)s; the last of the %(count)s is %(key)s%(far)s")
        % {"away": away, "count": len(known.neighbours), "key": last.key, "far": far},
        border=border,
    )


def aggregate_term(plan: AggregatePlan, subject: Subject, known: ExplanationFacts) -> Term:
    """Explain an aggregate: whether the element is counted, and the value of its group against each threshold."""
    member = explain(kind_of(plan).members(plan), subject, known)
    counted = replace(member, asks=gettext("the object is counted"))
    aggregate = plan.aggregate
    group = ""
    if aggregate.group_by:
        group = PropertyColumns(subject.table["properties"]).text(aggregate.group_by)[0] or NO_GROUP
    if not aggregate.thresholds:
        return counted
    value = None if known.groups is None else known.groups.get(group)
    crossed = [threshold_term(threshold, value, known.groups is not None) for threshold in aggregate.thresholds]
    of = gettext(" of %(group_by)s %(group)s") % {"group_by": aggregate.group_by, "group": group} if group else ""
    return every(
        gettext("counted, and a threshold is crossed"),
        [counted, some(gettext("the %(function)s%(of)s") % {"function": aggregate.function, "of": of}, crossed)],
    )


def threshold_term(threshold: Threshold, value: float | None, told: bool) -> Term:
    """Return the term of a threshold, given the value of the group; `told` says whether the values are known."""
    limit, above = (threshold.below, False) if threshold.above is None else (threshold.above, True)
    assert limit is not None  # a threshold has one of the two
    asks = f"{'above' if above else 'below'} {number(limit)}"
    if threshold.for_s:
        asks += gettext(" for %(for_s)s") % {"for_s": span(threshold.for_s)}
    if value is None:
        return Term(
            asks, False if told else None, gettext("there is no value") if told else gettext("the value is not known")
        )
    beyond = value > limit if above else value < limit
    found = gettext("it is %(value)s") % {"value": number(value)}
    if beyond and threshold.for_s:
        return Term(asks, None, gettext("%(found)s; since when, only the engine follows") % {"found": found})
    return Term(asks, beyond, found)
