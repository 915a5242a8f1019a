"""CSV whose columns are the dimensions of a space: points and boxes of any number of them."""

import math

import pytest

from streaming.decoders import make_decoder
from streaming.elements import bounds_of
from streaming.errors import InvalidOptions
from streaming.spaces import EARTH, parse_space, space_document

INF = math.inf
PLACE = {"key": "key", "lon": "lon", "lat": "lat"}


def space(*circles):
    """Return a space of dimensions from 0 to 100, those of which are circles as told."""
    dimensions = [{"name": f"d{n}", "lo": 0, "hi": 100, "wraps": wraps} for n, wraps in enumerate(circles)]
    return parse_space({"name": "s", "dimensions": dimensions})


def decode(text, where, **options):
    """Return the boxes by key, and the malformed input as (reason, sample)."""
    decoder = make_decoder({"kind": "csv", **options}, "s", where)
    parts = decoder.feed(text.encode(), 5_000_000), decoder.finish(5_000_000)
    boxes = {
        key: box
        for part in parts
        for key, box in zip(part.elements["key"].to_pylist(), bounds_of(part.elements["bounds"]).tolist(), strict=True)
    }
    return boxes, [(fault.reason, fault.sample.decode()) for part in parts for fault in part.malformed]


def test_a_point_has_a_column_for_each_dimension_and_lacks_those_that_are_empty():
    text = "key,time,a,b,c\nall,1970-01-01T00:00:01,1,2,3\nsome,1970-01-01T00:00:01,,2,\n"
    boxes, malformed = decode(text, space(False, False, False), coordinates=["a", "b", "c"])
    assert boxes == {"all": [1, 2, 3, 1, 2, 3], "some": [-INF, 2, -INF, INF, 2, INF]}
    assert malformed == []


def test_a_dimension_without_column_is_lacked_by_all():
    boxes, _ = decode("key,b\nk,2\n", space(False, False, False), columns={"key": "key"}, coordinates=[None, "b"])
    assert boxes == {"k": [-INF, 2, -INF, INF, 2, INF]}


def test_a_box_of_four_dimensions_has_two_columns_for_each():
    header = "key," + ",".join(f"{side}{n}" for side in ("lo", "hi") for n in range(4))
    names = {side: [f"{side}{n}" for n in range(4)] for side in ("lo", "hi")}
    text = f"{header}\nk,1,2,3,4,5,6,7,8\nopen,1,,3,,5,6,,\n"
    boxes, malformed = decode(text, space(*[False] * 4), columns={"key": "key"}, **names)
    assert boxes == {"k": [1, 2, 3, 4, 5, 6, 7, 8], "open": [1, -INF, 3, -INF, 5, 6, INF, INF]}
    assert malformed == []


def test_what_is_no_box_of_the_space_is_counted_with_its_reason():
    rows = ["text,x,1", "nowhere,,", "beyond,1,101", "below,-1,1", "upside,2,1", "good,0,100"]
    boxes, malformed = decode("key,l,h\n" + "\n".join(rows), space(False), columns={"key": "key"}, lo=["l"], hi=["h"])
    assert boxes == {"good": [0, 100]}
    reasons = ["no position", "no position", "position out of range", "position out of range", "lo above hi"]
    assert malformed == list(zip(reasons, rows, strict=False))


def test_on_a_circle_boxes_are_turned_into_it_and_may_cross_its_end():
    rows = ["over,90,110", "turned,-10,10", "open,30,", "around,10,111", "far,250,251"]
    boxes, malformed = decode("key,l,h\n" + "\n".join(rows), space(True), columns={"key": "key"}, lo=["l"], hi=["h"])
    assert boxes == {"over": [90, 110], "turned": [90, 110], "open": [-INF, INF]}
    assert malformed == [("position out of range", "around,10,111"), ("position out of range", "far,250,251")]


def test_coordinates_serve_the_earth_too():
    boxes, _ = decode("key,x,y\nk,1,0\nl,181,0\nm,0,0\n", EARTH, columns={"key": "key"}, coordinates=["x", "y"])
    assert boxes == {"k": [1, 0, -INF, 1, 0, INF]}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"coordinates": "price"}, "coordinates must be a list; got 'price'"),
        ({"coordinates": ["a"], "lo": ["b"], "hi": ["c"]}, "coordinates are those of points, lo and hi those of boxes"),
        ({"lo": ["a"]}, "lo and hi must name equally many columns"),
        ({"coordinates": [1]}, "coordinates must be a list of columns, null for a dimension without; got 1"),
        ({"coordinates": [None]}, "a place must have a column for one dimension at least"),
        ({"coordinates": ["a"], "columns": {"key": "k", "lon": "a"}}, "columns must not have lon where others are"),
        ({"coordinates": ["a"], "columns": {"time": "t"}}, "columns must have key"),
        ({"coordinates": ["a", "b", "c"]}, "s has 2 dimensions, so at most as many columns"),
        ({}, "this decoder gives longitudes and latitudes, which s does not have"),
    ],
)
def test_wrong_lists_are_refused_with_the_rule_and_the_value(options, words):
    with pytest.raises(InvalidOptions, match=words):
        make_decoder({"kind": "csv", **options}, "s", space(False, True))


@pytest.mark.parametrize(
    ("definition", "line"),
    [
        ({"kind": "csv", "header": "key,lon,lat,alt", "columns": {**PLACE, "altitude": "alt"}}, "k,24.9,60.1,300"),
        (
            {"kind": "geojson"},
            '{"type":"Feature","id":"k","geometry":{"type":"Point","coordinates":[24.9,60.1,300]}}',
        ),
    ],
)
def test_a_geographic_space_without_height_takes_elements_that_have_one(definition, line):
    land = parse_space({"name": "land", "geographic": True, "dimensions": space_document(EARTH)["dimensions"][:2]})
    decoded = make_decoder(definition, "s", land).feed(f"{line}\n".encode(), 0)
    assert bounds_of(decoded.elements["bounds"]).tolist() == [[24.9, 60.1, 24.9, 60.1]]
