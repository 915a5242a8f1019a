"""Which elements meet an area equals brute force, for every shape of area and element, on borders and at the ends."""

import random

import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import given

from streaming.elements import bounds_of, box_elements, stream_number
from streaming.kinds.areas import AreaFilter, CircleArea, CorridorArea
from streaming.operators.areas import Areas
from streaming.operators.conditions import Conditions
from streaming.operators.elements import Elements
from streaming.operators.range_query import RangeQueries
from streaming.plans import parse_plan
from streaming.spaces import EARTH, Dimension, Space
from tests.areas import random_area
from tests.draws import examples, rngs
from tests.oracle import box_shape, meets_area

GEOD = pyproj.Geod(ellps="WGS84")
PLANE = Space("plane", (Dimension("x", "m", 0, 10), Dimension("y", "m", 0, 10)))
FAR = float("inf")


def elements_of(boxes, geometries=None):
    keys = list(map(str, range(len(boxes))))
    wkb = None if geometries is None else [None if one is None else shapely.to_wkb(one) for one in geometries]
    version = np.zeros(len(boxes), dtype=np.int64)
    table = box_elements("s", keys, version, np.array(boxes), [{}] * len(boxes), wkb)
    return Elements(
        np.full(len(boxes), stream_number("s")),
        bounds_of(table["bounds"]),
        table.take,
        has_geometries=geometries is not None,
    )


def filter_of(area, space=EARTH):
    (entry,) = parse_plan({"stream": "s", "area": area}, space).filters
    return entry


def all_pairs(areas, elements, space=EARTH):
    row, area = (index.ravel() for index in np.indices((len(elements), len(areas))))
    return Areas(areas, space).met(elements, row, area).reshape(len(elements), len(areas))


def random_place(rng, lon, lat, size):
    x, y = lon + rng.uniform(-2, 2) * size, min(90.0, max(-90.0, lat + rng.uniform(-2, 2) * size))
    return x - 360 * round(x / 360 - 1e-12 * x), y


def random_element(rng, lon, lat, size):
    """A box, a point most often, and a geometry or none."""
    x, y = random_place(rng, lon, lat, size)
    if rng.random() < 0.5:
        return [x, y, -FAR, x, y, FAR], None
    wide, high = rng.choice([(0.0, 1.0), (1.0, 0.0), (1.0, 0.5)])
    west, south, east, north = x, min(y, 89.0), x + wide * size, min(90.0, min(y, 89.0) + high * size)
    line = shapely.LineString([(west, south), (east, north)]) if rng.random() < 0.3 else None
    return [west, south, -FAR, east, north, FAR], line


@pytest.mark.long
@examples(20)
@given(rngs())
def test_elements_of_every_shape_meet_areas_of_every_shape_as_brute_force_says(rng):
    lon, lat = rng.choice([-180.0, 179.8, 20.0]), rng.choice([-90.0, -89.0, 0.0, 60.0, 88.0, 89.9])
    size = rng.choice([0.01, 1.0, 20.0])
    areas = [filter_of(random_area(rng, lon, lat, size)) for _ in range(4)]
    boxes, geometries = zip(*(random_element(rng, lon, lat, size) for _ in range(6)), strict=True)
    shaped = elements_of(boxes, geometries)
    plain = elements_of([box for box, _ in zip(boxes, geometries, strict=True)])
    for elements, shapes in ((shaped, geometries), (plain, [None] * 6)):
        expected = [
            [meets_area(area.shape, box_shape(box) if shape is None else shape) for area in areas]
            for box, shape in zip(elements.bounds.tolist(), shapes, strict=True)
        ]
        assert all_pairs(areas, elements).tolist() == expected


def at(*places):
    return elements_of([[x, y, -FAR, x, y, FAR] for x, y in places])


def test_the_border_belongs_to_an_area():
    hole = [[1, 1], [3, 1], [3, 3], [1, 3], [1, 1]]
    square = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]], hole]}
    inside = [(0, 0), (4, 2), (2, 0), (1, 2), (3, 3), (0.5, 0.5)]
    outside = [(2, 2), (1.0000001, 2), (4.0000001, 2), (-1e-9, 0)]
    met = all_pairs([filter_of(square)], at(*inside, *outside))[:, 0]
    assert met.tolist() == [True] * len(inside) + [False] * len(outside)


@pytest.mark.parametrize(
    ("center", "radius_m"), [((20, 60), 9_000.0), ((179.99, 0), 250_000.0), ((5, 89.9), 300_000.0)]
)
def test_a_circle_ends_where_the_geodesic_is_as_long_as_its_radius(center, radius_m):
    area = AreaFilter(CircleArea(center, radius_m))
    bearings = np.arange(0.0, 360.0, 5.0)
    for share, expected in ((1 - 1e-8, True), (1 + 1e-8, False)):
        lon, lat, _ = GEOD.fwd(*np.broadcast_arrays(*center, bearings, radius_m * share))
        assert set(all_pairs([area], at(*zip(lon, lat, strict=True)))[:, 0]) == {expected}


def test_a_corridor_has_round_ends_and_crosses_the_antimeridian():
    area = AreaFilter(CorridorArea(((179.0, 0.0), (181.0, 0.0)), 20_000.0))
    north = 10_000 / 110_574.3  # degrees of latitude at the equator
    east = 10_000 / 111_319.49
    inside = [(-179.5, north * 0.999), (179.2, -north * 0.999), (-179 + east * 0.999, 0), (180, 0), (-180, 0)]
    outside = [(-179.5, north * 1.001), (-179 + east * 1.001, 0), (-179 + east * 0.9, north * 0.9), (0, 0)]
    assert all_pairs([area], at(*inside, *outside))[:, 0].tolist() == [True] * 5 + [False] * 4


def test_a_polygon_in_a_plane_needs_no_earth():
    triangle = filter_of({"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [0, 4], [0, 0]]]}, PLANE)
    bounds = np.array([[1.0, 1, 1, 1], [3, 3, 3, 3], [1.5, 1.5, 9, 9]])
    assert Areas([triangle], PLANE).met_by_boxes(bounds, np.arange(3), np.zeros(3, int)).tolist() == [True, False, True]


def test_sets_that_are_taken_and_put_together_keep_their_areas():
    rng = random.Random(3)
    plans = [parse_plan({"stream": "s", "area": random_area(rng, 0, 0, 1)}) for _ in range(12)]
    plans += [parse_plan({"stream": "s", "area": {"lo": [-1, -1], "hi": [1, 1]}})] * 2
    elements = at(*(random_place(rng, 0, 0, 1) for _ in range(60)))
    whole = RangeQueries(plans, EARTH)
    first, second = np.array([13, 2, 7, 12]), np.array([0, 5, 2])
    made = RangeQueries.together([whole.take(first), whole.take(second)])
    expected = RangeQueries([plans[i] for i in [*first, *second]], EARTH)
    assert [rows.tolist() for rows in made.match(elements)] == [rows.tolist() for rows in expected.match(elements)]
    assert len(made.match(elements)[0])


def test_queries_that_differ_in_their_area_alone_share_the_rest_of_their_conditions():
    rng = random.Random(4)
    plans = [parse_plan({"stream": "s", "area": random_area(rng, 0, 0, 1), "where": "a > 1"}) for _ in range(50)]
    conditions = Conditions(plans, EARTH)
    assert len(conditions._column.values) == 1
