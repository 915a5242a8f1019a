"""Explanations of queries about tracks say what home servers find."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.explaining.explain import explain
from streaming.explaining.known import ExplanationFacts
from streaming.explaining.subject import Subject
from streaming.operators.failures import Failures
from streaming.operators.tracks import TrackQueries
from streaming.plans import parse_plan
from streaming.spaces import EARTH
from tests.draws import examples
from tests.servers.test_tracks import AREAS, BOX, track

ONE = np.zeros(1, dtype=np.int64)


def at(lon, lat=60.0, properties=None, time_us=0):
    return Subject.of("s", "a", time_us, np.array([lon, lat, 0.0, lon, lat, 0.0]), properties or {}, EARTH)


@examples(60)
@given(
    st.sampled_from(sorted(AREAS)),
    st.sampled_from([0, 200, {"property": "acc", "else_m": 10}]),
    st.floats(-0.2, 0.2),
    st.floats(59.9, 60.1),
    st.sampled_from([{}, {"acc": 900}, {"acc": "x"}]),
)
def test_it_holds_where_the_circle_is_within_the_area(area, accuracy, lon, lat, properties):
    plan = parse_plan(track(AREAS[area], accuracy=accuracy))
    subject = at(lon, lat, properties)
    within = TrackQueries({1: plan}, EARTH).within(subject.elements, ONE, ONE, Failures())[0]
    told = explain(plan, subject)
    assert told.holds is (True if within else told.holds) and (told.holds is True) == within
    if not within and told.holds is None:  # the circle is on the border
        assert explain(plan, subject, ExplanationFacts(member=True)).holds is True
        assert explain(plan, subject, ExplanationFacts(member=False)).holds is False


def found(term):
    return " ".join(part.found for part in term.parts)


def test_a_circle_on_the_border_keeps_the_object_what_it_was():
    plan = parse_plan(track(BOX, accuracy=300))
    told = explain(plan, at(0.058), ExplanationFacts(member=True))
    assert told.holds is True and "the border is 112 m away, inside; the circle is on the border" in found(told)
    assert told.parts[0].asks.startswith("its accuracy circle of 300 m in longitude")
    assert told.parts[0].border.distance_m == pytest.approx(-111.7, abs=0.5)
    assert "the whole circle is outside" in found(explain(plan, at(0.08)))


def test_a_report_that_is_not_believed_leaves_the_object_where_it_was():
    plan = parse_plan(track(BOX, fastest_m_s=50))
    newest, fix = at(0.5, time_us=100_000_000), at(0.05, time_us=0)
    assert explain(plan, newest).parts[0].holds is None
    told = explain(plan, newest, ExplanationFacts(fix=fix))
    assert told.holds is True and "its newest report is not: 25 km in 1 min 40 s are 251.1 m/s" in found(told)
    told = explain(plan, newest, ExplanationFacts(fix=newest))
    assert told.holds is False and told.parts[0].found == "its newest report is believed"


def test_the_filter_and_the_height_are_terms():
    plan = parse_plan(track({"lo": [*BOX["lo"], 0], "hi": [*BOX["hi"], 900]}, where="kind = 'ship'"))
    told = explain(plan, at(0.0, properties={"kind": "bus"}))
    assert [part.holds for part in told.parts] == [True, True, False]
