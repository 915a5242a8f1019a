"""All doors of Lookout x all kinds of users x changes of their rights: nothing shows or changes what it may not."""

import json
from datetime import timedelta
from itertools import chain

import pytest
import shapely
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.utils import timezone

from streaming.layers import feature_table
from tests.webapp.doors import ADDRESSES, ADMIN, CASES, MESSAGES, SLOW, Case
from tests.webapp.teamwork import scene
from webapp.consumers.permissions import OF_GUESTS
from webapp.consumers.permissions import RULES as MESSAGE_RULES
from webapp.layers.versions import share_layer
from webapp.models import Event, Layer, Membership, Stream
from webapp.models.layers import layer_store
from webapp.queries import queries
from webapp.rights.permissions import RULES as ADDRESS_RULES
from webapp.teams import links, views

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.filterwarnings("ignore::RuntimeWarning")]


@pytest.fixture
def place(streams, project, tmp_path, monkeypatch):
    """Keep files in folders of the test; do not wait for an engine that is not there; ask as fast as a test does."""
    project.HISTORY_DIR, project.LAYERS_DIR = tmp_path / "history", tmp_path / "layers"
    project.MESSAGES_PER_SECOND = project.MESSAGES_BURST = 10_000
    for module in ("asking", "facts"):
        monkeypatch.setattr(f"webapp.questions.why.{module}.ANSWER_S", 0.01)


def harbour_of(case: Case):
    """Return a scene in which the layer has a feature and the query an event, and who comes in the case."""
    made = scene()
    Stream.objects.filter(name="buses").update(stored=True)
    store = layer_store()
    shape = shapely.box(14, 54, 16, 56)
    version = store.write("team", feature_table("team", ["quay", "pier"], [shape] * 2, [{}] * 2))
    Layer.objects.filter(name="team").update(version=version, features=2)
    Layer.objects.create(name="yard", owner=made.users["owner"], team=made.team, space_id="earth", status="ready")
    query = made.queries["team"]
    about = {"batch": 1, "reason": "moved", "time": timezone.now(), "bounds": [15, 55, None, 15, 55, None]}
    for key in ("a", "quay"):
        Event.objects.create(query=query, key=key, sign="+", properties={}, **about)
    made.users["clerk"] = get_user_model().objects.create_user("clerk", is_staff=True)
    get_user_model().objects.create_user("third")
    if case.change == "sharing withdrawn":
        queries.edit(made.users["owner"], query.pk, shared=True)
    return made


def numbers_of(harbour):
    of = {"query": harbour.queries, "incident": harbour.incidents, "layer": harbour.layers, "view": harbour.views}
    numbers = {name: things["team"].pk for name, things in of.items()}
    return numbers | {"link": harbour.link.pk, "team": harbour.team.pk, "soon": _soon()}


def _soon():
    return (timezone.now() + timedelta(hours=1)).isoformat()


def filled(value, numbers):
    """Return a value with the numbers in place of their names."""
    if isinstance(value, dict):
        return {name: filled(one, numbers) for name, one in value.items()}
    if isinstance(value, list):
        return [filled(one, numbers) for one in value]
    return numbers[value[1:-1]] if isinstance(value, str) and value[:1] == "{" else value


def take_away(harbour, _):
    users = harbour.users
    queries.edit(users["owner"], harbour.queries["team"].pk, team=None)
    for layer in ("team", "yard"):
        share_layer(users["staff"], layer, harbour.other.pk)
    views.edit(users["owner"], harbour.views["team"].pk, team=None)


def deactivate(_, user):
    user.is_active = False
    user.save()


def permit(_, user):
    """Give somebody of staff permissions; take all from a superuser."""
    if user.is_superuser:
        user.is_staff = user.is_superuser = False
        user.save()
    else:
        names = ("view_query", "change_query", "view_layer", "change_layer")
        user.user_permissions.set(Permission.objects.filter(codename__in=names))


def share(shared):
    return lambda harbour, _: queries.edit(harbour.users["owner"], harbour.queries["team"].pk, shared=shared)


# By the way that people make the changes.
CHANGES = {
    "nothing": lambda harbour, user: None,
    "taken away": take_away,
    "left": lambda harbour, user: Membership.objects.filter(user=user).delete(),
    "deactivated": deactivate,
    "permissions": permit,
    "shared": share(True),
    "sharing withdrawn": share(False),
}


def apply(case: Case, harbour):
    """Make the change of a case."""
    CHANGES[case.change](harbour, harbour.users[case.who])


def name_of(case):
    return f"{case.who}, {case.change}"


async def lets_in(socket, kind, door, numbers, every_error=False):
    """Send a message; return whether its answer gives what it asks for: it is no refusal, or no error at all."""
    await socket.tell(kind, id=kind, **filled(door.fields, numbers))
    end = kind if kind.startswith(SLOW) else "over"
    if end == "over":
        await socket.tell("query.cancel", id="over", query=10**9)
    said = []
    while (message := await socket.hear_any()).get("id") != end or message["type"] == "backtest.progress":
        said.append(message)
    told = [one for one in [*said, message] if one.get("id") == kind]
    refused = any(one["type"] == "error" and (every_error or one["code"] in door.refusals) for one in told)
    return not refused and door.shows.format(**numbers) in json.dumps(told)


def test_every_door_is_in_the_matrix_and_none_that_is_gone():
    assert MESSAGES.keys() == MESSAGE_RULES.keys()
    assert ADDRESSES.keys() == ADDRESS_RULES.keys()


def test_the_matrix_has_so_many_combinations():
    opened = sum(map(len, ADDRESSES.values())) + len(ADMIN)
    doors = len(MESSAGES) + opened
    assert (len(MESSAGES), opened, len(CASES), doors * len(CASES)) == (40, 23, 30, 1890)


@pytest.mark.parametrize("case", CASES, ids=name_of)
async def test_no_message_gives_more_or_less_than_the_rights_of_the_moment(case, place, connect):
    harbour = await sync_to_async(harbour_of)(case)
    async with connect(harbour.users[case.who]) as socket:
        await socket.hear("hello")
        await sync_to_async(apply)(case, harbour)
        if case.change == "deactivated":
            assert await socket.closed() == 4401
            return
        numbers, rights = await sync_to_async(numbers_of)(harbour), case.rights()
        ordered = sorted(MESSAGES, key=lambda kind: MESSAGES[kind].late)
        given = {kind for kind in ordered if await lets_in(socket, kind, MESSAGES[kind], numbers)}
    assert given == {kind for kind, door in MESSAGES.items() if door.needs in rights}


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_no_address_gives_more_or_less_than_the_rights_of_the_moment(case, place, client):
    harbour = harbour_of(case)
    client.force_login(harbour.users[case.who])
    apply(case, harbour)
    numbers, rights = numbers_of(harbour), case.rights()
    every = sorted(chain(ADMIN, *ADDRESSES.values()), key=lambda address: address.late)
    given = [address for address in every if address.lets_in(*answered(client, address, numbers))]
    assert [(one.method, one.path) for one in given] == [(one.method, one.path) for one in every if one.needs in rights]


def answered(client, address, numbers):
    """Return the status and the text with which an address answers."""
    path, body = address.path.format(**numbers), address.body
    call = getattr(client, address.method)
    if address.path.endswith("/change") and body:  # a form
        response = call(path, body, follow=True)
    elif body is not None:
        response = call(path, body, content_type="application/json")
    else:
        response = call(path)
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return response.status_code, content.decode(errors="replace")


GUEST = {
    "nothing": (True, lambda harbour: None),
    "revoked": (False, lambda harbour: links.revoke(harbour.users["admin"], harbour.link.pk)),
    "taken away": (True, lambda harbour: queries.edit(harbour.users["owner"], harbour.queries["team"].pk, team=None)),
}


@pytest.mark.parametrize("change", GUEST)
async def test_a_guest_reads_the_queries_of_the_link_while_they_are_the_teams_and_the_link_works(
    change, place, connect_guest, client
):
    harbour = await sync_to_async(harbour_of)(Case("guest", change))
    works, action = GUEST[change]
    async with connect_guest(harbour.secret) as socket:
        await socket.hear("hello")
        await sync_to_async(action)(harbour)
        opened = await sync_to_async(client.get)(f"/shared/{harbour.secret}/")
        assert opened.status_code == (200 if works else 410)
        if not works:
            assert await socket.closed() == 4410
            return
        numbers = await sync_to_async(numbers_of)(harbour)
        kinds = sorted(MESSAGES, key=lambda kind: MESSAGES[kind].late)
        given = {kind for kind in kinds if await lets_in(socket, kind, MESSAGES[kind], numbers, every_error=True)}
    assert given == (OF_GUESTS if change == "nothing" else {"query.unsubscribe"})
