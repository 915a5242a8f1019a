"""What listeners hold of their clients, and what they count of what they lose."""

import asyncio
import socket
import sys

import pytest

from streaming.gateway.config import GatewayConfig
from streaming.gateway.definitions import StreamDefinition
from streaming.gateway.health import StreamHealth
from streaming.gateway.stream import Outlet, RunningStream
from streaming.gateway.transports import tcp_listener, udp_listener
from streaming.gateway.transports.base import Chunk, Mark
from tests.gateway.scenes import PATIENCE_S, SteppedClock, definition, payload
from tests.gateway.test_transports import collect, opened


async def test_a_client_that_is_silent_is_disconnected_and_one_that_sends_stays():
    async with opened({"kind": "tcp_listener", "port": 0, "idle_s": 0.4}) as (transport, chunks):
        silent, leaving = await asyncio.open_connection("127.0.0.1", transport.port)
        reader, sender = await asyncio.open_connection("127.0.0.1", transport.port)
        ending = asyncio.create_task(silent.read())
        for _ in range(8):
            sender.write(b"a")
            await asyncio.sleep(0.1)
        assert await asyncio.wait_for(ending, PATIENCE_S) == b""
        taken = await collect(chunks, lambda chunks: Mark.SOURCE_GONE in [chunk.mark for chunk in chunks])
        assert not reader.at_eof() and taken[-1].source != taken[0].source
        for writer in (sender, leaving):
            writer.close()


async def test_what_all_clients_have_sent_is_bounded_together_and_nothing_of_it_is_lost(monkeypatch):
    monkeypatch.setattr(tcp_listener, "WAITING_BYTES", 300_000)
    inbox = tcp_listener.ReceivedBytes(tcp_listener.TcpListenerOptions(0))
    monkeypatch.setattr(tcp_listener, "ReceivedBytes", lambda options: inbox)
    async with opened({"kind": "tcp_listener", "port": 0}) as (transport, chunks):
        writers = [(await asyncio.open_connection("127.0.0.1", transport.port))[1] for _ in range(30)]
        for writer in writers:
            writer.write(bytes(100_000))
        await asyncio.sleep(0.3)
        assert 300_000 <= inbox.size < 300_000 + (1 << 16)
        taken = await collect(chunks, lambda chunks: len(payload(chunks)) >= 3_000_000)
        assert len(payload(taken)) == 3_000_000
        for writer in writers:
            writer.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what it dropped")
@pytest.mark.parametrize("documents", [False, True])
async def test_datagrams_that_the_kernel_drops_are_counted(monkeypatch, documents):
    monkeypatch.setattr(udp_listener, "_KERNEL_BYTES", 4096)
    async with opened({"kind": "udp_listener", "port": 0, "documents": documents}) as (transport, chunks):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(200):  # without a turn for the listener
                sender.sendto(b"x" * 1_000, ("127.0.0.1", transport.port))
        taken = await collect(chunks, lambda chunks: _arrived(chunks) + sum(chunk.lost for chunk in chunks) >= 200)
    assert _arrived(taken) + sum(chunk.lost for chunk in taken) == 200
    assert sum(chunk.lost for chunk in taken) > 100


def _arrived(chunks):
    return payload(chunks).count(b"x") // 1_000


def running(config):
    stream = definition("s", {"kind": "tcp_listener", "port": 0})
    outlet = Outlet(None, StreamHealth("earth"), SteppedClock(), config)
    return RunningStream(StreamDefinition("s", "earth", stream["transport"], stream["decoder"]), outlet)


async def test_what_is_lost_is_in_the_streams_health():
    stream = running(GatewayConfig())
    for lost in (3, 0, 4):
        await stream._take(Chunk(lost=lost))
    assert stream.outlet.health.document()["lost"] == 7
    assert stream.outlet.health.malformed == {}


async def test_lines_without_an_end_of_many_clients_are_bounded_together():
    stream = running(GatewayConfig(unfinished_bytes=1_000_000))
    for number in range(100):
        for _ in range(5):
            await stream._take(Chunk(f"client{number}", b"x" * 10_000))
    kept = sum(len(decoder.inner._lines._last._kept) for decoder in stream._decoders.values())
    assert kept <= 1_000_000
    assert stream.outlet.health.malformed["unfinished"] >= 80


async def test_a_client_whose_lines_end_is_not_forgotten_for_others_that_do_not_end():
    stream = running(GatewayConfig(unfinished_bytes=100_000))
    await stream._take(Chunk("good", b"{}\n"))
    good = stream._decoders["good"]
    for number in range(30):
        await stream._take(Chunk(f"client{number}", b"x" * 10_000))
        await stream._take(Chunk("good", b"{}\n"))
    assert stream._decoders["good"] is good
