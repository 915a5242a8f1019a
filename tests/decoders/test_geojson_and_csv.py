"""GeoJSON and CSV."""

import math

import orjson
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from streaming.decoders import make_decoder
from streaming.decoders.units import FACTORS, KNOT_MPS
from streaming.elements import UNKNOWN, bounds_of, point_elements
from streaming.spaces import EARTH
from tests.decoders.feeds import CSV, CSV_OPTIONS, GEOJSON_LINES, NOW_US, decode, decode_whole, properties_of
from tests.draws import examples

GEOJSON = {"kind": "geojson", "time": "t"}


def test_points_and_other_geometries_keep_their_order_and_place():
    elements, _ = decode_whole(GEOJSON, GEOJSON_LINES)
    assert elements["key"].to_pylist() == ["7", "road", "café"]
    assert elements["time_us"].to_pylist() == [1_700_000_000_000_000] * 3
    assert bounds_of(elements["bounds"]).tolist() == [
        [-170, 60, 12.5, -170, 60, 12.5],
        [9, 47, -math.inf, 10, 48, math.inf],
        [9, 47, -math.inf, 9, 47, math.inf],
    ]


def test_only_geometries_that_are_no_points_are_carried_as_wkb():
    point, road, _ = decode_whole(GEOJSON, GEOJSON_LINES)[0]["geometry"].to_pylist()
    assert point is None
    assert shapely.from_wkb(road).equals(shapely.LineString([(9, 47), (10, 48)]))


def test_a_feature_collection_gives_the_same_as_its_lines():
    features = [orjson.loads(line) for line in GEOJSON_LINES.splitlines() if line.startswith(b"{")]
    collection = orjson.dumps({"type": "FeatureCollection", "features": features}, option=orjson.OPT_INDENT_2)
    elements, _ = decode_whole(GEOJSON | {"framing": "document"}, collection)
    assert elements.equals(decode_whole(GEOJSON, GEOJSON_LINES)[0])


def test_key_names_and_units_of_properties_can_be_chosen():
    definition = {
        "kind": "geojson",
        "key": "ref",
        "properties": {"v": {"name": "speed_mps", "unit": "kmh"}, "n": "name"},
    }
    feature = {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": [1, 2]},
        "properties": {"ref": 5, "v": 36, "n": "Aino", "rest": [1]},
    }
    elements, _ = decode_whole(definition, orjson.dumps(feature))
    assert elements["time_us"].to_pylist() == [NOW_US]
    assert properties_of(elements, "5") == {"ref": 5, "speed_mps": 10.0, "name": "Aino", "rest": [1]}


@pytest.mark.parametrize(
    ("value", "speed"),
    [(10, 10 * KNOT_MPS), (0, 0.0), (102.3, None), ("102.3", None), ("fast", None), (None, None), (True, None)],
)
def test_what_means_none_or_is_no_number_is_absent(value, speed):
    definition = {
        "kind": "geojson",
        "properties": {"sog": {"name": "speed_mps", "unit": "knots"}},
        "null_values": {"sog": [102.3]},
    }
    feature = {
        "type": "Feature",
        "id": "a",
        "geometry": {"type": "Point", "coordinates": [1, 2]},
        "properties": {"sog": value},
    }
    elements, _ = decode_whole(definition, orjson.dumps(feature))
    assert properties_of(elements, "a") == ({} if speed is None else {"speed_mps": speed})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"type":"Topology"}', "not a feature"),
        (b"[1]", "not a feature"),
        (b'{"type":"FeatureCollection","features":[3]}', "not a feature"),
        (b'{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]}}', "feature without key"),
        (b'{"type":"Feature","id":"a","geometry":{"type":"Point","coordinates":["1",2]}}', "geometry"),
        (b'{"type":"Feature","id":"a","geometry":{"type":"Point","coordinates":[]}}', "geometry"),
        (b'{"type":"Feature","id":"a","geometry":{"type":"LineString","coordinates":[[0,0],[0,99]]}}', "geometry"),
        (b'{"type":"Feature","id":"a","geometry":{"a":' + b"[" * 500 + b"]" * 500 + b"}}", "nested too deep"),
    ],
)
def test_a_wrong_feature_is_counted(line, reason):
    elements, malformed = decode_whole({"kind": "geojson"}, line)
    assert elements.num_rows == 0
    assert malformed == {reason: 1}


def test_csv_columns_become_elements_in_si_units():
    elements, _ = decode_whole(CSV_OPTIONS, CSV)
    rows = elements.to_pylist()
    assert [row["key"] for row in rows] == ["a", "b", "k"]
    assert [row["time_us"] for row in rows] == [1_700_000_000_000_000, 1_700_000_000_250_000, 1_700_000_000_000_000]
    assert rows[0]["bounds"] == [8.5, 47.5, 304.8] * 2
    assert rows[1]["bounds"] == [-171.5, -47.5, UNKNOWN] * 2
    assert [orjson.loads(row["properties"]) for row in rows] == [
        {"speed_mps": 10 * KNOT_MPS, "name": "Café", "altitude_m": 304.8},
        {"name": 'x, "y"', "heading_deg": 90.0},
        {"name": "K", "altitude_m": 304.8},
    ]


@pytest.mark.parametrize("unit", ["knots", "kmh", "mph", "feet", "feet_per_min"])
def test_a_converted_number_is_not_rounded(unit):
    target = {"v": {"name": "v", "unit": unit}}
    rows = b"key,time,lon,lat,v\na,2023-11-14,1,2,10.1\n"
    feature = b'{"type":"Feature","id":"a","geometry":{"type":"Point","coordinates":[1,2]},"properties":{"v":10.1}}'
    for kind, feed in (("csv", rows), ("geojson", feature)):
        elements, _ = decode_whole({"kind": kind, "properties": target}, feed)
        assert properties_of(elements, "a") == {"v": 10.1 * FACTORS[unit]}


def test_csv_elements_equal_those_built_row_by_row():
    elements, _ = decode_whole({"kind": "csv"}, b"key,time,lon,lat\na,1970-01-01T00:00:01Z,180,5\nb,1970-01-01,1,2\n")
    assert elements.equals(point_elements("s", ["a", "b"], [10**6, 0], [[180, 5], [1, 2]], [None, None], space=EARTH))


@pytest.mark.parametrize(
    ("time_format", "text"),
    [
        ("epoch_s", "1700000000"),
        ("epoch_ms", "1.7e12"),
        ("epoch_us", "1700000000000000"),
        ("iso8601", "2023-11-14 22:13:20"),
    ],
)
def test_csv_times_come_in_several_formats(time_format, text):
    definition = {"kind": "csv", "time_format": time_format}
    for feed in (f"key,time,lon,lat\na,{text},1,2\n", f"key,time,lon,lat\na,{text},1,2\nb,never,1,2\n"):
        assert decode_whole(definition, feed.encode())[0]["time_us"].to_pylist() == [1_700_000_000_000_000]


def test_csv_local_times_are_shifted_and_times_out_of_reach_are_counted():
    feed = (
        b"key,time,lon,lat\na,2023-11-14T22:13:20,1,2\nb,2023-11-14T22:13:20Z,1,2\nc,1969-12-31,1,2\nd,2201-01-01,1,2\n"
    )
    elements, malformed = decode_whole({"kind": "csv", "utc_offset_s": 60}, feed)
    assert elements["time_us"].to_pylist() == [1_699_999_940_000_000, 1_700_000_000_000_000]
    assert malformed == {"time": 2}


def test_csv_without_a_time_column_takes_the_time_of_arrival():
    definition = {"kind": "csv", "columns": {"key": "k", "lon": "x", "lat": "y"}, "delimiter": ";"}
    assert decode_whole(definition, b"k;x;y\na;1;2\n")[0]["time_us"].to_pylist() == [NOW_US]


def test_null_island_is_kept_where_asked():
    feed = b"key,time,lon,lat\na,2023-11-14T22:13:20Z,0,0\n"
    assert decode_whole({"kind": "csv"}, feed)[1] == {"null island": 1}
    assert decode_whole({"kind": "csv", "drop_null_island": False}, feed)[0].num_rows == 1


def test_csv_may_come_without_a_header_line():
    definition = {"kind": "csv", "header": "key,time,lon,lat"}
    decoder = make_decoder(definition, "s")
    for _ in range(2):
        assert decode(decoder, [b"a,2023-11-14T22:13:20Z,1,2\n"])[0].num_rows == 1


def test_csv_lines_before_the_header_are_counted():
    elements, malformed = decode_whole({"kind": "csv"}, b"# made by hand\nkey,time,lon,lat\na,2023-11-14,1,2\n")
    assert elements.num_rows == 1
    assert malformed == {"header": 1}


def test_an_open_quote_does_not_swallow_the_rows_after_it():
    feed = (
        b'key,time,lon,lat,n\na,2023-11-14,1,2,x"y,\nb,2023-11-14,1,2,"\nc,2023-11-14,1,2,q"q,"\nd,2023-11-14,1,2,"z"\n'
    )
    elements, malformed = decode_whole({"kind": "csv", "properties": {"n": "n"}}, feed)
    assert elements["key"].to_pylist() == ["d"]
    assert malformed == {"quotes": 3}


values = st.one_of(st.none(), st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=8))


@examples(20)
@given(rows=st.lists(st.tuples(values, values), min_size=1, max_size=6))
def test_any_text_survives_csv_and_json(rows):
    def cell(text):
        return '"' + text.replace('"', '""') + '"' if text else ""

    feed = "key,time,lon,lat,p,q\n" + "".join(f"k,2023-11-14,1,2,{cell(p)},{cell(q)}\n" for p, q in rows)
    definition = {"kind": "csv", "properties": {"p": "p", "q": 'the "q"'}}
    elements, _ = decode_whole(definition, feed.encode())
    # Blanks as Arrow knows them: what is nothing else is no value.
    decoded = [orjson.loads(text) for text in elements["properties"].to_pylist()]
    assert len(decoded) == len(rows)
    for (p, q), properties in zip(rows, decoded, strict=True):
        assert properties.get("p", "") in (p or "")
        assert properties.get('the "q"', "") in (q or "")
        assert ("p" in properties) == bool((p or "").strip())
