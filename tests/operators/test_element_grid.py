"""The grid over elements finds every element that a box meets, wherever the elements lie and however large they are."""

import numpy as np
import pytest

from streaming.operators.boxes import in_plane, intersects, with_turns
from streaming.operators.element_grid import ElementGrid
from streaming.spaces import EARTH, parse_space

LINE = parse_space({"name": "line", "dimensions": [{"name": "x", "unit": "m", "lo": -10, "hi": 10}]})
PLANE = parse_space(
    {"name": "plane", "dimensions": [{"name": name, "unit": "m", "lo": -10, "hi": 10} for name in ("x", "y")]}
)
SPACES = {space.name: space for space in (EARTH, PLANE, LINE)}


def random_bounds(rng, count, space):
    """Boxes of a space on a lattice, many alike: points, boxes, some across the end of a circle, some without ends."""
    step = 22.5 if space is EARTH else 0.5
    low = rng.integers(-8, 8, (count, space.n)) * step
    if rng.random() < 0.5:  # crowded in one place
        low[: count // 2] = low[:1] + rng.integers(0, 3, (count // 2, space.n)) * step / 1000
    if space is EARTH:
        low[:, 1] = np.clip(low[:, 1], -90, 90)
    extent = rng.integers(0, 4, (count, space.n)) * step * (rng.random((count, 1)) < rng.choice([0.0, 0.01, 0.5]))
    bounds = np.hstack([low, low + extent])
    endless = np.flatnonzero(rng.random(count) < rng.choice([0.0, 0.01]))
    bounds[endless, 0], bounds[endless, space.n] = -np.inf, np.inf
    return bounds


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.seeds(600)
def test_every_element_that_a_box_meets_is_found(name, seed):
    space, rng = SPACES[name], np.random.default_rng(seed)
    count = int(rng.choice([0, 1, 40, 700]))
    bounds, boxes = random_bounds(rng, count, space), random_bounds(rng, 9, space)
    numbers, plane = with_turns(np.arange(len(boxes)), in_plane(boxes, space), space)
    box, row = ElementGrid(bounds, space).meeting(plane)
    flat = bounds.copy()
    for axis in range(2, space.n):  # the grid looks at the plane alone
        flat[:, axis], flat[:, space.n + axis] = -np.inf, np.inf
    which, element = (part.ravel() for part in np.indices((len(boxes), count)))
    meet = intersects(flat, element, boxes, which, space)
    found = set(zip(numbers[box].tolist(), row.tolist(), strict=True))
    assert found == set(zip(which[meet].tolist(), element[meet].tolist(), strict=True))


def test_a_small_box_looks_at_few_of_many_elements():
    rng = np.random.default_rng(3)
    points = rng.random((50_000, 2)) * 10
    grid = ElementGrid(np.hstack([points, points]), PLANE)
    box = np.array([[2.0, 2.0, 2.1, 2.1]])
    found = grid.meeting(box)[1]
    inside = np.flatnonzero((np.abs(points - 2.05) <= 0.05).all(1))
    assert sorted(found.tolist()) == inside.tolist()


def test_a_box_that_ends_where_a_rounded_extent_begins_is_met():
    bounds = np.array([[0.1, 0.0, 0.1 + 0.2, 0.0]] * 60 + [[0.0, 0.0, 0.3, 0.0]])
    _, row = ElementGrid(bounds, PLANE).meeting(np.array([[bounds[0, 2], 0.0, 1.0, 0.0]]))
    assert set(row.tolist()) == set(range(60))
