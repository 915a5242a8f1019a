"""The filters that Lookout brings."""

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from streaming.operators.geodesics import local_metres
from streaming.udf import evaluate_element, evaluate_pair, filter_names, shapes_of
from tests.udf.batches import batch

HOME = (25.0, 60.0)
SPATIAL = ("geojson_spatial", "geojson_spatial_strict")
SQUARE = shapely.box(24.9, 59.9, 25.1, 60.1)


def away(metres, at=HOME):
    """Return the place so many metres to the east."""
    return (at[0] + metres / local_metres(at[1])[0], at[1])


def passes(name, *batches_and_argument):
    """Return what a filter lets pass, of elements or of pairs."""
    evaluate = evaluate_pair if len(batches_and_argument) > 2 else evaluate_element
    judged = evaluate(name, *batches_and_argument)
    assert judged.error is None
    return judged.passes.tolist()


def fails(name, *batches_and_argument):
    """Return why a filter fails; nothing passes it."""
    evaluate = evaluate_pair if len(batches_and_argument) > 2 else evaluate_element
    judged = evaluate(name, *batches_and_argument)
    assert not judged.passes.any()
    return judged.error


def test_keys_are_equal():
    elements = batch(shapely.points([HOME] * 3), keys=["a", "b", "A"])
    assert passes("key_equals", elements, "a") == [True, False, False]
    features = batch(shapely.points([HOME] * 3), keys=["x", "a", "x"])
    assert passes("key_equals", elements, features, "a") == [True, True, False]
    assert "argument must be a key" in fails("key_equals", elements, "")


@pytest.mark.parametrize(
    ("properties", "argument", "expected"),
    [
        ({"name": "Elizabeth Street"}, "name:Elizabeth Street", True),
        ({"name": "Elizabeth Street"}, " name : Elizabeth Street ", True),
        ({"name": "Elizabeth Street"}, "name:elizabeth street", False),
        ({"lanes": 4}, "lanes:4", True),
        ({"lanes": 4.0}, "lanes:4", True),
        ({"lanes": "4"}, "lanes:4.0", True),
        ({"code": "04"}, "code:4", False),
        ({"bridge": True}, "bridge:true", True),
        ({"opens": "08:30"}, "opens:08:30", True),
        ({"addr:street": "Lamar"}, '"addr:street":Lamar', True),
        ({"name": "__import__('os')"}, "name:__import__('os')", True),
        ({"name": None}, "name:null", False),
        ({}, "name:x", False),
        ({"name": ""}, "name:", True),
    ],
)
def test_properties_are_equal(properties, argument, expected):
    element = batch(shapely.points([HOME]), [properties])
    other = batch(shapely.points([HOME]))
    assert passes("property_equals", element, argument) == [expected]
    assert passes("property_equals", element, other, argument) == [expected]
    assert passes("property_equals", other, element, argument) == [expected]


@pytest.mark.parametrize("argument", ["", "name", ":x", '"":x'])
def test_a_property_needs_key_and_value(argument):
    assert "of the form key:value" in fails("property_equals", batch(shapely.points([HOME])), argument)


@pytest.mark.parametrize("name", SPATIAL)
@pytest.mark.parametrize("boxes", [False, True])
def test_elements_pass_that_intersect_the_argument_or_all_without_one(name, boxes):
    elements = batch(shapely.points([HOME, (26, 60), (25.1, 60)]), boxes=boxes)
    assert passes(name, elements, "") == [True] * 3
    assert passes(name, elements, shapely.to_geojson(SQUARE)) == [True, False, True]
    feature = f'{{"type": "Feature", "properties": {{}}, "geometry": {shapely.to_geojson(SQUARE)}}}'
    assert passes(name, elements, feature) == [True, False, True]


@pytest.mark.parametrize("name", SPATIAL)
@pytest.mark.parametrize("argument", ["name:x", "{", '{"type": "Polygon", "coordinates": []}', "[1, 2]"])
def test_an_argument_of_elements_is_a_geometry(name, argument):
    assert "GeoJSON geometry; got" in fails(name, batch(shapely.points([HOME])), argument)


@pytest.mark.parametrize("name", SPATIAL)
def test_a_geometry_that_crosses_itself_is_refused_with_the_place(name):
    bow = shapely.to_geojson(shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)]))
    assert "Self-intersection" in fails(name, batch(shapely.points([HOME])), bow)


@pytest.mark.parametrize("encoded", [False, True])
def test_a_point_near_a_line_passes_but_not_the_strict_filter(encoded):
    line = shapely.LineString([(HOME[0], 59), (HOME[0], 61)])
    elements = batch(shapely.points([HOME, away(4.9), away(5.1)]))
    features = batch(np.array([line] * 3), encoded=encoded)
    assert passes("geojson_spatial", elements, features, "") == [True, True, False]
    assert passes("geojson_spatial_strict", elements, features, "") == [True, False, False]
    assert passes("geojson_spatial", elements, features, "distance=10") == [True, True, True]
    assert passes("geojson_spatial", elements, features, "distance=0") == [True, False, False]


def test_a_point_near_a_region_passes_and_regions_must_intersect():
    near = away(4, at=(25.1, 60))
    elements = batch(np.array([shapely.Point(near), shapely.box(*near, 26, 61), shapely.box(25.1, 60, 26, 61)]))
    features = batch(np.array([SQUARE] * 3))
    assert passes("geojson_spatial", elements, features, "") == [True, False, True]
    assert passes("geojson_spatial_strict", elements, features, "") == [False, False, True]


@pytest.mark.parametrize("name", SPATIAL)
def test_a_property_is_demanded_of_one_of_both(name):
    elements = batch(shapely.points([HOME] * 4), [{"name": "x"}, {}, {}, {"name": "y"}])
    shapes = np.array([SQUARE, SQUARE, SQUARE, SQUARE])
    features = batch(shapes, [{}, {"name": "x"}, {}, {"name": "y"}])
    assert passes(name, elements, features, "name:x") == [True, True, False, False]
    apart = batch(shapely.points([(30, 60)] * 4), [{"name": "x"}] * 4)
    assert passes(name, apart, features, "name:x") == [False] * 4


def test_property_and_distance_go_together_and_values_may_have_semicolons():
    features = batch(shapely.points([HOME] * 3), [{"ref": "1;2"}, {"ref": "1;2"}, {"ref": "1"}])
    elements = batch(shapely.points([away(8), away(12), away(8)]))
    assert passes("geojson_spatial", elements, features, "ref:1;2;distance=10") == [True, False, False]
    assert passes("geojson_spatial", elements, features, "ref:1;2") == [False, False, False]


@pytest.mark.parametrize("distance", ["", "x", "-1", "nan", "inf", "5 m"])
def test_a_distance_is_a_number_of_metres(distance):
    one = batch(shapely.points([HOME]))
    assert "distance must be a finite number" in fails("geojson_spatial", one, one, f"distance={distance}")


def test_the_strict_filter_knows_no_distance():
    one = batch(shapely.points([HOME]))
    assert "of the form key:value" in fails("geojson_spatial_strict", one, one, "distance=5")


@given(st.sampled_from([-180.0, -179.99999, 179.99999, 0.0]), st.sampled_from([-180.0, 180.0, 179.99999]))
def test_places_a_turn_apart_are_the_same(lon, other):
    apart_m = abs((lon - other + 180) % 360 - 180) * local_metres(10.0)[0]
    element = batch(shapely.points([(lon, 10)]))
    line = shapely.LineString([(other, 9), (other, 11)])
    region = shapely.box(other, 9, other + 1e-7, 11)
    assert passes("geojson_spatial", element, batch(np.array([line])), "") == [apart_m < 5]
    assert passes("geojson_spatial_strict", element, shapely.to_geojson(region)) == [apart_m == 0]


def test_every_filter_takes_no_rows():
    none = batch(np.array([], dtype=object))
    arguments = {"key_equals": "a", "property_equals": "a:b"}
    for name in filter_names():
        assert passes(name, none, arguments.get(name, "")) == []
        assert passes(name, none, none, arguments.get(name, "")) == []


def test_a_row_without_geometry_is_its_box_in_the_plane():
    shapes = np.array([shapely.Point(1, 2), shapely.LineString([(1, 2), (1, 3)]), shapely.box(1, 2, 3, 4)])
    assert shapely.equals(shapes_of(batch(shapes, boxes=True)), shapes).all()
    mixed = batch(shapes, encoded=True).set_column(2, "geometry", batch(shapes)["geometry"].dictionary_encode())
    assert shapely.equals(shapes_of(mixed), shapes).all()


@given(st.lists(st.sampled_from([None, 0, 1, 2]), max_size=8), st.booleans())
def test_rows_without_geometry_stand_among_others(chosen, encoded):
    geometries = [shapely.Point(5, 5), shapely.box(0, 0, 1, 1), shapely.LineString([(0, 0), (9, 9)])]
    wkb = pa.array([None if c is None else shapely.to_wkb(geometries[c]) for c in chosen], pa.binary())
    boxes = batch(shapely.points(np.full((len(chosen), 2), HOME)))
    mixed = boxes.set_column(2, "geometry", wkb.dictionary_encode() if encoded else wkb)
    expected = np.array([shapely.Point(HOME) if c is None else geometries[c] for c in chosen], dtype=object)
    assert shapely.equals(shapes_of(mixed), expected).all()
