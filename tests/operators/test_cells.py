"""A grid over points finds what brute force finds, whatever the size of the cells and of the boxes."""

import numpy as np
import pytest

from streaming.operators.cells import PointGrid
from streaming.operators.features import IndexedBoxes
from streaming.operators.query_index import FAR
from streaming.spaces import EARTH


def scene(seed):
    """Points, some of them in one place or on lines, and boxes of all sizes, some far away, some of no extent."""
    rng = np.random.default_rng(seed)
    points = np.round(rng.uniform(-180, 180, (int(rng.integers(1, 60)), 2)) * [1, 0.5], int(rng.integers(0, 7)))
    points = np.where(rng.random((len(points), 1)) < 0.2, points[0], points)
    low = np.vstack([rng.uniform(-200, 200, (30, 2)), points[rng.integers(0, len(points), 30)]])
    extent = rng.choice([0.0, 1e-9, 0.01, 1.0, 30.0, 400.0], (60, 2))
    boxes = np.hstack([low, low + extent])
    boxes[rng.integers(0, 60, 3)] = [-FAR, -FAR, FAR, FAR]
    return points, boxes, rng


def pairs_of(points, boxes):
    inside = (boxes[:, None, :2] <= points).all(2) & (points <= boxes[:, None, 2:]).all(2)
    return set(zip(*(places.tolist() for places in np.nonzero(inside)), strict=True))


@pytest.mark.seeds(400)
def test_pairs_of_boxes_that_are_not_wide_are_those_of_brute_force(seed):
    points, boxes, rng = scene(seed)
    size = rng.choice([0.0, 1e-9, 0.01, 1.0, 1000.0], 2)
    at, row, wide = PointGrid(points, size).within(boxes)
    found = list(zip(at.tolist(), row.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == {pair for pair in pairs_of(points, boxes) if pair[0] not in wide}


@pytest.mark.seeds(400)
def test_an_index_over_points_finds_the_same_with_the_grid_and_without(seed):
    points, boxes, _ = scene(seed)
    points = np.clip(points, [-180, -90], [179.999999, 90])
    flat = np.full((len(points), 1), np.inf)
    bounds = np.hstack([points, -flat, points, flat])
    far = np.full((len(boxes), 1), np.inf)
    boxes = np.clip(np.hstack([boxes[:, :2], -far, boxes[:, 2:], far]), -FAR, FAR)
    found = [IndexedBoxes(bounds, EARTH, sparse).meeting(boxes) for sparse in (True, False)]
    sparse, dense = (set(zip(at.tolist(), row.tolist(), strict=True)) for at, row in found)
    assert sparse == dense
