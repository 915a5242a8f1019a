"""Spaces beside the built-in one: in the database, in the admin, on the websocket."""

import json

import pytest
from channels.db import database_sync_to_async
from django.db.models import ProtectedError
from django.urls import reverse

from streaming.keys import LogNames
from streaming.spaces import EARTH, parse_space, space_document
from tests.entries import control_entries
from tests.webapp.conftest import INSIDE, PLAN, Rig, settled
from webapp import layers, tasks
from webapp.bus.definitions import republish
from webapp.bus.liveness import WEBS_KEY, retire_views, views_key, web_id
from webapp.models import Event, Layer, Query, Space, Stream
from webapp.models.spaces import spaces_by_name
from webapp.queries import queries
from webapp.words.refusals import Refused

pytestmark = pytest.mark.django_db(transaction=True)

DEFINITION = {"dimensions": [{"name": "price", "unit": "USD", "lo": 0, "hi": 10_000}]}
PRICES = parse_space({"name": "prices", **DEFINITION})
ABOVE = {"stream": "shares", "compare": {"lo": [100], "hi": [None]}, "where": "symbol = 'Apple'"}
CSV = {"coordinates": ["price"], "properties": {"symbol": "symbol"}}


@pytest.fixture
def prices(transactional_db):
    """Make a space with a stream."""
    space = Space.objects.create(name="prices", title="Prices", definition=DEFINITION)
    Stream.objects.create(name="shares", title="Shares", space=space, transport="stdin", decoder="csv")
    return space


@pytest.fixture
def exchange(redis_client, tmp_path):
    """Run the engine of the prices."""
    with Rig(redis_client, tmp_path / "prices", PRICES) as rig:
        yield rig


@pytest.fixture
def site(client, staff):
    """Return a browser in which the administrator has logged in."""
    client.force_login(staff)
    return client


def test_the_built_in_space_is_there_from_the_first_migration(transactional_db):
    assert spaces_by_name() == {"earth": EARTH}


def test_a_query_follows_objects_of_its_space_alone(prices, streams):
    around = {"key": "a", "radius": 5}
    plan = queries.checked_plan({"stream": "ships", "around": around | {"stream": "buses"}})
    assert plan["around"]["stream"] == "buses"
    with pytest.raises(Refused, match="in prices, stream must be one of shares; got 'ships'"):
        queries.checked_plan({"stream": "shares", "around": around | {"stream": "ships"}})
    aggregate = {"aggregate": {"function": "count"}, "around": around | {"stream": "shares"}}
    with pytest.raises(Refused, match="in earth, stream must be one of buses, ships; got 'shares'"):
        queries.checked_plan({"stream": "ships"} | aggregate)


def test_spaces_are_published_as_they_come_and_go(prices, redis_client):
    published = redis_client.hgetall("lookout:spaces")
    assert parse_space(published[b"prices"]) == PRICES
    redis_client.hset("lookout:spaces", "gone", published[b"prices"])
    redis_client.hdel("lookout:spaces", "prices")
    republish()
    assert set(redis_client.hgetall("lookout:spaces")) == {b"earth", b"prices"}
    Stream.objects.all().delete()
    prices.delete()
    assert set(redis_client.hgetall("lookout:spaces")) == {b"earth"}


def test_a_stream_and_its_time_to_live_go_to_the_engine_of_its_space(prices, redis_client):
    assert json.loads(redis_client.hget("lookout:streams", "shares"))["space"] == "prices"
    entries = control_entries(redis_client, "prices")
    assert [entry["op"] for entry in entries] == ["stream"]
    Stream.objects.get().delete()
    entries = control_entries(redis_client, "prices")
    assert entries[-1] == {"op": "drop_stream", "stream": "shares"}
    assert not redis_client.exists(LogNames("earth").control)


def test_a_query_that_is_deleted_ends_in_the_engine_of_its_space(prices, user, redis_client):
    query = Query.objects.create(owner=user, name="q", plan=ABOVE, stream="shares", space=prices)
    number = query.pk
    query.delete()
    entries = control_entries(redis_client, "prices")
    assert {"op": "cancel", "query": number}.items() <= entries[-1].items()


async def test_a_range_query_over_prices_gives_plus_and_minus_and_events(prices, exchange, user, connect):
    async with connect(user) as socket:
        hello = await socket.hear("hello")
        assert [(space["name"], space["geographic"]) for space in hello["spaces"]] == [
            ("earth", True),
            ("prices", False),
        ]
        assert [(stream["name"], stream["space"]) for stream in hello["streams"]] == [("shares", "prices")]
        await socket.tell("query.register", id=1, name="Apple above 100", plan=ABOVE)
        registered = await socket.hear("query.status", id=1)
        assert (registered["space"], registered["plan"]["compare"]) == ("prices", {"lo": [100.0], "hi": [None]})
        number = registered["query"]
        await socket.tell("query.subscribe", query=number)
        assert (await socket.hear("answer.snapshot", query=number))["rows"] == []
        for price, sign in ((99.0, None), (100.0, "+"), (250.0, "~"), (99.5, "-")):
            exchange.move({"AAPL": [price]}, "shares", properties={"symbol": "Apple"})
            exchange.move({"MSFT": [price]}, "shares", properties={"symbol": "Microsoft"})
            if sign:
                (row,) = (await socket.hear("answer.change", query=number))["rows"]
                told = [row[name] for name in ("sign", "key", "bounds", "lon", "lat")]
                assert told == [sign, "AAPL", [price, price], None, None]
        for space in ("earth", "prices"):
            await socket.hear("engine.status", space=space)
        assert await database_sync_to_async(tasks.record_events)() == 2
    events = Event.objects.order_by("pk").values_list("sign", "key", "bounds", "lon")
    assert [event async for event in events] == [("+", "AAPL", [100, 100], None), ("-", "AAPL", [99.5, 99.5], None)]


@pytest.mark.long
async def test_a_space_that_comes_while_a_client_listens_is_told_of_and_one_that_goes_no_more(user, connect):
    async with connect(user) as socket:
        await socket.hear("engine.status", space="earth")
        space = await Space.objects.acreate(name="prices", definition=DEFINITION)
        await socket.hear("engine.status", space="prices")
        await space.adelete()
        await socket.hear("engine.status", space="earth")
        heard = {(await socket.hear("engine.status"))["space"] for _ in range(3)}
        assert heard == {"earth"}


async def test_spaces_and_streams_that_come_change_and_go_while_a_client_listens_are_told_of(user, connect):
    async with connect(user) as socket, connect(user) as other:
        assert (await socket.hear("hello"))["streams"] == []
        space = await Space.objects.acreate(name="prices", title="Prices", definition=DEFINITION)
        told = await socket.hear("stream.list")
        assert told["spaces"][1] == {"title": "Prices", "geographic": False, **space_document(PRICES)}
        stream = await Stream.objects.acreate(name="shares", title="Shares", space=space, transport="stdin")
        for listener in (socket, other):
            while not (told := await listener.hear("stream.list"))["streams"]:
                pass
            assert told["streams"] == [stream.summary()]
        stream.title, stream.enabled = "Dear shares", False
        await stream.asave()
        assert (await socket.hear("stream.list"))["streams"] == [stream.summary()]
        await stream.adelete()
        assert (await socket.hear("stream.list"))["streams"] == []
        await space.adelete()
        assert [known["name"] for known in (await socket.hear("stream.list"))["spaces"]] == ["earth"]


async def test_what_changed_while_redis_was_away_is_told_once_it_is_back(streams, user, connect, redis_client):
    async with connect(user) as socket:
        await socket.hear("hello")
        await database_sync_to_async(republish)()
        await socket.silence("stream.list")
        redis_client.hdel("lookout:streams", "ships")
        await database_sync_to_async(republish)()
        assert [told["name"] for told in (await socket.hear("stream.list"))["streams"]] == ["buses", "ships"]


async def test_a_query_of_another_space_is_settled_by_its_own_engine(prices, engine, exchange, streams, user):
    def register():
        return queries.register(user, "dear", ABOVE), queries.register(user, "harbour", PLAN)

    registered = await database_sync_to_async(register)()
    await database_sync_to_async(tasks.reconcile)()
    epochs = {"prices": exchange, "earth": engine}
    for query in await database_sync_to_async(settled)(*registered):
        assert (query.status, query.epoch) == ("running", epochs[query.space_id].engine.layout.store.epoch())


async def test_a_view_is_of_geographic_spaces(prices, user, connect):
    async with connect(user) as socket:
        await socket.tell("view.subscribe", id=1, streams=["shares"], area={"lo": [0], "hi": [1]})
        error = await socket.hear("error", id=1)
        assert "a view must be of streams in a geographic space; got 'shares' of prices" in error["message"]


def test_views_of_another_geographic_space_are_cancelled_in_it_when_their_process_died(redis_client):
    web = web_id("moon")
    redis_client.sadd(WEBS_KEY, web)
    redis_client.sadd(views_key(web), 2**40)
    assert retire_views(redis_client) == 1
    (entry,) = control_entries(redis_client, "moon")
    assert entry["query"] == 2**40


def test_a_query_does_not_leave_its_space(prices, streams, user):
    query = Query.objects.create(owner=user, name="q", plan=PLAN, stream="ships")
    with pytest.raises(Refused, match="stream must lie in the space of the query, earth; got 'shares' of prices"):
        queries.edit(user, query.pk, plan=ABOVE)


def test_streams_are_joined_within_a_space(prices, streams):
    plan = {"stream": "ships", "kind": "join", "join": {"stream": "shares"}}
    with pytest.raises(Refused, match="join: in earth, stream must be one of buses, ships; got 'shares'"):
        queries.checked_plan(plan)


def test_streams_are_joined_with_the_layers_of_their_space(prices, streams):
    plan = {"stream": "ships", "kind": "join", "join": {"layer": "ports"}}
    assert queries.checked_plan(plan)["join"]["layer"] == "ports", "it may still come"
    layer = Layer.objects.create(name="ports", space=prices)
    Layer.objects.create(name="roads", space_id="earth")
    with pytest.raises(Refused, match="join: in earth, layer must be one of roads; got 'ports'"):
        queries.checked_plan(plan)
    layer.space_id = "earth"
    layer.save()
    assert queries.checked_plan(plan)["join"]["layer"] == "ports"


def test_the_engine_of_a_layers_space_hears_of_it(prices, redis_client):
    layer = Layer.objects.create(name="bands", space=prices, version=1)
    assert layers.tell_engine() == 1
    layer.delete()
    told = control_entries(redis_client, "prices")
    assert told[-2:] == [
        {"op": "layer", "layer": "bands", "version": 1},
        {"op": "drop_layer", "layer": "bands"},
    ]
    assert not redis_client.exists(LogNames("earth").control)


def test_a_space_with_layers_neither_changes_nor_goes(prices):
    Stream.objects.all().delete()
    Layer.objects.create(name="bands", space=prices)
    assert prices.users() == "1 layers"
    with pytest.raises(ProtectedError):
        prices.delete()


def test_a_space_that_is_in_use_neither_changes_nor_goes(prices, site):
    change = reverse("admin:webapp_space_change", args=["prices"])
    wider = {"dimensions": [DEFINITION["dimensions"][0] | {"hi": 20_000}]}
    page = site.post(change, {"title": "Dear", "definition": json.dumps(wider)})
    assert "a space that is in use cannot change; prices has 1 streams" in page.content.decode()
    assert site.post(change, {"title": "Dear", "definition": json.dumps(DEFINITION)}).status_code == 302
    page = site.post(reverse("admin:webapp_space_delete", args=["prices"]), {"post": "yes"})
    assert "would require deleting the following protected related objects" in page.content.decode()
    with pytest.raises(ProtectedError):
        prices.delete()
    Stream.objects.all().delete()
    assert site.post(change, {"title": "Dear", "definition": json.dumps(wider)}).status_code == 302
    assert Space.objects.get(name="prices").parsed.dimensions[0].hi == 20_000
    assert site.post(reverse("admin:webapp_space_delete", args=["prices"]), {"post": "yes"}).status_code == 302
    assert spaces_by_name() == {"earth": EARTH}


def test_the_built_in_space_stays_as_it_is(site):
    change = reverse("admin:webapp_space_change", args=["earth"])
    site.post(change, {"title": "Home", "definition": json.dumps(DEFINITION)})
    assert Space.objects.get().title == "Home"
    assert spaces_by_name() == {"earth": EARTH}
    assert site.post(reverse("admin:webapp_space_delete", args=["earth"]), {"post": "yes"}).status_code == 403


WRONG = {
    "no name": ({"name": ""}, "required"),
    "a name that is none": ({"name": "My Space"}, "name must be lower case letters"),
    "a name in the definition": ({"definition": '{"name": "x"}'}, "the name has its own field; got 'x'"),
    "no object": ({"definition": "[1]"}, "a definition must be a JSON object; got [1]"),
    "no dimensions": ({"definition": '{"dimensions": []}'}, "dimensions must be a list of 1 to 8 objects"),
    "another earth": ({"name": "earth"}, "already exists"),
}


@pytest.mark.parametrize(("change", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_space_gets_a_clear_error(change, words, site):
    form = {"name": "prices", "title": "", "definition": json.dumps(DEFINITION)}
    page = site.post(reverse("admin:webapp_space_add"), form | change)
    assert page.status_code == 200
    assert words in json.dumps(page.context["adminform"].form.errors)
    assert spaces_by_name() == {"earth": EARTH}


def test_the_admin_shows_the_engine_of_each_space(prices, site, redis_client):
    redis_client.hset(LogNames("prices").engine, mapping={"at_us": 2**62, "batch": 77, "backlog": 3})
    page = site.get(reverse("admin:webapp_space_changelist")).content.decode()
    row = page.split("prices</a>")[1].split("</tr>")[0]
    for words in ("price [USD]", "1 streams", 'alt="True"', ">77<", ">3<", ">0%<"):
        assert words in row
    assert row.count('alt="True"') == 1
    redis_client.hset(LogNames("prices").engine, "standby_us", 2**62)
    page = site.get(reverse("admin:webapp_space_changelist")).content.decode()
    assert page.split("prices</a>")[1].split("</tr>")[0].count('alt="True"') == 2, "one evaluates, one stands by"


STREAM = {"name": "feed", "title": "Feed", "icon": "dot", "transport": "stdin", "transport_options": "{}"}
DECODERS = {
    "of places on earth": ("ais", {}, "gives longitudes and latitudes, which prices does not have"),
    "of longitude and latitude": ("csv", {}, "gives longitudes and latitudes, which prices does not have"),
    "of more dimensions": ("csv", {"coordinates": ["a", "b"]}, "prices has 1 dimensions, so at most as many columns"),
    "of the space": ("csv", CSV, None),
}


@pytest.mark.parametrize(("decoder", "options", "words"), DECODERS.values(), ids=DECODERS)
def test_a_stream_has_a_decoder_of_its_space(decoder, options, words, prices, site):
    form = STREAM | {"space": "prices", "decoder": decoder, "decoder_options": json.dumps(options)}
    page = site.post(reverse("admin:webapp_stream_add"), form)
    assert Stream.objects.filter(name="feed").exists() == (words is None)
    if words:
        assert words in json.dumps(page.context["adminform"].form.errors)


def test_a_stream_stays_in_its_space(prices, site):
    stream = Stream.objects.get(name="shares")
    stream.space_id = "earth"
    with pytest.raises(Exception, match="the space of a stream cannot change; it is 'prices'"):
        stream.clean()


LAND = parse_space({"name": "land", "dimensions": space_document(EARTH)["dimensions"][:2], "geographic": True})


async def test_a_viewport_shows_the_streams_of_all_geographic_spaces(
    engine, streams, redis_client, tmp_path, user, connect
):
    def settle():
        definition = {name: value for name, value in space_document(LAND).items() if name != "name"}
        space = Space.objects.create(name="land", definition=definition)
        Stream.objects.create(name="herds", title="Herds", space=space, transport="stdin", decoder="geojson")

    await database_sync_to_async(settle)()
    with Rig(redis_client, tmp_path / "land", LAND) as pasture:
        async with connect(user) as socket:
            await socket.tell("view.subscribe", id=1, streams=["ships", "herds"], area=PLAN["compare"])
            views = (await socket.hear("view.status", id=1))["views"]
            assert {(await socket.hear("answer.snapshot"))["query"] for _ in views} == set(views.values())
            for stream, rig, wide in (("ships", engine, 6), ("herds", pasture, 4)):
                rig.move({"one": INSIDE}, stream)
                (row,) = (await socket.hear("answer.change", query=views[stream]))["rows"]
                assert (row["lon"], row["lat"], len(row["bounds"])) == (*INSIDE, wide)
            await socket.tell("view.subscribe", id=2, streams=["herds"], area=PLAN["compare"])
            assert (await socket.hear("view.status", id=2))["views"] == {"herds": views["herds"]}
    for space, number in (("earth", views["ships"]), ("land", views["herds"])):
        entries = control_entries(redis_client, space)
        assert [entry["query"] for entry in entries if entry["op"] == "cancel"] == [number]
