"""Which entries of sets a selection meets: the truth of any place and time lies within the bounds."""

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from streaming.sketch.cells import cells_of
from streaming.sketch.selection import Selection, TimeIntervals, ValueRange
from streaming.sketch.sets.coverage import coverage_of
from streaming.sketch.sets.hashing import hash_of
from streaming.sketch.sets.questions import chosen, contains, distinct, frequency
from streaming.sketch.sets.settings import SetSettings
from streaming.sketch.settings import SketchSettings
from tests.sketch.sets.streams import Stream, sets_of

SKETCH = SketchSettings(("a",))
LOW, EXTENT = np.array([-180.0, -90.0]), np.array([360.0, 180.0])
HOUR_US = 3_600_000_000
numbers = st.floats(-170, 170)


@pytest.fixture(scope="module", params=[50_000_000, 150_000], ids=["fine", "merged"])
def seen(request):
    """Return random elements, their places, and their sets; the second time so few bytes that cells are merged."""
    rng = np.random.default_rng(11)
    place = np.stack([rng.uniform(-180, 180, 20_000), rng.uniform(-90, 90, 20_000)])
    settings = SetSettings(("a",), cell_bits=8, time_bin_us=HOUR_US, most_bytes=request.param)
    cell = cells_of(place, LOW, EXTENT, settings.cell_bits)
    values = np.minimum(rng.zipf(1.3, (1, 20_000)), 500).astype(float)
    stream = Stream(rng.integers(0, 24 * HOUR_US, 20_000), cell, values)
    sets = sets_of(stream, settings)
    assert (sets.level > 0) == (request.param < 10**6)
    return place, stream, sets


@st.composite
def selections(draw):
    """A box or a triangle, and some times."""
    xs, ys = sorted([draw(numbers), draw(numbers)]), sorted([draw(numbers) / 2, draw(numbers) / 2])
    triangle = shapely.Polygon([(xs[0], ys[0]), (xs[1] + 1, ys[0]), (xs[0], ys[1] + 1)])
    area = draw(st.sampled_from([(xs[0], ys[0], xs[1], ys[1]), triangle]))
    times = draw(st.one_of(st.none(), st.lists(st.integers(0, 24 * HOUR_US), min_size=2, max_size=2).map(sorted)))
    return Selection((area,), None if times is None else TimeIntervals.between(*times))


@given(selections(), st.integers(1, 500))
def test_the_truth_of_any_place_and_time_lies_within_the_bounds(seen, selection, value):
    place, stream, sets = seen
    (area,) = selection.areas
    box = shapely.box(*area) if isinstance(area, tuple) else area
    matching = shapely.intersects_xy(box, *place)
    if selection.times is not None:
        start, end = selection.times.limits[0] if len(selection.times.limits) else (0, 0)
        matching &= (start <= stream.time_us) & (stream.time_us < end)
    truth = stream.counts(0, matching)
    asked = chosen(sets, "a", coverage_of(selection, SKETCH, sets.settings))
    number = frequency(sets, asked, hash_of(float(value)))
    assert number.low <= truth[value] <= number.high
    assert distinct(sets, asked).low <= len(truth) <= distinct(sets, asked).high
    present = contains(sets, asked, hash_of(float(value))).present
    assert present is None or present == (value in truth)


def test_a_selection_that_has_entries_as_a_whole_is_answered_exactly(seen):
    _, stream, sets = seen
    selection = Selection(((0.0, -90.0, 180.0, 90.0),))
    asked = chosen(sets, "a", coverage_of(selection, SKETCH, sets.settings))
    east = stream.counts(0, stream.cell >= 128)
    assert frequency(sets, asked, hash_of(1.0)).high >= east[1.0]
    inside = asked.entries.take(asked.inside)
    assert inside.count.sum() <= east.total() <= asked.entries.count.sum()


def test_a_range_of_a_feature_leaves_only_the_upper_bounds(seen):
    _, stream, sets = seen
    selection = Selection(ranges=(ValueRange("a", 3.0),))
    asked = chosen(sets, "a", coverage_of(selection, SKETCH, sets.settings))
    number = frequency(sets, asked, hash_of(1.0))
    assert (number.low, number.high) == (0.0, stream.counts(0)[1.0])
    assert contains(sets, asked, hash_of(1.0)).present is None
