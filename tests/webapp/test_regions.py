"""The regions of a space: shown to who follows them, and changed by hand in the admin."""

import numpy as np
import orjson
import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from streaming.keys import PARTITIONERS_KEY
from streaming.layers.features import feature_table
from streaming.logs import Log
from streaming.operators.region_map import RegionMap
from streaming.region_reports import RegionChanges
from streaming.spaces import EARTH
from tests.webapp.conftest import PASSWORD
from webapp.bus import regions
from webapp.models import Layer, Space
from webapp.models.layers import layer_store
from webapp.words.refusals import Refused

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "admin:webapp_space_regions"
MOVE = {"action": "move", "region": 0, "task": 1}
NOW_US = 1_000_000_000
PLACES = np.column_stack([np.linspace(-10, 10, 100), np.linspace(50, 60, 100), np.full(100, -np.inf)])


@pytest.fixture
def told(redis_client, transactional_db):
    """Report two regions as an engine would; return the logs."""
    log, known = Log(redis_client, "earth", 2), RegionMap.grid(EARTH, 2)
    log.send("tick", now_us=0)
    load = {"map": known.document(), "places": PLACES, "tasks": 2, "worker:0": "here:1", "worker:1": "there:2"}
    log.report_regions({0: [0, 700, 0.5, 30, 70.0, 0.05, NOW_US], 1: [0, 10, 0.1, 5, 1.0, 0.01, NOW_US]}, **load)
    RegionChanges(redis_client, "earth").keep(known)
    return log


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    """Do not wait long for an engine that is none."""
    monkeypatch.setattr("webapp.admin.regions.WAIT_S", 0.2)


@pytest.fixture
def site(client, staff):
    """Return a browser in which the administrator has logged in."""
    client.force_login(staff)
    return client


def sent(log):
    entries = [orjson.loads(entry.fields[b"entry"]) for entry in log.event_log.read(log.names.control)]
    return [RegionMap.of(EARTH, entry["map"]) for entry in entries if entry["op"] == "regions"]


def test_the_regions_have_their_places_loads_and_workers(told):
    found = regions.regions_now(EARTH)
    one, two = found.document(NOW_US)["regions"]
    assert (one["lo"], one["hi"]) == ([-180.0, -90.0], [0.0, 90.0])
    assert (one["elements_per_s"], one["cores"], one["objects"], one["worker"]) == (70.0, 0.05, 30, "here:1")
    assert (two["task"], two["worker"]) == (1, "there:2")
    quiet = found.document(NOW_US + 6_000_000)["regions"]
    assert [(region["elements_per_s"], region["objects"]) for region in quiet] == [(0.0, 30), (0.0, 5)]
    (first,) = regions.changes_now(EARTH)
    assert (first["number"], first["regions"], first["why"]) == (0, 2, "")


def test_an_engine_that_has_reported_nothing_is_named(redis_client, site):
    with pytest.raises(Refused, match="the engine of earth must have reported its regions"):
        regions.regions_now(EARTH)
    assert "must have reported" in site.get(reverse(PAGE, args=["earth"])).content.decode()


@pytest.mark.parametrize(
    ("fields", "check"),
    [
        ({"action": "split", "region": 1, "partitioner": "kd"}, lambda later: later.regions == 3),
        ({"action": "split", "region": 0, "partitioner": "quadtree"}, lambda later: later.regions == 5),
        ({"action": "merge", "pair": "0 1"}, lambda later: later.regions == 1),
        ({"action": "move", "region": 0, "task": 1}, lambda later: later.places == (1, 1)),
        (
            {"action": "cut", "partitioner": "kd", "regions": 4, "source": "lately"},
            lambda later: np.bincount(later.region_of(np.tile(PLACES, 2))).tolist() == [25] * 4,
        ),
        (
            {"action": "cut", "partitioner": "kd", "regions": 4, "source": "area", "area": "20, 50, 30, 60"},
            lambda later: ((later.cells[:, :2] < [30, 60]) & (later.cells[:, 3:5] > [20, 50])).all(),
        ),
        ({"action": "cut", "partitioner": "grid", "regions": 9, "source": "lately"}, lambda later: later.regions == 9),
    ],
)
def test_regions_change_by_hand_and_say_by_whom(told, site, staff, fields, check):
    answer = site.post(reverse(PAGE, args=["earth"]), fields, follow=True)
    assert "The engine was told, but" in answer.content.decode()
    (later,) = sent(told)
    assert later.number == 1 and later.why.endswith(f", by {staff.get_username()}")
    assert check(later)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"action": "merge", "pair": "0 2"}, "Select a valid choice"),
        (
            {"action": "cut", "partitioner": "kd", "regions": 4, "source": "area", "area": "20, 50, 30"},
            "as many numbers",
        ),
        ({"action": "cut", "partitioner": "kd", "regions": 4, "source": "area", "area": "x"}, "must be numbers"),
        ({"action": "cut", "partitioner": "kd", "regions": 4, "source": "area", "area": "30,50,20,60"}, "lo below hi"),
        ({"action": "cut", "partitioner": "kd", "regions": 4, "source": "area"}, "must be drawn"),
        ({"action": "cut", "partitioner": "kd", "regions": 200, "source": "lately"}, "must be enough to cut 200"),
        ({"action": "cut", "partitioner": "kd", "regions": 4, "source": "stored:none"}, "Select a valid choice"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_rule_and_the_value(told, site, fields, words):
    assert words in site.post(reverse(PAGE, args=["earth"]), fields).content.decode()
    assert sent(told) == []


def test_the_page_waits_until_the_change_is_in_force(told, site, monkeypatch):
    monkeypatch.setattr("webapp.bus.regions.POLL_S", 0.0)
    monkeypatch.setattr(
        "webapp.bus.regions.time.sleep", lambda _: RegionChanges(told.client, "earth").keep(*sent(told))
    )
    answer = site.post(reverse(PAGE, args=["earth"]), MOVE, follow=True).content.decode()
    assert "In force now: moved to other tasks: regions [0], by" in answer


def test_a_layer_decides_where_a_space_is_cut(told, site):
    corners = np.column_stack([np.linspace(100, 140, 80), np.linspace(-40, -30, 80)])
    boxes = np.column_stack([corners, np.full(80, -np.inf), corners, np.full(80, np.inf)])
    keys = [str(number) for number in range(80)]
    version = layer_store().write("posts", feature_table("posts", keys, [None] * 80, [None] * 80, boxes))
    Layer.objects.create(name="posts", space=Space.objects.get(pk="earth"), version=version, features=80)
    fields = {"action": "cut", "partitioner": "kd", "regions": 2, "source": "layer:posts"}
    site.post(reverse(PAGE, args=["earth"]), fields)
    (later,) = sent(told)
    assert np.bincount(later.region_of(boxes)).tolist() == [40, 40]


def test_only_who_may_change_spaces_changes_their_regions(told, client, django_user_model):
    clerk = django_user_model.objects.create_user("clerk", password=PASSWORD, is_staff=True)
    client.force_login(clerk)
    assert client.post(reverse(PAGE, args=["earth"]), MOVE).status_code == 403
    clerk.user_permissions.add(Permission.objects.get(codename="change_space"))
    assert client.post(reverse(PAGE, args=["earth"]), MOVE).status_code == 302
    assert client.post(reverse(PAGE, args=["nowhere"]), MOVE).status_code == 404


def test_the_partitioner_of_a_space_is_published_and_withdrawn(redis_client, transactional_db):
    space = Space.objects.get(pk="earth")
    for partitioner in ("quadtree", ""):
        space.partitioner = partitioner
        space.save()
        assert (redis_client.hget(PARTITIONERS_KEY, "earth") or b"").decode() == partitioner


@pytest.mark.long
async def test_who_follows_the_regions_is_told_of_them_and_of_their_changes(told, user, connect):
    async with connect(user) as socket:
        await socket.tell("regions.subscribe", id=1, space="nowhere")
        assert (await socket.hear("error", id=1))["code"] == "space"
        await socket.tell("regions.subscribe", space="earth")
        first = await socket.hear("regions")
        assert (first["space"], first["number"], first["tasks"], len(first["regions"])) == ("earth", 0, 2, 2)
        known = RegionMap.grid(EARTH, 2)
        later = known.split(0, 0, -90.0).after(known, "split: 2 regions become 3")
        told.report_regions({}, map=later.document())
        RegionChanges(told.client, "earth").keep(later)
        second = await socket.hear("regions")
        assert (second["number"], len(second["regions"])) == (1, 3)
        assert [change["why"] for change in second["changes"]] == ["split: 2 regions become 3", ""]
        await socket.tell("regions.unsubscribe", space="earth")
        told.report_regions({}, map=known.document())
        await socket.silence("regions", seconds=1.5)
