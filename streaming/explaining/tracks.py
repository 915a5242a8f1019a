"""Queries about tracks explained: whether a report is believed, and where its accuracy circle is."""

import math

import numpy as np

from streaming.explaining.filters import explain_filter, filter_term
from streaming.explaining.known import ExplanationFacts
from streaming.explaining.places import area_terms, box_terms, only
from streaming.explaining.subject import Subject
from streaming.explaining.terms import Term, every
from streaming.explaining.words import metres, span
from streaming.kinds.area_documents import shape_of
from streaming.kinds.areas import AreaFilter
from streaming.kinds.parts import Box
from streaming.kinds.track.plan import TrackPlan
from streaming.kinds.words import number
from streaming.language import gettext, gettext_noop
from streaming.operators.border_passages import BETWEEN, OUTSIDE, WITHIN, AreaBorders
from streaming.operators.geodesics import geodesic_m
from streaming.operators.tracks import TrackQueries, border_of

MICROSECONDS = 1_000_000
_ONE = np.zeros(1, dtype=np.int64)
_SIDES = {WITHIN: gettext_noop("the whole circle is inside"), OUTSIDE: gettext_noop("the whole circle is outside")}


def track_term(plan: TrackPlan, subject: Subject, known: ExplanationFacts) -> Term:
    """Return the term of a query about tracks.

    The place that counts is that of the last believed report, if it is known; otherwise that of the element.
    """
    terms = []
    if math.isfinite(plan.fastest_m_s):
        terms.append(_believed(plan, subject, known))
    fix = known.fix or subject
    terms += [_circle(plan, fix, known), *box_terms(_heights(plan, fix), fix)]
    if plan.where:
        terms.append(explain_filter(plan.where, fix))
    terms += [filter_term(entry, fix) for entry in plan.filters if not isinstance(entry, AreaFilter)]
    return every(gettext("in the answer"), terms)


def _believed(plan: TrackPlan, subject: Subject, known: ExplanationFacts) -> Term:
    """Return the term that the newest report is believed; if it is not, another one counts, so it decides nothing."""
    asks = gettext("a report that is believed: reached at no more than %(fastest_m_s)s m/s") % {
        "fastest_m_s": number(plan.fastest_m_s)
    }
    fix, time_us = known.fix, subject.table["time_us"][0].as_py()
    if fix is None:
        return Term(asks, None, gettext("which report was believed last is not known"))
    fix_us = fix.table["time_us"][0].as_py()
    if fix_us >= time_us:
        return Term(asks, True, gettext("its newest report is believed"))
    apart_m, seconds = float(geodesic_m(*fix.place, *subject.place)), (time_us - fix_us) / MICROSECONDS
    speed = number(round(apart_m / seconds, 1))
    found = gettext(
        "its newest report is not: %(apart_m)s in %(seconds)s are %(speed)s m/s; the one before it counts"
    ) % {"apart_m": metres(apart_m), "seconds": span(seconds), "speed": speed}
    return Term(asks, True, found)


def _circle(plan: TrackPlan, fix: Subject, known: ExplanationFacts) -> Term:
    """Return the term of the accuracy circle; on the border, the object stays what it was."""
    shape = shape_of(plan.filters)
    area = every("", area_terms(only(plan.area, (0, 1), fix.space), shape, fix)).parts[0]
    queries = TrackQueries({1: plan}, fix.space)
    radius_m = queries.accuracy_m(fix.elements, _ONE, _ONE)
    borders = AreaBorders([border_of(plan.area, shape, fix.space)], fix.space)
    side = int(borders.sides(np.array([fix.place]), _ONE, radius_m)[0])
    circle = (
        gettext("its accuracy circle of %(radius_m)s ") % {"radius_m": metres(float(radius_m[0]))}
        if radius_m[0]
        else ""
    )
    holds = known.member if side == BETWEEN else side == WITHIN
    found = _border_words(area)
    if side == BETWEEN:
        found += gettext("; the circle is on the border, so the object stays what it was")
    elif radius_m[0]:
        found += f"; {gettext(_SIDES[side])}"
    return Term(f"{circle}{area.asks}", holds, found, border=area.border)


def _border_words(area: Term) -> str:
    """Say where the border of an area is."""
    if area.border is None:
        return gettext("the border is away, inside") if area.holds else gettext("the border is away, outside")
    within = area.border.distance_m < 0 or (area.border.distance_m == 0 and area.holds)
    text = (
        gettext("the border is %(distance)s away, inside")
        if within
        else gettext("the border is %(distance)s away, outside")
    )
    return text % {"distance": metres(abs(area.border.distance_m))}


def _heights(plan: TrackPlan, fix: Subject) -> Box:
    return only(plan.area, tuple(range(2, fix.space.n)), fix.space)
