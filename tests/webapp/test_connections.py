"""How many connections a user and an address may have, in all web processes together."""

import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.utils import translation
from django.utils.translation import gettext

from bench.ports import free_port
from streaming.keys import CONNECTIONS_KEY
from tests.webapp.conftest import PATIENCE_S, Socket, token_of
from webapp.consumers import leases
from webapp.consumers.counted import CROWDED
from webapp.consumers.leases import LEASES, Leases, Limit

DOCS = Path(__file__).parents[2] / "docs"


def limit(most, of="user:1"):
    return Limit(of, most, CROWDED, f"at most {most}")


async def opened(stack, user, address=None):
    """Open the websocket; return the code and the reason with which it is closed, or None if it stays open."""
    from webapp.asgi import application

    secret = await sync_to_async(token_of)(user)
    socket = Socket(application, "/ws/monitor/", [(b"authorization", f"Token {secret}".encode())])
    if address:
        socket.scope["client"] = [address, 5000]
    accepted, _ = await socket.connect(timeout=PATIENCE_S)
    assert accepted
    stack.push_async_callback(socket.disconnect, timeout=PATIENCE_S)
    first = await socket.receive_output(PATIENCE_S)
    return (first["code"], first["reason"]) if first["type"] == "websocket.close" else None


async def test_a_user_has_at_most_so_many_connections_and_others_are_not_touched(user, other, project):
    project.USER_CONNECTIONS = 2
    async with AsyncExitStack() as stack:
        assert [await opened(stack, user) for _ in range(2)] == [None, None]
        refused = await opened(stack, user)
        assert refused == (CROWDED, "a user may have at most 2 connections at once; got one more")
        assert await opened(stack, other) is None
    async with AsyncExitStack() as stack:
        assert [await opened(stack, user) for _ in range(2)] == [None, None]


async def test_an_address_has_at_most_so_many_connections_of_all_users_together(user, other, project):
    project.ADDRESS_CONNECTIONS = 2
    async with AsyncExitStack() as stack:
        assert await opened(stack, user, "2001:db8::1") is None
        assert await opened(stack, other, "2001:db8::2") is None  # of the same network
        refused = await opened(stack, other, "2001:db8::3")
        assert refused == (CROWDED, "an address may have at most 2 connections at once; got one more")
        assert await opened(stack, other, "2001:db8:0:1::1") is None
        assert await opened(stack, other) is None  # a socket of this machine has no address


async def test_zero_is_any_number(user, project):
    project.USER_CONNECTIONS = project.ADDRESS_CONNECTIONS = 0
    async with AsyncExitStack() as stack:
        assert [await opened(stack, user, "10.0.0.1") for _ in range(3)] == [None] * 3
        assert not {f"user:{user.pk}", "address:10.0.0.1"} & LEASES._held.keys()


def test_the_bound_holds_over_all_processes(project, redis_client):
    one, two = Leases(), Leases()
    assert [web.take(name, [limit(2)]) for web, name in ((one, "a"), (two, "b"))] == [None, None]
    assert one.take("c", [limit(2)]) == two.take("d", [limit(2)]) == limit(2)
    two.give_back("b", [limit(2)])
    assert one.take("e", [limit(2)]) is None and two.take("f", [limit(2)]) == limit(2)
    for web in (one, two):
        for name in "ae":
            web.give_back(name, [limit(2)])


def test_what_is_refused_by_one_limit_is_counted_by_none(project, redis_client):
    web, limits = Leases(), [limit(9), limit(0, "address:10.0.0.1")]
    assert web.take("a", limits) == limits[1]
    assert not web._held and not redis_client.keys(CONNECTIONS_KEY.format(of="*"))


def test_connections_of_a_process_that_died_are_soon_counted_no_more(project, redis_client, monkeypatch):
    monkeypatch.setattr(leases, "COUNTED_S", 0.3)
    dead, alive = Leases(), Leases()
    monkeypatch.setattr(dead, "_renewed", lambda held: True)  # as if it were not there
    assert dead.take("a", [limit(1)]) is None
    deadline_s = time.monotonic() + PATIENCE_S
    while alive.take("b", [limit(1)]) is not None:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    dead.give_back("a", [limit(1)])
    alive.give_back("b", [limit(1)])


def test_connections_that_stay_open_stay_counted_also_if_redis_lost_them(project, redis_client, monkeypatch):
    monkeypatch.setattr(leases, "COUNTED_S", 1.0)
    web, key = Leases(), CONNECTIONS_KEY.format(of="user:1")
    assert web.take("a", [limit(1)]) is None
    first = redis_client.zscore(key, "a")
    redis_client.delete(key)
    deadline_s = time.monotonic() + PATIENCE_S
    while (redis_client.zscore(key, "a") or 0) <= first:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    assert Leases().take("b", [limit(1)]) == limit(1)
    web.give_back("a", [limit(1)])
    assert not redis_client.exists(key)


def test_while_redis_is_away_each_process_counts_its_own_and_then_the_bound_of_all_holds(
    project, redis_client, monkeypatch
):
    monkeypatch.setattr(leases, "COUNTED_S", 1.0)
    one, two = Leases(), Leases()
    there, project.REDIS_URL = project.REDIS_URL, f"redis://127.0.0.1:{free_port()}/0"
    assert one.take("a", [limit(1)]) is None and one.take("b", [limit(1)]) == limit(1)
    assert two.take("c", [limit(1)]) is None
    project.REDIS_URL = there
    deadline_s = time.monotonic() + PATIENCE_S
    while redis_client.zcard(CONNECTIONS_KEY.format(of="user:1")) < 2:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    assert one.take("d", [limit(2)]) == limit(2)
    one.give_back("a", [limit(1)])
    two.give_back("c", [limit(1)])


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_reasons_are_as_short_as_a_close_frame_needs(language):
    with translation.override(language):
        for rule in (
            gettext("a user may have at most %(most)s connections at once; got one more"),
            gettext("an address may have at most %(most)s connections at once; got one more"),
            gettext("at most %(share_connections)s people may use this link at once; try again later"),
        ):
            assert len((rule % {"most": 10**6, "share_connections": 10**6}).encode()) <= 123


def test_the_settings_and_the_code_are_documented():
    from webapp import settings

    operations = (DOCS / "operations.md").read_text()
    for name, value in (
        ("LOOKOUT_USER_CONNECTIONS", settings.USER_CONNECTIONS),
        ("LOOKOUT_ADDRESS_CONNECTIONS", settings.ADDRESS_CONNECTIONS),
    ):
        assert f"| `{name}` | `{value}` |" in operations
        assert name in (DOCS / "websocket-api.md").read_text()
    assert f"with {CROWDED} if" in (DOCS / "websocket-api.md").read_text()
