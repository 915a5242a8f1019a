"""CSV and GeoJSON of other countries, programs and encodings."""

import pytest

from streaming.decoders import make_decoder
from streaming.elements import UNKNOWN, bounds_of
from streaming.errors import InvalidOptions
from tests.decoders.feeds import decode, decode_whole, properties_of

EUROPEAN = {"kind": "csv", "delimiter": ";", "decimal": ","}
ROWS = "key;time;lon;lat;n\nMä;27.11.2026 03:00:00;24°57'0\"E;N 60°10'12\";\nb;2026-11-27;24,95;60,17;1.234,5\n"
POINT = '{"type":"Feature","id":"Mä","geometry":{"type":"Point","coordinates":[%s]},"properties":{"n":"36.0"}}'
SPEED = {"n": {"name": "n", "unit": "number"}}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_text_of_any_encoding_is_read_however_it_is_cut(encoding, step):
    data = ROWS.encode(encoding)
    definition = EUROPEAN | {"properties": SPEED, "encoding": encoding if encoding == "cp1252" else "auto"}
    pieces = [data[start : start + step] for start in range(0, len(data), step)]
    elements, malformed = decode(make_decoder(definition, "s"), pieces)
    assert elements["key"].to_pylist() == ["Mä", "b"]
    assert bounds_of(elements["bounds"])[:, :2].tolist() == [[24.95, 60.17]] * 2
    assert properties_of(elements, "b") == {"n": 1234.5}
    assert not malformed


def test_bytes_that_the_encoding_does_not_have_make_their_line_malformed():
    rows = b"key,time,lon,lat\n\x81,2026-11-27,1,2\na,2026-11-27,1,2\n"
    elements, malformed = decode_whole({"kind": "csv", "encoding": "cp1252"}, rows)
    assert (elements["key"].to_pylist(), malformed) == (["a"], {"encoding": 1})


@pytest.mark.parametrize("encoding", ["klingon", "base64", "undefined", ""])
def test_an_encoding_that_there_is_not_is_refused(encoding):
    with pytest.raises(InvalidOptions, match="encoding must be auto"):
        make_decoder({"kind": "csv", "encoding": encoding}, "s")


@pytest.mark.parametrize(
    ("decimal", "text", "number"),
    [
        (",", "1.234,5", 1234.5),
        (",", "1.234", 1234),
        (",", "-12,5", -12.5),
        (",", "1 234 567,5", 1234567.5),
        (",", "12.5", None),
        (",", "1,234,5", None),
        (".", "1,234.5", 1234.5),
        (".", "1'234.5", 1234.5),
        (".", "1\u00a0234.5", 1234.5),
        (".", "1,234,567", 1234567),
        (".", "1,234", None),
        (",", "0.012", None),
        (".", "0,012.5", None),
        (".", "0 012", None),
        (".", "+5", 5),
        (".", "\u22125", -5),
    ],
)
def test_numbers_are_read_as_their_country_writes_them(decimal, text, number):
    rows = f"key;time;lon;lat;n\na;2026-11-27;1;2;{text}\n".encode()
    elements, _ = decode_whole(EUROPEAN | {"decimal": decimal, "properties": SPEED}, rows)
    assert properties_of(elements, "a") == ({} if number is None else {"n": number})


@pytest.mark.parametrize(
    ("lon", "lat", "place"),
    [
        ("24°57'0\"E", "N 60°10'12\"", [24.95, 60.17]),
        ("24 57.0E", "60 10.2N", [24.95, 60.17]),
        ("024-57-00W", "60-10-12S", [-24.95, -60.17]),
        ("-24 57 0", "-0 30 0", [-24.95, -0.5]),
        ("24.95W", "60.17 s", [-24.95, -60.17]),
        ("24°57′00″E", "60°10′12″N", [24.95, 60.17]),
        ("24d57m0s", "60d10m12s", [24.95, 60.17]),
        ("24°57'0''E", "60º10'12''N", [24.95, 60.17]),
        ("60 10N", "24 57E", None),
        ("-24 57W", "60 10N", None),
        ("24 61E", "60 10N", None),
        ("24.5 30E", "60 10N", None),
    ],
)
def test_angles_may_have_minutes_seconds_and_hemispheres(lon, lat, place):
    rows = f"key;time;lon;lat\na;2026-11-27;{lon};{lat}\nb;2026-11-27;1;2\n".encode()
    elements, malformed = decode_whole({"kind": "csv", "delimiter": ";"}, rows)
    places = bounds_of(elements["bounds"])[:, :2].tolist()
    assert places[:-1] == ([] if place is None else [pytest.approx(place)])
    assert malformed == ({"no position": 1} if place is None else {})


def test_the_name_of_a_column_may_contain_the_delimiter():
    rows = b'key,time,lon,lat, "speed, ""kn"""\na,2026-11-27,1,2,5\n'
    elements, _ = decode_whole({"kind": "csv", "properties": {'speed, "kn"': "speed"}}, rows)
    assert properties_of(elements, "a") == {"speed": "5"}


@pytest.mark.parametrize("framing", ["lines", "document"])
def test_geojson_may_begin_with_a_byte_order_mark_and_have_epochs_as_text(framing):
    feature = (
        b'{"type":"Feature","id":"a","geometry":{"type":"Point","coordinates":[1,2]},"properties":{"t":"1795748400"}}'
    )
    elements, malformed = decode_whole({"kind": "geojson", "time": "t", "framing": framing}, b"\xef\xbb\xbf" + feature)
    assert (elements["time_us"].to_pylist(), malformed) == ([1_795_748_400_000_000], {})


@pytest.mark.parametrize("time_format", ["iso8601", "epoch_s"])
def test_epochs_may_have_a_decimal_comma(time_format):
    rows = b"key;time;lon;lat\na;1795748400,5;24,95;60,17\n"
    elements, malformed = decode_whole(EUROPEAN | {"time_format": time_format}, rows)
    assert (elements["time_us"].to_pylist(), malformed) == ([1_795_748_400_500_000], {})


@pytest.mark.parametrize("framing", ["lines", "document"])
@pytest.mark.parametrize("step", [1, 1000])
def test_geojson_of_another_encoding_is_known_by_its_mark(framing, step):
    data = (POINT % "1,2" + "\n").encode("utf-16")
    pieces = [data[start : start + step] for start in range(0, len(data), step)]
    elements, malformed = decode(make_decoder({"kind": "geojson", "framing": framing}, "s"), pieces)
    assert (elements["key"].to_pylist(), malformed) == (["Mä"], {})


def test_a_point_whose_altitude_is_null_is_in_no_range_of_altitudes():
    elements, malformed = decode_whole({"kind": "geojson"}, (POINT % "1,2,null").encode())
    assert (bounds_of(elements["bounds"])[:, :3].tolist(), malformed) == ([[1, 2, UNKNOWN]], {})


def test_a_number_with_a_unit_may_be_text_in_geojson():
    speed = {"kind": "geojson", "properties": {"n": {"name": "speed_mps", "unit": "kmh"}}}
    elements, _ = decode_whole(speed, (POINT % "1,2").encode())
    assert properties_of(elements, "Mä") == {"speed_mps": pytest.approx(10)}
