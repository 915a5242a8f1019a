"""A query that would compare too many pairs is refused, or has to be confirmed, before it is registered."""

import json
from base64 import b64encode

import numpy as np
import orjson
import pytest
import shapely
from channels.db import database_sync_to_async
from django.urls import reverse

from streaming.elements import stream_number
from streaming.keys import LogNames
from streaming.layers import feature_table
from streaming.operators.allowance import KNOWN, MOST
from streaming.operators.box_sample import BoxSample, packed
from streaming.operators.region_map import RegionMap
from streaming.spaces import EARTH
from tests.webapp.conftest import PLAN
from webapp.models import Layer, Query, Team
from webapp.models.layers import layer_store
from webapp.queries import estimating, queries
from webapp.words.refusals import Refused

pytestmark = pytest.mark.django_db(transaction=True)


def near(distance, **partner):
    about = partner or {"stream": "ships"}
    return {"stream": "ships", "kind": "join", "join": about | {"predicate": "dwithin", "distance": distance}}


# With 1,000 ships anywhere, a batch has room for 1,200,000. Many are within 3,000 km of each other, few within 10 km.
FAR, NEAR = near(3_000_000), near(10_000)


@pytest.fixture
def ships(streams, redis_client):
    """Return a function that has the engine report so many ships, anywhere."""

    def report(count):
        rng = np.random.default_rng(1)
        middle = np.stack([rng.uniform(-170, 170, 512), rng.uniform(-60, 60, 512)], axis=1)
        height = np.full((512, 1), np.inf)
        sample = BoxSample.drawn(np.hstack([middle, -height, middle, height]), 512, count=count)
        payload = b64encode(packed({stream_number("ships"): sample}, 512)).decode()
        told = {"map": RegionMap.grid(EARTH, 1).document(), "tasks": 1, "objects:0": payload}
        mapping = {name: orjson.dumps(value) for name, value in told.items()}
        redis_client.hset(LogNames(EARTH.name).engine, mapping=mapping)

    report(1_000)
    return report


def room_for(objects):
    """Return for how many pairs the one region has room."""
    return MOST + KNOWN * objects


def refused(ask, *arguments, **named):
    with pytest.raises(Refused) as found:
        ask(*arguments, **named)
    return found.value


def test_a_query_for_which_there_may_be_no_room_has_to_be_confirmed(ships, user):
    told = refused(queries.register, user, "all", FAR).document()
    assert told["code"] == "confirm"
    estimate = told["estimate"]
    assert estimate["work"] == pytest.approx(estimate["pairs"] + 10 * estimate["matches"], abs=11)
    assert estimate["room"] == room_for(1_000) < 2 * estimate["work"] < 20 * room_for(1_000)
    assert told["message"].startswith("a query for which there may be no room must be confirmed: a batch has room for")
    assert not Query.objects.exists()
    assert queries.register(user, "all", FAR, confirmed=True).pk
    assert queries.register(user, "few", NEAR).pk


def test_a_join_of_everything_with_everything_is_refused_with_the_estimate_also_if_it_is_confirmed(ships, user):
    ships(20_000)
    for confirmed in (False, True):
        told = refused(queries.register, user, "all", near(20_000_000), confirmed=confirmed).document()
        assert (told["code"], told["estimate"]["room"]) == ("room", room_for(20_000))
        assert told["estimate"]["pairs"] == pytest.approx(4e8, rel=0.01)
        rule = "a query must compare at most 10 times as many pairs as a batch has room for, 1,600,000"
        assert (
            told["message"]
            == f"{rule}; this one would compare about 400,000,000; make its distance or its area smaller"
        )


def test_an_edit_is_weighed_as_a_new_query_but_not_for_a_plan_that_stays(ships, user):
    query = queries.register(user, "few", NEAR)
    assert refused(queries.edit, user, query.pk, plan=FAR).code == "confirm"
    assert queries.edit(user, query.pk, plan=FAR, confirmed=True).plan["join"]["distance"] == 3_000_000
    assert queries.edit(user, query.pk, name="renamed", plan=FAR).name == "renamed"
    assert queries.edit(user, query.pk, paused=True).paused


def test_without_data_nothing_is_asked(streams, user, redis_client):
    assert queries.register(user, "all", near(20_000_000)).pk  # the engine has reported nothing
    redis_client.hset(LogNames(EARTH.name).engine, "epoch", "e")
    assert queries.register(user, "all", near(20_000_000)).pk


def test_a_stream_of_which_nothing_is_known_has_no_estimate(ships, user):
    assert queries.register(user, "all", near(20_000_000, stream="buses")).pk


def test_while_redis_is_away_nothing_is_asked(ships, user, project):
    project.REDIS_URL = "redis://127.0.0.1:1"
    assert queries.register(user, "all", near(20_000_000)).pk


def test_a_query_that_compares_no_pairs_asks_redis_for_nothing(ships, user, monkeypatch):
    monkeypatch.setattr(estimating, "read_fields", None)
    assert queries.register(user, "range", PLAN).pk


def test_features_of_a_layer_count_by_their_boxes_and_those_that_a_user_may_not_see_are_not_told(
    ships, user, project, tmp_path
):
    project.LAYERS_DIR = tmp_path
    shapes = [shapely.box(-179, -80, 179, 80)] * 3_000
    keys = [str(number) for number in range(3_000)]
    version = layer_store().write("zones", feature_table("zones", keys, shapes, [{}] * 3_000))
    layer = Layer.objects.create(name="zones", space_id="earth", status="ready", version=version, features=3_000)
    zones = near(1_000, layer="zones")
    told = refused(queries.register, user, "zones", zones)
    assert told.more["estimate"]["matches"] == pytest.approx(3_000_000)
    Layer.objects.filter(pk=layer.pk).update(team=Team.objects.create(name="others"))
    assert queries.register(user, "zones", zones).status == Query.WAITING


async def test_the_websocket_tells_the_estimate_and_takes_the_confirmation(ships, user, engine, connect):
    async with connect(user) as socket:
        await socket.tell("query.register", id=1, name="all", plan=FAR)
        told = await socket.hear("error")
        assert (told["id"], told["code"], told["estimate"]["room"]) == (1, "confirm", room_for(1_000))
        await socket.tell("query.register", id=2, name="all", plan=FAR, confirmed=True)
        made = await socket.hear("query.status", id=2)
        await socket.tell("query.edit", id=3, query=made["query"], plan=near(4_000_000))
        assert (await socket.hear("error"))["code"] == "confirm"
        await socket.tell("query.edit", id=4, query=made["query"], plan=near(4_000_000), confirmed=True)
        assert (await socket.hear("query.status", id=4))["plan"]["join"]["distance"] == 4_000_000
        await socket.tell("query.edit", id=5, query=made["query"], name="one", confirmed="yes")
        assert (await socket.hear("error"))["message"] == "confirmed must be true or false; got 'yes'"
    assert await database_sync_to_async(Query.objects.count)() == 1


def test_the_admin_shows_the_estimate_beside_the_plan_and_takes_the_confirmation(ships, client, admin_user):
    client.force_login(admin_user)
    add, form = reverse("admin:webapp_query_add"), {"name": "all", "plan": json.dumps(FAR)}
    page = client.post(add, form)
    assert page.status_code == 200 and "must be confirmed: a batch has room for" in page.content.decode()
    assert client.post(add, form | {"confirmed": "on"}).status_code == 302
    change = reverse("admin:webapp_query_change", args=[Query.objects.get().pk])
    assert client.post(change, form | {"name": "renamed"}).status_code == 302
    assert client.post(change, form | {"plan": json.dumps(near(4_000_000))}).status_code == 200
    assert (Query.objects.get().name, Query.objects.get().plan["join"]["distance"]) == ("renamed", 3_000_000)
