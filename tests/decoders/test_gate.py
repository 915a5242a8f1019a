"""What leaves a decoder is sound, whichever decoder, and whatever it is fed with."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pytest
import shapely
from google.transit import gtfs_realtime_pb2 as gtfs

from streaming.decoders import Decoded, Malformed
from streaming.decoders.gate import GatedDecoder
from streaming.decoders.options import Options
from streaming.decoders.soundness import sound
from streaming.elements import box_elements, element_schema, point_elements
from streaming.spaces import EARTH
from tests.decoders.feeds import FEEDS, GTFS_REALTIME, NOW_US, decode_whole, properties_of
from tests.decoders.fuzz import DOCUMENTS, FUZZED, fuzz
from tests.decoders.oracle import check_elements

DOCS = (Path(__file__).parents[2] / "docs" / "decoders.md").read_text()
POINT = [[24.9, 60.1, 3.0]]


def element(key="k", time_us=NOW_US, place=POINT, properties=None):
    return point_elements("s", [key], [time_us], place, [properties or {"speed_mps": 1.5}])


def with_column(name, column, table=None):
    table = element() if table is None else table
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(name), column)


def texts(*values):
    return pa.array(values, pa.string())


def raw_texts(data):
    """Return a column of one text that nobody checked."""
    return pa.StringArray.from_buffers(1, pa.array([0, len(data)], pa.int32()).buffers()[1], pa.py_buffer(data))


def bounds(*box):
    return pa.FixedSizeListArray.from_arrays(pa.array(box, pa.float64()), 6)


INF, NAN = float("inf"), float("nan")
SHAPED = box_elements("s", ["k"], [NOW_US], np.array([[0, 0, -INF, 1, 1, INF]]), [{}], [shapely.Point(0, 0).wkb])
UNSOUND = {
    "no key": (with_column("key", texts("")), "key missing or too long"),
    "long key": (element(key="x" * 1001), "key missing or too long"),
    "NUL in the key": (element(key="a\0b"), "NUL character"),
    "time before 1970": (element(time_us=-1), "time out of range"),
    "time after 2200": (element(time_us=1 << 62), "time out of range"),
    "version": (with_column("version", pa.array([-(1 << 63)])), "time out of range"),
    "NaN": (with_column("bounds", bounds(NAN, 0, 0, NAN, 0, 0)), "position out of range"),
    "lo above hi": (with_column("bounds", bounds(0, 1, 0, 0, 0, 0)), "position out of range"),
    "latitude": (with_column("bounds", bounds(0, 91, 0, 0, 91, 0)), "position out of range"),
    "longitude": (with_column("bounds", bounds(0, 0, 0, 541, 0, 0)), "position out of range"),
    "half a circle": (with_column("bounds", bounds(0, 0, 0, INF, 0, 0)), "position out of range"),
    "beyond infinity": (with_column("bounds", bounds(0, INF, 0, 0, INF, 0)), "position out of range"),
    "altitude": (element(place=[[24.9, 60.1, 1e306]]), "position out of range"),
    "geometry": (with_column("geometry", pa.array([b"abc"], pa.binary()), SHAPED), "unsound geometry"),
    "empty geometry": (with_column("geometry", pa.array([shapely.Point().wkb]), SHAPED), "unsound geometry"),
    "infinite geometry": (with_column("geometry", pa.array([shapely.Point(0, INF).wkb]), SHAPED), "unsound geometry"),
    "infinite height": (with_column("geometry", pa.array([shapely.Point(0, 0, INF).wkb]), SHAPED), "unsound geometry"),
    "inf": (with_column("properties", texts('{"a":inf}')), "unsound properties"),
    "too large a number": (with_column("properties", texts('{"a":1e999}')), "unsound properties"),
    "not an object": (with_column("properties", texts("[1]")), "unsound properties"),
    "lone surrogate": (with_column("properties", texts('{"a":"\\ud800"}')), "unsound properties"),
    "NUL in a value": (element(properties={"a": ["x", {"b": "\0"}]}), "NUL character"),
    "NUL in a name": (element(properties={"a\0": 1}), "NUL character"),
    "long name": (element(properties={"a" * 1001: 1}), "properties too large"),
    "long value": (element(properties={"a": "x" * 10_001}), "properties too large"),
    "many": (element(properties={f"n{number}": 1 for number in range(1001)}), "properties too large"),
    "large": (element(properties={f"n{number}": "x" * 1000 for number in range(101)}), "properties too large"),
    "deep": (with_column("properties", texts('{"a":' + "[" * 40 + "]" * 40 + "}")), "properties too large"),
    "no text": (with_column("key", raw_texts(b"caf\xe9")), "not elements"),
    "no text in properties": (with_column("properties", raw_texts(b'{"a":"caf\xe9"}')), "not elements"),
    "no key at all": (with_column("key", pa.nulls(1, pa.string())), "not elements"),
    "another table": (pa.table({"key": ["k"]}), "not elements"),
    "no table": ([1, 2], "not elements"),
}


@pytest.mark.parametrize("name", UNSOUND)
def test_an_unsound_element_becomes_malformed_with_its_reason(name):
    elements, reason = UNSOUND[name]
    passed = sound(Decoded(elements), EARTH)
    assert [fault.reason for fault in passed.malformed] == [reason]
    assert passed.elements.equals(element_schema(EARTH).empty_table())


@pytest.mark.parametrize("name", [name for name in UNSOUND if UNSOUND[name][1] != "not elements"])
def test_sound_elements_beside_an_unsound_one_pass(name):
    unsound, reason = UNSOUND[name]
    passed = sound(Decoded(pa.concat_tables([element("a"), unsound, SHAPED])), EARTH)
    assert passed.elements.equals(pa.concat_tables([element("a"), SHAPED]))
    assert [fault.reason for fault in passed.malformed] == [reason]


def test_what_is_sound_passes_unchanged():
    words = {"a": 'say "\\u0000"', "b": [1, {"c": None}], "é": "\x01 ☃", "d": "x" * 5000, "e": -0.0}
    table = pa.concat_tables([element(properties=words), element(place=[[180.0, -90.0]]), SHAPED])
    passed = sound(Decoded(table), EARTH)
    assert passed.elements is table
    assert not passed.malformed


def test_reasons_and_samples_of_any_decoder_can_be_written_anywhere():
    faults = (Malformed("a\0\ud800" + "x" * 200, b"y" * 1000), Malformed("plain", b"bytes"))
    passed = sound(Decoded(element(), faults), EARTH)
    assert len(passed.malformed[0].reason) == 100
    assert "\0" not in passed.malformed[0].reason
    assert orjson.dumps([fault.reason for fault in passed.malformed])
    assert [len(fault.sample) for fault in passed.malformed] == [200, 5]


@dataclass(frozen=True)
class NoOptions(Options):
    """None."""


class Falling:
    """A decoder of somebody else, which counts its calls, and raises on some bytes."""

    options = NoOptions

    def __init__(self):
        self.calls = 0

    def feed(self, data, received_us):
        self.calls += 1
        if data == b"bad":
            raise KeyError("what")
        return Decoded(element(f"{data.decode()}{self.calls}"))

    def finish(self, received_us):
        return None


def test_a_decoder_that_raises_loses_that_input_alone_and_begins_anew():
    decoder = GatedDecoder(Falling, EARTH)
    decoded = [decoder.feed(data, NOW_US) for data in (b"a", b"a", b"bad", b"a")] + [decoder.finish(NOW_US)]
    assert [part.elements["key"].to_pylist() for part in decoded] == [["a1"], ["a2"], [], ["a1"], []]
    assert [fault for part in decoded for fault in part.malformed] == [
        Malformed("decoder failed: KeyError", b"bad"),
        Malformed("decoder failed: AttributeError", b""),
    ]


def row(value, unit):
    options = {"kind": "csv", "properties": {"v": {"name": "v", "unit": unit}}, "time_format": "epoch_s"}
    return decode_whole(options, f"key,time,lon,lat,v\nk,1700000000,1,2,{value}\nl,1700000000,1,2,1\n".encode())


@pytest.mark.parametrize("unit", ["km", "knots", "number", "feet"])
@pytest.mark.parametrize("value", ["1e306", "-1e308", "1.7e308", "1e400", "inf", "nan"])
def test_a_number_that_is_too_large_is_absent_and_the_rest_is_there(unit, value):
    elements, malformed = row(value, unit)
    assert elements["key"].to_pylist() == ["k", "l"]
    assert not malformed
    check_elements(elements, EARTH)
    assert "v" in properties_of(elements, "l")


@pytest.mark.parametrize("name", ["sbs", "aircraft_json"])
def test_a_speed_of_1e308_knots_does_not_stop_a_decoder(name):
    definition, feed, count, _ = FEEDS[name]
    numbers = {"sbs": (b"451.0", b"1e308"), "aircraft_json": (b'"gs":440.0', b'"gs":1.7e308')}[name]
    assert numbers[0] in feed
    elements, _ = decode_whole(definition, feed.replace(*numbers))
    assert elements.num_rows == count
    check_elements(elements, EARTH)


@pytest.mark.parametrize(
    ("row", "part", "name", "left"), [(0, "vehicle", "label", "e2"), (1, "trip", "start_date", "1355")]
)
def test_a_text_that_is_no_utf8_costs_its_own_vehicle_alone(row, part, name, left):
    feed = gtfs.FeedMessage()
    feed.ParseFromString(GTFS_REALTIME)
    setattr(getattr(feed.entity[row].vehicle, part), name, "Cafe Bus")
    elements, malformed = decode_whole({"kind": "gtfs_realtime"}, feed.SerializeToString().replace(b"Cafe", b"Caf\xe9"))
    assert elements["key"].to_pylist() == [left]
    assert malformed == {"encoding": 1}


@pytest.mark.parametrize("place", [NAN, INF, -INF])
def test_numbers_of_gtfs_realtime_that_are_not_finite_are_absent(place):
    feed = gtfs.FeedMessage()
    feed.ParseFromString(GTFS_REALTIME)
    feed.entity[0].vehicle.position.speed = place
    elements, _ = decode_whole({"kind": "gtfs_realtime"}, feed.SerializeToString())
    assert "speed_mps" not in properties_of(elements, "1355")


# Fewer of the feeds that are one document, for each is a call of its own.
@pytest.mark.parametrize("name", FUZZED)
@pytest.mark.seeds(12)
def test_no_mutated_input_raises_or_gives_anything_unsound(name, seed):
    counts = fuzz(name, 50 if name in DOCUMENTS else 500, seed)
    reasons = {reason for reason in counts if reason != "elements"}
    assert not {reason for reason in reasons if f"`{reason}`" not in DOCS}
