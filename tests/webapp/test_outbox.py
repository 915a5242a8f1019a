"""Which changes of incidents are written to the outbox, and for whom."""

from datetime import UTC, datetime, time

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.forms import model_to_dict
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from tests.webapp.alarms import NOON, changed, query_of, subscribed, webhook
from webapp.admin.subscriptions import SubscriptionForm
from webapp.delivery import outbox
from webapp.delivery.outbox import enqueue
from webapp.models import Channel, Delivery, Incident, Membership, RemovedExamples, Subscription, Team
from webapp.models.schedule import within
from webapp.rights.access import usable_by

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Send nothing: these tests look at the outbox."""
    monkeypatch.setattr(outbox, "_wake", lambda: None)


@pytest.fixture
def channel():
    return webhook("https://a.example/alarms")


def keys():
    """Return the objects whose incidents are to be sent, with the receiver."""
    return sorted(
        (str(delivery.subscription.user or delivery.subscription.team), delivery.document["incident"]["key"])
        for delivery in Delivery.objects.select_related("subscription__user", "subscription__team")
    )


def test_a_change_is_written_once_for_each_subscription_however_often_it_is_told(user, other, channel):
    query = query_of(user, shared=True)
    for somebody in (user, other):
        subscribed(somebody, channel)
    changes = changed(query, 3)
    assert enqueue(changes) == 6
    assert Delivery.objects.count() == 6
    assert Delivery.objects.values("key").distinct().count() == 6


def test_what_is_rolled_back_is_not_sent(user, channel):
    subscribed(user, channel)
    with pytest.raises(RuntimeError), transaction.atomic():
        changed(query_of(user))
        raise RuntimeError
    assert not Incident.objects.exists() and not Delivery.objects.exists()


def test_a_delivery_survives_its_incident(user, channel):
    subscribed(user, channel)
    query = query_of(user)
    changed(query)
    query.delete()
    (delivery,) = Delivery.objects.all()
    assert delivery.change_id is None
    assert delivery.document["incident"]["key"] == "ship-0"
    assert delivery.document["query"]["name"] == "Harbour"


@pytest.mark.parametrize(
    ("least", "severity", "sent"),
    [("info", "info", 1), ("warning", "info", 0), ("warning", "critical", 1), ("critical", "warning", 0)],
)
def test_the_least_severity_decides(user, channel, least, severity, sent):
    subscribed(user, channel, severity=least)
    changed(query_of(user, severity=severity))
    assert Delivery.objects.count() == sent


def test_only_chosen_changes_are_sent(user, channel):
    subscribed(user, channel, changes=["closed", "acknowledged"])
    query = query_of(user)
    for what in ("opened", "closed", "acknowledged", "assigned"):
        changed(query, what=what, prefix=what)
    assert keys() == [("ann", "acknowledged-0"), ("ann", "closed-0")]


def test_a_user_hears_of_own_and_shared_queries_and_a_team_of_its_own_and_shared_ones(user, other, staff, channel):
    team = Team.objects.create(name="watch")
    for somebody in (user, other, staff, team):
        subscribed(somebody, channel)
    changed(query_of(user), prefix="own")
    changed(query_of(user, shared=True), prefix="shared")
    assert keys() == [("ann", "own-0"), *((who, "shared-0") for who in ("ann", "bob", "root", "watch"))]
    changed(query_of(user, team=team), prefix="team")
    assert {key for key in keys() if key[1] == "team-0"} == {("ann", "team-0"), ("watch", "team-0")}
    Membership.objects.create(team=team, user=other)
    changed(query_of(user, team=team), prefix="member")
    assert {who for who, key in keys() if key == "member-0"} == {"ann", "bob", "watch"}


def test_a_member_who_leaves_hears_nothing_more_by_the_channel_of_the_team(user, other):
    team = Team.objects.create(name="watch")
    member = Membership.objects.create(team=team, user=other)
    channel = Channel.objects.create(name="team", kind="webhook", options={"url": "https://a.example"}, team=team)
    for somebody in (other, team):
        subscribed(somebody, channel)
    changed(query_of(user, shared=True), prefix="before")
    member.delete()
    changed(query_of(user, shared=True), prefix="after")
    assert keys() == [("bob", "before-0"), ("watch", "after-0"), ("watch", "before-0")]


def test_a_subscription_can_name_its_queries_and_staff_any(user, other, staff, channel):
    named, not_named = query_of(user, "named"), query_of(user, "not named", shared=True)
    for somebody in (user, other, staff):
        subscribed(somebody, channel, [named])
    changed(named, prefix="named")
    changed(not_named, prefix="else")
    assert keys() == [("ann", "named-0"), ("root", "named-0")]


def test_who_has_left_or_removed_the_examples_hears_nothing_of_them(user, other, channel):
    example = query_of(None, shared=True)
    for somebody in (user, other):
        subscribed(somebody, channel)
    RemovedExamples.show(user, False)
    changed(example)
    assert keys() == [("bob", "ship-0")]
    other.is_active = False
    other.save()
    changed(example, prefix="later")
    assert Delivery.objects.count() == 1


def test_outside_the_schedule_nothing_is_sent(user, channel):
    subscribed(user, channel, weekdays=[0], begins=time(13), ends=time(15), time_zone="Europe/Helsinki")
    query = query_of(user)
    with transaction.atomic():
        changed(query, at=NOON)  # 14:00 in Helsinki
        changed(query, prefix="late", at=NOON.replace(hour=13))
        changed(query, prefix="tuesday", at=NOON.replace(day=6))
    assert keys() == [("ann", "ship-0")]


@given(
    at=st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC)),
    days=st.sets(st.integers(0, 6)),
    begins=st.times(),
    ends=st.times(),
)
def test_a_day_and_its_complement_make_the_whole_day(at, days, begins, ends):
    """What begins at one time and ends at another, and the other way round, share no moment and leave none out."""
    zone = "UTC"
    every = set(range(7))
    if begins == ends:
        assert within(at, days, begins, ends, zone) == (at.weekday() in days)
    else:
        assert within(at, every, begins, ends, zone) != within(at, every, ends, begins, zone)
    assert within(at, days, begins, ends, zone) <= within(at, every, begins, ends, zone)


def test_a_night_belongs_to_the_day_on_which_it_begins_also_when_clocks_change():
    night = (time(22), time(6), "Europe/Berlin")
    monday_3am = datetime(2026, 3, 30, 1, tzinfo=UTC)  # summer time since Sunday, 29 March
    assert within(monday_3am, [6], *night)
    assert not within(monday_3am, [0], *night)
    assert within(datetime(2026, 3, 29, 3, 59, tzinfo=UTC), [5], *night)  # 05:59 in summer time
    assert not within(datetime(2026, 3, 29, 4, tzinfo=UTC), [5], *night)


def test_the_document_says_what_happened_to_what(user, other, channel):
    subscribed(user, channel, changes=["assigned"])
    query = query_of(user)
    (change,) = changed(query, what="assigned", user=other, text="ann")
    document = Delivery.objects.get().document
    assert document["change"] == {
        "id": change.pk,
        "what": "assigned",
        "at": change.at.isoformat(timespec="milliseconds"),
        "user": "bob",
        "text": "ann",
    }
    assert document["incident"]["properties"] == {"speed_mps": 5.5}
    assert document["query"] == {"id": query.pk, "name": "Harbour", "stream": "ships", "space": "earth"}
    incident = change.incident_id
    assert document["url"].endswith(f"/#12/60.1700/24.9500&tab=incidents&incident={incident}")


def test_the_database_is_not_asked_more_often_about_more_changes_or_subscriptions(user, channel):
    query, asked = query_of(user), []
    for count in (10, 400):
        subscribed(user, channel)
        with CaptureQueriesContext(connection) as statements:
            changed(query, count, prefix=f"of-{count}")
        asked.append(sum(statement["sql"].startswith("SELECT") for statement in statements))
    assert asked[0] == asked[1] < 10
    assert Delivery.objects.count() == 10 + 800


def test_a_subscription_is_of_a_user_or_a_team_and_uses_their_channels(user, other, channel):
    team = Team.objects.create(name="watch")
    Membership.objects.create(team=team, user=user)
    of_user = Channel.objects.create(name="own", kind="webhook", options={"url": "https://a.example"}, owner=user)
    of_team = Channel.objects.create(name="team", kind="webhook", options={"url": "https://a.example"}, team=team)
    for receiver, allowed in (
        ({"user": user}, [channel, of_user, of_team]),
        ({"user": other}, [channel]),
        ({"team": team}, [channel, of_team]),
    ):
        for each in (channel, of_user, of_team):
            subscription = Subscription(**receiver, channel=each)
            form = SubscriptionForm(model_to_dict(subscription))
            assert usable_by(each, subscription) == form.is_valid() == (each in allowed)
            if each not in allowed:
                assert form.errors == {"channel": [f"the channel {each} belongs to another user or team"]}
    with pytest.raises(ValidationError, match="a subscription must be of a user or of a team"):
        Subscription(channel=channel).full_clean()
    with pytest.raises(IntegrityError):
        Subscription.objects.create(user=user, team=team, channel=channel)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"time_zone": "Moon"}, "must be a name such as Europe/Helsinki; got 'Moon'"),
        ({"begins": time(8)}, "give both times of day, or neither"),
        ({"weekdays": [7]}, r"choose at least one of 0, 1, 2, 3, 4, 5, 6; got \[7\]"),
        ({"changes": []}, r"choose at least one of opened, .*; got \[\]"),
        ({"limit": 0}, "greater than or equal to 1"),
    ],
)
def test_a_subscription_that_breaks_a_rule_is_refused_with_the_rule(user, channel, fields, words):
    with pytest.raises(ValidationError, match=words):
        Subscription(user=user, channel=channel, **fields).full_clean()
