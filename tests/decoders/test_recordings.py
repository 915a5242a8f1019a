"""Real recordings give the figures that are known of them."""

import re

import numpy as np
import orjson
import pytest

from streaming.decoders import make_decoder
from streaming.elements import bounds_of
from streaming.gateway.presets import FLIGHTS_DECODER
from tests.decoders.feeds import decode, decode_whole, read_recording

pytestmark = pytest.mark.recordings

AIS_CSV = {
    "kind": "csv",
    "columns": {"key": "MMSI", "time": "BaseDateTime", "lon": "LON", "lat": "LAT"},
    "properties": {
        "SOG": {"name": "speed_mps", "unit": "knots"},
        "COG": {"name": "course_deg", "unit": "degrees"},
        "Heading": {"name": "heading_deg", "unit": "degrees"},
        "VesselName": "name",
    },
    "null_values": {"Heading": ["511"]},
}
BUSES = {
    "kind": "csv",
    "columns": {"key": "vehicle_id", "time": "timestamp", "lon": "longitude", "lat": "latitude"},
    "properties": {"speed": {"name": "speed_mps", "unit": "mps"}, "route_id": "route_id", "trip_headsign": "headsign"},
    "constants": {"kind": "bus"},
}
FLIGHT_COLUMNS = ["icao24", "timestamp", "longitude", "latitude", "altitude"]
FLIGHT_COLUMNS += ["groundspeed", "track", "vertical_rate", "callsign"]


def keys(elements):
    return len(set(elements["key"].to_pylist()))


def in_pieces(feed, size=65_536):
    return [feed[start : start + size] for start in range(0, len(feed), size)]


@pytest.mark.parametrize(
    ("name", "elements", "placed", "reasons"),
    [
        ("ais-sample.txt.gz", 25_947, 1503, {}),
        ("stream_example.txt.gz", 3127, 1480, {}),
        ("exact-earth-augmented.txt.gz", 2972, 1008, {"unknown message type": 4, "payload length": 3}),
        ("exact-earth-augmented-2.txt", 794, 137, {"payload length": 4}),
        ("nmea-timestamped.txt", 100, 85, {}),
        ("nmea_data_sample.txt", 764, 164, {"empty payload": 100, "incomplete message": 20}),
    ],
)
def test_ais_recordings(shared_data, name, elements, placed, reasons):
    decoded, malformed = decode_whole({"kind": "ais"}, read_recording(shared_data / "ais" / name))
    assert (decoded.num_rows, keys(decoded)) == (elements, placed)
    assert malformed == reasons


def test_the_danish_recording_has_1508_ships_within_its_five_minutes(shared_data):
    decoder = make_decoder({"kind": "ais"}, "ships")
    feed = read_recording(shared_data / "ais" / "ais-sample.txt.gz")
    elements, _ = decode(decoder, in_pieces(feed))
    assert len(decoder.inner.ships) == 1508
    times_us = elements["time_us"].to_numpy()
    assert times_us.min() == 1384257600011000
    assert times_us.max() < 1384257900000000


SIXBIT = {code: f"{code - 48 if code < 88 else code - 56:06b}" for code in (*range(48, 88), *range(96, 120))}
TRANSMITTED = re.compile(rb"!..VD[MO],(\d),(\d),(\d*),([^,]*),([^,]+),\d\*")


def transmitted_types(feed):
    """Return the last type of ship other than 0 that each MMSI transmitted, read by bit positions (ITU-R M.1371-5)."""
    parts, types = {}, {}
    for line in feed.splitlines():
        if not (found := TRANSMITTED.search(line)):
            continue
        count, number, sequence, channel, payload = found.groups()
        gathered = b"" if number == b"1" else parts.pop((count, sequence, channel), b"")
        gathered += payload
        if number != count:
            parts[count, sequence, channel] = gathered
            continue
        bits = "".join(SIXBIT[code] for code in gathered)
        at = {5: 232, 19: 263, 24: 40}.get(int(bits[:6], 2))
        if at is None or len(bits) < at + 8 or (at == 40 and bits[38:40] != "01"):
            continue
        if code := int(bits[at : at + 8], 2):
            types[int(bits[8:38], 2)] = code
    return types


@pytest.mark.parametrize("name", ["ais-sample.txt.gz", "stream_example.txt.gz"])
def test_types_of_ships_are_those_at_their_bit_positions(shared_data, name):
    feed = read_recording(shared_data / "ais" / name)
    decoder = make_decoder({"kind": "ais"}, "ships")
    decode(decoder, in_pieces(feed))
    types = {mmsi: ship["ship_type_code"] for mmsi, ship in decoder.inner.ships.items() if "ship_type_code" in ship}
    assert len(types) > 50
    assert types == transmitted_types(feed)


def test_sbs_recording_has_eleven_aircraft(shared_data):
    feed = read_recording(shared_data / "adsb" / "sbs1.txt")
    decoder = make_decoder({"kind": "sbs"}, "aircraft")
    elements, malformed = decode(decoder, in_pieces(feed))
    assert not malformed
    assert len(decoder.inner._aircraft) == 11
    assert (elements.num_rows, keys(elements)) == (103, 4)


def test_louisville_has_78_vehicles(shared_data):
    feed = read_recording(shared_data / "gtfsrt" / "louisville-positions.pb.bz2")
    elements, malformed = decode_whole({"kind": "gtfs_realtime"}, feed)
    assert (elements.num_rows, keys(elements)) == (78, 78)
    assert not malformed


@pytest.mark.parametrize(
    ("day", "rows", "vehicles"), [("2015-03-07", 44_564, 158), ("2015-09-06", 53_569, 146), ("2016-12-16", 34_501, 279)]
)
def test_austin_buses_lose_no_row(shared_data, day, rows, vehicles):
    feed = read_recording(shared_data / "buses" / f"{day}.csv.gz")
    elements, malformed = decode_whole(BUSES, feed)
    assert (elements.num_rows, keys(elements)) == (rows, vehicles)
    assert rows == len(feed.splitlines()) - 1
    assert not malformed


def test_decoded_ais_has_10631_ships_and_no_heading_of_511(shared_data):
    feed = read_recording(shared_data / "ais" / "AISdata.csv.gz")
    elements, malformed = decode(make_decoder(AIS_CSV, "ships"), in_pieces(feed, 1 << 20))
    assert (elements.num_rows, keys(elements)) == (99_999, 10_631)
    assert not malformed
    assert not any('"heading_deg":511' in text for text in elements["properties"].to_pylist())


def test_swiss_flights_have_842_aircraft_in_three_dimensions(shared_data):
    rows = orjson.loads(read_recording(shared_data / "adsb" / "switzerland.json.gz"))
    cells = [["" if row[name] is None else str(row[name]) for name in FLIGHT_COLUMNS] for row in rows]
    feed = "\n".join(",".join(row) for row in [FLIGHT_COLUMNS, *cells]).encode()
    elements, malformed = decode_whole(FLIGHTS_DECODER | {"time_format": "epoch_ms"}, feed)
    assert (elements.num_rows, keys(elements)) == (139_098, 842)
    assert not malformed
    altitude = bounds_of(elements["bounds"])[:, 2]
    expected = np.array([np.nan if row["altitude"] is None else row["altitude"] * 0.3048 for row in rows])
    assert np.allclose(altitude[np.isfinite(altitude)], expected[~np.isnan(expected)], atol=1e-3)


def test_layers_of_lines_keep_every_feature(shared_data):
    feed = read_recording(shared_data / "layers" / "munchen_roads.geojsonl.gz")
    elements, malformed = decode(make_decoder({"kind": "geojson", "key": "osm_id"}, "roads"), in_pieces(feed))
    assert elements.num_rows == 2884
    assert not malformed
    assert elements["geometry"].null_count == 0
