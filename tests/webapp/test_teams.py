"""What members of a team hear of each other's changes, and that leaving ends it at once; share links."""

import asyncio
import re
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils import timezone

from tests.webapp.alarms import changed
from tests.webapp.conftest import INSIDE, PLAN, settled
from tests.webapp.teamwork import expire, scene
from webapp.consumers.shared import ENDED, FULL
from webapp.layers.versions import share_layer
from webapp.machine.logs import without_secrets
from webapp.models import AuditEntry, Membership, Query, Role, ShareLink, Subscription
from webapp.queries import queries
from webapp.teams import links, members, views
from webapp.words.refusals import Refused

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def harbour(streams):
    return scene()


def do(function, *arguments, **named):
    return sync_to_async(function)(*arguments, **named)


async def test_a_change_by_one_member_reaches_the_others_at_once_and_nobody_else(harbour, connect):
    users, team = harbour.users, harbour.team.pk
    async with connect(users["viewer"]) as viewer, connect(users["stranger"]) as stranger:
        hello = await viewer.hear("hello")
        assert hello["teams"] == [{"team": team, "name": "wharf", "role": "viewer"}]
        await stranger.hear("hello")
        made = await do(queries.register, users["analyst"], "new", PLAN, team=team)
        assert (await viewer.hear("query.status", query=made.pk, status="pending"))["team"] == team
        await do(queries.edit, users["admin"], made.pk, name="renamed")
        await viewer.hear("query.status", query=made.pk, name="renamed")
        await do(queries.edit, users["analyst"], made.pk, team=None)
        gone = await viewer.hear("query.status", query=made.pk, status="cancelled")
        assert (gone["name"], gone["plan"], gone["owner"]) == ("", {}, None)
        await stranger.tell("query.list", id=1)
        listed = (await stranger.hear("query.listed", id=1))["queries"]
        assert made.pk not in {one.get("query") for one in [*listed, *stranger.skipped]}


async def test_a_member_who_is_removed_gets_nothing_more_of_what_is_open(engine, harbour, connect):
    users, team = harbour.users, harbour.team.pk
    query = await do(queries.register, users["analyst"], "watched", PLAN, team=team)
    await do(settled, query)
    async with connect(users["viewer"]) as viewer, connect(users["admin"]) as admin:
        for socket in (viewer, admin):
            await socket.tell("query.subscribe", query=query.pk)
            await socket.hear("answer.snapshot", query=query.pk)
        engine.move({"before": INSIDE})
        await viewer.hear("answer.change", query=query.pk)
        await do(members.remove, users["admin"], team, "viewer")
        await viewer.hear("query.status", query=query.pk, status="cancelled")
        assert (await viewer.hear("team.list"))["teams"] == []
        engine.move({"after": INSIDE})
        await admin.hear("answer.change", query=query.pk)
        while "after" not in {row["key"] for row in (await admin.hear("answer.change", query=query.pk))["rows"]}:
            pass
        await viewer.silence("answer.change")
        await viewer.tell("query.subscribe", id=2, query=query.pk)
        assert (await viewer.hear("error", id=2))["code"] == "query"
        await do(queries.edit, users["admin"], query.pk, name="secret")
        await viewer.silence("query.status")


@pytest.mark.parametrize("way", ["role deleted", "team deleted", "deactivated", "user deleted"])
async def test_rights_end_at_once_by_whatever_way_they_end(way, harbour, connect):
    user, query = harbour.users["viewer"], harbour.queries["team"].pk
    async with connect(user) as viewer:
        await viewer.hear("query.status", query=query)
        await do(
            {
                "role deleted": lambda: Membership.objects.filter(user=user).delete(),
                "team deleted": lambda: (harbour.layers["team"].delete(), harbour.team.delete()),
                "deactivated": lambda: deactivate(user),
                "user deleted": lambda: user.delete(),
            }[way]
        )
        if way in ("deactivated", "user deleted"):
            assert await viewer.closed() == 4401
        else:
            await viewer.hear("query.status", query=query, status="cancelled")


def deactivate(user):
    user.is_active = False
    user.save()


async def test_a_new_member_sees_at_once_what_the_team_has(harbour, connect):
    async with connect(harbour.users["stranger"]) as stranger:
        await stranger.hear("hello")
        await do(members.put, harbour.users["admin"], harbour.team.pk, "stranger", "viewer")
        assert {"team": harbour.team.pk, "name": "wharf", "role": "viewer"} in (await stranger.hear("team.list"))[
            "teams"
        ]
        await stranger.hear("query.status", query=harbour.queries["team"].pk, status="running")
        await do(queries.edit, harbour.users["admin"], harbour.queries["team"].pk, name="heard")
        await stranger.hear("query.status", name="heard")


async def test_a_demoted_member_is_refused_by_the_open_connection(harbour, connect):
    async with connect(harbour.users["analyst"]) as analyst:
        await analyst.hear("hello")
        await do(members.put, harbour.users["admin"], harbour.team.pk, "analyst", "viewer")
        await analyst.hear("team.list")
        for kind, fields in {
            "query.edit": {"query": harbour.queries["team"].pk, "name": "x"},
            "incident.comment": {"incident": harbour.incidents["team"].pk, "text": "x"},
            "saved.edit": {"view": harbour.views["team"].pk, "name": "x"},
        }.items():
            await analyst.tell(kind, id=kind, **fields)
            assert (await analyst.hear("error", id=kind))["code"] == "owner"


async def test_incidents_of_a_team_are_told_once_to_each_member_and_to_nobody_else(harbour, connect):
    users = harbour.users
    await do(members.put, users["admin"], harbour.team.pk, "owner", "viewer")
    async with (
        connect(users["viewer"]) as viewer,
        connect(users["owner"]) as owner,
        connect(users["stranger"]) as other,
    ):
        for socket in (viewer, owner, other):
            await socket.hear("hello")
        from webapp.alarms import incidents

        await do(incidents.comment, users["analyst"], harbour.incidents["team"].pk, "look")
        assert (await viewer.hear("incident.status"))["incidents"][0]["key"] == "team"
        await owner.hear("incident.status")
        await owner.silence("incident.status")
        await other.silence("incident.status")


async def test_a_layer_of_a_team_is_told_to_its_members_and_is_gone_for_others(harbour, connect):
    users = harbour.users
    async with connect(users["viewer"]) as viewer, connect(users["stranger"]) as other:
        for socket in (viewer, other):
            await socket.hear("hello")
        await do(share_layer, users["staff"], "shared", harbour.team.pk)
        assert (await viewer.hear("layer.status"))["layer"]["team"] == harbour.team.pk
        assert (await other.hear("layer.status"))["layer"] == {"name": "shared", "status": "deleted"}
        await do(share_layer, users["admin"], "shared", None)
        assert (await other.hear("layer.status"))["layer"]["status"] == "ready"


async def test_views_are_saved_opened_renamed_shared_and_deleted(harbour, connect):
    users, team = harbour.users, harbour.team.pk
    async with connect(users["analyst"]) as analyst, connect(users["viewer"]) as viewer:
        await viewer.hear("hello")
        shown = {"address": "#7/59/24/ships", "queries": [harbour.queries["team"].pk], "layers": ["team"]}
        await analyst.tell("saved.add", id=1, name="Strait", **shown)
        (view,) = [one for one in (await analyst.hear("saved.listed", id=1))["views"] if one["name"] == "Strait"]
        assert view["mine"] and view["editable"] and {key: view[key] for key in shown} == shown
        await viewer.silence("saved.changed")
        await analyst.tell("saved.edit", id=2, view=view["view"], team=team, name="The strait")
        await viewer.hear("saved.changed")
        await viewer.tell("saved.list", id=3)
        listed = {one["name"]: one for one in (await viewer.hear("saved.listed", id=3))["views"]}
        assert listed.keys() == {"team", "The strait"} and not listed["The strait"]["editable"]
        await analyst.tell("saved.edit", id=4, view=view["view"], team=None)
        await viewer.hear("saved.changed")
        await viewer.tell("saved.list", id=5)
        assert [one["name"] for one in (await viewer.hear("saved.listed", id=5))["views"]] == ["team"]
        await analyst.tell("saved.delete", id=6, view=view["view"])
        assert view["view"] not in {one["view"] for one in (await analyst.hear("saved.listed", id=6))["views"]}


def test_a_subscription_of_a_team_delivers_what_the_team_has(harbour):
    from tests.webapp.alarms import subscribed, webhook
    from webapp.models import Delivery

    subscription = subscribed(harbour.team, webhook("https://a.example"), severity="info")
    for of, query in harbour.queries.items():
        query.severity = "critical"
        changed(query, prefix=of)
    told = Delivery.objects.filter(subscription=subscription)
    assert {one.document["incident"]["key"] for one in told} == {"team-0", "shared-0"}
    assert Subscription.objects.count() == 1


# Share links.


async def test_a_link_shows_its_answers_and_nothing_else(engine, harbour, connect_guest):
    users = harbour.users
    query = await do(queries.register, users["analyst"], "watched", PLAN, team=harbour.team.pk)
    other = await do(queries.register, users["analyst"], "other", PLAN, team=harbour.team.pk)
    await do(settled, query, other)
    _, secret = await do(links.make, users["admin"], "guests", [query.pk], 1)
    async with connect_guest(secret) as guest:
        hello = await guest.hear("hello")
        assert (hello["user"], hello["teams"]) == ("", [])
        assert [stream["name"] for stream in hello["streams"]] == ["ships"]
        assert "sketch" not in hello["streams"][0] and "stored" not in hello["streams"][0]
        status = await guest.hear("query.status", query=query.pk)
        assert (status["owner"], status["team"], status["mine"]) == (None, None, False)
        await guest.tell("query.subscribe", query=query.pk)
        await guest.hear("answer.snapshot", query=query.pk)
        engine.move({"ship": INSIDE})
        assert [row["key"] for row in (await guest.hear("answer.change", query=query.pk))["rows"]] == ["ship"]
        await guest.tell("query.subscribe", id=1, query=other.pk)
        assert (await guest.hear("error", id=1))["code"] == "query"
        await guest.tell("query.subscribe", queries=[other.pk, harbour.queries["shared"].pk])
        await guest.tell("query.list", id=2)
        assert [one["query"] for one in (await guest.hear("query.listed", id=2))["queries"]] == [query.pk]
        await do(queries.edit, users["admin"], other.pk, name="renamed")
        await do(queries.edit, users["admin"], query.pk, name="seen")
        await guest.hear("query.status", name="seen")
        heard = {message["type"] for message in guest.skipped}
        assert heard <= {"hello", "query.status", "engine.status", "answer.change", "answer.held", "queries.changed"}
        assert not [m for m in guest.skipped if m["type"] == "query.status" and m["query"] == other.pk]


END = {
    "revoked": lambda harbour: links.revoke(harbour.users["admin"], harbour.link.pk),
    "deleted": lambda harbour: harbour.link.delete(),
    "shortened": lambda harbour: expire(harbour.link),
    "made by somebody who may not use Lookout any more": lambda harbour: deactivate(harbour.users["admin"]),
}


@pytest.mark.parametrize("how", END)
async def test_an_open_connection_ends_with_its_link(how, harbour, connect_guest):
    async with connect_guest(harbour.secret) as guest:
        await guest.hear("hello")
        await do(END[how], harbour)
        assert await guest.closed() == ENDED
    async with connect_guest(harbour.secret) as guest:
        assert await guest.closed() == ENDED


async def test_an_open_connection_ends_when_its_link_expires(harbour, connect_guest):
    await do(expire, harbour.link, 0.6)
    async with connect_guest(harbour.secret) as guest:
        await guest.hear("hello")
        assert await guest.closed() == ENDED


async def test_a_query_that_leaves_the_team_leaves_its_links(engine, harbour, connect_guest):
    query = await do(queries.register, harbour.users["admin"], "watched", PLAN, team=harbour.team.pk)
    await do(settled, query)
    link, secret = await do(links.make, harbour.users["admin"], "guests", [query.pk], 1)
    assert link.team_id == harbour.team.pk
    async with connect_guest(secret) as guest:
        await guest.tell("query.subscribe", query=query.pk)
        await guest.hear("answer.snapshot", query=query.pk)
        await do(queries.edit, harbour.users["admin"], query.pk, team=None)
        await guest.hear("query.status", query=query.pk, status="cancelled")
        engine.move({"after": INSIDE})
        await guest.silence("answer.change")
        await guest.tell("query.subscribe", id=1, query=query.pk)
        assert (await guest.hear("error", id=1))["code"] == "query"


async def test_a_link_has_a_most_of_connections(harbour, connect_guest, settings):
    settings.SHARE_CONNECTIONS = 2
    async with connect_guest(harbour.secret) as first, connect_guest(harbour.secret) as second:
        await first.hear("hello")
        await second.hear("hello")
        async with connect_guest(harbour.secret) as third:
            assert await third.closed() == FULL
    async with connect_guest(harbour.secret) as again:
        await again.hear("hello")


def test_a_secret_is_long_kept_as_a_hash_and_hidden_in_logs(harbour, client):
    assert len(harbour.secret) >= 43  # 256 bits
    rows = str(list(ShareLink.objects.values())) + str(list(AuditEntry.objects.values()))
    assert harbour.secret not in rows and harbour.link.digest not in str(list(AuditEntry.objects.values()))
    for line in (
        f'"GET /shared/{harbour.secret}/ HTTP/1.1" 200',
        f'"WebSocket /ws/shared/{harbour.secret}/" [accepted]',
    ):
        assert harbour.secret not in without_secrets(line)
    assert without_secrets("/static/js/shared/main.js") == "/static/js/shared/main.js"
    page = client.get(f"/shared/{harbour.secret}/")
    assert page.status_code == 200 and page.headers["X-Robots-Tag"] == "noindex"
    assert page.headers["Cache-Control"].startswith("max-age=0")
    links.revoke(harbour.users["admin"], harbour.link.pk)
    assert client.get(f"/shared/{harbour.secret}/").status_code == 410


@pytest.mark.parametrize(
    ("who", "of", "made"),
    [
        ("admin", ("team",), True),
        ("staff", ("team",), True),
        ("analyst", ("team",), False),
        ("owner", ("private", "team"), True),
        ("owner", ("private", "shared"), True),
        ("admin", ("team", "shared"), False),
        ("admin", ("other team",), False),
        ("viewer", ("shared",), False),
    ],
)
def test_a_link_is_made_by_owners_and_by_admins_of_the_team(who, of, made, harbour):
    numbers = [harbour.queries[one].pk for one in of]
    if made:
        link, _ = links.make(harbour.users[who], "l", numbers, 1)
        assert link.team_id == (harbour.team.pk if who != "owner" else None)
    else:
        with pytest.raises(Refused):
            links.make(harbour.users[who], "l", numbers, 1)
    assert ShareLink.objects.filter(name="l").exists() is made


# The pages.


def page_of(client, harbour, who):
    client.force_login(harbour.users[who])
    response = client.get(f"/teams/{harbour.team.pk}/")
    return response.status_code, response.content.decode()


def test_the_page_of_a_team_shows_each_role_what_it_may(harbour, client):
    for who, (status, managed) in {
        "viewer": (200, False),
        "analyst": (200, False),
        "admin": (200, True),
        "staff": (200, True),
        "stranger": (404, False),
    }.items():
        found, text = page_of(client, harbour, who)
        assert found == status, who
        assert ("Add a channel" in text) == managed and ("for guests" in text) == managed, who
        assert ("Changes</h2>" in text) == managed, who


def test_an_admin_manages_members_links_and_alarms_on_the_page(harbour, client):
    page_of(client, harbour, "admin")
    at = f"/teams/{harbour.team.pk}"

    def change(**form):
        return client.post(f"{at}/change", form, follow=True).content.decode()

    assert "stranger is analyst now." in change(action="put", name="stranger", role="analyst")
    assert Membership.objects.get(team=harbour.team, user__username="stranger").role == Role.ANALYST
    assert "stranger is no longer a member." in change(action="remove", name="stranger")
    assert "a team must have an admin" in change(action="remove", name="admin")
    assert "is revoked" in change(action="revoke", link=harbour.link.pk)
    assert "action must be one of" in change(action="explode")
    form = {"name": "hook", "kind": "webhook", "enabled": "on", "channel__webhook__url": "https://a.example/x"}
    assert "webhook" in client.get(f"{at}/channel").content.decode()
    shown = client.get(f"{at}/channel?kind=webhook").content.decode()
    assert "channel__webhook__url" in shown and "channel__email__to" not in shown and "id_owner" not in shown
    saved = client.post(f"{at}/channel?kind=webhook", form | {"channel__webhook__token": "t0ken"}, follow=True)
    assert "hook is saved." in saved.content.decode()
    channel = harbour.team.channels.get()
    assert (channel.kind, channel.options, channel.owner) == ("webhook", {"url": "https://a.example/x"}, None)
    form = {"channel": channel.pk, "enabled": "on", "severity": "warning", "changes": ["opened"]}
    form |= {"weekdays": ["0", "1"], "time_zone": "UTC", "window_s": "3600", "queries": [harbour.queries["team"].pk]}
    saved = client.post(f"{at}/subscription", form, follow=True)
    assert "is saved." in saved.content.decode(), re.findall("errorlist.*", saved.content.decode())
    assert list(harbour.team.subscriptions.get().queries.all()) == [harbour.queries["team"]]
    shown = client.get(f"{at}/subscription?subscription={harbour.team.subscriptions.get().pk}").content.decode()
    assert re.findall(r'name="weekdays" value="(\d)"[^>]* checked', shown) == ["0", "1"]
    form["queries"] = [harbour.queries["other team"].pk]
    assert "is saved" not in client.post(f"{at}/subscription", form).content.decode()
    text = client.get(f"{at}/").content.decode()
    assert "t0ken" not in text and "channel hook created" in text


async def test_connections_beside_each_other_do_not_end_with_one_link(harbour, connect_guest):
    _, second = await do(links.make, harbour.users["admin"], "l", [harbour.queries["team"].pk], 1)
    async with connect_guest(harbour.secret) as ends, connect_guest(second) as stays:
        await ends.hear("hello")
        await stays.hear("hello")
        await do(links.revoke, harbour.users["admin"], harbour.link.pk)
        assert await ends.closed() == ENDED
        await stays.tell("query.list", id=1)
        await stays.hear("query.listed", id=1)
        await asyncio.sleep(0)


def test_views_need_a_place_and_a_limit(harbour):
    with pytest.raises(Refused, match="view must be"):
        views.edit(harbour.users["viewer"], 10**9, name="x")
    soon = timezone.now() + timedelta(hours=1)
    assert abs(ShareLink.objects.get().expires - soon) < timedelta(minutes=1)
    with transaction.atomic():
        assert Query.objects.filter(team=harbour.team).count() == 1
