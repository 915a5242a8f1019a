"""Bytes end no stream: whatever they make raise is skipped, counted, and the next ones are read."""

import asyncio

import numpy as np
import orjson
import pytest

from bench.live import PATIENCE_S
from streaming.decoders import Decoded
from streaming.decoders.gate import GatedDecoder
from streaming.elements import STORED_ONLY
from streaming.errors import InvalidOptions
from streaming.gateway.config import GatewayConfig
from streaming.gateway.definitions import StreamDefinition, check_definition
from streaming.gateway.elementqueue import ElementQueue
from streaming.gateway.health import MAX_REASONS, StreamHealth
from streaming.gateway.stream import Outlet, RunningStream
from streaming.gateway.transports.base import Chunk, Mark, Replay
from streaming.spaces import EARTH
from tests.gateway.scenes import DECODER, SteppedClock, elements, feature

CONFIG = GatewayConfig(backoff_s=0.01, longest_backoff_s=0.02)
NOW_S = 1_700_000_000


class Scripted:
    """A transport that yields chunks, or raises where an exception stands among them; it goes on where it raised."""

    live, replay = True, None

    def __init__(self, *script):
        self.script = list(script)

    async def chunks(self):
        while self.script:
            step = self.script.pop(0)
            if isinstance(step, Exception):
                raise step
            yield step if isinstance(step, Chunk) else Chunk(payload=step)


def running(transport, **definition):
    """Return a stream that reads from a transport."""
    stream = StreamDefinition("s", "earth", {"kind": "stdin"}, DECODER, **definition)
    queue = ElementQueue(1000, True, asyncio.Event())
    made = RunningStream(stream, Outlet(queue, StreamHealth("earth"), SteppedClock(), CONFIG))
    made.transport = transport
    return made


async def keys(stream):
    """Run a stream to its end; return the keys of its elements."""
    states = []
    enter = stream.outlet.health.enter
    stream.outlet.health.enter = lambda state, error=None: (states.append(state), enter(state, error))
    async with asyncio.timeout(PATIENCE_S):
        await stream.run()
    assert "failed" not in states
    assert states[-1] == "finished"
    queue = stream.outlet.queue
    return queue.take(1000)[0]["key"].to_pylist() if queue.rows else []


async def test_a_transport_that_raises_is_opened_again_and_its_failure_counted():
    script = Scripted(
        feature("a", NOW_S), KeyError("bytes"), feature("b", NOW_S), ValueError("more"), feature("c", NOW_S)
    )
    stream = running(script)
    assert await keys(stream) == ["a", "b", "c"]
    assert stream.outlet.health.malformed == {"transport failed: KeyError": 1, "transport failed: ValueError": 1}


class Falling:
    """A decoder that raises on some bytes, and remembers that it did."""

    options, waiting, noted = None, False, None

    def __init__(self):
        self.broken = False

    def feed(self, data, received_us):
        if self.broken or data == b"bad":
            self.broken = True
            raise ZeroDivisionError
        return Decoded(elements([data.decode()], [received_us]))

    def finish(self, received_us):
        return Decoded(elements([], []))


@pytest.mark.parametrize(
    ("make", "reason"), [(lambda: GatedDecoder(Falling, EARTH), "decoder failed"), (Falling, "input failed")]
)
async def test_a_decoder_that_raises_is_replaced_and_the_next_bytes_are_read(monkeypatch, make, reason):
    monkeypatch.setattr("streaming.gateway.stream.make_decoder", lambda *_: make())
    stream = running(Scripted(b"a", b"bad", b"b", b"bad", b"c"))
    assert await keys(stream) == ["a", "b", "c"]
    assert stream.outlet.health.malformed[f"{reason}: ZeroDivisionError"] == 2
    assert stream.outlet.health.last_malformed[f"{reason}: ZeroDivisionError"]["sample"] == "bad"


async def test_bytes_that_are_none_end_no_stream():
    stream = running(Scripted(Chunk(payload="text"), feature("a", NOW_S)))
    assert await keys(stream) == ["a"]
    assert sum(stream.outlet.health.malformed.values()) == 1


async def test_elements_ahead_of_the_clock_are_malformed_and_freeze_no_object():
    lines = [feature("k", NOW_S), feature("k", 4_000_000_000), feature("k", NOW_S + 299), feature("l", NOW_S + 302)]
    stream = running(Scripted(*lines, feature("k", NOW_S + 1)))
    assert await keys(stream) == ["k", "k", "k"]
    health = stream.outlet.health
    assert health.malformed == {"time ahead of the clock": 2}
    assert health.last_malformed["time ahead of the clock"]["sample"] == "l 2023-11-14T22:18:22.000000Z"


async def test_the_bound_of_times_ahead_can_be_chosen():
    stream = running(Scripted(feature("k", NOW_S + 3), feature("l", NOW_S + 1)), max_ahead_s=2)
    assert await keys(stream) == ["l"]


@pytest.mark.parametrize(("restamp", "expected"), [(True, ["k", "l"]), (False, ["k"])])
async def test_a_replay_that_gives_its_own_times_may_hold_any(restamp, expected):
    script = Scripted(feature("k", NOW_S), feature("l", NOW_S + 10_000))
    script.replay = Replay(0, restamp)
    assert await keys(running(script)) == expected


OLD = [feature("k", NOW_S - 3600), feature("k", NOW_S - 5), feature("l", NOW_S - 11)]


@pytest.mark.parametrize("stored", [False, True])
async def test_reports_that_are_too_old_are_counted_and_stored_only(stored):
    stream = running(Scripted(*OLD), max_age_s=10, stored=stored)
    async with asyncio.timeout(PATIENCE_S):
        await stream.run()
    table, health = stream.outlet.queue.take(1000)[0], stream.outlet.health
    assert health.malformed == {"too old to count as live": 2}
    assert health.last_malformed["too old to count as live"]["sample"] == "l 2023-11-14T22:13:09.000000Z"
    live = (NOW_S - 5) * 1_000_000
    assert table["version"].to_pylist() == ([STORED_ONLY, live, STORED_ONLY] if stored else [live])
    assert live in table["time_us"].to_pylist()


@pytest.mark.parametrize(("restamp", "options"), [(False, {}), (True, {"max_age_s": 10, "stored": True})])
async def test_reports_of_any_age_are_live_without_a_bound_or_with_new_times(restamp, options):
    script = Scripted(*OLD)
    script.replay = Replay(0, restamp)
    stream = running(script, **options)
    assert await keys(stream) == ["k", "k", "l"] and not stream.outlet.health.malformed


@pytest.mark.parametrize(("by_time", "expected"), [(True, ["l", "n", "k", "m"]), (False, ["k", "l", "m", "n"])])
async def test_a_recording_may_be_sorted_by_time_before_it_is_played(by_time, expected):
    lines = [feature(key, NOW_S + time_s) for key, time_s in (("k", -5), ("l", -9), ("m", -4), ("n", -8))]
    script = Scripted(*lines, Chunk(mark=Mark.DOCUMENT_END))
    script.replay = Replay(0, False, by_time)
    assert await keys(running(script)) == expected


@pytest.mark.parametrize(("by_time", "back_s", "told"), [(False, 60, True), (False, 20, False), (True, 60, False)])
async def test_a_recording_that_is_not_sorted_by_time_is_told(by_time, back_s, told):
    script = Scripted(feature("k", NOW_S), feature("l", NOW_S - back_s), Chunk(mark=Mark.DOCUMENT_END))
    script.replay = Replay(0, False, by_time)
    stream = running(script)
    await keys(stream)
    assert ("not sorted by time" in (stream.outlet.health.hint() or "")) is told


@pytest.mark.parametrize("bound", [0, -1, "300", True])
def test_the_bound_of_ages_must_be_positive_if_there_is_one(bound):
    definition = StreamDefinition("s", "earth", {"kind": "stdin"}, DECODER, max_age_s=bound)
    with pytest.raises(InvalidOptions, match="max_age_s must be null or a positive number"):
        check_definition(definition, {"earth": EARTH})


@pytest.mark.parametrize("bound", [0, -1, None, "300", True])
def test_the_bound_of_times_ahead_must_be_positive(bound):
    definition = StreamDefinition("s", "earth", {"kind": "stdin"}, DECODER, max_ahead_s=bound)
    with pytest.raises(InvalidOptions, match="max_ahead_s must be a positive number"):
        check_definition(definition, {"earth": EARTH})


def test_health_can_be_written_whatever_reasons_and_errors_are():
    health = StreamHealth("earth")
    health.enter("retrying", "no file \udcff")
    for number in np.arange(1000):
        health.count_malformed(f"reason {number} \ud800", b"\xff\x00", 0)
    assert len(health.malformed) == MAX_REASONS + 1
    assert sum(health.malformed.values()) == 1000
    assert orjson.dumps(health.document())
