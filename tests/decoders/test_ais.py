"""AIS: times, parts, static data and codes for what is not available."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyais import encode_dict

from streaming.decoders import make_decoder
from streaming.decoders.ais_sentences import checksum
from streaming.decoders.units import KNOT_MPS
from streaming.elements import bounds_of
from tests.decoders.feeds import AIS, NOW_US, decode, decode_whole, properties_of

POSITION = {"type": 1, "mmsi": "636092048", "lon": 23.8, "lat": 36.9, "speed": 16.2, "course": 19.0, "heading": 21}


def lines(message, **options):
    """Return the sentences of a message as bytes, each with its line end."""
    return [line.encode() + b"\n" for line in encode_dict(message, **options)]


def last(feed, **options):
    """Return time, bounds and properties of the last element of a feed."""
    elements, _ = decode_whole({"kind": "ais"} | options, feed)
    row = elements.to_pylist()[-1]
    return row["time_us"], row["bounds"], properties_of(elements, row["key"])


def test_a_message_gives_position_and_motion_in_si_units():
    time_us, bounds, properties = last(b"".join(lines(POSITION | {"turn": 2.0, "status": 0})))
    assert time_us == NOW_US
    assert bounds[:2] == [23.8, 36.9]
    assert properties == {
        "mmsi": 636092048,
        "ais_class": "A",
        "kind": "ship",
        "speed_mps": 16.2 * KNOT_MPS,
        "course_deg": 19.0,
        "heading_deg": 21,
        "rate_of_turn_deg_per_min": 2.0,
        "status": "under way using engine",
        "accuracy_m": 30.0,
        "position_source": "ais",
    }


def test_codes_for_not_available_give_no_property():
    nothing = {"speed": 102.3, "course": 360.0, "heading": 511, "turn": -128, "status": 15}
    _, _, properties = last(b"".join(lines(POSITION | nothing)))
    assert set(properties) == {"mmsi", "ais_class", "kind", "accuracy_m", "position_source"}


@pytest.mark.parametrize("place", [{"lat": 91.0}, {"lon": 181.0}, {"lat": 91.0, "lon": 181.0}])
def test_a_message_without_a_position_is_well_formed_and_gives_no_element(place):
    elements, malformed = decode_whole({"kind": "ais"}, b"".join(lines(POSITION | place)))
    assert elements.num_rows == 0
    assert not malformed


def test_a_latitude_beyond_the_pole_is_counted():
    _, malformed = decode_whole({"kind": "ais"}, b"".join(lines(POSITION | {"lat": 95.0})))
    assert malformed == {"position out of range": 1}


STATIC = {
    "type": 5,
    "mmsi": "636092048",
    "imo": 9412345,
    "callsign": "A8XY2",
    "shipname": "EVER GIVEN",
    "ship_type": 71,
    "to_bow": 300,
    "to_stern": 99,
    "to_port": 20,
    "to_starboard": 39,
    "draught": 14.5,
    "destination": "ROTTERDAM",
}


def test_static_data_stays_with_the_ship():
    _, _, properties = last(b"".join(lines(STATIC) + lines(POSITION)))
    assert properties["name"] == "EVER GIVEN"
    assert properties["callsign"] == "A8XY2"
    assert properties["imo"] == 9412345
    assert (properties["ship_type"], properties["ship_type_code"]) == ("cargo", 71)
    assert (properties["length_m"], properties["width_m"]) == (399, 59)
    assert properties["to_bow_m"] + properties["to_stern_m"] == 399
    assert properties["to_port_m"] + properties["to_starboard_m"] == 59
    assert (properties["draught_m"], properties["destination"]) == (14.5, "ROTTERDAM")


def armoured(bits):
    """Return the sentence of a message given as a text of 0 and 1."""
    bits += "0" * (-len(bits) % 6)
    values = [int(bits[start : start + 6], 2) for start in range(0, len(bits), 6)]
    payload = bytes(value + 48 if value < 40 else value + 56 for value in values)
    body = b"AIVDM,1,1,,A,%s,0" % payload
    return b"!%s*%02X\n" % (body, checksum(body))


def static_message(kind, code):
    """Return a message with a type of ship: 5, 19 (with a position) or 24 B."""
    lengths, code_at = {5: 424, 19: 312, 24: 168}, {5: 232, 19: 263, 24: 40}[kind]
    bits = f"{kind:06b}00{636092048:030b}" + ("01" if kind == 24 else "")
    bits = bits.ljust(code_at, "0") + f"{code:08b}"
    return armoured(bits.ljust(lengths[kind], "0"))


@pytest.mark.parametrize("kind", [5, 19, 24])
def test_every_type_of_ship_is_the_one_that_was_transmitted(kind):
    decoder = make_decoder({"kind": "ais"}, "s")
    for code in range(1, 256):
        decoder.feed(static_message(kind, code), NOW_US)
        assert decoder.inner.ships[636092048]["ship_type_code"] == code


def test_a_reserved_type_of_ship_has_the_word_of_its_kind():
    words = {78: "cargo", 48: "high-speed craft", 26: "wing in ground", 38: None, 7: None, 199: None}
    for code, word in words.items():
        decoder = make_decoder({"kind": "ais"}, "s")
        decoder.feed(static_message(5, code), NOW_US)
        assert decoder.inner.ships[636092048].get("ship_type") == word


def test_every_status_and_aid_to_navigation_has_its_own_code():
    statuses, aids = set(), set()
    for status in range(16):
        statuses.add(last(b"".join(lines(POSITION | {"status": status})))[2].get("status"))
    for aid in range(32):
        message = {"type": 21, "mmsi": "993692028", "aid_type": aid, "name": "A", "lon": 1.0, "lat": 2.0}
        aids.add(last(b"".join(lines(message)))[2].get("aid_type"))
    assert len(statuses) == 16
    assert len(aids) == 32


def test_empty_static_data_does_not_erase_what_is_known():
    empty = {"type": 5, "mmsi": "636092048"}
    _, _, properties = last(b"".join(lines(STATIC) + lines(empty) + lines(POSITION)))
    assert properties["name"] == "EVER GIVEN"
    assert properties["imo"] == 9412345


def test_static_data_of_class_b_comes_in_two_parts():
    part_a = {"type": 24, "mmsi": "338148873", "partno": 0, "shipname": "CAZADOR"}
    part_b = {
        "type": 24,
        "mmsi": "338148873",
        "partno": 1,
        "ship_type": 37,
        "callsign": "WD1",
        "to_bow": 9,
        "to_stern": 5,
    }
    position = POSITION | {"type": 18, "mmsi": "338148873"}
    _, _, properties = last(b"".join(lines(part_a) + lines(part_b) + lines(position)))
    assert properties["ais_class"] == "B"
    assert (properties["name"], properties["callsign"]) == ("CAZADOR", "WD1")
    assert (properties["ship_type"], properties["length_m"]) == ("pleasure craft", 14)


def test_a_search_and_rescue_aircraft_has_an_altitude():
    message = {"type": 9, "mmsi": "111232511", "alt": 303, "speed": 42, "lon": -6.27, "lat": 58.14, "course": 154.5}
    _, bounds, properties = last(b"".join(lines(message)))
    assert bounds[2] == bounds[5] == 303
    assert (properties["kind"], properties["altitude_m"], properties["speed_mps"]) == ("aircraft", 303, 42 * KNOT_MPS)


def test_aids_to_navigation_and_base_stations_are_positions_too():
    aid = {"type": 21, "mmsi": "993692028", "aid_type": 15, "name": "SF BUOY", "lon": -122.4, "lat": 37.8}
    station = {"type": 4, "mmsi": "003669702", "lon": -76.35, "lat": 36.88}
    elements, _ = decode_whole({"kind": "ais"}, b"".join(lines(aid) + lines(station)))
    assert properties_of(elements, "993692028")["name"] == "SF BUOY"
    assert properties_of(elements, "993692028")["aid_type"] == "beacon channel port hand"
    assert properties_of(elements, "003669702")["kind"] == "base station"


def test_a_long_range_message_is_a_position_in_whole_knots():
    message = {"type": 27, "mmsi": "206914217", "lon": 137.0, "lat": 4.84, "speed": 63, "course": 511, "status": 2}
    _, bounds, properties = last(b"".join(lines(message)))
    assert bounds[:2] == [137.0, 4.84]
    assert properties == {
        "mmsi": 206914217,
        "kind": "ship",
        "status": "not under command",
        "accuracy_m": 185.2,
        "position_source": "ais long range",
    }


def test_each_way_of_telling_the_time_is_understood():
    elements, _ = decode_whole({"kind": "ais"}, AIS)
    # $PGHP line; epoch behind the sentence; tag block; nothing, so the last time that was told.
    assert elements["time_us"].to_pylist() == [
        1384257600011000,
        1328133720087000,
        1420030798000000,
        1420030798000000,
    ]


@pytest.mark.parametrize(
    ("source", "times_us"),
    [
        ("received", [NOW_US] * 4),
        ("appended", [1328133720087000] * 4),
        ("gatehouse", [1384257600011000] * 4),
        ("tag_block", [1420030798000000] * 4),
    ],
)
def test_the_time_source_can_be_chosen(source, times_us):
    feed = AIS.split(b"\n", 2)[2]
    elements, _ = decode_whole({"kind": "ais", "time_source": source}, feed)
    assert elements["time_us"].to_pylist() == times_us


def test_a_tag_block_may_count_milliseconds_and_stand_on_its_own_line():
    sentence = lines(POSITION)[0]
    assert last(b"\\c:1420030798123*00\\" + sentence)[0] == 1420030798123000
    assert last(b"\\c:1420030798*00\\\r\n" + sentence)[0] == 1420030798000000


def test_a_group_of_tag_blocks_shares_the_time_of_its_first():
    sentence = lines(POSITION)[0]
    first = b"\\g:1-2-7,c:1420030798*00\\$ABVSI,r3669961,1,013536.96326433,1386,-98,,*14\n"
    between = b"\\c:1420030900*00\\" + sentence
    elements, malformed = decode_whole({"kind": "ais"}, first + between + b"\\g:2-2-7*00\\" + sentence)
    assert elements["time_us"].to_pylist() == [1420030900000000, 1420030798000000]
    assert not malformed


def test_parts_of_messages_may_interleave_and_come_in_any_order():
    first, second = lines(STATIC, seq_id=1), lines(STATIC | {"mmsi": "219000001", "shipname": "OTHER"}, seq_id=2)
    other = POSITION | {"mmsi": "219000001"}
    feed = first[:1] + second[1:] + first[1:] + second[:1] + lines(POSITION) + lines(other)
    elements, malformed = decode_whole({"kind": "ais"}, b"".join(feed))
    assert properties_of(elements, "636092048")["name"] == "EVER GIVEN"
    assert properties_of(elements, "219000001")["name"] == "OTHER"
    assert not malformed


def test_a_part_that_comes_again_gives_up_the_message_before():
    first = lines(STATIC, seq_id=1)
    decoder = make_decoder({"kind": "ais"}, "s")
    _, malformed = decode(decoder, [first[0], *first], finish=False)
    assert malformed == {"incomplete message": 1}
    assert decoder.inner.ships[636092048]["name"] == "EVER GIVEN"


def test_parts_that_never_meet_the_others_are_counted_and_forgotten():
    decoder = make_decoder({"kind": "ais"}, "s")
    part = b"!AIVDM,2,1,1,%d,55NPDn02>mkiL=WC:20pDU<Nr0400000000000;P2,0*"
    feed = b""
    for channel in range(2000):
        body = part % channel
        feed += body + b"%02X\n" % checksum(body[1:-1])
    _, malformed = decode(decoder, [feed], finish=False)
    assert malformed == {"incomplete message": 2000 - 1024}
    assert decode(decoder, [])[1] == {"incomplete message": 1024}


def test_a_wrong_checksum_is_counted_unless_it_is_accepted():
    bad = lines(POSITION)[0].strip()[:-2] + b"00\n"
    assert decode_whole({"kind": "ais"}, bad)[1] == {"checksum": 1}
    assert decode_whole({"kind": "ais", "check_checksum": False}, bad)[0].num_rows == 1


def test_other_sentences_are_passed_over_and_other_text_is_counted():
    feed = b"$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47\n!AITXT,01,01,91,FREE*2E\nhello\n\n"
    assert decode_whole({"kind": "ais"}, feed)[1] == {"not a sentence": 1}


def test_garbage_before_a_sentence_on_the_same_line_is_skipped():
    assert decode_whole({"kind": "ais"}, b"2013-11-12 12:00 \xff" + lines(POSITION)[0])[0].num_rows == 1


def test_no_more_ships_are_remembered_than_asked_for():
    decoder = make_decoder({"kind": "ais", "max_objects": 2}, "s")
    for mmsi in ("636092041", "636092042", "636092041", "636092043"):
        decoder.feed(b"".join(lines(POSITION | {"mmsi": mmsi})), NOW_US)
    assert list(decoder.inner.ships) == [636092041, 636092043]


def test_a_position_beyond_the_antimeridian_is_wrapped():
    elements, _ = decode_whole({"kind": "ais"}, b"".join(lines(POSITION | {"lon": 180.0})))
    assert bounds_of(elements["bounds"])[0, 0] == -180


@given(st.binary(max_size=300))
def test_the_folded_checksum_is_the_exclusive_or_of_all_bytes(data):
    expected = 0
    for byte in data:
        expected ^= byte
    assert checksum(data) == expected


LINE = b"!BSVDM,1,1,,A,13@:`L001N0ded0O6Fp8wW<00<0t,0*62"
TOLD_US = 1_764_000_100_000_000


@pytest.mark.parametrize(
    "line",
    [
        b"1764000100 %s",
        b"1764000100000;%s;station",
        b"[1764000100.000] %s",
        b"2025-11-24T16:01:40Z\t%s",
        b'"2025-11-24 16:01:40 UTC","%s"',
        b"%s,2025-11-24T18:01:40+02:00",
        b'{"raw": "%s", "received_at": "2025-11-24T16:01:40Z"}',
        b'{"Raw": "%s", "Timestamp": 1764000100},',
    ],
)
def test_a_time_on_the_line_of_a_sentence_is_its_own(line):
    other = line.replace(b"1764000100", b"1764000200").replace(b":01:40", b":03:20") % LINE
    elements, malformed = decode_whole({"kind": "ais"}, line % LINE + b"\n" + other + b"\n")
    assert (elements["time_us"].to_pylist(), malformed) == ([TOLD_US, TOLD_US + 100_000_000], {})


@pytest.mark.parametrize("text", [b"2025-11-24 16:01:40 %s", b"244999001,%s", b"<13>Nov 24 16:01:40 host ais[12]: %s"])
def test_what_may_be_no_time_or_a_local_one_before_a_sentence_is_not_read(text):
    assert decode_whole({"kind": "ais"}, text % LINE)[0]["time_us"].to_pylist() == [NOW_US]


def test_a_time_before_a_broken_sentence_is_given_to_no_other():
    lines = b"1764000100 " + LINE.replace(b"!", b"") + b"\n" + LINE + b"\n"
    elements, malformed = decode_whole({"kind": "ais"}, lines)
    assert (elements["time_us"].to_pylist(), malformed) == ([NOW_US], {"not a sentence": 1})
