"""Predicted entries explained: whether an object is outside, how it moves, and where it will be."""

import numpy as np

from streaming.explaining.places import area_terms, only
from streaming.explaining.subject import Subject
from streaming.explaining.terms import Term, every, negated
from streaming.explaining.words import metres
from streaming.kinds.approach.plan import FASTEST_MPS, ApproachPlan
from streaming.kinds.words import number
from streaming.operators.approaches import COURSE, SPEED, target_of, ways_ahead
from streaming.operators.areas import Areas
from streaming.property_columns import number_columns


def approach_terms(plan: ApproachPlan, subject: Subject) -> list[Term]:
    """Return the terms of a predicted entry, besides those that are about the element alone."""
    plane = only(plan.target, (0, 1), subject.space)
    outside = negated("outside of the area now", every("in the area", area_terms(plane, plan.shape, subject)))
    course_deg, speed_mps = number_columns(subject.table["properties"], [COURSE, SPEED])[:, 0].tolist()
    return [outside, _course(course_deg), _speed(speed_mps), _reaches(plan, subject, course_deg, speed_mps)]


def _course(course_deg):
    known = bool(np.isfinite(course_deg))
    return Term(f"{COURSE} is a number", known, f"it is {number(course_deg)}" if known else "it has none")


def _speed(speed_mps):
    found = f"it is {number(speed_mps)}" if np.isfinite(speed_mps) else "it has none"
    return Term(f"{SPEED} is above 0, and {number(FASTEST_MPS)} at most", 0 < speed_mps <= FASTEST_MPS, found)


def _reaches(plan, subject, course_deg, speed_mps):
    asks = f"on its course, in the area within {number(plan.within_s)} s of its report"
    if not (np.isfinite(course_deg) and 0 < speed_mps <= FASTEST_MPS):
        return Term(asks, False, "its way cannot be predicted")
    length_m = speed_mps * plan.within_s
    way = ways_ahead(subject.bounds, subject.space.n, np.array([course_deg]), np.array([length_m]))
    areas = Areas([target_of(plan, subject.space)], subject.space)
    meets = bool(areas.met_by_shapes(way, np.zeros(1, dtype=np.int64))[0])
    return Term(asks, meets, f"it goes {metres(length_m)} in this time, {'into' if meets else 'and not into'} the area")
