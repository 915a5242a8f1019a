"""What real feeds do, and standards do not say: each input stands for a class of them."""

import gzip
import tracemalloc

import orjson
import pytest
from google.transit import gtfs_realtime_pb2 as gtfs
from pyais import encode_dict

from streaming.decoders import make_decoder
from streaming.decoders.ais_sentences import checksum
from tests.decoders.feeds import FEEDS, NOW_US, decode, decode_whole, properties_of

PLACE = {"lon": 4.5, "lat": 52.1, "speed": 0.0, "course": 87.6}
T = 1_764_000_000


def sentence(mmsi="244999001", **message):
    """Return the sentences of a message as one text without line ends."""
    return b"".join(line.encode() for line in encode_dict({"type": 1, "mmsi": mmsi} | PLACE | message))


def ais(feed, **options):
    """Return keys with times in seconds, and the faults by reason."""
    elements, malformed = decode_whole({"kind": "ais"} | options, feed)
    times = [time_us / 1e6 for time_us in elements["time_us"].to_pylist()]
    return list(zip(elements["key"].to_pylist(), times, strict=True)), malformed


def told(feed, key="244999001"):
    return properties_of(decode_whole({"kind": "ais"}, feed)[0], key)


A, B = sentence(), sentence("244999002")
KEY_A, KEY_B = "244999001", "244999002"
BROKEN = b"!AAVDM,0,1,,B,13aaSF@01s0DavNMllFSK2h1P000,0*3C"


@pytest.mark.parametrize(
    ("feed", "times"),
    [
        (A + B, [NOW_US / 1e6, NOW_US / 1e6]),
        (b"\\c:%d*00\\%s\\c:%d*00\\%s" % (T, A, T + 9, B), [T, T + 9]),
        (b"\\s:a,c:%d*00\\\\s:b,c:%d*00\\%s\\c:%d*00\\%s" % (T, T + 1, A, T + 9, B), [T + 1, T + 9]),
        (b"\\c:%d*00\\\r\n\\s:b*00\\%s\r\n\\c:%d*00\\%s\r\n" % (T, A, T + 9, B), [T, T + 9]),
        (b"\\c:%d.25*00\\%s\n\\c:%d*00\\%s" % (T, A, T + 9, B), [T + 0.25, T + 9]),
        (b"%s,d-129,T30.8,r09,%d\n%s,r17,%d\r\n" % (A, T, B, T + 9), [T, T + 9]),
        (b"%s %d\n%s; %d.5\n" % (A, T, B, T + 9), [T, T + 9.5]),
        (b"%s,%d%s,%d" % (A, T, B, T + 9), [T, T + 9]),
        (b"\\1G2:12,c:%d*00\\$AIALR,x*00\n\\2G2:12*00\\%s\n%s" % (T, A, B), [T, T]),
    ],
)
def test_sentences_and_tag_blocks_are_read_in_order_wherever_lines_end(feed, times):
    found, malformed = ais(feed)
    assert found == [(KEY_A, times[0]), (KEY_B, times[1])]
    assert not malformed


@pytest.mark.parametrize(
    "document",
    [
        {"class": "AIS", "nmea": [A.decode(), B.decode()], "rxuxtime": T + 0.5, "timestamp": 34},
        {"msgs": [{"nmea": [A.decode()]}, {"nmea": [B.decode()]}], "rxuxtime": str(T + 0.5)},
        [{"message": A.decode() + "\r\n" + B.decode(), "time": "2025-11-24T16:00:00.5Z"}],
        {"raw": f"\\s:r,c:{T}500*00\\{A.decode()}\\c:{T}500*00\\{B.decode()}", "ts": 1},
    ],
)
def test_sentences_within_json_are_all_found_with_their_time(document):
    text = orjson.dumps(document).replace(b"!", b"\\u0021")
    found, malformed = ais(b"prefix " + text + b"\n")
    assert found == [(KEY_A, T + 0.5), (KEY_B, T + 0.5)]
    assert not malformed
    assert [time for _, time in ais(text, time_source="received")[0]] == [NOW_US / 1e6] * 2


def test_broken_json_still_gives_its_sentences():
    assert [key for key, _ in ais(b'{"nmea":["%s","%s"],"rx' % (A, B))[0]] == [KEY_A, KEY_B]


def wrong_length(part):
    body = b"AIVDM,1,1,,A,%s,0" % part
    return b"!%s*%02X" % (body, checksum(body))


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (BROKEN, "not a sentence"),
        (A[:20], "not a sentence"),
        (A[1:-1], "not a sentence"),
        (b"garbage", "not a sentence"),
        (A[:-2] + b"00", "checksum"),
        (wrong_length(b""), "empty payload"),
        (wrong_length(b"1~~"), "payload characters"),
        (wrong_length(b"13aaSF@01s0"), "payload length"),
        (wrong_length(b"w3aaSF@01s0"), "unknown message type"),
    ],
)
def test_a_broken_sentence_takes_the_time_before_it_with_it(broken, reason):
    announced = b"$PGHP,1,2025,11,24,16,1,40,0,219,,2190067,1,62*26\r\n"
    for before in (b"\\c:%d*00\\" % (T + 100), b"\\c:%d*00\\\r\n" % (T + 100), announced):
        if before == announced and broken == b"garbage":
            continue  # what stands between the two lines need not be the sentence
        found, malformed = ais(b"\\c:%d*00\\%s\n%s%s\n%s\n" % (T, A, before, broken, B))
        assert found == [(KEY_A, T), (KEY_B, T)], before
        assert malformed == {reason: 1}


def test_a_part_beyond_the_total_is_no_sentence():
    body = b"AIVDM,2,3,1,A,13aaSF@01s0DavNMllFSK2h1P000,0"
    assert ais(b"!%s*%02X" % (body, checksum(body)))[1] == {"not a sentence": 1}


@pytest.mark.parametrize("bits", [158, 160, 168])
def test_the_name_of_class_b_may_lack_its_last_bits(bits):
    whole = encode_dict({"type": 24, "mmsi": KEY_A, "partno": 0, "shipname": "CAZADOR"})[0].split(",")[5]
    payload, fill = whole.ljust(28, "0")[: -(-bits // 6)], -bits % 6
    body = b"AIVDM,1,1,,A,%s,%d" % (payload.encode(), fill)
    assert told(b"!%s*%02X\n" % (body, checksum(body)) + A)["name"] == "CAZADOR"


def test_a_coarse_position_does_not_displace_a_fresh_exact_one():
    coarse = sentence(type=27, lon=4.51, lat=52.11, speed=0, course=88, status=5)
    moving = sentence(speed=9.0)
    for exact, fresh_s in ((A, 360), (moving, 60)):
        feeds = [b"\\c:%d*00\\%s\n\\c:%d*00\\%s\n" % (T, exact, T + s, coarse) for s in (3, fresh_s, fresh_s + 1)]
        assert [len(ais(feed)[0]) for feed in feeds] == [1, 1, 2]
    assert told(coarse)["accuracy_m"] == 185.2
    assert told(b"\\c:%d*00\\%s\n\\c:%d*00\\%s" % (T, sentence(type=18), T + 999, coarse)).keys() >= {"ais_class"}
    assert "status" not in told(b"\\c:%d*00\\%s\n\\c:%d*00\\%s" % (T, sentence(type=18), T + 999, coarse))


@pytest.mark.parametrize(
    ("message", "source", "accuracy_m"),
    [
        ({"accuracy": 1, "raim": 0}, "ais", 10.0),
        ({"accuracy": 0, "raim": 0}, "ais", 30.0),
        ({"accuracy": 0, "raim": 1}, "ais", 100.0),
        ({"type": 18, "accuracy": 1, "raim": 1}, "ais", 10.0),
        ({"second": 62, "accuracy": 1}, "ais dead reckoning", None),
        ({"second": 63}, "ais inoperative", None),
    ],
)
def test_a_position_of_ais_says_how_accurate_it_is_and_where_it_comes_from(message, source, accuracy_m):
    properties = told(sentence(**message))
    assert (properties["position_source"], properties.get("accuracy_m")) == (source, accuracy_m)


@pytest.mark.parametrize(
    ("mmsi", "message", "kind", "test"),
    [
        ("970010001", {"status": 14}, "search and rescue transmitter", False),
        ("970010001", {"status": 15}, "search and rescue transmitter", True),
        ("970001234", {"status": 14}, "search and rescue transmitter", True),
        ("972010001", {"status": 14}, "man overboard", False),
        ("974010001", {"status": 15}, "emergency beacon", True),
        ("982440001", {"type": 18}, "auxiliary craft", None),
        ("111244001", {}, "aircraft", None),
        ("002440001", {}, "base station", None),
        ("992440001", {}, "aid to navigation", None),
        ("824412345", {"type": 18}, "handheld radio", None),
        ("024400001", {}, "ship", None),
    ],
)
def test_a_sender_has_the_kind_of_its_number_and_keeps_its_nine_digits(mmsi, message, kind, test):
    properties = told(sentence(mmsi, **message), key=mmsi)
    assert (properties["kind"], properties.get("test")) == (kind, test)


def test_a_beacon_tells_by_its_text_that_it_is_being_tested():
    text = sentence("970010001", type=14, text="SART TEST")
    assert told(text + sentence("970010001", status=0), key="970010001")["test"] is True


def test_a_bad_position_is_malformed_in_every_decoder_unless_the_stream_allows_it():
    line = b"MSG,3,1,1,4CA0AA,1,2026/11/27,04:00:00.000,2026/11/27,04:00:00.050,,5000,,,%s,%s,,,,,,0\n"
    altitude = b"MSG,5,1,1,4CA0AA,1,2026/11/27,04:00:01.000,2026/11/27,04:00:01.050,,6000,,,,,,,,,,0\n"
    feed = gtfs.FeedMessage()
    feed.header.gtfs_realtime_version = "2.0"
    bus = feed.entity.add(id="1").vehicle
    bus.vehicle.id, bus.position.latitude, bus.position.longitude = "bus", 0, 0
    point = b'{"type":"Feature","id":1,"geometry":{"type":"Point","coordinates":%s},"properties":{}}'
    feeds = {
        "ais": sentence(lon=0, lat=0),
        "sbs": line % (b"0.0", b"0.0") + altitude,
        "aircraft_json": b'[{"hex":"4ca0aa","lat":0,"lon":0.0}]',
        "gtfs_realtime": feed.SerializeToString(),
        "geojson": point % b"[0,-0.0]",
        "csv": b"key,time,lon,lat\nk,2026-11-27T00:00:00Z,0,0\n",
    }
    for kind, data in feeds.items():
        elements, malformed = decode_whole({"kind": kind}, data)
        assert (elements.num_rows, malformed) == (0, {"null island": 1}), kind
        assert decode_whole({"kind": kind, "drop_null_island": False}, data)[0].num_rows >= 1
    for kind, data in {"sbs": line % (b"1", b"181"), "geojson": point % b"[181,1]", "ais": sentence(lon=190.0)}.items():
        assert decode_whole({"kind": kind}, data)[1] == {"position out of range": 1}
    assert decode_whole({"kind": "sbs"}, line % (b"53.4", b""))[1] == {"field": 1}
    bus.position.ClearField("longitude")
    assert decode_whole({"kind": "gtfs_realtime"}, feed.SerializePartialToString())[1] == {"no position": 1}


def test_a_shape_may_go_on_beyond_the_antimeridian():
    shape = b'{"type":"LineString","coordinates":[[179,1],[182,2]]}'
    feature = b'{"type":"Feature","id":1,"geometry":%s,"properties":{}}' % shape
    assert decode_whole({"kind": "geojson"}, feature)[0]["bounds"].to_pylist()[0][3] == 182


def vehicles(*told):
    """Return a feed of vehicles, each given as (entity, vehicle id, trip, start date, start time, label)."""
    feed = gtfs.FeedMessage()
    feed.header.gtfs_realtime_version = "2.0"
    for entity, vehicle, trip, date, time, label in told:
        bus = feed.entity.add(id=entity).vehicle
        bus.position.latitude, bus.position.longitude = 53.6, 10.2
        bus.vehicle.id, bus.vehicle.label, bus.trip.trip_id = vehicle, label, trip
        bus.trip.start_date, bus.trip.start_time = date, time
    return feed.SerializeToString()


def test_a_vehicle_is_named_by_its_id_its_trip_or_its_label_and_never_by_its_entity():
    feed = vehicles(
        ("1", "bus1", "A", "20261127", "", "L"),
        ("2", "", "A", "20261127", "", "L"),
        ("3", "", "A", "20261128", "", "L"),
        ("4", "", "A", "20261128", "25:10:00", ""),
        ("5", "", "", "20261128", "", "L"),
        ("6", "", "", "20261128", "", ""),
    )
    elements, malformed = decode_whole({"kind": "gtfs_realtime"}, feed)
    assert elements["key"].to_pylist() == ["bus1", "A 20261127", "A 20261128", "A 20261128 25:10:00", "L"]
    assert malformed == {"vehicle without id": 1}
    assert elements["bounds"].to_pylist()[0][:2] == [10.2, 53.6]


@pytest.mark.parametrize(
    ("fields", "properties"),
    [
        ({"type": "adsb_icao", "nac_p": 9, "rc": 186, "nic": 8}, {"position_source": "adsb", "accuracy_m": 30.0}),
        ({"type": "adsr_other", "nic": 8, "rc": 0}, {"position_source": "adsr", "accuracy_m": 185.2}),
        ({"type": "adsc"}, {"position_source": "adsc"}),
        ({"type": "adsb_icao", "mlat": ["lat", "lon"], "rc": 186}, {"position_source": "mlat"}),
        ({"tisb": ["lat"], "nucp": 7}, {"position_source": "tisb", "accuracy_m": 92.6}),
        ({"altitude": "ground", "vert_rate": -64}, {"on_ground": True, "vertical_rate_mps": -64 * 0.3048 / 60}),
        ({"alt_baro": 1000, "altitude": 5}, {"altitude_m": 304.8, "on_ground": False}),
    ],
)
def test_fields_of_old_and_new_programs_are_read(fields, properties):
    entry = {"hex": "4CA0AA", "lat": 53.4, "lon": -6.2} | fields
    for document in ([entry], {"ac": [entry]}, {"aircraft": [entry], "now": 1.7e9}):
        elements, malformed = decode_whole({"kind": "aircraft_json"}, orjson.dumps(document))
        assert properties.items() <= properties_of(elements, "4ca0aa").items()
        assert "accuracy_m" in properties or "accuracy_m" not in properties_of(elements, "4ca0aa")
        assert not malformed


def test_an_old_position_is_read_with_its_age_and_an_invalid_one_is_none():
    old = {"hex": "4ca0aa", "lastPosition": {"lat": 53.4, "lon": -6.2, "rc": 186, "seen_pos": 70}, "seen": 1}
    none = {"hex": "4ca0ab", "lat": 0, "lon": 0, "validposition": 0}
    elements, malformed = decode_whole({"kind": "aircraft_json"}, orjson.dumps({"now": 1.7e9, "ac": [old, none]}))
    assert elements["time_us"].to_pylist() == [1_699_999_930_000_000]
    assert decode_whole({"kind": "aircraft_json"}, b'{"ac": null, "now": 1700000000123}')[1] == {}
    assert not malformed


def test_lines_of_mlat_and_addresses_that_are_not_of_icao_are_read():
    line = b"%s,3,1,1,%s,1,2026/11/27,04:00:00.000,2026/11/27,04:00:00.050,,5000,,,53.41,-6.21,,,,,,%s"
    lines = [
        line % (b"MLAT", b"4CA0AA", b",7,,84"),
        line % (b"MSG", b"4CA0AA", b"0"),
        line % (b"MLAT", b"~2A4B7C", b""),
    ]
    for end in (b"\r\n", b""):
        elements, malformed = decode_whole({"kind": "sbs"}, end.join(lines))
        assert elements["key"].to_pylist() == ["4ca0aa", "4ca0aa", "~2a4b7c"]
        told = [orjson.loads(text) for text in elements["properties"].to_pylist()]
        assert [row["position_source"] for row in told] == ["mlat", "adsb", "mlat"]
        assert [row.get("accuracy_m") for row in told] == [84, None, None]
        assert not malformed


@pytest.mark.parametrize("name", FEEDS)
def test_an_input_that_is_packed_without_saying_so_gives_the_same(name):
    definition, feed, *_ = FEEDS[name]
    whole, faults = decode_whole(definition, feed)
    half = len(feed) // 2
    for packed in (gzip.compress(feed), gzip.compress(feed[:half]) + gzip.compress(feed[half:]) + b"\0\0"):
        for pieces in ([packed], [packed[i : i + 1] for i in range(len(packed))]):
            elements, malformed = decode(make_decoder(definition, "s"), pieces)
            assert elements.equals(whole)
            assert malformed == faults


def test_a_damaged_or_incomplete_packed_input_is_counted_once_and_the_next_one_is_read():
    decoder = make_decoder({"kind": "ais"}, "s")
    packed = gzip.compress(A + b"\n")
    assert decode(decoder, [packed[:10] + b"\xff" * 30, b"more"])[1] == {"damaged gzip": 1}
    assert decode(decoder, [packed[:-9]])[1] == {"damaged gzip": 1}
    assert decode(decoder, [packed])[0].num_rows == 1


def test_a_small_input_that_is_packed_to_fill_the_memory_is_discarded():
    bomb = gzip.compress(bytes(300_000_000), 9)
    decoder = make_decoder({"kind": "ais"}, "s")
    decode(decoder, [bomb])
    tracemalloc.start()
    _, malformed = decode(decoder, [bomb])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert malformed == {"line too long": 1, "packed too densely": 1}
    assert most < 8_000_000
