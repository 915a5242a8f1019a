"""Shares of owners are max-min fair: whoever asks for no more than the fair share gets all, whatever others ask for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.operators.fair_shares import beyond_share, fair_share

COSTS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 4)), min_size=1, max_size=24)
ROOMS = st.integers(0, 300)


def left_out(items, room, order=None):
    """The positions of the items that are left out, looked at in some order."""
    order = list(range(len(items))) if order is None else order
    cost, owner = (np.array([items[place][column] for place in order], dtype=float) for column in (0, 1))
    out = beyond_share(cost, owner.astype(np.int64), np.array(order), room)
    return {place for place, gone in zip(order, out, strict=True) if gone}


def demands(items, without=()):
    found = {}
    for place, (cost, owner) in enumerate(items):
        found[owner] = found.get(owner, 0) + (cost if place not in without else 0)
    return found


@given(asked=st.lists(st.integers(0, 50), min_size=1, max_size=8), room=ROOMS)
def test_the_fair_share_equals_filling_drop_by_drop(asked, room):
    share = fair_share(np.array(asked, dtype=float), room)
    if sum(asked) <= room:
        assert share == np.inf
    else:
        assert sum(min(demand, share) for demand in asked) == pytest.approx(room)
        has, left, step = [0.0] * len(asked), float(room), 1 / 840  # each of up to 8 owners can have an equal part
        while left > step * len(asked):
            for owner in (owner for owner, demand in enumerate(asked) if has[owner] < demand - step / 2):
                has[owner] += 20 * step
                left -= 20 * step
        assert max(has) == pytest.approx(share, abs=1)


@given(items=COSTS, room=ROOMS)
def test_who_asks_for_no_more_than_the_fair_share_loses_nothing(items, room):
    out = left_out(items, room)
    before, after = demands(items), demands(items, out)
    assert sum(after.values()) <= room
    share = fair_share(np.array(list(before.values()), dtype=float), room)
    for place in out:
        owner = items[place][1]
        assert before[owner] > share
        # The item that was left out first would take its owner beyond what is fair.
        cheapest = min(items[other][0] for other in out if items[other][1] == owner)
        assert after[owner] + cheapest > share or share == pytest.approx(after[owner] + cheapest)


@given(items=COSTS, room=ROOMS)
def test_the_most_expensive_items_of_an_owner_are_left_out_first(items, room):
    out = left_out(items, room)
    for place in out:
        alike = [other for other, item in enumerate(items) if item[1] == items[place][1] and other not in out]
        assert all(items[other][0] <= items[place][0] for other in alike)


@given(items=COSTS, room=ROOMS, order=st.randoms())
def test_who_is_left_out_does_not_depend_on_the_order(items, room, order):
    places = list(range(len(items)))
    order.shuffle(places)
    assert left_out(items, room, places) == left_out(items, room)


def test_of_equal_items_that_do_not_fit_together_one_is_kept():
    assert left_out([(6, 1), (6, 2)], 10) == {1}
