"""Bounds from moments hold for all values, and some values reach them."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.sketch.bounds import LeafSummary, at_most, below, excess, range_parts

values = st.lists(st.integers(-8, 8).map(float) | st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=30)


def summary(*columns):
    """What a leaf would know of each list of values."""
    arrays = [np.array(column) for column in columns]
    told = [(len(a), a.mean(), a.var(), a.min(), a.max()) for a in arrays]
    n, mean, variance, low, high = map(np.array, zip(*told, strict=True))
    return LeafSummary(n, mean, variance, low, high)


@example([0.0, 1e-233], [0.0], 0)  # the square of the extent is 0
@given(values, values, st.integers(0, 29))
def test_parts_below_and_up_to_a_limit_are_within_their_bounds(column, other, place):
    limits = (column[place % len(column)], other[place % len(other)], 0.5)
    known = summary(column)
    for limit in limits:
        for bound, part in ((at_most, np.less_equal), (below, np.less)):
            least, most = bound(limit, known)
            assert least[0] - 1e-8 <= part(column, limit).mean() <= most[0] + 1e-8
    low, high = sorted(limits[:2])
    part, least, most, doubt = (found[0] for found in range_parts(low, high, known))
    truth = np.mean((np.array(column) >= low) & (np.array(column) <= high))
    assert least - 1e-9 <= truth <= most + 1e-9
    assert least <= part <= most and doubt >= 0


@given(values, st.floats(-1e6, 1e6, allow_subnormal=False))
def test_the_mean_excess_is_within_its_bound(column, limit):
    size = max(np.abs(column).max(), abs(limit), 1)
    assert np.maximum(np.array(column) - limit, 0).mean() <= excess(limit, summary(column))[0] + 1e-9 * size


@given(st.integers(1, 99), st.integers(-50, 50), st.integers(1, 50))
def test_bounds_are_reached_by_two_values(share, low, apart):
    column = np.repeat([float(low), float(low + apart)], [share, 100 - share])
    # Room for extremes that the two values do not reach.
    known = summary(column)
    wide = LeafSummary(known.n, known.mean, known.variance, known.low - 1000, known.high + 1000)
    assert abs(at_most(float(low), wide)[1][0] - share / 100) < 1e-4
    # The upper bound at a limit is reached by values at the extremes and at the limit itself.
    corners = summary(np.concatenate([column, [float(low + 2 * apart)] * 7]))
    assert abs(at_most(float(low + apart), corners)[1][0] - 100 / 107) < 1e-6
    middle = low + apart / 2
    gain = np.maximum(column - middle, 0).mean()
    # Scarf's bound is reached by values at equal distances of the limit.
    assert abs(excess(middle, wide)[0] - gain) < 1e-6
