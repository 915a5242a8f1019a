"""What feeds may reach: files below allowed folders, public hosts, and what the operator allows besides."""

import asyncio
import bz2
import gzip
from pathlib import Path

import aiohttp.web
import pytest

from streaming.errors import InvalidOptions
from streaming.gateway.access import FeedAccess
from streaming.gateway.transports import http_poll, make_transport
from streaming.gateway.transports.base import TransportError
from tests.gateway.scenes import first
from tests.gateway.test_transports import serving
from tests.stopwatch import Stopwatch

SECRET = b"a secret key"


@pytest.fixture
def home(tmp_path):
    """A state folder with a secret, a folder for feeds, and a recording in it."""
    home = tmp_path / "home"
    (home / "feeds").mkdir(parents=True)
    (home / "secret_key").write_bytes(SECRET)
    (home / "feeds" / "recording").write_bytes(b"abc")
    return home


def access_to(home, *folders, hosts=()):
    return FeedAccess(home, tuple(home / folder for folder in folders or ("feeds",)), hosts)


def file(path, kind="file"):
    return {"kind": kind, "path": str(path)}


@pytest.mark.parametrize("kind", ["file", "pipe"])
@pytest.mark.parametrize("path", ["secret_key", "feeds/../secret_key", "/etc/passwd", "feeds", "..", "a\0b"])
def test_files_and_pipes_elsewhere_are_refused_when_a_stream_is_made(home, kind, path):
    if path == "feeds":
        (home / "feeds" / "inner").symlink_to("../secret_key")
        path = "feeds/inner"
    with pytest.raises(InvalidOptions, match="path must l"):
        make_transport(file(path, kind), access_to(home))


async def test_a_file_below_an_allowed_folder_is_read_by_its_path_in_the_state_folder(home):
    chunks = await first(make_transport(file("feeds/recording"), access_to(home)), lambda chunks: False)
    assert b"".join(chunk.payload for chunk in chunks) == b"abc"


@pytest.mark.parametrize("kind", ["file", "pipe"])
async def test_a_path_that_leads_elsewhere_by_now_is_not_opened(home, kind):
    path = home / "feeds" / "later"
    transport = make_transport(file(path, kind), access_to(home))
    path.symlink_to(home / "secret_key")
    with pytest.raises(TransportError, match="path must lie below a folder of LOOKOUT_FEED_DIRS"):
        await first(transport, lambda chunks: False)


def test_an_allowed_folder_around_the_state_folder_gives_no_secrets_away(home):
    (home.parent / "recording").touch()
    access = FeedAccess(home, (home.parent,))
    assert access.file("../recording") == (home.parent / "recording").resolve()
    for path in ("secret_key", "feeds/recording"):
        with pytest.raises(InvalidOptions, match="path must lie below"):
            access.file(path)
    assert access.file("samples/flights.csv.gz")


INSIDE = [
    *("127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "100.64.0.1"),
    *("[::1]", "[::ffff:127.0.0.1]", "[fe80::1]", "[fd00::1]", "[ff02::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
    *("localhost", "feed.localhost", "LOCALHOST."),
]


@pytest.mark.parametrize("host", INSIDE)
def test_addresses_that_are_not_public_are_refused_when_a_stream_is_made(host):
    with pytest.raises(InvalidOptions, match="a host must be public, or allowed by LOOKOUT_FEED_HOSTS"):
        make_transport({"kind": "http_poll", "url": f"http://{host}/"}, FeedAccess())


@pytest.mark.parametrize("host", ["169.254.169.254", "0.0.0.0", "224.0.0.1", "fe80::1", "::ffff:169.254.169.254"])
def test_a_tcp_client_may_connect_nearby_but_not_to_addresses_for_special_use(host):
    make_transport({"kind": "tcp_client", "host": "localhost", "port": 30003}, FeedAccess())
    make_transport({"kind": "tcp_client", "host": "192.168.1.4", "port": 30003}, FeedAccess())
    with pytest.raises(InvalidOptions, match="a host must be public or local"):
        make_transport({"kind": "tcp_client", "host": host, "port": 80}, FeedAccess())


async def asked(url, hosts):
    transport = make_transport({"kind": "http_poll", "url": url}, FeedAccess(hosts=hosts))
    return await first(transport, len)


@pytest.fixture
def names(monkeypatch):
    """Let every name be at 127.0.0.1, as a DNS of an attacker does."""

    async def resolve(self, host, port=0, family=0):
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": 2, "proto": 0, "flags": 0}]

    monkeypatch.setattr(http_poll.aiohttp.ThreadedResolver, "resolve", resolve)


async def test_a_poll_connects_to_no_address_inside_whatever_the_name(names):
    reached = []

    async def answer(request):
        reached.append(request)
        return aiohttp.web.Response(body=b"x")

    async with serving(answer) as url:
        outside = url.replace("127.0.0.1", "rebound.example")
        with pytest.raises(TransportError, match="a host must be public"):
            await asked(outside, ())
        assert reached == []
        assert (await asked(outside, ("rebound.example",)))[0].payload == b"x"
        assert (await asked(outside, ("127.0.0.0/8",)))[0].payload == b"x"


@pytest.mark.parametrize("target", ["http://127.0.0.1:{port}/feed", "http://other.example:{port}/feed"])
async def test_a_poll_follows_no_redirect_inside(names, target):
    reached = []

    async def answer(request):
        if request.host.startswith("first"):
            raise aiohttp.web.HTTPFound(target.format(port=request.url.port))
        reached.append(request)
        return aiohttp.web.Response(body=b"x")

    async with serving(answer) as url:
        with pytest.raises(TransportError, match="a host must be public"):
            await asked(url.replace("127.0.0.1", "first.example"), ("first.example",))
        assert reached == []


async def test_a_tcp_client_connects_to_no_address_of_special_use_whatever_the_name(monkeypatch):
    async def resolved(host, port, **_):
        return [(2, 1, 6, "", ("169.254.169.254", port))]

    transport = make_transport({"kind": "tcp_client", "host": "rebound.example", "port": 80}, FeedAccess())
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved)
    with pytest.raises(TransportError, match="a host must be public or local"):
        await first(transport, lambda chunks: False)


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
async def test_a_file_that_unpacks_to_far_more_than_a_recording_is_refused_within_seconds(tmp_path, suffix):
    path = tmp_path / f"bomb{suffix}"
    zeros = bytes(64 << 20)
    path.write_bytes({".gz": gzip.compress, ".bz2": bz2.compress}[suffix](zeros) * 40)
    watch = Stopwatch()
    seen = []
    transport = make_transport({"kind": "file", "path": str(path), "speed": 0})
    with pytest.raises(TransportError, match="must not unpack to more than 200 times its size"):
        await first(transport, lambda chunks: seen.append(len(chunks[-1].payload)))
    assert watch.seconds() < 5
    assert sum(seen) < 64 << 20


async def test_a_recording_that_packs_well_is_read_whole(tmp_path):
    rows = b"".join(b"%d,24.%04d,60.1,ship,passenger\n" % (number, number % 9999) for number in range(1_000_000))
    path = tmp_path / "recording.csv.gz"
    path.write_bytes(gzip.compress(rows, 1))
    transport = make_transport({"kind": "file", "path": str(path), "speed": 0})
    assert sum(len(chunk.payload) for chunk in await first(transport, lambda chunks: False)) == len(rows)


async def test_a_device_is_no_file():
    transport = make_transport({"kind": "file", "path": "/dev/zero"}, FeedAccess(folders=(Path("/dev"),)))
    with pytest.raises(TransportError, match="must name a file"):
        await first(transport, len)
