"""Edges over more than half a turn are meant over the antimeridian: in layers, in elements and in plans alike."""

import json

import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from streaming.decoders.geojson import GeoJsonDecoder, GeoJsonOptions
from streaming.elements import bounds_of
from streaming.kinds.area_documents import parse_area_value
from streaming.layers import ImportOptions, InvalidLayer, Job
from streaming.layers.importing import import_file
from streaming.layers.parts import read_parts
from streaming.layers.placing import placed, transform_to
from streaming.shorter_way import take_shorter_way
from streaming.spaces import EARTH

ACROSS = shapely.Polygon([(-177.1, 48.6), (179.6, 49.0), (179.3, 47.5), (-178.6, 47.1)])
NOTE = "cut: it goes more than 180 degrees between two vertices, so it was taken the shorter way, over the antimeridian"
WITHIN, AWAY = shapely.Point(179.9, 48), shapely.Point(-30, 48)


def taken(shape):
    shapes = np.array([shape], dtype=object)
    rows = take_shorter_way(shapes)
    return shapes[0], len(rows) == 1


def test_a_polygon_of_a_layer_is_cut_in_two_with_a_note():
    read = placed([ACROSS], EARTH)
    (shape,) = read.geometries
    assert shape.geom_type == "MultiPolygon" and len(shape.geoms) == 2
    assert shape.covers(WITHIN) and not shape.intersects(AWAY)
    assert read.notes == {0: NOTE}


def test_a_polygon_is_kept_as_it_is_if_that_is_asked_for(tmp_path):
    path = tmp_path / "a.geojson"
    path.write_text(json.dumps({"type": "Feature", "properties": {}, "geometry": shapely.geometry.mapping(ACROSS)}))
    for edges, away in (("", False), ("keep", True)):
        work = tmp_path / f"work{edges}"
        work.mkdir()
        told = import_file(Job(path, work, wanted=ImportOptions(edges=edges)))
        (wkb,) = read_parts("a", [told.part], [None], EARTH)["geometry"].to_pylist()
        assert shapely.from_wkb(wkb).intersects(AWAY) == away
        assert told.problem_count == (0 if away else 1)
    with pytest.raises(InvalidLayer, match="edges must be keep, or empty; got 'long'"):
        import_file(Job(path, work, wanted=ImportOptions(edges="long")))


def test_an_area_of_a_plan_goes_on_beyond_the_antimeridian():
    area = {"type": "Polygon", "coordinates": [[list(place) for place in ACROSS.exterior.coords]]}
    box, (filter_,) = parse_area_value(area, "area", EARTH)
    assert (box[0], box[EARTH.n]) == pytest.approx((179.3, 182.9))
    ((ring,),) = filter_.shape.polygons
    assert shapely.Polygon(ring).covers(WITHIN)


def test_an_element_goes_on_beyond_the_antimeridian():
    feature = {"type": "Feature", "id": "a", "properties": {}, "geometry": shapely.geometry.mapping(ACROSS)}
    decoder = GeoJsonDecoder(GeoJsonOptions(), "s")
    table = decoder.feed(json.dumps(feature).encode() + b"\n", 0).elements
    assert bounds_of(table["bounds"])[0, [0, EARTH.n]] == pytest.approx([179.3, 182.9])


KEPT = {
    "the world": shapely.box(-180, -90, 180, 90),
    "a belt around the world": shapely.box(-180, 10, 180, 20),
    "an edge along the pole": shapely.Polygon(
        [(-179, -90), (-179, -70), (-60, -65), (60, -65), (179, -70), (179, -90)]
    ),
    "a long way with vertices between": shapely.Polygon([(-100, 0), (0, 0), (100, 0), (100, 9), (0, 9), (-100, 9)]),
    "half a turn": shapely.box(-90, 0, 90, 9),
    "points": shapely.MultiPoint([(-179, 0), (179, 0)]),
    "parts on both sides": shapely.MultiPolygon([shapely.box(-180, 0, -179, 1), shapely.box(179, 0, 180, 1)]),
}


@pytest.mark.parametrize("shape", KEPT.values(), ids=KEPT)
def test_what_has_no_long_edge_stays(shape):
    assert taken(shape) == (shape, False)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (shapely.LineString([(179, 0), (-179, 1)]), shapely.LineString([(179, 0), (181, 1)])),
        (shapely.LineString([(-179, 0), (179, 1), (-179, 2)]), shapely.LineString([(181, 0), (179, 1), (181, 2)])),
        (
            shapely.MultiLineString([[(179, 0), (-179, 1)], [(1, 1), (2, 2)]]),
            shapely.MultiLineString([[(179, 0), (181, 1)], [(1, 1), (2, 2)]]),
        ),
        (
            shapely.GeometryCollection([shapely.Point(-179, 0), shapely.LineString([(179, 0), (-179, 1)])]),
            shapely.GeometryCollection([shapely.Point(-179, 0), shapely.LineString([(179, 0), (181, 1)])]),
        ),
    ],
)
def test_lines_and_parts_are_taken_the_shorter_way_too(shape, expected):
    assert taken(shape) == (expected, True)


def test_a_hole_stays_within_its_polygon():
    outer = [(-170, 0), (170, 0), (170, 20), (-170, 20)]
    shape, _ = taken(shapely.Polygon(outer, [[(-175, 5), (-172, 5), (-172, 9)], [(175, 5), (-178, 5), (178, 9)]]))
    assert shape.is_valid
    assert shape.area == pytest.approx(400 - 6 - 14)


def test_a_ring_around_a_pole_holds_the_pole():
    longitudes = [-150, -90, -30, 30, 90, 150]
    for side in (1, -1):
        read = placed([shapely.Polygon([(x, 70 * side) for x in longitudes])], EARTH)
        assert all(read.geometries[0].intersects(shapely.Point(x, 80 * side)) for x in (-179, 0, 179))
        assert not read.geometries[0].intersects(shapely.Point(0, 60 * side))


@given(west=st.floats(-180, 180), width=st.floats(0.1, 170), south=st.floats(-80, 79), height=st.floats(0.1, 1))
def test_a_box_is_the_same_however_its_longitudes_are_wrapped(west, width, south, height):
    box = shapely.box(west, south, west + width, south + height)
    wrapped = shapely.transform(box, lambda places: np.column_stack([(places[:, 0] + 180) % 360 - 180, places[:, 1]]))
    expected, got = (placed([shape], EARTH).geometries[0] for shape in (box, wrapped))
    assert expected.symmetric_difference(got).area == pytest.approx(0, abs=1e-6)


def test_a_datum_that_is_shifted_without_its_grid_is_told_with_its_size():
    told = []
    transform_to(EARTH, "EPSG:27700", lambda message, **values: told.append(message % values))
    (note,) = told
    assert note.startswith("its datum was shifted without the grid uk_os_OSTN15_NTv2_OSGBtoETRS.tif")
    assert note.endswith("places are within about 2 m, with it within 1 m")


@pytest.mark.parametrize("crs", ["EPSG:3067", "EPSG:3857", "EPSG:4258", "EPSG:32633"])
def test_a_datum_that_needs_no_grid_is_not_told(crs):
    told = []
    transform_to(EARTH, crs, lambda message, **_: told.append(message))
    assert told == []
    assert pyproj.CRS(crs).is_projected or crs == "EPSG:4258"
