"""Predicted entries explained: whether an object is outside, how it moves, and where it will be."""

import numpy as np

from streaming.explaining.asked import asked_terms
from streaming.explaining.known import ExplanationFacts
from streaming.explaining.places import area_terms, only
from streaming.explaining.subject import Subject
from streaming.explaining.terms import Term, every, negated
from streaming.explaining.words import metres
from streaming.kinds.approach.plan import FASTEST_MPS, ApproachPlan
from streaming.kinds.words import number
from streaming.language import gettext
from streaming.operators.approaches import COURSE, SPEED, target_of, ways_ahead
from streaming.operators.areas import Areas
from streaming.property_columns import number_columns


def approach_term(plan: ApproachPlan, subject: Subject, known: ExplanationFacts) -> Term:
    """Explain a predicted entry."""
    plane = only(plan.target, (0, 1), subject.space)
    outside = negated(
        gettext("outside of the area now"), every(gettext("in the area"), area_terms(plane, plan.shape, subject))
    )
    course_deg, speed_mps = number_columns(subject.table["properties"], [COURSE, SPEED])[:, 0].tolist()
    way = [_course(course_deg), _speed(speed_mps), _reaches(plan, subject, course_deg, speed_mps)]
    return every(gettext("in the answer"), [*asked_terms(plan, subject), outside, *way])


def _course(course_deg: float) -> Term:
    known = bool(np.isfinite(course_deg))
    return Term(
        gettext("%(course)s is a number") % {"course": COURSE},
        known,
        gettext("it is %(course_deg)s") % {"course_deg": number(course_deg)} if known else gettext("it has none"),
    )


def _speed(speed_mps: float) -> Term:
    found = (
        gettext("it is %(speed_mps)s") % {"speed_mps": number(speed_mps)}
        if np.isfinite(speed_mps)
        else gettext("it has none")
    )
    return Term(
        gettext("%(speed)s is above 0, and %(fastest_mps)s at most")
        % {"speed": SPEED, "fastest_mps": number(FASTEST_MPS)},
        0 < speed_mps <= FASTEST_MPS,
        found,
    )


def _reaches(plan: ApproachPlan, subject: Subject, course_deg: float, speed_mps: float) -> Term:
    asks = gettext("on its course, in the area within %(within_s)s s of its report") % {
        "within_s": number(plan.within_s)
    }
    if not (np.isfinite(course_deg) and 0 < speed_mps <= FASTEST_MPS):
        return Term(asks, False, gettext("its way cannot be predicted"))
    length_m = speed_mps * plan.within_s
    way = ways_ahead(subject.bounds, subject.space.n, np.array([course_deg]), np.array([length_m]))
    areas = Areas([target_of(plan, subject.space)], subject.space)
    meets = bool(areas.met_by_shapes(way, np.zeros(1, dtype=np.int64))[0])
    found = (
        gettext("it goes %(length)s in this time, into the area")
        if meets
        else gettext("it goes %(length)s in this time, and not into the area")
    )
    return Term(asks, meets, found % {"length": metres(length_m)})
