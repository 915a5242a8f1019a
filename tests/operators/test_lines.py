"""Which points are within reach of lines equals brute force, and few of the edges are looked at."""

from unittest import mock

import numpy as np
import pyproj
import shapely
from hypothesis import given

from streaming.operators.lines import INDEXED, IndexedLines, without_limit
from streaming.operators.metres import distance_m
from tests.draws import examples, rngs

# Distances beyond `edges.FAR_M` are found by a search that ends within a decimetre.
EXACT_M = 0.2
GEOD = pyproj.Geod(ellps="WGS84")


def random_line(rng):
    """A line of up to 60 vertices: straight on, or to and fro, also over the antimeridian and up to a pole."""
    count, size = rng.randint(2, 60), rng.choice([0.01, 1.0, 30.0])
    places = np.random.default_rng(rng.randrange(1_000)).uniform(-1, 1, (count, 2)) * size
    if rng.random() < 0.5:
        places = places[np.argsort(places[:, 0])]
    places += [rng.choice([0.0, 179.5, -179.5]), rng.choice([0.0, 60.0, 89.0])]
    places[:, 1] = places[:, 1].clip(-90, 90)
    return shapely.LineString(places)


@given(rng=rngs())
@examples(12)
def test_points_within_reach_of_lines_equal_brute_force(rng):
    lines = np.array([random_line(rng) for _ in range(4)])
    reach_m = np.array([rng.choice([100.0, 20_000.0, 400_000.0, 3_000_000.0, 15_000_000.0]) for _ in lines])
    line = np.repeat(np.arange(len(lines)), 8)
    drawn = np.random.default_rng(rng.randrange(1_000))
    on_lines = shapely.line_interpolate_point(lines[line], drawn.uniform(0, 1, len(line)), normalized=True)
    away = drawn.uniform(-2, 2, (len(line), 2)) * (reach_m[line] / 111_000)[:, None]
    places = shapely.get_coordinates(on_lines) + away
    places[:, 0], places[:, 1] = (places[:, 0] + 180) % 360 - 180, places[:, 1].clip(-90, 90)
    met = IndexedLines(lines, reach_m).within(places, line, without_limit)
    apart_m = distance_m(shapely.points(places), lines[line])
    told = np.abs(apart_m - reach_m[line]) > EXACT_M
    assert (met == (apart_m <= reach_m[line]))[told].all()


@given(rng=rngs())
@examples(12)
def test_spheres_leave_out_no_edge_that_is_within_reach(rng):
    lines, reach_m = np.array([random_line(rng)]), np.array([rng.choice([1_000.0, 50_000.0, 2_000_000.0])])
    drawn = np.random.default_rng(rng.randrange(1_000))
    on_line = shapely.line_interpolate_point(lines[0], drawn.uniform(0, 1, 30), normalized=True)
    start = shapely.get_coordinates(on_line)
    away_m, course = reach_m[0] * drawn.choice([0.99, 0.9999, 1.0001], 30), drawn.uniform(0, 360, 30)
    places = np.stack(GEOD.fwd(*start.T, course, away_m)[:2], axis=1)
    line, apart_m = np.zeros(30, dtype=np.int64), distance_m(shapely.points(places), lines[0])
    unsure = np.zeros(30, dtype=bool), np.arange(30)
    with mock.patch.object(IndexedLines, "_by_nearest", lambda *_: unsure):
        met = IndexedLines(lines, reach_m).within(places, line, without_limit)
    told = np.abs(apart_m - reach_m[0]) > EXACT_M
    assert (met == (apart_m <= reach_m[0]))[told].all()


def zigzag(vertices):
    x = np.linspace(-10, 10, vertices)
    return shapely.LineString(np.stack([x, 55 + 5 * np.sin(15 * x)], axis=1))


def test_points_are_compared_with_few_edges_of_a_line_with_many():
    looked, rng = [], np.random.default_rng(1)
    places = np.stack([rng.uniform(-10, 10, 1_000), rng.uniform(50, 60, 1_000)], axis=1)

    def look(pairs, count):
        looked.append(count.sum())
        return True

    IndexedLines(np.array([zigzag(999)]), np.array([10_000.0])).within(places, np.zeros(1_000, dtype=np.int64), look)
    assert sum(looked) < 1_000 * 15


def test_pairs_for_which_there_is_no_room_are_not_looked_at():
    asked = []

    def look(pairs, count):
        asked.append((pairs.tolist(), count.tolist()))
        return False

    met = IndexedLines(np.array([zigzag(99)]), np.array([1e4])).within(
        np.array([[0.0, 55.0]]), np.zeros(1, dtype=int), look
    )
    assert not met.any()
    (one,) = asked
    assert one == ([0], [INDEXED])


@given(rng=rngs())
@examples(40)
def test_what_is_beyond_the_reach_of_the_nearest_place_in_degrees_is_beyond_it(rng):
    """Of tall and wide lines, some nearly around the earth or to a pole, and places about as far away as the reach."""
    drawn = np.random.default_rng(rng.randrange(1_000_000))
    corners = drawn.uniform([-180, -80], [180, 80]) + drawn.uniform(-1, 1, (30, 2)) * rng.choice(
        [0.01, 1, 5, 60, 179.9]
    )
    lines = np.array([shapely.LineString(np.stack([corners[:, 0], corners[:, 1].clip(-89.9, 89.9)], axis=1))])
    reach_m = np.array([10.0 ** rng.uniform(3, 6.8)])
    on_line = shapely.line_interpolate_point(lines[0], drawn.uniform(0, 1, 40), normalized=True)
    away_m = reach_m[0] * drawn.choice([0.5, 0.99, 0.9999, 1.5], 40)
    places = np.stack(GEOD.fwd(*shapely.get_coordinates(on_line).T, drawn.uniform(0, 360, 40), away_m)[:2], axis=1)
    met, left = IndexedLines(lines, reach_m)._by_nearest(places, np.zeros(40, dtype=np.int64))
    beyond = ~met
    beyond[left] = False
    assert (distance_m(shapely.points(places), lines[0])[beyond] > reach_m[0] - EXACT_M).all()


def test_the_other_end_of_a_line_around_the_earth_may_be_nearer():
    line, place = shapely.LineString([(-170, -10), (0, 0), (170, 60)]), np.array([[179.0, -10.0]])
    apart_m = distance_m(shapely.points(place), np.array([line]))[0]
    assert abs(apart_m - GEOD.inv(179, -10, -170, -10)[2]) < 1e4
    for reach_m in (apart_m + 1, apart_m - 1):
        met = IndexedLines(np.array([line]), np.array([reach_m])).within(place, np.zeros(1, dtype=int), without_limit)
        assert met[0] == (reach_m > apart_m)
