"""What the websocket refuses, and whom."""

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator

from bench.live import PATIENCE_S
from tests.webapp.conftest import BOX, HOST, ORIGIN, PLAN, cookie_of, token_of
from webapp.consumers.access import same_site
from webapp.models import Query
from webapp.rights.guesses import BURST

pytestmark = pytest.mark.django_db(transaction=True)

PLANS = {
    "unknown keys": {**PLAN, "colour": "red"},
    "lo above hi": {"stream": "ships", "compare": {"lo": [20, 50], "hi": [10, 60]}},
    "a text for a number": {"stream": "ships", "compare": {"lo": ["a", 50], "hi": [10, 60]}},
    "a rectangle outside of the space": {"stream": "ships", "compare": {"lo": [0, 95], "hi": [1, 99]}},
    "a filter that does not parse": {**PLAN, "where": "speed >>"},
    "no box": {"stream": "ships"},
    "a range that moves without a shape": {"stream": "ships", "around": {"key": "a"}},
    "no neighbours": {"stream": "ships", "kind": "knn", "k": 0, "around": {"key": "a"}},
    "a sum of nothing": {**PLAN, "aggregate": {"function": "sum"}},
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
async def test_a_wrong_plan_gets_its_rule_and_changes_nothing(plan, streams, user, connect):
    async with connect(user) as socket:
        await socket.tell("query.register", id="x", name="wrong", plan=plan)
        error = await socket.hear("error", id="x")
        assert error["code"] == "plan"
        assert error["message"]
        await socket.tell("query.cancel", id="still here", query=1)
        await socket.hear("error", id="still here")
    assert not await Query.objects.aexists()


async def test_an_unknown_stream_is_refused_with_the_known_ones(streams, user, connect):
    async with connect(user) as socket:
        await socket.tell("query.register", id=1, name="x", plan={**PLAN, "stream": "shops"})
        error = await socket.hear("error", id=1)
        assert error["code"] == "stream"
        assert "buses, ships" in error["message"]
        around = {"around": {"key": "a", "stream": "shops", "radius": 5}}
        for plan in (around, {"kind": "knn", "k": 3, "around": {"key": "a", "stream": "shops"}}):
            await socket.tell("query.register", id=3, name="x", plan={"stream": "ships"} | plan)
            error = await socket.hear("error", id=3)
            assert (error["code"], error["message"][:15]) == ("stream", "around: in eart")
            assert "buses, ships; got 'shops'" in error["message"]
        await socket.tell("view.subscribe", id=2, streams=["ships", "shops"], area=BOX)
        await socket.hear("error", id=2, code="stream")
        await socket.silence("view.status")


MESSAGES = {
    "not JSON": ("{", "json"),
    "not an object": ("[]", "json"),
    "NaN": ('{"type": "query.register", "name": "x", "plan": {"a": NaN}}', "json"),
    "too deep": ("[" * 50_000, "json"),
    "an unknown type": ('{"type": "query.destroy"}', "type"),
    "no type": ("{}", "type"),
    "a missing field": ('{"type": "query.cancel"}', "fields"),
    "a field of the wrong kind": ('{"type": "query.cancel", "query": "7"}', "fields"),
    "an unknown field": ('{"type": "query.cancel", "query": 7, "now": true}', "fields"),
    "an unknown format": ('{"type": "query.subscribe", "query": 7, "format": "xml"}', "fields"),
    "an empty name": ('{"type": "query.register", "name": " ", "plan": {}}', "fields"),
    "neither a query nor queries": ('{"type": "query.subscribe"}', "fields"),
    "both a query and queries": ('{"type": "query.subscribe", "query": 7, "queries": [7]}', "fields"),
    "a list with a text": ('{"type": "query.subscribe", "queries": ["7"]}', "fields"),
    "an unknown query": ('{"type": "query.subscribe", "query": 7}', "query"),
}


@pytest.mark.parametrize(("text", "code"), MESSAGES.values(), ids=MESSAGES)
async def test_a_malformed_message_is_an_error_and_the_connection_stays(text, code, user, connect):
    async with connect(user) as socket:
        await socket.send_to(text_data=text)
        assert (await socket.hear("error"))["code"] == code
        await socket.tell("query.cancel", id="still here", query=1)
        await socket.hear("error", id="still here", code="query")


async def test_a_binary_message_is_an_error(user, connect):
    async with connect(user) as socket:
        await socket.send_to(bytes_data=b"\x00\xff")
        await socket.hear("error", code="json")


async def test_a_message_that_is_too_long_ends_the_connection(user, connect):
    async with connect(user) as socket:
        await socket.send_to(text_data=" " * (64 * 1024 + 1))
        assert await socket.closed() == 1009


async def test_a_flood_is_warned_and_then_ended(project, user, connect):
    project.MESSAGES_PER_SECOND, project.MESSAGES_BURST = 0.01, 5
    async with connect(user) as socket:
        for _ in range(110):
            await socket.tell("view.unsubscribe")
        assert (await socket.hear("error"))["code"] == "rate"
        assert await socket.closed() == 1008


async def test_a_user_may_have_so_many_queries(project, streams, user, connect):
    project.MAX_QUERIES_PER_USER = 0
    async with connect(user) as socket:
        await socket.tell("query.register", name="one", plan=PLAN)
        await socket.hear("error", code="limit")


async def opening(headers, path="/ws/monitor/", client=("127.0.0.1", 5000)):
    """Open the websocket; return what the server first says."""
    from webapp.asgi import application

    socket = WebsocketCommunicator(application, path, headers)
    socket.scope["client"] = client
    await socket.send_input({"type": "websocket.connect"})
    first = await socket.receive_output(10)
    if first["type"] == "websocket.accept":
        first = await socket.receive_output(10)
    await socket.send_input({"type": "websocket.disconnect", "code": 1000})
    await socket.wait(PATIENCE_S)
    return first


async def test_a_browser_with_a_login_may_enter(user):
    assert '"hello"' in (await opening(await sync_to_async(cookie_of)(user)))["text"]


async def test_a_program_with_a_token_may_enter(user):
    secret = await sync_to_async(token_of)(user)
    assert '"hello"' in (await opening([(b"authorization", f"Token {secret}".encode())]))["text"]
    assert '"hello"' in (await opening([], f"/ws/monitor/?token={secret}"))["text"]


async def test_another_site_may_not_enter_with_the_users_cookie_or_token(user):
    cookie = (await sync_to_async(cookie_of)(user))[0]
    elsewhere = (b"origin", b"http://evil.example")
    token = (b"authorization", f"Token {await sync_to_async(token_of)(user)}".encode())
    for header in (cookie, token):
        assert (await opening([header, elsewhere]))["type"] == "websocket.close"


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://localhost:9000", "localhost:8000"),
        ("https://localhost:8000", "localhost:8000"),
        ("http://127.0.0.1:8000", "localhost:8000"),
        ("http://localhost", "localhost:8000"),
        ("http://localhost:x", "localhost:8000"),
        ("http://evil.example", "evil.example"),
        ("null", "localhost:8000"),
        ("http://localhost:8000", ""),
    ],
)
async def test_a_page_of_another_scheme_host_or_port_may_not_enter(origin, host, user):
    cookie = (await sync_to_async(cookie_of)(user))[0]
    headers = [cookie, (b"origin", origin.encode()), (b"host", host.encode())]
    assert (await opening(headers))["type"] == "websocket.close"


def test_the_port_of_a_scheme_need_not_be_said():
    for scheme, origin in (("ws", b"http://localhost"), ("wss", b"https://localhost:443")):
        assert same_site(scheme, {b"origin": origin, b"host": b"localhost"}, ["localhost"])


async def test_an_address_may_try_some_wrong_tokens_and_programs_that_were_let_in_still_may(user):
    async def trying(token):
        return await opening([(b"authorization", b"Token " + token)], client=("10.0.0.7", 5000))

    good = (await sync_to_async(token_of)(user)).encode()
    assert '"hello"' in (await trying(good))["text"]
    guesses = [(await trying(b"guess%d" % n))["code"] for n in range(BURST + 1)]
    assert guesses == [4401] * BURST + [4429]
    assert (await trying(b"guess1"))["code"] == 4401, "one that goes on with the same costs nothing"
    assert '"hello"' in (await trying(good))["text"]


async def test_without_an_origin_a_cookie_does_not_count(user):
    cookie = (await sync_to_async(cookie_of)(user))[0]
    assert (await opening([cookie]))["code"] == 4401


async def test_strangers_and_wrong_tokens_are_turned_away(user):
    assert (await opening([ORIGIN, HOST]))["code"] == 4401
    assert (await opening([(b"authorization", b"Token wrong")]))["code"] == 4401
    user.is_active = False
    secret = await sync_to_async(token_of)(user)
    await user.asave()
    assert (await opening([(b"authorization", f"Token {secret}".encode())]))["code"] == 4401


async def test_only_shared_queries_are_seen_by_others_and_only_the_owner_changes_them(
    engine, streams, user, other, staff, connect
):
    async with connect(user) as mine, connect(other) as theirs, connect(staff) as roots:
        await mine.tell("query.register", id=1, name="mine", plan=PLAN)
        number = (await mine.hear("query.status", id=1))["query"]
        await theirs.tell("query.subscribe", id=1, query=number)
        await theirs.hear("error", id=1, code="query")
        await mine.tell("query.edit", query=number, shared=True)
        seen = await theirs.hear("query.status", query=number)
        assert (seen["mine"], seen["owner"], seen["shared"]) == (False, "ann", True)
        await theirs.tell("query.subscribe", query=number)
        await theirs.hear("answer.snapshot", query=number)
        for kind in ("query.cancel", "query.edit"):
            await theirs.tell(kind, id=kind, query=number)
            await theirs.hear("error", id=kind, code="owner")
        await mine.tell("query.edit", query=number, shared=False)
        ended = await theirs.hear("query.status", query=number, status="cancelled")
        assert ended["error"] == "no longer shared"
        await theirs.tell("query.snapshot", id=3, query=number)
        await theirs.hear("error", id=3, code="query")
        await roots.tell("query.cancel", id=4, query=number)
        await roots.hear("query.status", id=4, status="cancelled")
