"""Distances in metres agree with the geodesic on the ellipsoid."""

import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.operators import metres
from streaming.operators.metres import closer_than, distance_m, local_metres

GEOD = pyproj.Geod(ellps="WGS84")
longitudes = st.floats(-180, 180)
longitudes_near_the_end = st.sampled_from([-180.0, -179.99, 20.0, 179.99])
latitudes = st.sampled_from([-89.0, -60.0, 0.0, 45.0, 80.0])
bearings = st.floats(0, 360)


@given(longitudes, st.floats(-70, 70), bearings, st.floats(1, 10_000))
def test_points_up_to_10_km_apart_are_measured_within_a_thousandth_up_to_70_degrees(lon, lat, bearing, metres):
    there = GEOD.fwd(lon, lat, bearing, metres)[:2]
    assert distance_m(shapely.Point(lon, lat), shapely.Point(there)) == pytest.approx(metres, rel=1e-3)


@given(longitudes, st.floats(-80, 80), bearings, st.floats(1, 5_000))
def test_points_up_to_5_km_apart_are_measured_within_a_thousandth_up_to_80_degrees(lon, lat, bearing, metres):
    there = GEOD.fwd(lon, lat, bearing, metres)[:2]
    assert distance_m(shapely.Point(lon, lat), shapely.Point(there)) == pytest.approx(metres, rel=1e-3)


@given(st.floats(-80, 80), bearings, st.floats(1, 5_000), st.sampled_from([shapely.LineString, shapely.Polygon]))
def test_a_line_and_an_outline_are_as_far_as_their_nearest_place(lat, bearing, metres, kind):
    ahead, left, right = (GEOD.fwd(20, lat, bearing + turn, metres)[:2] for turn in (0, -60, 60))
    shape = kind([left, ahead, right])
    # The places of the outline, a metre or so apart, measured one by one on the ellipsoid.
    outline = shapely.get_coordinates(shape.segmentize(shape.length / 2000))
    nearest = GEOD.inv(*np.broadcast_arrays(20, lat, *outline.T))[2].min()
    expected = 0.0 if shape.covers(shapely.Point(20, lat)) else nearest
    assert distance_m(shapely.Point(20, lat), shape) == pytest.approx(expected, rel=1.5e-3, abs=0.01)


def test_a_polygon_that_contains_the_point_is_at_0_and_its_hole_is_not():
    ring = shapely.Point(20, 40).buffer(0.2).difference(shapely.Point(20, 40).buffer(0.1))
    inside, in_hole = distance_m(shapely.points([[20.15, 40], [20, 40]]), ring)
    assert inside == 0
    assert in_hole == pytest.approx(0.1 * local_metres(40.0)[0], rel=1e-2)


@given(
    st.lists(st.tuples(longitudes_near_the_end, latitudes), min_size=1, max_size=5),
    st.sampled_from([0.0, 1e-3, 5.0, 700.0, 50_000.0]),
    st.sampled_from([0.0, 0.3, 0.7, 0.99, 1.01, 1.9, 3.0]),
    st.sampled_from([0, 45, 90, 180, 270]),
    st.booleans(),
)
def test_closer_than_a_limit_is_a_smaller_distance(places, limit_m, share, bearing, prepared):
    ends = [GEOD.fwd(*place, bearing, limit_m * share)[:2] for place in places]
    others = np.array([shapely.LineString([end, (end[0] + 1, end[1] + 0.5)]) for end in ends])
    others[::2] = shapely.buffer(others[::2], 1e-4)
    if prepared:
        shapely.prepare(others)
    shapes = shapely.points(places)
    assert closer_than(shapes, others, limit_m).tolist() == (distance_m(shapes, others) < limit_m).tolist()


@pytest.mark.parametrize("lon", [-180.001, 179.999])
def test_places_a_turn_apart_are_near(lon):
    expected = 0.002 * local_metres(10.0)[0]
    assert distance_m(shapely.Point(-179.999, 10), shapely.Point(lon, 10)) == pytest.approx(expected, rel=1e-6)
    assert distance_m(shapely.Point(lon, 10), shapely.box(-179.999, 5, -170, 15)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("lat", [0.5, 33.3, 61.7, -72.1])
@pytest.mark.parametrize("west", [-180.0, 0.0, 44.0, 179.5])
def test_what_touches_in_degrees_is_at_no_distance_however_metres_round(west, lat):
    corner = west + np.array([0.0, 0.5, 0.75, 1.0, 1.3125])
    shapes = shapely.box(corner, lat, corner + 0.5, lat + 0.5)
    lines = np.array([shapely.LineString([(x - 1, lat + 1), (x + 1, lat - 1)]) for x in corner])
    shapes = np.concatenate([shapes, shapes])
    shapes[:5] = metres.turned(shapes[:5], -360.0)
    assert (distance_m(shapes, np.concatenate([lines, lines])) == 0).all()
    assert metres.perhaps_closer(shapes, np.concatenate([lines, lines]), 0.0).all()


def test_what_is_missing_has_no_distance_and_disturbs_no_other():
    shapes = np.array([None, shapely.Point(), shapely.Point(1, 1), shapely.Point(1, 1)])
    others = np.array([shapely.box(0, 0, 2, 2), shapely.Point(1, 1), None, shapely.box(0, 0, 2, 2)])
    assert np.array_equal(distance_m(shapes, others), [np.nan, np.nan, np.nan, 0.0], equal_nan=True)
    assert closer_than(shapes, others, 5).tolist() == [False, False, False, True]
    assert distance_m(shapes[:0], others[:0]).tolist() == closer_than(shapes[:0], others[:0], 5).tolist() == []


def test_the_input_is_untouched():
    line = shapely.LineString([(0, 0), (1, 1)])
    shapes = np.array([line])
    distance_m(shapes, shapes)
    assert shapes[0] is line
    assert line.wkt == "LINESTRING (0 0, 1 1)"


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_distances_of_points_from_lines_are_those_of_geos(seed):
    rng = np.random.default_rng(seed)
    # On a lattice, so that points lie on lines and their ends, and segments have no length.
    lattice, count = rng.choice([1.0, 0.25, 1e-4]), 20
    lines = shapely.linestrings(rng.integers(-2, 3, (count, rng.integers(2, 6), 2)) * lattice + np.array([9.0, 50.0]))
    points = shapely.points(rng.integers(-3, 4, (count, 2)) * lattice + np.array([9.0, 50.0]))
    factors = np.stack(local_metres(shapely.get_y(points)), axis=1)
    scaled = [metres._scaled(shapes, factors) for shapes in (points, lines)]
    assert distance_m(points, lines) == pytest.approx(shapely.distance(*scaled), rel=1e-9, abs=1e-6)
    assert (distance_m(points, lines)[shapely.distance(*scaled) == 0] == 0).all()
