"""What a query reads is decided by its owner's rights, at each door, and again when rights change."""

import re

import pytest
import shapely
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group, Permission
from django.db.models import ProtectedError
from django.utils import timezone

from streaming.layers import feature_table
from streaming.spaces import EARTH
from tests.webapp.alarms import changed, subscribed, webhook
from tests.webapp.conftest import INSIDE, settled
from tests.webapp.teamwork import expire, scene
from webapp.alarms import incidents
from webapp.delivery.claims import UNHEARD, claim
from webapp.delivery.pace import DeliveryPace
from webapp.layers.versions import share_layer
from webapp.models import Delivery, Event, Layer, Membership, Query, Stream
from webapp.models.layers import layer_store
from webapp.queries import queries
from webapp.queries.waiting import follow_now
from webapp.questions import backtests
from webapp.questions.replay import answers
from webapp.questions.why.facts import ExplainedQuery, layers_about
from webapp.questions.why.fixes import subject_of_event
from webapp.rights.access import rights_of
from webapp.teams import members
from webapp.words.refusals import Refused

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.filterwarnings("ignore::RuntimeWarning")]

JOIN = {"stream": "ships", "kind": "join", "join": {"layer": "berths", "predicate": "within"}}
WAITS = "waits for the layer 'berths', which is not there"
HOUR = {"from": 1_700_000_000, "to": 1_700_003_600}


@pytest.fixture
def harbour(streams, project, tmp_path):
    project.HISTORY_DIR, project.LAYERS_DIR = tmp_path / "history", tmp_path / "layers"
    return scene()


def berths(harbour):
    """Let the admin's team have a layer of the name for which joins wait."""
    version = layer_store().write("berths", feature_table("berths", ["quay"], [shapely.box(14, 54, 16, 56)], [{}]))
    admin = harbour.users["admin"]
    layer = Layer.objects.create(
        name="berths", owner=admin, team=harbour.team, space_id="earth", status="ready", version=version
    )
    follow_now()
    return layer


def status(query):
    query.refresh_from_db()
    return query.status, query.warning


# A layer of a team, and somebody whose join waited for its name.


def test_a_join_that_waited_for_a_name_reads_no_layer_of_another_team_that_gets_it(harbour):
    users = harbour.users
    waiting, theirs = (queries.register(users[who], "near", JOIN) for who in ("stranger", "viewer"))
    before = status(waiting)
    berths(harbour)
    assert status(waiting) == before and before[1].startswith(WAITS)
    assert status(theirs)[0] == "pending"


def test_no_answer_of_the_past_reads_a_layer_that_the_live_query_may_not(harbour):
    Stream.objects.update(stored=True)
    users = harbour.users
    queries_of = {who: queries.register(users[who], "near", JOIN) for who in ("stranger", "viewer")}
    nowhere = answers._played(users["stranger"], [queries_of["stranger"]], 0, 1)
    berths(harbour)
    for who, reads in {"stranger": False, "viewer": True}.items():
        query = Query.objects.select_related("space").get(pk=queries_of[who].pk)
        played = answers._played(users[who], [query], 0, 1)
        assert played.layers == ({"berths": 1} if reads else {})
        assert played.queries == ((query.pk,) if reads else ())
        if not reads:
            assert played.refused == nowhere.refused and WAITS in played.refused[str(query.pk)]


def test_a_shared_join_is_computed_anew_only_for_those_who_see_its_layer(harbour):
    Stream.objects.update(stored=True)
    berths(harbour)
    query = queries.register(harbour.users["admin"], "near", JOIN, shared=True)
    told = {who: answers._played(user, [query], 0, 1).refused for who, user in harbour.users.items()}
    refused = {who for who, words in told.items() if words}
    assert refused == {"owner", "stranger"}
    assert "reads what you may not see" in told["stranger"][str(query.pk)]


def test_a_replay_of_a_rule_plays_no_query_that_who_asks_may_not_see(harbour):
    Stream.objects.update(stored=True)
    users = harbour.users
    plan = {"stream": "ships", "kind": "rule", "when": {"query": harbour.queries["team"].pk}}
    alarm = queries.register(users["analyst"], "alarm", plan, shared=True)
    for who, reads in {"viewer": True, "stranger": False}.items():
        played = answers._played(users[who], [alarm], 0, 1)
        assert bool(played.plans) is reads and bool(played.refused) is not reads


def test_a_session_of_a_replay_does_not_outlive_the_rights_with_which_it_began(harbour):
    Stream.objects.update(stored=True)
    layer = berths(harbour)
    query = queries.register(harbour.users["viewer"], "near", JOIN)
    began = answers._played(harbour.users["viewer"], [query], 0, 1)
    assert answers._same(began, answers._played(harbour.users["viewer"], [query], 0, 1))
    share_layer(harbour.users["staff"], layer.name, harbour.other.pk)
    assert not answers._same(began, answers._played(harbour.users["viewer"], [query], 0, 1))


def test_a_back_test_reads_no_hidden_layer_and_tells_no_more_than_of_one_that_is_not_there(harbour):
    users, told = harbour.users, []
    for is_there in (False, True):
        if is_there:
            berths(harbour)
        with pytest.raises(Refused) as refused:
            backtests.question(users["stranger"], JOIN, HOUR)
        told.append(str(refused.value))
    assert told[0] == told[1] and WAITS in told[0]
    with pytest.raises(Refused, match="are not stored"):
        backtests.question(users["viewer"], JOIN, HOUR)


def test_an_explanation_reads_a_layer_only_if_the_query_and_who_asks_may(harbour):
    users = harbour.users
    waiting, theirs = (queries.register(users[who], "near", JOIN, shared=True) for who in ("stranger", "admin"))
    berths(harbour)
    at = [*INSIDE, None]
    event = Event(query=theirs, key="a", sign="+", time=timezone.now(), bounds=at * 2, properties={})
    subject = subject_of_event(event, EARTH)
    for who, query, reads in [
        ("stranger", waiting, False),
        ("viewer", waiting, False),
        ("stranger", theirs, False),
        ("viewer", theirs, True),
    ]:
        found = layers_about(ExplainedQuery.of(users[who], query), subject)("berths")
        assert (found is not None) is reads, (who, query)


# Rules, and what else goes on.


@pytest.fixture
def alarm(harbour):
    """A rule of an analyst about the team's query."""
    plan = {"stream": "ships", "kind": "rule", "when": {"query": harbour.queries["team"].pk}}
    return queries.register(harbour.users["analyst"], "alarm", plan, severity="info")


def removed(harbour):
    members.remove(harbour.users["admin"], harbour.team.pk, "analyst")
    return lambda: members.put(harbour.users["admin"], harbour.team.pk, "analyst", "viewer")


def taken_away(harbour):
    query, owner = harbour.queries["team"].pk, harbour.users["owner"]
    queries.edit(owner, query, team=None)
    return lambda: queries.edit(owner, query, shared=True)


def team_deleted(harbour):
    Layer.objects.filter(team=harbour.team).delete()
    harbour.team.delete()
    return lambda: queries.edit(harbour.users["owner"], harbour.queries["team"].pk, shared=True)


def deactivated(harbour):
    user = harbour.users["analyst"]
    user.is_active = False
    user.save()

    def back():
        user.is_active = True
        user.save()

    return back


@pytest.mark.parametrize("change", [removed, taken_away, team_deleted, deactivated])
def test_a_rule_waits_while_its_owner_may_not_see_what_it_watches(change, harbour, alarm):
    assert status(alarm)[0] == "pending"
    back = change(harbour)
    number = harbour.queries["team"].pk
    waits = f"waits for query {number}, which its owner may not see; it starts once the owner may"
    assert status(alarm) == ("waiting", waits) and not alarm.should_run
    queries.edit(harbour.users["staff"], number, name="moved")
    assert status(alarm) == ("waiting", waits)
    back()
    assert status(alarm) == ("pending", "")


def test_a_rule_about_a_shared_query_waits_once_sharing_is_withdrawn(harbour):
    users, number = harbour.users, harbour.queries["shared"].pk
    alarm = queries.register(users["stranger"], "alarm", {"stream": "ships", "kind": "rule", "when": {"query": number}})
    queries.edit(users["owner"], number, shared=False)
    assert status(alarm)[0] == "waiting"
    queries.edit(users["owner"], number, shared=True)
    assert status(alarm)[0] == "pending"


def test_the_engine_ends_a_rule_that_waits(engine, harbour, alarm):
    follow_now()
    (query,) = settled(alarm)
    assert query.status == "running"
    removed(harbour)
    (query,) = settled(alarm)
    assert (query.status, query.should_run, query.acknowledged) == ("waiting", False, query.revision)


def test_a_join_of_a_team_waits_once_its_owner_left_and_goes_on_if_the_owner_may_not_log_in(harbour):
    layer, owner = berths(harbour), harbour.users["analyst"]
    join = queries.register(owner, "near", JOIN, team=layer.team_id)
    owner.is_active = False
    owner.save()
    assert status(join)[0] == "pending"
    owner.is_active = True
    owner.save()
    Membership.objects.get(user=owner).delete()
    assert status(join)[0] == "waiting"


def test_who_edits_somebody_elses_query_names_only_layers_that_they_see(harbour):
    berths(harbour)
    share_layer(harbour.users["staff"], "berths", harbour.other.pk)
    told = {}
    for name in ("berths", "nowhere"):
        with pytest.raises(Refused) as refused:
            queries.edit(
                harbour.users["analyst"],
                harbour.queries["team"].pk,
                plan=JOIN | {"join": {"layer": name, "predicate": "within"}},
            )
        told[name] = str(refused.value).replace(name, "it")
    assert told["berths"] == told["nowhere"] and "berths" not in told["berths"]


# Staff.


def test_staff_act_on_what_their_permissions_allow_and_no_more(harbour, django_user_model):
    clerk = django_user_model.objects.create_user("clerk", is_staff=True)
    query, layer = harbour.queries["private"], harbour.layers["team"]

    def may():
        rights = rights_of(clerk)
        return rights.sees(query), rights.edits(query), rights.sees_layer(layer.owner_id, layer.team_id)

    assert may() == (False, False, False)
    with pytest.raises(Refused):
        queries.edit(clerk, query.pk, name="mine")
    clerk.user_permissions.add(Permission.objects.get(codename="view_query"))
    assert may() == (True, False, False)
    group = Group.objects.create(name="editors")
    group.permissions.add(*Permission.objects.filter(codename__in=("change_query", "view_layer")))
    clerk.groups.add(group)
    assert may() == (True, True, True)
    assert queries.edit(clerk, query.pk, name="new").name == "new"
    names = incidents.detail(clerk, harbour.incidents["private"].pk)[2]
    assert "clerk" in names
    clerk.is_staff = False
    clerk.save()
    assert may() == (False, False, False)


async def test_an_open_connection_follows_when_permissions_change(harbour, connect, django_user_model):
    clerk = await sync_to_async(django_user_model.objects.create_user)("clerk", is_staff=True)
    permission = await sync_to_async(Permission.objects.get)(codename="view_query")
    await sync_to_async(clerk.user_permissions.add)(permission)
    number = harbour.queries["private"].pk
    async with connect(clerk) as socket:
        await socket.hear("hello")
        await socket.tell("query.subscribe", id=1, query=number)
        await sync_to_async(clerk.user_permissions.clear)()
        await socket.hear("team.list")
        await socket.tell("query.snapshot", id=2, query=number)
        assert (await socket.hear("error", id=2))["code"] == "query"


# Alarms, and a team that ends.


def test_an_alarm_that_waits_is_not_sent_to_somebody_who_left_the_team(harbour, monkeypatch):
    monkeypatch.setattr("webapp.delivery.outbox._wake", lambda: None)  # no worker sends it meanwhile
    user, query = harbour.users["viewer"], harbour.queries["team"]
    channel = webhook("https://a.example")
    for who in ("viewer", "admin"):
        subscribed(harbour.users[who], channel, severity="info")
    changed(query)
    Membership.objects.get(user=user).delete()
    taken = claim(timezone.now(), "worker", DeliveryPace(), lambda channel: 10, [])
    assert [delivery.subscription.user for delivery in taken] == [harbour.users["admin"]]
    dropped = Delivery.objects.get(subscription__user=user)
    assert (dropped.state, dropped.log.get().error) == (Delivery.DEAD, UNHEARD)


def test_a_team_that_has_a_layer_is_not_deleted_since_everybody_would_see_the_layer(harbour):
    with pytest.raises(ProtectedError):
        harbour.team.delete()
    assert not rights_of(harbour.users["stranger"]).layers().filter(name="team").exists()


# Guests.


async def test_a_guest_is_gone_when_a_link_ends_earlier_than_it_did(harbour, connect_guest):
    async with connect_guest(harbour.secret) as guest:
        await guest.hear("hello")
        await sync_to_async(expire)(harbour.link, 0.6)
        assert await guest.closed() == 4410


async def test_a_guest_stays_when_a_link_ends_later_than_it_did(harbour, connect_guest):
    async with connect_guest(harbour.secret) as guest:
        await guest.hear("hello")
        await sync_to_async(expire)(harbour.link, 2.0)
        await sync_to_async(expire)(harbour.link, 3600)
        ended_s = 2.5
        with pytest.raises(TimeoutError):
            await guest.closed(timeout=ended_s)


def test_a_plan_that_names_a_hidden_layer_is_answered_as_one_that_names_none(harbour):
    berths(harbour)
    plans = [JOIN | {"join": {"layer": name, "predicate": "within"}} for name in ("berths", "nowhere")]
    made = [queries.register(harbour.users["stranger"], "q", plan) for plan in plans]
    words = [re.sub("berths|nowhere", "it", one.warning) for one in made]
    assert [one.status for one in made] == ["waiting"] * 2 and words[0] == words[1]
