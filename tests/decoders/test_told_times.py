"""In a feed that tells times, elements before the first told one wait for it, and none is inherited for too long."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.live import PATIENCE_S
from streaming.decoders import make_decoder, told_times
from streaming.decoders.told_times import INHERITED_US, MOST_WAITING, WAIT_US
from streaming.gateway.clock import Clock
from streaming.gateway.config import GatewayConfig
from streaming.gateway.definitions import StreamDefinition
from streaming.gateway.elementqueue import ElementQueue
from streaming.gateway.health import StreamHealth
from streaming.gateway.stream import Outlet, RunningStream
from streaming.gateway.transports.base import Chunk
from tests.decoders.feeds import NOW_US, cut, decode, decode_whole, read_recording
from tests.decoders.test_ais import POSITION, lines
from tests.draws import examples

AIS = {"kind": "ais"}
TOLD = b"$PGHP,1,2013,11,12,12,0,0,11,219,,2190067,1,62*26\n"
TOLD_US = 1384257600011000


def message(mmsi="636092048"):
    return lines(POSITION | {"mmsi": mmsi})[0]


def times(decoded):
    return decoded.elements["time_us"].to_pylist()


def stale(elements):
    """Return how many elements are older than the newest known one of their object when they come."""
    newest, count = {}, 0
    for key, version in zip(elements["key"].to_pylist(), elements["version"].to_pylist(), strict=True):
        count += version < newest.get(key, version)
        newest[key] = max(version, newest.get(key, version))
    return count


@pytest.mark.recordings
def test_a_recording_that_begins_without_times_leaves_no_element_stale(shared_data):
    feed = read_recording(shared_data / "ais" / "stream_example.txt.gz")
    elements, _ = decode_whole(AIS | {"time_source": "appended"}, feed)
    assert elements.num_rows == 3127
    assert NOW_US not in elements["time_us"].to_pylist()
    assert stale(elements) == 0


@pytest.mark.recordings
def test_thousands_of_elements_wait_for_the_first_time_that_is_told(shared_data):
    recorded = read_recording(shared_data / "ais" / "ais-sample.txt.gz").split(b"\n")
    feed = [line for number, line in enumerate(recorded) if number > 6000 or not line.startswith(b"$PGHP")]
    elements, _ = decode_whole(AIS, b"\n".join(feed))
    assert elements.num_rows == 25_947
    assert elements["time_us"].to_numpy().max() < 1384257900000000
    assert stale(elements) <= 1  # the first told time is not the earliest: this recording is out of order


@examples(30)
@given(places=st.lists(st.integers(0, 2000), max_size=8), told_at=st.integers(0, 12))
def test_any_cut_of_a_feed_that_tells_its_times_late_gives_the_same(places, told_at):
    feed = [message(f"6360920{number:02}") for number in range(12)]
    feed.insert(told_at, TOLD)
    elements, _ = decode(make_decoder(AIS, "s"), cut(b"".join(feed), places))
    whole, _ = decode_whole(AIS, b"".join(feed))
    assert elements.equals(whole)
    assert set(whole["time_us"].to_pylist()) == ({TOLD_US} if told_at < 12 else {NOW_US})


def test_elements_wait_for_seconds_and_then_bear_their_times_of_arrival():
    decoder = make_decoder(AIS, "s")
    assert times(decoder.feed(message(), NOW_US)) == []
    assert decoder.waiting
    assert times(decoder.feed(message(), NOW_US + WAIT_US)) == []
    assert times(decoder.feed(b"", NOW_US + WAIT_US + 1)) == [NOW_US, NOW_US + WAIT_US]
    assert not decoder.waiting
    assert times(decoder.feed(message(), NOW_US + WAIT_US + 2)) == [NOW_US + WAIT_US + 2]
    assert times(decoder.feed(TOLD + message(), NOW_US + WAIT_US + 3)) == [TOLD_US]


def test_no_more_than_a_number_of_elements_wait():
    decoder = make_decoder(AIS, "s")
    assert times(decoder.feed(message() * MOST_WAITING, NOW_US)) == []
    assert times(decoder.feed(message(), NOW_US)) == [NOW_US] * (MOST_WAITING + 1)


def test_a_told_time_is_not_inherited_for_longer_than_a_minute():
    decoder = make_decoder(AIS, "s")
    assert times(decoder.feed(TOLD + message(), NOW_US)) == [TOLD_US]
    assert times(decoder.feed(message(), NOW_US + INHERITED_US)) == [TOLD_US]
    late_us = NOW_US + INHERITED_US + 1
    assert times(decoder.feed(message(), late_us)) == []
    assert times(decoder.feed(TOLD + message(), late_us)) == [TOLD_US, TOLD_US]
    later_us = late_us + INHERITED_US + 1
    assert times(decoder.feed(message(), later_us)) == []
    assert times(decoder.feed(b"", later_us + WAIT_US + 1)) == [later_us]


def test_the_end_of_the_input_ends_the_waiting_and_forgets_the_time():
    decoder = make_decoder(AIS, "s")
    assert times(decoder.feed(message(), NOW_US)) == []
    assert times(decoder.finish(NOW_US + 1)) == [NOW_US]
    assert times(decoder.feed(TOLD + message(), NOW_US)) == [TOLD_US]
    decoder.finish(NOW_US)
    assert times(decoder.feed(message(), NOW_US)) == []


def test_nothing_waits_where_times_are_those_of_arrival():
    decoder = make_decoder(AIS | {"time_source": "received"}, "s")
    assert times(decoder.feed(message() + TOLD + message(), NOW_US)) == [NOW_US, NOW_US]


@pytest.mark.parametrize(
    "line", [b"$PGHP,1,9999,1,1,0,0,0,0,x", b"$PGHP,1,0001,1,1,0,0,0,0,x", b"$PGHP,1,2013,2,31,0,0,0,0,x"]
)
def test_a_time_line_without_a_good_time_is_counted_and_tells_none(line):
    elements, malformed = decode_whole(AIS, line + b"\n" + message())
    assert elements["time_us"].to_pylist() == [NOW_US]
    assert malformed == {"time": 1}


def sbs(ident, moment):
    """Return a line of SBS-1 with a position."""
    return f"MSG,3,1,1,{ident},1,{moment},{moment},,40025,,,48.4,9.7,,,,,,0\n".encode()


@examples(30)
@given(places=st.lists(st.integers(0, 500), max_size=8))
def test_lines_of_sbs_without_a_time_wait_for_one_or_inherit_it(places):
    feed = sbs("A955D1", ",") + sbs("A955D2", ",") + sbs("A955D1", "2022/09/23,11:27:16.635") + sbs("A955D2", ",")
    elements, malformed = decode(make_decoder({"kind": "sbs"}, "s"), cut(feed, places))
    assert elements["key"].to_pylist() == ["a955d1", "a955d2", "a955d1", "a955d2"]
    assert set(elements["time_us"].to_pylist()) == {1663932436635000}
    assert not malformed
    assert decode_whole({"kind": "sbs"}, sbs("A955D1", "2022/09/23,"))[1] == {"time": 1}


class Quiet:
    """A live feed that sends one message and then nothing."""

    live, replay = True, None

    async def chunks(self):
        yield Chunk(payload=message())
        await asyncio.sleep(60)


async def test_an_element_of_a_feed_that_fell_silent_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(told_times, "WAIT_US", 100_000)
    monkeypatch.setattr("streaming.gateway.stream._TICK_S", 0.05)
    queue = ElementQueue(1000, True, asyncio.Event())
    stream = RunningStream(
        StreamDefinition("s", "earth", {"kind": "stdin"}, AIS),
        Outlet(queue, StreamHealth("earth"), Clock(), GatewayConfig()),
    )
    stream.transport = Quiet()
    running = asyncio.create_task(stream.run())
    async with asyncio.timeout(PATIENCE_S):
        await queue.filled.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert queue.take(10)[0]["key"].to_pylist() == ["636092048"]
