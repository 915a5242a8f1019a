"""Distances in metres are geodesics on the ellipsoid, between geometries of every kind, and fast ways agree."""

import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from streaming.operators import edges, metres
from streaming.operators.geodesics import local_metres
from streaming.operators.metres import closer_than, distance_m, perhaps_closer, within_reach
from streaming.spaces import EARTH
from tests.draws import examples
from tests.geodesy import apart_m, points_m

GEOD = pyproj.Geod(ellps="WGS84")
longitudes = st.floats(-180, 180)
longitudes_near_the_end = st.sampled_from([-180.0, -179.99, 20.0, 179.99])
latitudes = st.sampled_from([-89.0, -60.0, 0.0, 45.0, 80.0])
bearings = st.floats(0, 360)
# As exact are distances below 10 km.
EXACT_M = 2e-5
SIZES_DEG = [1e-5, 1e-3, 0.1, 3.0, 40.0]
KINDS = ["point", "line", "ring", "box", "lines"]


def random_geometry(rng, lon, lat, size, kind):
    """A geometry of a kind at a place, about as large as a size in degrees."""
    places = np.array([lon, lat]) + rng.uniform(-size, size, (4, 2)) * [1, rng.choice([0, 0.3, 1])]
    places[:, 1] = np.clip(places[:, 1], -90, 90)
    if kind == "point":
        return shapely.Point(lon, lat)
    if kind == "line":
        return shapely.LineString(places)
    if kind == "lines":
        return shapely.MultiLineString([places[:2], places[2:]])
    if kind == "box":
        return shapely.box(*places.min(axis=0), *np.minimum(places.max(axis=0) + 1e-9, [999, 90]))
    return shapely.convex_hull(shapely.MultiPoint(np.vstack([places, [lon, min(lat + size / 2, 90)]])))


def random_pair(rng, kinds):
    """Two geometries, anywhere from next to each other to the other side of the earth."""
    lon, lat = rng.uniform(-200, 200), rng.choice([rng.uniform(-89, 89), rng.uniform(75, 89.9), 0.0, -90.0])
    reach, size = 10 ** rng.uniform(0, 7.29), rng.choice(SIZES_DEG)
    to_lon, to_lat, _ = GEOD.fwd(lon, lat, rng.uniform(0, 360), reach)
    return random_geometry(rng, lon, lat, size, kinds[0]), random_geometry(rng, to_lon, to_lat, size, kinds[1])


@pytest.mark.long
@pytest.mark.seeds(100)
def test_a_distance_is_the_least_geodesic_between_two_places_in_both_directions(seed):
    check_distance(seed, kinds_of(seed))


def test_a_line_that_ends_at_a_pole_is_as_far_from_all_places_of_another_one():
    check_distance(58679353, ("line", "line"))


def kinds_of(seed):
    """Two kinds of geometries; each part of the seeds has all pairs of kinds."""
    return KINDS[seed % len(KINDS)], KINDS[seed // len(KINDS) % len(KINDS)]


def check_distance(seed, kinds):
    one, another = random_pair(np.random.default_rng(seed), kinds)
    found, expected = distance_m(one, another)[0], apart_m(one, another)
    relative = 1e-10 if "point" in kinds else 1e-8
    assert found == pytest.approx(expected, abs=EXACT_M, rel=relative)
    assert found == pytest.approx(distance_m(another, one)[0], abs=1e-6, rel=relative)


@pytest.mark.long
@pytest.mark.seeds(300)
def test_what_may_be_closer_holds_whatever_is(seed):
    rng = np.random.default_rng(seed)
    one, another = random_pair(rng, kinds_of(seed))
    change, distance = rng.choice([-1e-3, 1e-3, 1.0]), distance_m(one, another)[0]
    limit = max(0.0, distance + change)
    shapes, others = np.array([one]), np.array([another])
    assert closer_than(shapes, others, limit).tolist() == [distance < limit]
    assert (distance_m(shapes, others, limit) <= limit).tolist() == [distance <= limit]
    if distance <= limit:
        assert metres._perhaps_closer(shapes, others, limit).all() and perhaps_closer(shapes, others, limit).all()
        west, south, east, north = within_reach(_bounds(one), limit, EARTH)[0][[0, 1, 3, 4]]
        x_lo, y_lo, x_hi, y_hi = another.bounds
        assert south <= y_hi and y_lo <= north
        assert any(west <= x_hi + turn and x_lo + turn <= east for turn in (-720, -360, 0, 360, 720))


def _bounds(geometry):
    x_lo, y_lo, x_hi, y_hi = geometry.bounds
    return np.array([[x_lo, y_lo, -np.inf, x_hi, y_hi, np.inf]])


@examples(30)
@given(longitudes, st.floats(-80, 80), bearings, st.floats(1, 5_000), st.sampled_from([30, 500, 4_000]))
def test_many_at_once_have_the_distances_that_each_has_alone(lon, lat, bearing, metres_away, vertices):
    rng = np.random.default_rng(vertices)
    ends = [GEOD.fwd(lon, lat, bearing + turn, metres_away)[:2] for turn in (0, 10, 200)]
    lines = np.array([shapely.LineString(end + rng.normal(0, 1e-3, (vertices, 2))) for end in ends])
    points = shapely.points([(lon, lat)] * 3)
    assert distance_m(points, lines).tolist() == [distance_m(points[:1], line)[0] for line in lines]


def test_large_geometries_are_compared_by_the_edges_near_each_other(monkeypatch):
    angle = np.linspace(0, 2 * np.pi, 400)
    rough = 1 + 0.1 * np.sin(37 * angle)
    ring = np.stack([rough * np.cos(angle), rough * np.sin(angle)], axis=1)
    for lon, lat in ((0.0, 50.0), (179.0, -20.0), (10.0, 87.0)):
        place = np.array([lon, lat])
        one, other = shapely.Polygon(place + ring), shapely.Polygon(place + ring * 0.8 + [2.4, -0.2])
        other = metres.turned(np.array([other]), -360.0)[0] if lon > 90 else other
        monkeypatch.setattr(edges, "EDGES_AT_ONCE", 10_000_000)
        whole = distance_m(one, other)[0]
        monkeypatch.setattr(edges, "EDGES_AT_ONCE", 10_000)
        assert whole > 0 and distance_m(one, other)[0] == pytest.approx(whole, abs=1e-6)


@pytest.mark.parametrize("lat", [0.0, 60.0, -85.0])
def test_an_edge_is_a_straight_line_in_degrees_not_the_shortest_way(lat):
    along, middle = shapely.LineString([(-20, lat), (20, lat)]), shapely.Point(0, lat)
    assert distance_m(middle, along)[0] == 0
    assert distance_m(shapely.Point(0, lat + 1), along)[0] == pytest.approx(points_m(0, lat, 0, lat + 1), abs=1e-6)


def test_a_polygon_that_contains_the_point_is_at_0_and_its_hole_is_not():
    ring = shapely.Point(20, 40).buffer(0.2).difference(shapely.Point(20, 40).buffer(0.1))
    inside, in_hole = distance_m(shapely.points([[20.15, 40], [20, 40]]), ring)
    assert inside == 0
    assert in_hole == pytest.approx(apart_m(shapely.Point(20, 40), ring), abs=EXACT_M)


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
