import asyncio
import bz2
import gzip
import os
from contextlib import asynccontextmanager

import aiohttp.web
import pytest

from bench.ports import free_port
from streaming.errors import InvalidOptions
from streaming.gateway.transports import make_transport, transport_kinds
from streaming.gateway.transports.base import Chunk, Mark, Transport, TransportError
from streaming.gateway.transports.stdin import Stdin
from streaming.gateway.transports.udp_listener import Mailbox
from tests.descriptors import many_open
from tests.gateway.scenes import PATIENCE_S, first, payload

VALID = {
    "file": {"path": "feeds/a"},
    "tcp_client": {"host": "localhost", "port": 1},
    "tcp_listener": {"port": 0},
    "udp_listener": {"port": 0},
    "http_poll": {"url": "http://feed.example/"},
    "pipe": {"path": "feeds/a"},
    "stdin": {},
    "simulator": {"fleet": "ships"},
}


@asynccontextmanager
async def serving(answer):
    """Serve HTTP on loopback; yield the address."""
    application = aiohttp.web.Application()
    application.router.add_get("/feed", answer)
    runner = aiohttp.web.AppRunner(application)
    await runner.setup()
    port = free_port()
    await aiohttp.web.TCPSite(runner, "127.0.0.1", port).start()
    yield f"http://127.0.0.1:{port}/feed"
    await runner.cleanup()


@asynccontextmanager
async def opened(definition):
    """Open a transport that listens; yield it and its chunks after the first."""
    transport = make_transport(definition)
    chunks = transport.chunks()
    await anext(chunks)
    yield transport, chunks
    await chunks.aclose()


async def collect(chunks, wanted):
    """Return the chunks until they satisfy `wanted`."""
    taken = []
    async with asyncio.timeout(PATIENCE_S):
        while not wanted(taken):
            taken.append(await anext(chunks))
    return taken


def has(content):
    return lambda chunks: content in payload(chunks)


@pytest.mark.parametrize("kind", sorted(VALID))
def test_every_kind_makes_a_transport_from_its_options(kind):
    assert isinstance(make_transport({"kind": kind} | VALID[kind]), Transport)


def test_the_kinds_are_known():
    assert set(VALID) <= set(transport_kinds())


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("file", "a transport must be an object"),
        ({"kind": "pigeon"}, "kind must be one of file, .*; got 'pigeon'"),
        ({"kind": ["file"]}, "kind must be one of"),
        ({"kind": "file"}, "needs the option path"),
        ({"kind": "file", "path": "a", "sped": 1}, "options of the transport file are path, .*; got sped"),
        ({"kind": "file", "path": "a", "speed": -1}, "speed must lie in"),
        ({"kind": "file", "path": "a", "speed": float("nan")}, "speed must be finite"),
        ({"kind": "file", "path": "a", "loop": 1}, "loop must be of type bool"),
        ({"kind": "file", "path": ""}, "path must name a file"),
        ({"kind": "tcp_client", "host": "h", "port": 0}, r"port must lie in \[1, 65535\]; got 0"),
        ({"kind": "tcp_client", "host": "h", "port": True}, "port must be of type int"),
        ({"kind": "udp_listener", "port": 70_000}, "port must lie in"),
        ({"kind": "tcp_listener", "port": 1, "clients": 0}, "clients must be at least 1"),
        ({"kind": "http_poll", "url": "ftp://h/"}, "url must begin with http"),
        ({"kind": "http_poll", "url": "http://h/", "interval_s": 0}, "interval_s must lie in"),
        ({"kind": "http_poll", "url": "http://h/", "headers": {"a": 1}}, "headers must be texts"),
        ({"kind": "pipe", "path": ""}, "path must name a pipe"),
        ({"kind": "simulator", "fleet": "whales"}, "fleet must be one of ships, buses; got 'whales'"),
        ({"kind": "simulator", "fleet": "ships", "count": 0}, "count must lie in"),
    ],
)
def test_options_that_break_a_rule_are_refused_by_name(definition, message):
    with pytest.raises(InvalidOptions, match=message):
        make_transport(definition)


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
async def test_a_file_is_read_whole_whatever_its_packing(tmp_path, suffix, pack):
    content = os.urandom(300_000)
    path = tmp_path / f"recording{suffix}"
    path.write_bytes(pack(content))
    chunks = await first(make_transport({"kind": "file", "path": str(path)}), lambda chunks: False)
    assert payload(chunks) == content
    assert chunks[-1].mark is Mark.DOCUMENT_END
    assert max(len(chunk.payload) for chunk in chunks) <= 1 << 16


async def test_a_looping_file_begins_anew_after_a_mark(tmp_path):
    path = tmp_path / "recording"
    path.write_bytes(b"abc")
    transport = make_transport({"kind": "file", "path": str(path), "loop": True})
    chunks = await first(transport, lambda chunks: payload(chunks) == b"abcabcabc")
    assert [chunk.mark for chunk in chunks if chunk.mark is not Mark.BYTES] == [Mark.LAP_END] * 2


async def test_a_recording_that_was_cut_short_is_an_error_after_what_is_readable(tmp_path):
    path = tmp_path / "recording.gz"
    path.write_bytes(gzip.compress(os.urandom(200_000))[:-1_000])
    seen = []
    with pytest.raises(TransportError, match="must be whole"):
        await first(make_transport({"kind": "file", "path": str(path)}), lambda chunks: seen.append(chunks[-1]))
    assert len(payload(seen)) > 100_000


async def test_an_empty_file_is_not_looped(tmp_path):
    path = tmp_path / "recording"
    path.touch()
    with pytest.raises(TransportError, match="is empty"):
        await first(make_transport({"kind": "file", "path": str(path), "loop": True}), lambda chunks: False)


async def test_a_tcp_client_reads_until_its_server_leaves_and_reports_that():
    async def serve(reader, writer):
        writer.write(b"abc")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    seen = []
    with pytest.raises(TransportError, match="closed the connection"):
        transport = make_transport({"kind": "tcp_client", "host": "127.0.0.1", "port": port})
        await first(transport, lambda chunks: seen.append(chunks[-1]))
    server.close()
    assert payload(seen) == b"abc"
    assert seen[-1].mark is Mark.DOCUMENT_END


async def test_a_tcp_server_that_falls_silent_is_left():
    left = asyncio.Event()

    async def serve(reader, writer):
        await reader.read()
        writer.close()
        left.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(TransportError, match=r"silent for 0\.05 s"):
        transport = make_transport({"kind": "tcp_client", "host": "127.0.0.1", "port": port, "idle_s": 0.05})
        await first(transport, lambda chunks: False)
    await asyncio.wait_for(left.wait(), PATIENCE_S)
    server.close()


async def test_a_tcp_listener_keeps_its_clients_apart():
    async with opened({"kind": "tcp_listener", "port": 0}) as (transport, chunks):
        writers = [(await asyncio.open_connection("127.0.0.1", transport.port))[1] for _ in range(2)]
        for writer, word in zip(writers, (b"one", b"two"), strict=True):
            writer.write(word)
        sent = await collect(chunks, lambda chunks: len(payload(chunks)) == 6)
        for writer in writers:
            writer.close()
        gone = await collect(chunks, lambda chunks: len(chunks) == 2)
    assert {chunk.payload for chunk in sent} == {b"one", b"two"}
    assert {chunk.source for chunk in sent} == {chunk.source for chunk in gone}
    assert {chunk.mark for chunk in gone} == {Mark.SOURCE_GONE}


async def test_a_tcp_listener_turns_away_clients_beyond_its_limit():
    async with opened({"kind": "tcp_listener", "port": 0, "clients": 1}) as (transport, chunks):
        _, kept = await asyncio.open_connection("127.0.0.1", transport.port)
        kept.write(b"a")
        await collect(chunks, has(b"a"))
        reader, turned_away = await asyncio.open_connection("127.0.0.1", transport.port)
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        kept.write(b"b")
        await collect(chunks, has(b"b"))
        kept.close()
        turned_away.close()


async def test_a_tcp_listener_that_closes_lets_its_clients_go():
    async with opened({"kind": "tcp_listener", "port": 0}) as (transport, chunks):
        reader, writer = await asyncio.open_connection("127.0.0.1", transport.port)
        writer.write(b"a")
        await collect(chunks, has(b"a"))
    assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
    writer.close()


async def send_datagrams(port, datagrams):
    loop = asyncio.get_running_loop()
    sender, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=("127.0.0.1", port))
    for datagram in datagrams:
        sender.sendto(datagram)
    sender.close()


async def test_a_datagram_is_completed_to_a_line():
    async with opened({"kind": "udp_listener", "port": 0}) as (transport, chunks):
        await send_datagrams(transport.port, [b"one", b"two\n", b"three"])
        assert payload(await collect(chunks, has(b"three\n"))) == b"one\ntwo\nthree\n"


async def test_a_datagram_may_be_a_document():
    async with opened({"kind": "udp_listener", "port": 0, "documents": True}) as (transport, chunks):
        await send_datagrams(transport.port, [b"one", b"two"])
        sent = await collect(chunks, lambda chunks: len(chunks) == 2)
    assert [(chunk.payload, chunk.mark) for chunk in sent] == [
        (b"one", Mark.DOCUMENT_END),
        (b"two", Mark.DOCUMENT_END),
    ]


def test_datagrams_that_nobody_took_are_counted(monkeypatch):
    monkeypatch.setattr("streaming.gateway.transports.udp_listener._WAITING_BYTES", 10)
    mailbox = Mailbox()
    for number in range(5):
        mailbox.datagram_received(b"1234%d" % number, ("127.0.0.1", 1))
    chunk = mailbox.take_lines()
    assert (chunk.payload, chunk.lost) == (b"12340\n12341\n", 3)
    mailbox.datagram_received(b"again", ("127.0.0.1", 1))
    assert mailbox.take_lines() == Chunk(payload=b"again\n")


async def test_a_poll_asks_only_for_what_is_new():
    asked = []

    async def answer(request):
        asked.append(dict(request.headers))
        if request.headers.get("If-None-Match") == '"1"' and len(asked) < 4:
            return aiohttp.web.Response(status=304)
        document = aiohttp.web.Response(body=b"document", headers={"ETag": '"1"', "Last-Modified": "yesterday"})
        document.enable_compression(aiohttp.web.ContentCoding.gzip)
        return document

    async with serving(answer) as url:
        definition = {"kind": "http_poll", "url": url, "interval_s": 0.01, "headers": {"X-User": "Lookout"}}
        chunks = await first(make_transport(definition), lambda chunks: len(chunks) == 4)
    assert [chunk.payload for chunk in chunks] == [b"document", b"", b"", b"document"]
    assert chunks[0].mark is Mark.DOCUMENT_END
    assert "If-None-Match" not in asked[0]
    assert "gzip" in asked[0]["Accept-Encoding"]
    assert {asked[1][name] for name in ("If-None-Match", "If-Modified-Since", "X-User")} == {
        '"1"',
        "yesterday",
        "Lookout",
    }


async def test_a_poll_that_is_refused_reports_the_answer():
    async def answer(request):
        return aiohttp.web.Response(status=503)

    async with serving(answer) as url:
        with pytest.raises(TransportError, match="must answer 200 or 304; got 503"):
            await first(make_transport({"kind": "http_poll", "url": url}), lambda chunks: False)


async def test_a_poll_that_nobody_answers_reports_the_address():
    url = f"http://127.0.0.1:{free_port()}/feed"
    with pytest.raises(TransportError, match=url):
        await first(make_transport({"kind": "http_poll", "url": url}), lambda chunks: False)


async def test_a_document_beyond_the_bound_is_refused(monkeypatch):
    monkeypatch.setattr("streaming.gateway.transports.http_poll._BODY_BYTES", 1_000)

    async def answer(request):
        return aiohttp.web.Response(body=b"x" * 2_000)

    async with serving(answer) as url:
        with pytest.raises(TransportError, match="must not exceed 1000 bytes"):
            await first(make_transport({"kind": "http_poll", "url": url}), lambda chunks: False)


async def test_a_pipe_is_opened_again_after_its_last_writer(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    async with opened({"kind": "pipe", "path": str(path)}) as (_, chunks):
        for word in (b"one", b"two"):
            await asyncio.to_thread(path.write_bytes, word)
            assert payload(await collect(chunks, lambda taken: taken and taken[-1].mark is Mark.DOCUMENT_END)) == word


async def test_a_pipe_must_be_one(tmp_path):
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(TransportError, match="must name a pipe"):
        await first(make_transport({"kind": "pipe", "path": str(path)}), lambda chunks: False)


@pytest.mark.parametrize("source", ["pipe", "file"])
async def test_standard_input_is_read_to_its_end_whatever_it_is(tmp_path, source):
    (tmp_path / "input").write_bytes(b"abc")
    with many_open():
        if source == "pipe":
            descriptor, end = os.pipe()
            os.write(end, b"abc")
            os.close(end)
        else:
            descriptor = os.open(tmp_path / "input", os.O_RDONLY)
        chunks = await first(Stdin({"kind": "stdin"}, descriptor), lambda chunks: False)
        os.close(descriptor)
    assert payload(chunks) == b"abc"
    assert chunks[-1].mark is Mark.DOCUMENT_END


async def test_the_simulator_speaks_once_each_step():
    definition = {"kind": "simulator", "fleet": "buses", "count": 5, "step_s": 0.02}
    chunks = await first(make_transport(definition), lambda chunks: len(chunks) == 3)
    assert [chunk.payload.count(b"\n") for chunk in chunks] == [5, 5, 5]
    assert len({chunk.payload for chunk in chunks}) == 3


async def test_a_listener_that_is_cancelled_while_it_opens_leaves_its_port_free():
    for rounds in range(8):
        port = free_port()
        opening = asyncio.create_task(first(make_transport({"kind": "tcp_listener", "port": port}), len))
        for _ in range(rounds):
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        (await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", port)).close()


async def test_a_file_must_not_be_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TransportError, match="must name a file"):
        await first(make_transport({"kind": "file", "path": str(tmp_path / "pipe")}), len)
