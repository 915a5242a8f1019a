"""Boxes that meet have a region in common, wherever the borders run and however often a circle is turned."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.elements import wrapped
from streaming.operators.boxes import intersects
from streaming.operators.partitioners import GridPartitioner
from streaming.spaces import EARTH, Dimension, Space

LINE = Space("line", (Dimension("x", "", 0.0, 1.0),))
CIRCLE = Space("circle", (Dimension("x", "", 0.0, 0.7, True),))
TORUS = Space("torus", (Dimension("x", "", -1.0, 1.1, True), Dimension("y", "", 0.0, 0.3, True)))


def boxes(rng, space, regions, count):
    """Return boxes whose corners lie on borders of cells, or a rounding beside them."""
    cells = rng.integers(0, regions + 1, (count, space.n)) / regions
    low = np.array([d.lo + cells[:, axis] * d.extent for axis, d in enumerate(space.dimensions)]).T
    low += rng.choice([0.0, 0.0, 1e-16, -1e-16, 0.01], low.shape)
    extent = np.array([d.extent for d in space.dimensions])
    high = low + rng.choice([0.0, 0.0, 1.0 / regions, 0.4, 0.99], low.shape) * extent
    free = rng.random(low.shape) < 0.1
    return np.hstack([np.where(free, -np.inf, low), np.where(free, np.inf, high)])


@pytest.mark.parametrize("space", [LINE, CIRCLE, TORUS, EARTH], ids=lambda space: space.name)
@pytest.mark.parametrize("regions", [1, 4, 7, 12])
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_boxes_that_meet_have_a_region_in_common(space, regions, seed):
    rng, partitioner = np.random.default_rng(seed), GridPartitioner(space, regions)
    reach, others = boxes(rng, space, regions, 40), wrapped(boxes(rng, space, regions, 40), space)
    reach = wrapped(reach, space)
    # A reach may begin before the circle does.
    reach[:, : space.n] -= rng.choice([0.0, 1e-9, 0.05], (40, 1))
    row, other = (index.reshape(-1) for index in np.indices((40, 40)))
    meet = intersects(reach, row, others, other, space)
    common = (partitioner.regions_of(reach)[row] & partitioner.regions_of(others)[other]).any(1)
    assert common[meet].all()


@pytest.mark.parametrize("regions", [1, 6, 70])
def test_the_region_that_keeps_a_box_is_one_of_those_that_it_meets_and_points_meet_one_alone(regions):
    rng, partitioner = np.random.default_rng(regions), GridPartitioner(EARTH, regions)
    low = rng.uniform([-180, -90, 0], [180, 90, 9], (500, 3))
    kept = partitioner.region_of(np.tile(low, 2))
    assert partitioner.regions_of(np.hstack([low, low + 20]))[np.arange(500), kept].all()
    points = partitioner.regions_of(np.tile(low, 2))
    assert (points.sum(1) == 1).all() and (points.argmax(1) == kept).all()
