"""Explanations of closest approaches say what the engine finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.explaining.explain import explain
from streaming.explaining.known import ExplanationFacts
from streaming.explaining.subject import Subject
from streaming.operators.stream_join import StreamJoins
from streaming.plans import parse_plan
from streaming.spaces import EARTH
from tests.draws import examples
from tests.servers.test_closest_approaches import DEGREE_M, SECOND_US, box_at, closest_approach, elements_of

NEAR = st.floats(-0.05, 0.05)
MOTIONS = st.tuples(NEAR, NEAR, st.sampled_from([0.0, 90.0, 270.0]), st.sampled_from([0.0, 10.0, 351.0]))


def subject(key, motion, time_s=0):
    lon, lat, course, speed = motion
    told = {"course_deg": course, "speed_mps": speed}
    return Subject.of("s", key, time_s * SECOND_US, np.array(box_at((lon, lat))), told, EARTH)


@examples(60)
@given(MOTIONS, MOTIONS, st.sampled_from([0, 60, 400]), st.sampled_from([500.0, 5_000.0]))
def test_it_holds_where_the_engine_finds_the_pair(one, other, later_s, within_m):
    plan = parse_plan(closest_approach(within_m))
    both = subject("a", one), subject("b", other, later_s)
    told = explain(plan, both[0], ExplanationFacts(partners=[both[1]]))
    assert told.holds == explain(plan, both[1], ExplanationFacts(partners=[both[0]])).holds
    row = np.arange(1)
    found = StreamJoins([plan], EARTH).pairs(elements_of([one, other], [0, later_s]), np.arange(2), row, row + 1)
    assert told.holds == bool(len(found.row))


EAST = 4_000 / DEGREE_M


@pytest.mark.parametrize(
    ("other", "later_s", "holds", "why"),
    [
        ((EAST, 0.002, 270.0, 10.0), 0, True, "in 3 min 20 s"),
        ((EAST, 0.02, 270.0, 10.0), 0, False, "2.21 km"),
        ((-EAST, 0.002, 270.0, 10.0), 0, False, "they were closest 3 min 20 s before"),
        ((EAST, 0.002, 90.0, 10.0), 0, False, "the two keep their distance"),
        ((EAST, 0.002, 0.0, 0.0), 0, True, "in 6 min 40 s"),
        ((EAST, 0.002, 270.0, 10.0), 301, False, "they are 5 min 1 s apart"),
    ],
)
def test_the_limits_are_told(other, later_s, holds, why):
    plan = parse_plan(closest_approach(1_000.0))
    told = explain(
        plan, subject("a", (0.0, 0.0, 90.0, 10.0)), ExplanationFacts(partners=[subject("b", other, later_s)])
    )
    assert told.holds is holds
    pair = told.parts[-1]
    assert why in " ".join(term.found for term in (pair.parts if holds else told.deciding()))
    assert pair.found == "b"


def test_the_filter_of_the_partner_is_a_term_and_what_is_not_known_is_not_told():
    plan = parse_plan(closest_approach(1_000.0, join={"stream": "s", "where": "speed_mps > 11"}))
    one, other = subject("a", (0.0, 0.0, 90.0, 10.0)), subject("b", (EAST, 0.0, 270.0, 10.0))
    told = explain(plan, one, ExplanationFacts(partners=[other]))
    assert told.holds is False and [term.asks for term in told.deciding()] == ["speed_mps > 11"]
    assert explain(plan, one, ExplanationFacts()).holds is None
    assert explain(plan, one, ExplanationFacts(partners=[one])).holds is False
