"""Sorting out boxes loses none that meets another one, and leaves few that meet none."""

import numpy as np
import pytest

from streaming.operators.neighbours import may_meet


def boxes(rng, count):
    """Return boxes on a coarse lattice, so that many touch; a few are wide, or without bounds."""
    low = rng.integers(-20, 20, (count, 2)).astype(float)
    high = low + rng.choice([0.0, 0.0, 0.0, 1.0, 15.0, np.inf], (count, 2))
    return np.hstack([low, high])


def meeting(many, few):
    meet = (many[:, None, :2] <= few[None, :, 2:]) & (few[None, :, :2] <= many[:, None, 2:])
    return meet.all(2).any(1)


@pytest.mark.seeds(240)
def test_no_box_that_meets_another_one_is_sorted_out(seed):
    rng = np.random.default_rng(seed)
    many, few = boxes(rng, rng.integers(0, 60)), boxes(rng, rng.integers(0, 30))
    assert (may_meet(many, few) | ~meeting(many, few)).all()


def test_of_many_points_few_are_left_beside_those_that_meet_one():
    rng = np.random.default_rng(1)
    points = np.tile(rng.normal(0, 1, (20_000, 2)), 2)
    few = np.tile(rng.normal(0, 1, (500, 2)), 2) + np.array([-0.001, -0.001, 0.001, 0.001])
    found = may_meet(points, few)
    assert (found | ~meeting(points, few)).all()
    assert found.sum() < 2_500
