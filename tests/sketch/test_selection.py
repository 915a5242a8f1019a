"""Times of selections: unions, intersections, hours of days by the clock of a zone."""

from datetime import date
from datetime import time as clock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.sketch.selection import TimeIntervals, ValueRange
from streaming.sketch.settings import HOUR_US, InvalidSketch

intervals = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6)
MOMENTS = np.arange(32)


def inside(pairs):
    return np.array([any(start <= moment < end for start, end in pairs) for moment in MOMENTS], dtype=bool)


@given(intervals, intervals)
def test_unions_and_intersections_have_the_moments_of_brute_force(one, other):
    times = TimeIntervals.of(one)
    assert (np.diff(times.covered(np.append(MOMENTS, 32))) == inside(one)).all()
    assert (times.limits[1:, 0] > times.limits[:-1, 1]).all()
    both = times.intersection(TimeIntervals.of(other))
    assert (np.diff(both.covered(np.append(MOMENTS, 32))) == (inside(one) & inside(other))).all()


def test_hours_of_days_follow_the_clock_when_it_is_set():
    # Helsinki sets its clocks forward on 2013-03-31.
    hours = TimeIntervals.daily(date(2013, 3, 30), date(2013, 4, 1), clock(14), clock(16), "Europe/Helsinki").limits
    assert (hours[:, 0] // HOUR_US % 24).tolist() == [12, 11, 11]
    assert (hours[:, 1] - hours[:, 0] == 2 * HOUR_US).all()


def test_hours_that_end_before_they_begin_end_on_the_next_day():
    hours = TimeIntervals.daily(date(2013, 6, 1), date(2013, 6, 1), clock(22), clock(4)).limits
    assert (hours[0, 1] - hours[0, 0]) == 6 * HOUR_US


NEW_YEAR = date(2013, 1, 1)


@pytest.mark.parametrize(
    "days",
    [
        (date(2013, 6, 2), date(2013, 6, 1), "UTC"),
        (date(1900, 1, 1), date(2100, 1, 1), "UTC"),
        (NEW_YEAR, NEW_YEAR, "Nowhere/Town"),
    ],
)
def test_days_and_zones_that_are_none_are_refused(days):
    with pytest.raises(InvalidSketch):
        TimeIntervals.daily(days[0], days[1], clock(0), clock(1), days[2])


def test_a_range_whose_limits_are_in_the_wrong_order_is_refused():
    with pytest.raises(InvalidSketch, match="must not exceed"):
        ValueRange("heat", 2, 1)
