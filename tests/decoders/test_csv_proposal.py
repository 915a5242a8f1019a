"""What is proposed for a CSV by its first rows: columns, units, and how its texts are written."""

import gzip
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.decoders import make_decoder
from streaming.decoders.csv_proposal import proposed
from streaming.decoders.csv_words import NAMES
from streaming.spaces import EARTH, Dimension, Space
from tests.decoders.feeds import decode
from tests.draws import examples

DMA = (
    "# Timestamp,Type of mobile,MMSI,Latitude,Longitude,Navigational status,SOG,COG,Name\n"
    "27/11/2026 03:00:10,Class A,219000001,55.1,12.5,Moored,0.1,90.5,ANNA\n"
    "27/11/2026 03:00:20,Class A,219000001,55.2,12.6,Moored,0.2,91.5,ANNA\n"
)
GERMAN = "Fahrzeug;Zeit;Breite;Länge;Höhe [ft];Geschwindigkeit (km/h)\nB1;27.11.2026 03:00;60,17;24,95;1.000,5;36,5\n"
MOVEBANK = "event-id,visible,timestamp,location-long,location-lat,individual-local-identifier\n"
MOVEBANK += "1,true,2026-11-27 03:00:00.000,24.95,60.17,Elk 1\n2,true,2026-11-27 04:00:00.000,24.96,60.18,Elk 1\n"
AMERICAN = "id,when,lat,lng\na,11/27/2026 3:00:00 AM,60.17,24.95\nb,11/28/2026 3:00:00 AM,60.18,24.96\n"
WITHOUT = "v1,1795748400,60.17,24.95,7\nv1,1795748410,60.18,24.96,8\n"
ANGLES = "name|utc|lat|lon\nAino|2026-11-27T03:00:00Z|60°10'12\"N|24°57'00\"E\n"
PREFACE = f"exported by a program\n\n{DMA}"


def elements(data, options, space=EARTH):
    return decode(make_decoder({"kind": "csv", **options}, "s", space), [data])[0]


@pytest.mark.parametrize(
    ("text", "columns", "more", "first"),
    [
        (
            DMA,
            ["MMSI", "# Timestamp", "Longitude", "Latitude"],
            {"time_format": "day_first"},
            ("219000001", 12.5, 55.1),
        ),
        (PREFACE, ["MMSI", "# Timestamp", "Longitude", "Latitude"], {"delimiter": ","}, ("219000001", 12.5, 55.1)),
        (
            GERMAN,
            ["Fahrzeug", "Zeit", "Länge", "Breite", "Höhe [ft]"],
            {"delimiter": ";", "decimal": ",", "altitude_unit": "feet"},
            ("B1", 24.95, 60.17),
        ),
        (
            MOVEBANK,
            ["individual-local-identifier", "timestamp", "location-long", "location-lat"],
            {"time_format": "iso8601"},
            ("Elk 1", 24.95, 60.17),
        ),
        (AMERICAN, ["id", "when", "lng", "lat"], {"time_format": "month_first"}, ("a", 24.95, 60.17)),
        (
            WITHOUT,
            ["column_1", "column_2", "column_4", "column_3"],
            {"header": "column_1,column_2,column_3,column_4,column_5"},
            ("v1", 24.95, 60.17),
        ),
        (ANGLES, ["name", "utc", "lon", "lat"], {"delimiter": "|"}, ("Aino", 24.95, 60.17)),
    ],
    ids=["danish", "behind a preface", "german", "movebank", "american", "without a header", "angles"],
)
def test_the_first_rows_say_how_a_csv_is_read(text, columns, more, first):
    told = proposed(text.encode(), {}, EARTH)
    roles = ("key", "time", "lon", "lat", "altitude")[: len(columns)]
    assert told["columns"] == dict(zip(roles, columns, strict=True))
    assert told | more == told
    rows = elements(text.encode(), told)
    assert (rows["key"][0].as_py(), *rows["bounds"][0].as_py()[:2]) == first
    assert str(rows["time_us"].to_numpy()[0].astype("datetime64[us]"))[:16] == "2026-11-27T03:00"


def test_other_columns_become_properties_in_their_units():
    told = proposed(DMA.encode(), {}, EARTH)["properties"]
    assert told["SOG"] == {"name": "speed_mps", "unit": "knots"} and told["Name"] == "name"
    assert told["COG"] == {"name": "course_deg", "unit": "degrees"}
    assert proposed(GERMAN.encode(), {}, EARTH)["properties"] == {
        "Geschwindigkeit (km/h)": {"name": "speed_mps", "unit": "kmh"}
    }


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1"])
def test_the_encoding_is_found(encoding):
    data = (GERMAN + 2 * "Bär;27.11.2026 03:00;60,17;24,95;1;36,5\n").encode(encoding)
    told = proposed(data, {}, EARTH)
    rows = elements(data, told)
    assert told["columns"]["lon"] == "Länge" and rows.num_rows == 3


def test_one_broken_line_is_no_other_encoding():
    data = (GERMAN + 20 * "Bär;27.11.2026 03:00;60,17;24,95;1;36,5\n").encode() + b"B\xe4r;27.11.2026 03:00;1;2;3;4\n"
    assert proposed(data, {}, EARTH)["encoding"] == "auto"


def test_what_is_packed_is_looked_into():
    assert proposed(gzip.compress(DMA.encode()), {}, EARTH)["columns"]["key"] == "MMSI"


def test_options_that_read_all_rows_stay_and_others_are_kept():
    given = {"columns": {"key": "MMSI", "lon": "Longitude", "lat": "Latitude"}, "properties": {"SOG": "sog"}}
    assert proposed(DMA.encode(), given, EARTH) is None
    told = proposed(DMA.encode(), {"time_zone": "Europe/Copenhagen", "null_values": {"SOG": ["102.3"]}}, EARTH)
    assert told["time_zone"] == "Europe/Copenhagen" and told["null_values"] == {"SOG": ["102.3"]}
    assert proposed(DMA.encode(), told, EARTH) is None


def test_columns_of_another_space_are_those_of_its_dimensions():
    space = Space("hall", (Dimension("x", "m", 0.0, 100.0), Dimension("y", "m", 0.0, 100.0)))
    told = proposed(b"tag,X,Y\na,1.5,2.5\na,2.5,3.5\n", {}, space)
    assert (told["columns"], told["coordinates"]) == ({"key": "tag"}, ["X", "Y"])
    assert elements(b"tag,X,Y\na,1.5,2.5\n", told, space).num_rows == 1


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"a\n", b"\x00\x01\xff", b"a,b\n1,2\n", b'{"type": "Feature"}\n', b"\x1f\x8b"]
)
def test_nothing_is_proposed_for_what_is_no_table_with_places(data):
    assert proposed(data, {}, EARTH) is None


@given(st.data())
@examples(30)
def test_names_of_columns_are_known_however_they_are_ordered_and_written(data):
    names = {role: data.draw(st.sampled_from(NAMES[role])) for role in ("key", "time", "lon", "lat")}
    roles = data.draw(st.permutations(list(names)))
    write = data.draw(st.sampled_from([str.upper, str.title, lambda name: f" {name} ", lambda name: f"my {name}"[3:]]))
    header = {role: write(names[role]).strip() for role in names}
    if len(set(header.values())) < len(header):
        return
    rows = [
        {
            "key": f"v{number % 2}",
            "time": f"2026-11-27T03:00:{number:02}Z",
            "lon": f"{100 + number}.5",
            "lat": f"{number}.25",
        }
        for number in range(10)
    ]
    lines = [";".join(header[role] for role in roles), *(";".join(row[role] for role in roles) for row in rows)]
    told = proposed("\n".join(lines).encode(), {}, EARTH)
    assert told["columns"] == {role: header[role] for role in ("key", "time", "lon", "lat")}


@given(st.binary(max_size=300), st.integers(0, 400))
@examples(15)
def test_whatever_comes_raises_nothing(noise, length):
    for data in itertools.accumulate((DMA.encode()[:length], noise)):
        told = proposed(data, {}, EARTH)
        assert told is None or elements(data, told).num_rows
