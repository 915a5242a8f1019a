"""The times of queries of sketches as intervals of event time, against the clocks of their zones."""

import zoneinfo
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.kinds.sketch.times import Daily, SelectedTimes, TimeRange, parse_times, us_of
from tests.draws import examples
from tests.plans.sketches import zones

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
YEAR = us_of(datetime(2014, 1, 1, tzinfo=UTC)), us_of(datetime(2015, 1, 1, tzinfo=UTC))


def asked(times, us, now_us):
    """Tell by the clock whether a time is among those asked about."""
    if times.last_s is not None and not now_us - times.last_s * 1e6 <= us < now_us:
        return False
    if times.ranges and not any(
        (entry.from_us is None or entry.from_us <= us) and (entry.to_us is None or us < entry.to_us)
        for entry in times.ranges
    ):
        return False
    if times.daily is None:
        return True
    local = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)).astimezone(zoneinfo.ZoneInfo(times.zone))
    second, (start, end) = local.hour * 3_600 + local.minute * 60 + local.second, vars(times.daily).values()
    return start <= second < end if start < end else second >= start or second < end


@st.composite
def drawn_times(draw):
    """Return times within a year or about it; hours begin and end where no clock is set forward or back."""
    spans = st.lists(st.integers(YEAR[0] - DAY_US, YEAR[1] + DAY_US), min_size=2, max_size=2, unique=True).map(sorted)
    ranges = tuple(TimeRange(*draw(spans)) for _ in range(draw(st.integers(0, 3))))
    hours = st.lists(st.integers(4 * 3_600, 23 * 3_600), min_size=2, max_size=2, unique=True)
    daily = draw(st.one_of(st.none(), hours.map(lambda sides: Daily(*sides))))
    return SelectedTimes(
        ranges, None if ranges else draw(st.one_of(st.none(), st.integers(1, 30_000_000))), daily, draw(zones)
    )


@examples(50)
@given(drawn_times(), st.integers(*YEAR), st.lists(st.integers(*YEAR), min_size=50, max_size=50))
def test_a_time_lies_in_the_intervals_if_the_clock_says_so(times, now_us, sampled):
    found = times.intervals_us(now_us, *YEAR)
    assert (found[:, 0] < found[:, 1]).all() and (found[1:, 0] > found[:-1, 1]).all()
    edges = np.concatenate([found.ravel(), found.ravel() - 1])
    for us in [*sampled, *edges[:: max(1, len(edges) // 50)].tolist()]:
        inside = bool(((found[:, 0] <= us) & (us < found[:, 1])).any())
        assert inside == (YEAR[0] <= us < YEAR[1] and asked(times, us, now_us))


def test_two_to_four_daily_over_three_months_are_two_hours_on_each_of_ninety_two_days():
    document = {
        "ranges": [{"from": "2013-06-01", "to": "2013-09-01"}],
        "daily": {"from": "14:00", "to": "16:00"},
        "zone": "Asia/Shanghai",
    }
    found = parse_times(document).intervals_us(0, -(10**15), 10**16)
    assert len(found) == 92 and (np.diff(found) == 2 * HOUR_US).all()
    assert found[0, 0] == us_of(datetime(2013, 6, 1, 6, tzinfo=UTC))


@pytest.mark.parametrize(("month", "day", "hours"), [(3, 29, 2), (3, 30, 1), (10, 26, 3)])
def test_the_hours_of_a_night_in_which_clocks_are_set_are_as_long_as_it_is(month, day, hours):
    noon = us_of(datetime(2014, month, day, 12, tzinfo=UTC))
    one_to_three = SelectedTimes(daily=Daily(3_600, 3 * 3_600), zone="Europe/Berlin")
    assert np.diff(one_to_three.intervals_us(0, noon - 14 * HOUR_US, noon)).tolist() == [[hours * HOUR_US]]


def test_hours_that_begin_while_clocks_are_set_forward_begin_when_they_would_have_shown_it():
    noon = us_of(datetime(2014, 3, 30, 12, tzinfo=UTC))
    found = SelectedTimes(daily=Daily(9_000, 4 * 3_600), zone="Europe/Berlin").intervals_us(0, noon - DAY_US // 2, noon)
    assert np.diff(found).tolist() == [[HOUR_US // 2]]


def test_ranges_that_overlap_or_touch_are_one_interval():
    ranges = (TimeRange(30, 40), TimeRange(5, 9), TimeRange(0, 5), TimeRange(35, 50))
    assert SelectedTimes(ranges).intervals_us(0, 0, 100).tolist() == [[0, 9], [30, 50]]


def test_hours_that_end_on_the_next_day_are_one_interval_across_midnight():
    found = SelectedTimes(daily=Daily(22 * 3_600, 2 * 3_600)).intervals_us(0, 0, 2 * DAY_US)
    assert (found // HOUR_US).tolist() == [[0, 2], [22, 26], [46, 48]]


def test_hours_of_all_days_are_told_over_three_centuries():
    """Whoever asks for the hours of all days, at any time, gets them at once."""
    found = SelectedTimes(daily=Daily(0, 3_600), zone="Asia/Shanghai").intervals_us(0, -(2**62), 2**62)
    assert len(found) >= 300 * 365 and (np.diff(found) <= HOUR_US).all()


def test_a_time_without_an_offset_is_one_of_the_zone():
    plain = parse_times({"ranges": [{"from": "2014-07-01"}], "zone": "Europe/Berlin"})
    offset = parse_times({"ranges": [{"from": "2014-06-30T22:00Z"}], "zone": "Europe/Berlin"})
    assert plain == offset
