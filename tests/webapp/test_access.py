"""Who may see and change what: every message, every address, every role."""

import asyncio
import json

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import URLPattern, get_resolver

from tests.webapp.conftest import BOX, PLAN, cookie_of, token_of
from tests.webapp.teamwork import OF, WHO, scene
from webapp.alarms import incidents
from webapp.consumers.messages import FIELDS
from webapp.consumers.permissions import OF_GUESTS, RULES
from webapp.layers.versions import changeable, share_layer
from webapp.models import AuditEntry, Layer, Membership, Query, SavedView, ShareLink
from webapp.queries import queries
from webapp.rights.access import Guest, rights_of
from webapp.rights.permissions import LINK, PUBLIC, STAFF, TOKEN, USER
from webapp.rights.permissions import RULES as URL_RULES
from webapp.teams import links, members, views
from webapp.words.refusals import Refused

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def harbour(streams):
    return scene()


# The gates: what is new must be declared, and has a case below.


def test_every_message_has_a_rule_and_no_rule_is_of_a_message_that_is_gone():
    assert set(RULES) == set(FIELDS)
    assert set(FIELDS) >= OF_GUESTS


def test_every_address_has_a_rule_and_no_rule_is_of_an_address_that_is_gone():
    named = {entry.name for entry in get_resolver().url_patterns if isinstance(entry, URLPattern)}
    assert named == set(URL_RULES)
    included = [entry for entry in get_resolver().url_patterns if not isinstance(entry, URLPattern)]
    assert [entry.app_name for entry in included] == ["admin"]  # it asks for staff itself, page by page


def test_an_address_without_a_rule_is_refused_to_everybody(client, staff, monkeypatch):
    client.force_login(staff)
    assert client.get("/teams/").status_code == 200
    monkeypatch.delitem(URL_RULES, "teams")
    assert client.get("/teams/").status_code == 403


# The websocket, message by message, for somebody who may see nothing of what is named.

LAYER, NO_LAYER = {"layer": "team"}, "layer must be"
STRANGE = {
    "filter.check": ({"where": "a = 1", "names": [], "objects": []}, None),
    "query.register": ({"name": "q", "plan": PLAN | {"kind": "rule", "when": {"query": "team"}}}, "plan"),
    "query.edit": ({"query": "team", "name": "mine now"}, "query"),
    "query.cancel": ({"query": "team"}, "query"),
    "examples.show": ({"shown": True}, None),
    "query.list": ({}, None),
    "query.subscribe": ({"query": "team"}, "query"),
    "query.unsubscribe": ({"query": "team"}, None),
    "query.snapshot": ({"query": "team"}, "query"),
    "incident.list": ({}, None),
    "incident.get": ({"incident": "team"}, "incident"),
    "incident.acknowledge": ({"incident": "team"}, "incident"),
    "incident.assign": ({"incident": "team", "to": None}, "incident"),
    "incident.comment": ({"incident": "team", "text": "hm"}, "incident"),
    "incident.snooze": ({"incident": "team", "until": "2100-01-01T00:00:00Z"}, "incident"),
    "incident.wake": ({"incident": "team"}, "incident"),
    "incident.close": ({"incident": "team"}, "incident"),
    "why.object": ({"query": "team", "stream": "ships", "key": "a"}, "query"),
    "why.event": ({"query": "team", "key": "a", "sign": "+", "time_us": 0}, "query"),
    "why.incident": ({"incident": "team"}, "incident"),
    "backtest.start": (
        {"plan": PLAN | {"kind": "rule", "when": {"query": "team"}}, "span": {"last_s": 60}},
        "plan",
    ),
    "backtest.cancel": ({}, None),
    "saved.list": ({}, None),
    "saved.add": ({"name": "v", "address": "", "team": "team"}, "team"),
    "saved.edit": ({"view": "team", "name": "mine now"}, "view"),
    "saved.delete": ({"view": "team"}, "view"),
    "link.list": ({}, None),
    "link.add": ({"name": "l", "queries": ["team"], "hours": 1}, "query"),
    "link.revoke": ({"link": "team"}, "link"),
    "roles.subscribe": ({"query": "team"}, "query"),
    "roles.unsubscribe": ({"query": "team"}, None),
    "regions.subscribe": ({}, None),
    "regions.unsubscribe": ({}, None),
    "view.subscribe": ({"streams": ["ships"], "area": BOX}, None),
    "view.unsubscribe": ({}, None),
    "sketch.ask": ({"text": "count of ships"}, "plan"),
    "sketch.end": ({"query": "team"}, None),
    "table.get": ({"table": LAYER, "key": "a"}, "table"),
    "table.query": ({"table": LAYER}, "table"),
    "table.join": ({"left": LAYER, "right": LAYER}, "table"),
}


def named(harbour, fields):
    """Return fields with the numbers of the team's objects in place of "team"."""
    numbers = {
        "query": harbour.queries["team"].pk,
        "queries": harbour.queries["team"].pk,
        "incident": harbour.incidents["team"].pk,
        "view": harbour.views["team"].pk,
        "link": harbour.link.pk,
        "team": harbour.team.pk,
    }

    def real(name, value):
        if value == "team":
            return numbers[name]
        if isinstance(value, list):
            return [real(name, one) for one in value]
        if name == "plan" and "when" in value:
            return value | {"when": {"query": numbers["query"]}}
        return value

    return {name: real(name, value) for name, value in fields.items()}


async def everything_said(socket, kind, fields):
    """Send a message; return its reply if it is an error, and all that came until another reply."""
    await socket.tell(kind, id="asked", **fields)
    await socket.tell("query.cancel", id="over", query=1)  # no such query, so an error ends what came
    said = []
    while (message := await socket.hear_any()).get("id") != "over":
        said.append(message)
    return [m for m in said if m["type"] == "error" and m.get("id") == "asked"], said


@pytest.mark.parametrize("kind", FIELDS)
async def test_no_message_shows_or_changes_anything_of_a_team_to_others(kind, streams, connect):
    harbour = await sync_to_async(scene)()
    fields, code = STRANGE[kind]
    before = await sync_to_async(state)()
    async with connect(harbour.users["stranger"]) as socket:
        await socket.hear("hello")
        errors, said = await everything_said(socket, kind, named(harbour, fields))
    assert [error["code"] for error in errors] == ([code] if code else [])
    shown = json.dumps([{k: v for k, v in m.items() if k != "table"} for m in said if m["type"] != "error"])
    for secret in ('"team"', f'"query": {harbour.queries["team"].pk}', f'"query": {harbour.queries["private"].pk}'):
        assert secret not in without_own_keys(shown), (kind, secret)
    assert await sync_to_async(state)() == before


def without_own_keys(text):
    """Return a text of JSON without the key "team", which every document has."""
    return text.replace('"team":', "")


def state():
    """Return all that may not change by what others say."""
    kept = [list(model.objects.order_by("pk").values()) for model in (Membership, Layer, SavedView, ShareLink)]
    fields = ("pk", "name", "plan", "status", "team", "shared", "paused")
    kept.append(list(Query.objects.exclude(name="q").order_by("pk").values(*fields)))
    return kept, AuditEntry.objects.exclude(kind="API token").count()  # tests connect with new tokens


@pytest.mark.parametrize("kind", FIELDS)
async def test_a_guest_is_refused_all_but_reading(kind, streams, connect_guest):
    harbour = await sync_to_async(scene)()
    async with connect_guest(harbour.secret) as socket:
        await socket.hear("hello")
        fields = named(harbour, STRANGE[kind][0])
        await socket.tell(kind, id="asked", **fields)
        await socket.tell("query.cancel", id="over", query=1)
        errors = []
        while (message := await socket.hear_any()).get("id") != "over":
            errors += [message["code"]] if message["type"] == "error" else []
    allowed = {"query.snapshot": ["query"]}  # it has not subscribed the query yet
    assert errors == (allowed.get(kind, []) if kind in OF_GUESTS else ["access"])


# Pages, address by address.

PATHS = {
    "alarms": "/alarms/",
    "alarms-browser": "/alarms/browser",
    "alarms-forget": "/alarms/browser/forget",
    "alarms-known": "/alarms/browser/known",
    "alarms-test": "/alarms/browser/test",
    "alive": "/livez",
    "health": "/healthz",
    "layer": "/layers/team",
    "layer-cancel": "/layers/team/cancel",
    "layer-features": "/layers/team/features?version=1",
    "layer-look": "/layers/team/look",
    "layer-share": "/layers/team/share",
    "catalogue": "/texts/de/guessed.js",
    "coast": "/coast/200_0.json",
    "language": "/language/",
    "layers": "/layers/",
    "login": "/login/",
    "login-once": "/login/once/guessed/",
    "logout": "/logout/",
    "map": "/",
    "map-tile": "/maps/1/0/0/0",
    "metrics": "/metrics",
    "operations": "/operations/",
    "operations-figures": "/operations/figures",
    "password": "/password/",
    "plan-schema": "/plans/schema.json",
    "replay": "/replay/",
    "replay-answers": "/replay/answers?query=1&from=0&to=1",
    "replay-elements": "/replay/elements/ships?from=0&to=1",
    "replay-events": "/replay/events?from=0&to=1",
    "replay-query-events": "/replay/events/1",
    "report": "/reports/ships?layer=team&feature=a&from=0&to=1",
    "shared": "/shared/guessed/",
    "team": "/teams/{team}/",
    "team-change": "/teams/{team}/change",
    "team-channel": "/teams/{team}/channel?kind=webhook",
    "team-subscription": "/teams/{team}/subscription",
    "teams": "/teams/",
}
# What somebody gets who is logged in, but has no right to what the address names. By method where it matters.
FOREIGN = {
    "alarms-browser": {"post": 400},
    "alarms-forget": {"post": 400},
    "alarms-known": {"post": 400},
    "alarms-test": {"post": 400},
    "catalogue": {"get": 404},
    "coast": {"get": 404},
    "language": {"post": 302},
    "layer": {"get": 404, "delete": 404},
    "layer-cancel": {"post": 404},
    "layer-features": {"get": 404, "patch": 404},
    "layer-look": {"post": 404},
    "layer-share": {"post": 404},
    "login-once": {"get": 410},
    "map-tile": {"get": 404},
    "metrics": {"get": 403},
    "operations": {"get": 403},
    "operations-figures": {"get": 403},
    "replay-answers": {"get": 400},
    "replay-elements": {"get": 404},
    "report": {"get": 404},
    "shared": {"get": 410},
    "team": {"get": 404},
    "team-change": {"post": 302},
    "team-channel": {"get": 404, "post": 404},
    "team-subscription": {"get": 404, "post": 404},
}
BODIES = {"layer-features": {"version": 1}, "layer-look": {"look": 1}, "layer-share": {"team": None}}


def opened(client, name, harbour, method):
    path = PATHS[name].format(team=harbour.team.pk)
    if method in ("post", "patch") and name in BODIES:
        return getattr(client, method)(path, BODIES[name], content_type="application/json")
    if name == "team-change":
        return client.post(path, {"action": "put", "name": "stranger", "role": "admin"})
    return getattr(client, method)(path)


@pytest.mark.parametrize("name", URL_RULES)
def test_no_address_shows_or_changes_anything_of_a_team_to_others(name, harbour, client):
    anonymous = Client(raise_request_exception=False)
    for method in FOREIGN.get(name, {"get": 200}):
        status = opened(anonymous, name, harbour, method).status_code
        expected = {PUBLIC: (200, 302, 404, 405, 503), LINK: (410,), USER: (302, 401), STAFF: (302, 401), TOKEN: (401,)}
        assert status in expected[URL_RULES[name]], (name, method)
    client.force_login(harbour.users["stranger"])
    before = state()
    for method, status in FOREIGN.get(name, {"get": None}).items():
        response = opened(client, name, harbour, method)
        assert status is None or response.status_code == status, (name, method)
        shown = response.content.decode(errors="replace")
        assert "wharf" not in shown and '"name": "team"' not in shown, (name, method)
    assert state() == before


# Roles.


def may(call):
    """Return whether a call is carried out; an error other than a refusal is an error of the test."""
    try:
        call()
    except Refused:
        return False
    return True


def actions(harbour, user, of):
    """Return what a user may try with an object, by name."""
    query, incident = harbour.queries[of].pk, harbour.incidents[of].pk
    layer, view = harbour.layers[of].name, harbour.views.get(of)
    tried = {
        "see": lambda: queries.visible(user, query),
        "rename": lambda: queries.edit(user, query, name="new"),
        "pause": lambda: queries.edit(user, query, paused=True),
        "share": lambda: queries.edit(user, query, shared=of != "shared"),
        "see incident": lambda: incidents.detail(user, incident),
        "comment": lambda: incidents.comment(user, incident, "hm"),
        "see layer": lambda: seen(rights_of(user).layers(), name=layer),
        "change layer": lambda: changed_layer(user, layer),
        "link": lambda: links.make(user, "l", [query], 1),
        "end": lambda: queries.cancel(user, query),
    }
    if view is not None:
        tried["rename view"] = lambda: views.edit(user, view.pk, name="new")
        tried["see view"] = lambda: seen(rights_of(user).views(), pk=view.pk)
    return tried


def changed_layer(user, name):
    from django.db import transaction

    with transaction.atomic():
        changeable(user, name)


def seen(found, **named):
    if not found.filter(**named).exists():
        raise Refused("unseen", "it is not among what the user sees")


SEES = {"see", "see incident", "see layer", "see view"}
EDITS = SEES | {"rename", "pause", "comment", "change layer", "end", "rename view"}
ALL = EDITS | {"share", "link"}
SHARED = {"see", "see incident", "comment", "see layer"}
MATRIX = {
    "owner": {"private": ALL, "team": ALL - {"link"} | {"link"}, "shared": ALL, "other team": ALL},
    "viewer": {"private": {"see layer"}, "team": SEES, "shared": SHARED, "other team": set()},
    "analyst": {"private": {"see layer"}, "team": EDITS, "shared": SHARED, "other team": set()},
    "admin": {"private": {"see layer"}, "team": ALL, "shared": SHARED, "other team": set()},
    "stranger": {"private": {"see layer"}, "team": set(), "shared": SHARED, "other team": ALL},
    # Staff see queries by their number, change them all, and manage every team; views are personal.
    "staff": {
        "private": ALL - {"link", "see view", "rename view"},
        "team": ALL - {"see view", "rename view"},
        "shared": ALL - {"link", "see view", "rename view"},
        "other team": ALL - {"see view", "rename view"},
    },
}


@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize("who", WHO)
def test_a_role_may_do_what_the_documentation_says_and_nothing_else(who, of, harbour, monkeypatch):
    Layer.objects.update(version=None)
    tried = actions(harbour, harbour.users[who], of)
    # A layer without a team is seen by everybody.
    allowed = (MATRIX[who][of] | ({"see layer"} if of in ("private", "shared") else set())) & tried.keys()
    found = {name for name, action in tried.items() if may(lambda act=action: act())}
    assert found == allowed


@pytest.mark.parametrize("who", WHO)
def test_what_is_decided_for_one_object_and_for_all_is_the_same(who, harbour):
    Query.objects.create(owner=None, name="example", stream="ships", plan=PLAN, shared=True, status=Query.RUNNING)
    principals = [harbour.users[who], Guest(harbour.link)]
    for rights in map(rights_of, principals):
        for query in Query.objects.all():
            of = (query.pk, query.owner_id, query.shared, query.team_id)
            assert rights.lists_query(*of) == rights.listed().filter(pk=query.pk).exists()
            assert rights.sees_query(*of) == rights.sees(query) == rights.queries().filter(pk=query.pk).exists()
        for layer in Layer.objects.all():
            seen = rights.layers().filter(pk=layer.pk).exists()
            assert rights.sees_layer(layer.owner_id, layer.team_id) == seen


@pytest.mark.parametrize("who", WHO)
def test_a_user_who_is_not_active_has_no_rights(who, harbour):
    user = harbour.users[who]
    user.is_active = False
    user.save()
    rights = rights_of(user)
    for found in (rights.queries(), rights.listed(), rights.layers(), rights.views(), rights.links(), rights.teams()):
        assert not found.exists()
    query = harbour.queries["team"]
    assert not any((rights.sees(query), rights.edits(query), rights.acts(query), rights.manages(harbour.team.pk)))


def test_members_are_managed_by_admins_and_a_team_keeps_one(harbour):
    users, team = harbour.users, harbour.team.pk
    for who in ("viewer", "analyst", "owner", "stranger"):
        with pytest.raises(Refused):
            members.put(users[who], team, "stranger", "viewer")
        with pytest.raises(Refused):
            members.remove(users[who], team, "admin")
    members.put(users["admin"], team, "stranger", "viewer")
    assert rights_of(users["stranger"]).sees(harbour.queries["team"])
    members.put(users["admin"], team, "stranger", "analyst")
    assert rights_of(users["stranger"]).edits(harbour.queries["team"])
    with pytest.raises(Refused, match="a team must have an admin"):
        members.put(users["admin"], team, "admin", "viewer")
    with pytest.raises(Refused, match="a team must have an admin"):
        members.remove(users["admin"], team, "admin")
    members.remove(users["stranger"], team, "stranger")  # everybody may leave
    members.remove(users["staff"], team, "viewer")
    assert not rights_of(users["viewer"]).sees(harbour.queries["team"])
    with pytest.raises(Refused, match="an active user"):
        members.put(users["admin"], team, "nobody", "viewer")


def test_nobody_gives_to_a_team_what_they_may_not_create_there(harbour, streams):
    users, team = harbour.users, harbour.team.pk
    for who, given in {"viewer": False, "stranger": False, "owner": False, "analyst": True, "admin": True}.items():
        assert may(lambda who=who: queries.register(users[who], "q", PLAN, team=team)) is given
        assert may(lambda who=who: views.add(users[who], "v", team, address="")) is given
    mine = queries.register(users["viewer"], "mine", PLAN)
    assert not may(lambda: queries.edit(users["viewer"], mine.pk, team=team))
    theirs = queries.register(users["analyst"], "mine", PLAN, team=team)
    assert may(lambda: queries.edit(users["analyst"], theirs.pk, team=None))
    assert not may(lambda: share_layer(users["analyst"], harbour.layers["team"].name, None))
    assert may(lambda: share_layer(users["admin"], harbour.layers["team"].name, None))


def test_tokens_act_with_the_rights_of_their_user(harbour, client):
    harbour.queries["team"].refresh_from_db()
    for who, status in {"viewer": 400, "stranger": 404}.items():
        secret = token_of(harbour.users[who])
        path = f"/reports/ships?query={harbour.queries['team'].pk}&from=0&to=1"
        streams = harbour.queries["team"].stream
        assert streams == "ships"
        answer = client.get(path, headers={"Authorization": f"Bearer {secret}"})
        assert answer.status_code in (status, 404)


async def test_a_browser_that_is_logged_in_gets_no_more_by_a_link_than_a_guest(streams, connect_guest):
    harbour = await sync_to_async(scene)()
    cookies = await sync_to_async(cookie_of)(harbour.users["staff"])
    async with connect_guest(harbour.secret, cookies) as socket:
        assert (await socket.hear("hello"))["user"] == ""
        await socket.tell("query.subscribe", id=1, query=harbour.queries["private"].pk)
        assert (await socket.hear("error", id=1))["code"] == "query"
        await asyncio.sleep(0)
