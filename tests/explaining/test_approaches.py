"""Explanations of predicted entries say what the engine finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.explaining.explain import explain
from streaming.operators.approaches import Approaches
from streaming.operators.spatial_join import Pairs
from streaming.plans import parse_plan
from tests.draws import examples
from tests.explaining.test_explain import subject_of
from tests.servers.test_approaches import BOX, TARGETS, approach

NUMBERS = st.none() | st.sampled_from([0.0, 20.0, 340.0, 351.0])
COURSES = st.none() | st.floats(0, 360)


@examples(60)
@given(st.sampled_from(TARGETS), st.sampled_from([60, 3600]), st.floats(-1, 1), st.floats(59.5, 60.5), NUMBERS, COURSES)
def test_it_holds_where_the_engine_finds_the_object(target, within_s, lon, lat, speed, course):
    plan = parse_plan(approach(target, within_s))
    told = {"speed_mps": speed, "course_deg": course}
    properties = {name: value for name, value in told.items() if value is not None}
    subject = subject_of([lon, lat, 0.0, lon, lat, 0.0], properties, "s", "a")
    one = Pairs.without_partners(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    found = Approaches([plan], subject.space).lies(subject.elements, one, lambda name: None)[0]
    near = all(low <= at <= high for low, at, high in zip(plan.area[:2], (lon, lat), plan.area[3:5], strict=True))
    assert explain(plan, subject).holds == (found and (near or target == TARGETS[2]))


@pytest.mark.parametrize(
    ("properties", "place", "why"),
    [
        ({"speed_mps": 20.0, "course_deg": 270}, -0.5, "it goes 12 km in this time, and not into the area"),
        ({"speed_mps": 20.0}, -0.5, "it has none"),
        ({"speed_mps": 20.0, "course_deg": 90}, 0.0, "inside"),
    ],
)
def test_what_is_missing_is_told(properties, place, why):
    told = explain(
        parse_plan(approach(BOX, 600)), subject_of([place, 60.0, 0.0, place, 60.0, 0.0], properties, "s", "a")
    )
    assert told.holds is False
    assert why in " ".join(term.found for term in told.deciding())
