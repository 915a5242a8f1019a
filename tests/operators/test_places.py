"""Distances from places are geodesics, or those of plain geometry; boxes hold what is within reach."""

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from streaming.operators.places import distances, surely_within, within, within_boxes
from streaming.spaces import EARTH
from tests.draws import examples
from tests.geodesy import apart_m, points_m
from tests.operators.test_geodesics import random_points
from tests.servers.test_distributed import PLANE

seeds = st.integers(0, 2**32 - 1)


def boxes_of(south_west, north_east):
    """Boxes of the earth without an end upwards."""
    low, high = (np.full((len(south_west), 1), end) for end in (-np.inf, np.inf))
    return np.hstack([south_west, low, north_east, high])


@examples(100)
@given(seeds, st.floats(1, 2e7))
def test_whatever_is_within_reach_meets_the_box_of_that_reach(seed, reach):
    rng = np.random.default_rng(seed)
    lon, lat = random_points(rng, 300)
    place = np.array([[rng.uniform(-180, 180), rng.choice([rng.uniform(-90, 90), 89.5, -90.0])]])
    near = points_m(*place[0], lon, lat) <= reach
    west, south, east, north = within_boxes(place, np.array([reach]), EARTH)[0]
    inside = (lat >= south) & (lat <= north)
    inside &= np.any([(lon + turn >= west) & (lon + turn <= east) for turn in (-360, 0, 360)], axis=0)
    assert not (near & ~inside).any()


@pytest.mark.long
@pytest.mark.seeds(280, also=[23990])  # of this one, a place is nearly antipodal: the nearest is a corner
def test_a_box_is_as_far_as_its_nearest_place_and_within_a_limit_accordingly(seed):
    rng = np.random.default_rng(seed)
    places, low = np.stack(random_points(rng, 5), axis=1), np.stack(random_points(rng, 5), axis=1)
    size = rng.choice([0.0, 1e-3, 1.0, 20.0], (5, 2))
    high = np.stack([low[:, 0] + size[:, 0], np.minimum(low[:, 1] + size[:, 1], 90.0)], axis=1)
    boxes = boxes_of(low, high)
    found = distances(boxes, places, EARTH)
    expected = [
        apart_m(shapely.Point(place), shapely.box(*box[[0, 1, 3, 4]]) if (box[:3] < box[3:]).all() else _flat(box))
        for place, box in zip(places, boxes, strict=True)
    ]
    assert np.abs(found - expected).max() < 1e-3
    for change in (-0.01, 0.01):
        limit = np.array(expected) + change
        assert within(boxes, places, limit, EARTH).tolist() == (np.array(expected) <= limit).tolist()


def _flat(box):
    corners = [(box[0], box[1]), (box[3], box[4])]
    return shapely.Point(corners[0]) if corners[0] == corners[1] else shapely.LineString(corners)


@examples(50)
@given(seeds, st.floats(1, 2e7))
def test_what_is_surely_within_a_limit_is_within_it(seed, limit):
    rng = np.random.default_rng(seed)
    points, places = (np.stack(random_points(rng, 300), axis=1) for _ in range(2))
    surely = surely_within(points, places, np.full(300, limit), EARTH)
    assert (points_m(*points[surely].T, *places[surely].T) <= limit).all()


def test_a_box_of_the_plane_is_as_far_as_its_nearest_place():
    boxes = np.array([[1.0, 1.0, 4.0, 5.0], [-1.0, 3.0, 1.0, 9.0], [-1.0, -1.0, 1.0, 1.0]])
    assert distances(boxes, np.zeros((3, 2)), PLANE).tolist() == [np.sqrt(2), 3.0, 0.0]
    assert within(boxes, np.zeros((3, 2)), np.array([1.4, 3.0, 0.0]), PLANE).tolist() == [False, True, True]
