"""Distances between points are geodesics, however far they are, and what arcs decide is what geodesics would."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.operators.geodesics import (
    ARC_UNKNOWN_M,
    FARTHEST_M,
    arc_m,
    error_m,
    geodesic_m,
    margins_deg,
    within_m,
)
from tests.draws import examples
from tests.geodesy import WGS84, points_m

seeds = st.integers(0, 2**32 - 1)
lengths = st.one_of(st.floats(0.001, 2e4), st.floats(1e4, 2e7))
# As exact are those below 10 km.
EXACT_M = 1.5e-5


def random_points(rng, count):
    """Points all over the earth, and some at its poles, its antimeridian and its equator."""
    lon, lat = rng.uniform(-180, 180, count), np.degrees(np.arcsin(rng.uniform(-1, 1, count)))
    few = max(1, count // 10)
    lon[:few], lat[-few:] = rng.choice([-180.0, 179.999, 0.0], few), rng.choice([-90.0, 89.99, 0.0, 90.0], few)
    return lon, lat


def pairs(seed, length_m, count=500):
    """Pairs of points a length apart: longitudes and latitudes of both."""
    rng = np.random.default_rng(seed)
    lon, lat = random_points(rng, count)
    to_lon, to_lat, _ = WGS84.fwd(lon, lat, rng.uniform(0, 360, count), np.full(count, length_m))
    return lon, lat, np.asarray(to_lon), np.asarray(to_lat)


@examples(80)
@given(seeds, lengths)
def test_a_distance_is_a_geodesic_in_both_directions(seed, length_m):
    here = pairs(seed, length_m)
    there = here[2:] + here[:2]
    found = geodesic_m(*here)
    assert np.abs(found - points_m(*here)).max() < EXACT_M
    assert found.tolist() == geodesic_m(*there).tolist()


@examples(80)
@given(seeds, lengths, st.sampled_from([0.0, 1e-7, -1e-7, 1e-3, -1e-3, 100.0, -100.0]))
def test_a_limit_decides_as_it_does_of_geodesics(seed, length_m, change):
    here = pairs(seed, length_m)
    expected = points_m(*here)
    for limit in (length_m + change, expected + change, expected):
        assert within_m(*here, limit_m=limit).tolist() == (expected <= limit).tolist()
        found = geodesic_m(*here, limit_m=limit)
        assert (found <= limit).tolist() == (expected <= limit).tolist()
        assert np.abs(found - expected)[expected <= limit].max(initial=0) < EXACT_M


@examples(80)
@given(seeds, st.floats(0.001, ARC_UNKNOWN_M))
def test_an_arc_errs_by_no_more_than_it_says(seed, length_m):
    here = pairs(seed, length_m)
    arc = arc_m(*here)
    assert (np.abs(arc - points_m(*here)) <= error_m(arc)).all()


@examples(50)
@given(seeds, st.floats(0.001, 2e7))
def test_what_is_within_reach_is_within_the_margins(seed, reach_m):
    lon, lat, to_lon, to_lat = pairs(seed, reach_m)
    east, north = margins_deg(lat, reach_m)
    turned = np.abs((to_lon - lon + 540) % 360 - 180)
    assert (np.abs(to_lat - lat) <= north + 1e-12).all() and (turned <= east + 1e-9).all()


def test_nothing_is_farther_than_half_of_the_way_around():
    assert arc_m([0.0, 0.0], [0.0, 90.0], [180.0, 0.0], [0.0, -90.0]).max() <= FARTHEST_M


def test_a_distance_goes_over_the_antimeridian_and_over_poles():
    found = geodesic_m([179.9, 0.0, -540.0], [0.0, 89.9, 10.0], [-179.9, 180.0, 180.0], [0.0, 89.9, 10.0])
    assert found == pytest.approx([22263.898, 22338.796, 0.0], abs=1e-3)


def test_what_is_nowhere_has_no_distance():
    assert np.isnan(geodesic_m([0.0, np.nan], 0.0, np.nan, 0.0)).all() and not within_m(
        np.nan, 0.0, 0.0, 0.0, limit_m=1e9
    )
