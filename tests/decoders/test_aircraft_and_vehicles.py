"""SBS-1, aircraft.json and GTFS-Realtime."""

import numpy as np
import orjson
import pytest
from google.transit import gtfs_realtime_pb2 as gtfs
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.decoders import make_decoder
from streaming.decoders.units import FOOT_M, FOOT_PER_MINUTE_MPS, KNOT_MPS
from streaming.elements import bounds_of
from tests.decoders.feeds import AIRCRAFT_JSON, GTFS_REALTIME, SBS, decode, decode_whole, properties_of


def test_sbs_message_types_are_merged_into_one_aircraft():
    elements, _ = decode_whole({"kind": "sbs"}, SBS)
    assert set(elements["key"].to_pylist()) == {"a955d1"}
    assert elements["bounds"].to_pylist()[-1] == [9.71403, 48.43941, 12199.62] * 2
    assert properties_of(elements, "a955d1") == {
        "icao24": "a955d1",
        "kind": "aircraft",
        "altitude_m": 40025 * FOOT_M,
        "on_ground": False,
        "speed_mps": 451 * KNOT_MPS,
        "course_deg": 90.5,
        "vertical_rate_mps": -64 * FOOT_PER_MINUTE_MPS,
        "callsign": "DLH8JW",
        "position_source": "adsb",
    }


def test_sbs_times_are_local_to_the_receiver():
    first = decode_whole({"kind": "sbs"}, SBS)[0]["time_us"][0].as_py()
    assert first == 1663932436635000
    assert decode_whole({"kind": "sbs", "utc_offset_s": 7200}, SBS)[0]["time_us"][0].as_py() == first - 7200 * 10**6


def test_an_sbs_line_without_news_gives_no_element():
    position, _, callsign, alive, *_ = SBS.splitlines(keepends=True)
    assert decode_whole({"kind": "sbs"}, position + alive * 10)[0].num_rows == 1
    assert decode_whole({"kind": "sbs"}, position * 3)[0].num_rows == 3
    assert decode_whole({"kind": "sbs"}, position + callsign * 3)[0].num_rows == 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((b"A955D1", b"GHIJKL"), "hex ident"),
        ((b"MSG,3", b"MSG,9"), "message type"),
        ((b"2022/09/23,11:27:16.635", b"2022/19/23,11:27:16.635"), "time"),
        ((b"48.43941", b"north"), "field"),
        ((b"48.43941", b"nan"), "position out of range"),
        ((b"40025", b"inf"), "field"),
        ((b",,0\r", b"\r"), "not a message"),
        ((b",,0\r", b",,maybe\r"), "field"),
    ],
)
def test_an_sbs_line_with_a_wrong_field_is_counted(change, reason):
    line = SBS.splitlines(keepends=True)[0]
    elements, malformed = decode_whole({"kind": "sbs"}, line.replace(*change))
    assert elements.num_rows == 0
    assert malformed == {reason: 1}


def test_no_more_aircraft_are_remembered_than_asked_for():
    decoder = make_decoder({"kind": "sbs", "max_objects": 1}, "s")
    position, speed, *_ = SBS.splitlines(keepends=True)
    assert decode(decoder, [position, position.replace(b"A955D1", b"A955D2"), speed])[0].num_rows == 2


def test_aircraft_json_gives_si_units_and_the_time_of_the_position():
    elements, _ = decode_whole({"kind": "aircraft_json"}, AIRCRAFT_JSON)
    row = elements.to_pylist()[0]
    assert (row["key"], row["time_us"]) == ("3c6444", 1699999999000000)
    assert row["bounds"] == [8.5, 47.5, 10668.0] * 2
    assert properties_of(elements, "3c6444") == {
        "icao24": "3c6444",
        "kind": "aircraft",
        "callsign": "DLH8JW",
        "squawk": "1000",
        "category": "A3",
        "speed_mps": 440 * KNOT_MPS,
        "course_deg": 324.3,
        "altitude_m": 10668.0,
        "altitude_geometric_m": 10820.4,
        "vertical_rate_mps": 960 * FOOT_PER_MINUTE_MPS,
        "on_ground": False,
    }


def test_an_aircraft_on_the_ground_is_there_and_has_no_altitude():
    elements, _ = decode_whole({"kind": "aircraft_json"}, AIRCRAFT_JSON)
    assert bounds_of(elements["bounds"])[1].tolist() == [-172.0, 47.0, 0.0] * 2
    assert properties_of(elements, "~2a1b3c")["on_ground"] is True


def test_an_aggregators_answer_is_understood_as_well():
    answer = orjson.dumps({"now": 1700000000123, "ac": [{"hex": "3c6444", "lat": 47.5, "lon": 8.5}]})
    elements, malformed = decode_whole({"kind": "aircraft_json"}, answer)
    assert elements["time_us"].to_pylist() == [1700000000123000]
    assert not malformed


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"<html>", "not JSON"),
        (b"7", "not a list of aircraft"),
        (b'{"now": "soon", "aircraft": []}', "not a list of aircraft"),
        (b'{"aircraft": [{"hex": "abc", "lat": "x", "lon": 1}]}', "position"),
        (b'{"aircraft": [7]}', "aircraft without hex"),
        (b'{"aircraft": [' + b"[" * 600 + b"]" * 600 + b"]}", "aircraft without hex"),
    ],
)
def test_a_wrong_aircraft_document_is_counted(document, reason):
    assert decode_whole({"kind": "aircraft_json"}, document)[1] == {reason: 1}


def test_a_new_document_may_follow_after_finish():
    decoder = make_decoder({"kind": "aircraft_json"}, "s")
    for _ in range(3):
        assert decode(decoder, [AIRCRAFT_JSON[:50], AIRCRAFT_JSON[50:]])[0].num_rows == 2
    assert decode(decoder, [])[0].num_rows == 0


def test_gtfs_realtime_gives_vehicles_with_words_for_codes():
    elements, _ = decode_whole({"kind": "gtfs_realtime"}, GTFS_REALTIME)
    assert elements["key"].to_pylist() == ["1355", "e2"]
    assert elements["time_us"].to_pylist() == [1_700_000_007_000_000, 1_700_000_000_000_000]
    assert properties_of(elements, "1355") == {
        "kind": "vehicle",
        "vehicle_id": "1355",
        "label": "Bus 1355",
        "route_id": "29",
        "speed_mps": 4.5,
        "course_deg": 284.0,
        "current_status": "stopped at",
        "occupancy": "many seats available",
    }
    assert properties_of(elements, "e2") == {"kind": "vehicle", "trip_id": "e2"}


@given(st.floats(0, 2**30, width=32), st.floats(0, 1e9))
@example(12.34567, 123456.78901)
def test_numbers_of_gtfs_realtime_are_those_that_were_written(speed_mps, odometer_m):
    feed = gtfs.FeedMessage()
    feed.ParseFromString(GTFS_REALTIME)
    position = feed.entity[0].vehicle.position
    position.speed, position.odometer, position.bearing = speed_mps, odometer_m, 123.456
    elements, _ = decode_whole({"kind": "gtfs_realtime"}, feed.SerializeToString())
    told = properties_of(elements, "1355")
    # The first two are of single precision: no digit that it has is lost, and none is added.
    assert np.float32(told["speed_mps"]) == np.float32(speed_mps) and told["course_deg"] == 123.456
    assert told["odometer_m"] == odometer_m


def test_what_is_not_a_gtfs_realtime_feed_is_counted():
    assert decode_whole({"kind": "gtfs_realtime"}, b"<html>no</html>")[1] == {"not GTFS-Realtime": 1}


def test_an_aircraft_that_landed_without_an_altitude_leaves_the_one_of_its_flight():
    begin = b"MSG,%d,1,1,4CA849,1,2026/11/27,03:00:00.000,2026/11/27,03:00:00.000,"
    flight = begin % 3 + b",12000,,,60.1,24.9,,,0,0,0,0\n"
    landed = begin % 2 + b",,12,90,60.11,24.91,,,,,,-1\n"
    elements, _ = decode_whole({"kind": "sbs"}, flight + landed)
    assert bounds_of(elements["bounds"])[:, 2].tolist() == [12000 * FOOT_M, 0.0]
    assert "altitude_m" not in properties_of(elements, "4ca849")


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"lat": "60.1", "lon": "24.9", "alt_baro": "12000"}, [24.9, 60.1, 12000 * FOOT_M]),
        ({"lat": 60.1, "lon": 24.9, "alt_baro": "Ground"}, [24.9, 60.1, 0.0]),
        ({"lat": None, "lon": None, "altitude": 0, "lastPosition": {"lat": 60.1, "lon": 24.9}}, [24.9, 60.1, 0.0]),
    ],
)
def test_numbers_of_aircraft_may_be_text_and_absent_ones_null(fields, place):
    document = orjson.dumps({"now": "1700000000.5", "aircraft": [{"hex": "a"} | fields]})
    elements, malformed = decode_whole({"kind": "aircraft_json"}, b"\xef\xbb\xbf" + document)
    assert (bounds_of(elements["bounds"])[:, :3].tolist(), malformed) == ([place], {})
    assert elements["time_us"].to_pylist() == [1_700_000_000_500_000]


@pytest.mark.parametrize(
    ("vehicle", "trip", "key"),
    [
        ({"id": " "}, {"trip_id": "A"}, "A"),
        (
            {},
            {"route_id": "R", "direction_id": 0, "start_date": "20261127", "start_time": "08:00:00"},
            "R 0 20261127 08:00:00",
        ),
        ({"label": "Bus 7"}, {"route_id": "R"}, "Bus 7"),
        ({"license_plate": "AB-1"}, {}, "AB-1"),
    ],
)
def test_a_vehicle_without_an_id_has_the_key_that_its_feed_keeps(vehicle, trip, key):
    feed = gtfs.FeedMessage()
    feed.header.gtfs_realtime_version = "2.0"
    position = {"latitude": 53.5, "longitude": 10.5}
    feed.entity.add(id="1", vehicle={"vehicle": vehicle, "trip": trip, "position": position})
    elements, malformed = decode_whole({"kind": "gtfs_realtime"}, feed.SerializeToString())
    assert (elements["key"].to_pylist(), malformed) == ([key], {})
