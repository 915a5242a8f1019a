"""Distances from places agree with the geodesic, and with plain geometry; boxes hold what is within reach."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

from streaming.operators.places import FARTHEST_M, distances, surface_distance_m, within_boxes
from streaming.spaces import EARTH
from tests.servers.test_distributed import PLANE

WGS84 = Geod(ellps="WGS84")


def random_points(rng, count):
    return rng.uniform(-180, 180, count), np.degrees(np.arcsin(rng.uniform(-1, 1, count)))


@pytest.mark.parametrize(
    ("length_m", "error"), [(1_000, 1e-7), (100_000, 1e-6), (1_000_000, 1e-4), (15_000_000, 5e-3), (19_900_000, 0.05)]
)
def test_surface_distances_are_near_the_geodesic(length_m, error):
    rng = np.random.default_rng(1)
    lon, lat = random_points(rng, 2_000)
    to_lon, to_lat, _ = WGS84.fwd(lon, lat, rng.uniform(0, 360, 2_000), np.full(2_000, length_m))
    assert np.abs(surface_distance_m(lon, lat, to_lon, to_lat) / length_m - 1).max() < error


def test_nothing_is_farther_than_half_of_the_way_around():
    assert surface_distance_m([0.0, 0.0], [0.0, 90.0], [180.0, 0.0], [0.0, -90.0]).max() <= FARTHEST_M


def test_a_distance_goes_over_the_antimeridian_and_over_poles():
    east = surface_distance_m([179.9, 0.0], [0.0, 89.9], [-179.9, 180.0], [0.0, 89.9])
    assert east.round(-2).tolist() == [22300.0, 22300.0]


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32 - 1), st.floats(1, 2e7))
def test_whatever_is_within_reach_meets_the_box_of_that_reach(seed, reach):
    rng = np.random.default_rng(seed)
    lon, lat = random_points(rng, 300)
    place = np.array([[rng.uniform(-180, 180), rng.choice([rng.uniform(-90, 90), 89.5, -90.0])]])
    boxes = np.stack([lon, lat, np.full(300, -np.inf), lon, lat, np.full(300, np.inf)], axis=1)
    near = distances(boxes, np.repeat(place, 300, axis=0), EARTH) <= reach
    west, south, east, north = within_boxes(place, np.array([reach]), EARTH)[0]
    inside = (lat >= south) & (lat <= north)
    inside &= np.any([(lon + turn >= west) & (lon + turn <= east) for turn in (-360, 0, 360)], axis=0)
    assert not (near & ~inside).any()


def test_a_box_of_the_plane_is_as_far_as_its_nearest_place():
    boxes = np.array([[1.0, 1.0, 4.0, 5.0], [-1.0, 3.0, 1.0, 9.0], [-1.0, -1.0, 1.0, 1.0]])
    assert distances(boxes, np.zeros((3, 2)), PLANE).tolist() == [np.sqrt(2), 3.0, 0.0]
