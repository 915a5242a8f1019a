"""The examples of the demonstration: everybody sees them, until they remove them from their list."""

from io import StringIO

import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command

from streaming.simulator import make_fleet
from tests.webapp.conftest import PLAN
from webapp.demo.examples import EXAMPLES, LAYER, PORT_AREAS
from webapp.demo.make_port_areas import port_areas
from webapp.models import Layer, Query, Stream
from webapp.queries import queries
from webapp.words.refusals import Refused

pytestmark = pytest.mark.django_db(transaction=True)
NAMES = [name for name, _ in EXAMPLES]


@pytest.fixture
def demonstration(project, tmp_path):
    """Make what a new installation begins with."""
    project.LAYERS_DIR = tmp_path / "layers"
    seed()


def seed():
    """Start once."""
    call_command("seed_demo", stdout=StringIO())


def test_the_first_start_makes_the_examples_with_their_layer(demonstration):
    assert list(Query.objects.order_by("pk").values_list("name", flat=True)) == NAMES
    assert all(query.example and query.shared and query.owner is None for query in Query.objects.all())
    layer = Layer.objects.get()
    assert (layer.name, layer.status, layer.version, layer.problem_count) == (LAYER.name, Layer.READY, 1, 0)
    assert layer.features == PORT_AREAS.read_text().count('"id"') == 24


def test_examples_that_were_deleted_do_not_come_back(demonstration):
    Query.objects.first().delete()
    seed()
    assert Query.objects.count() == len(NAMES) - 1
    Query.objects.all().delete()
    seed()
    Stream.objects.filter(name="ships").delete()
    seed()
    assert not Query.objects.exists()


def test_an_installation_that_is_no_demonstration_gets_no_examples(streams):
    seed()
    assert not Query.objects.exists()
    assert not Layer.objects.exists()


def test_every_example_finds_simulated_objects_at_any_time(demonstration):
    fleet = make_fleet("ships", 400, 1)
    boxes = [plan["compare"] for _, plan in EXAMPLES if "compare" in plan]
    for time_s in range(1_790_000_000, 1_790_000_000 + 86_400 * 30, 86_400 * 3):
        at = fleet.step(time_s)
        for (west, south), (east, north) in ((box["lo"], box["hi"]) for box in boxes):
            inside = (at.lon_deg >= west) & (at.lon_deg <= east) & (at.lat_deg >= south) & (at.lat_deg <= north)
            assert inside.any()


def test_areas_lie_around_ports_at_which_lanes_end():
    (area,) = port_areas([{"geometry": {"coordinates": [24.96, 60.16]}}, {"geometry": {"coordinates": [0.0, 0.0]}}])
    assert (area["id"], area["properties"]["name"]) == ("helsinki", "Port of Helsinki")
    (ring,) = area["geometry"]["coordinates"]
    assert ring[0] == ring[-1] == [pytest.approx(25.412, abs=0.001), 60.16]


def test_only_staff_changes_an_example(demonstration, engine, user, staff):
    number = Query.objects.first().pk
    with pytest.raises(Refused, match="is an example, which staff may change"):
        queries.cancel(user, number)
    queries.edit(staff, number, name="The Kattegat")
    assert Query.objects.get(pk=number).name == "The Kattegat"


async def told(socket):
    """Return how the queries stand that a connection is told of, by name, until the reply to a request.

    A removal that was announced as the connection began may come late; what it ends counts as untold.
    """
    await socket.tell("query.snapshot", id="end", query=999_999)
    names = {}
    while (message := await socket.hear_any())["type"] != "error":
        if message["type"] == "query.status" and message["status"] != "cancelled":
            names[message["name"]] = (message["status"], message["owner"], message["example"], message["mine"])
    return names


async def test_examples_that_a_user_removes_end_on_all_connections_of_that_user_alone(
    demonstration, user, other, connect
):
    one = dict.fromkeys(NAMES, ("pending", None, True, False))
    async with connect(user) as first, connect(user) as second, connect(other) as others:
        for socket in (first, second, others):
            assert await told(socket) == one
        await first.tell("examples.show", id=1, shown=False)
        assert (await first.hear("examples.shown", id=1))["shown"] is False
        for socket in (first, second):
            assert {(await socket.hear("query.status", status="cancelled"))["name"] for _ in NAMES} == set(NAMES)
        assert await told(others) == {}
    async with connect(user) as socket:
        assert await told(socket) == {}


async def test_a_change_of_an_example_is_not_told_to_who_removed_it(demonstration, engine, user, staff, connect):
    number = (await Query.objects.order_by("pk").afirst()).pk
    async with connect(user) as socket, connect(staff) as other:
        await socket.tell("examples.show", id=1, shown=False)
        for _ in NAMES:
            await socket.hear("query.status", status="cancelled")
        await told(other)
        await sync_to_async(queries.edit)(staff, number, name="The Kattegat")
        await other.hear("query.status", query=number, name="The Kattegat", status="running")
        assert await told(socket) == {}


async def test_removed_examples_come_back_by_undo(demonstration, user, connect):
    async with connect(user) as socket:
        await told(socket)
        for shown in (False, True):
            await socket.tell("examples.show", id=1, shown=shown)
            await socket.hear("examples.shown", id=1, shown=shown)
        assert {(await socket.hear("query.status", status="pending"))["name"] for _ in NAMES} == set(NAMES)


async def test_removing_the_examples_leaves_queries_of_ones_own(demonstration, engine, user, connect):
    mine = await sync_to_async(queries.register)(user, "mine", PLAN)
    async with connect(user) as socket:
        await socket.tell("examples.show", id=1, shown=False)
        await socket.hear("examples.shown", id=1)
    async with connect(user) as socket:
        assert list(await told(socket)) == [mine.name]
