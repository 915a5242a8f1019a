"""Channels, subscriptions and deliveries in the admin."""

import re

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from tests.webapp.alarms import changed, query_of, subscribed, webhook
from tests.webapp.receiver import Receiver
from webapp.delivery import outbox
from webapp.models import Channel, Delivery, DeliveryAttempt, Subscription, Team

pytestmark = pytest.mark.django_db(transaction=True)
CHANNELS, SUBSCRIPTIONS, DELIVERIES = (f"/admin/webapp/{name}/" for name in ("channel", "subscription", "delivery"))


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr(outbox, "_wake", lambda: None)


@pytest.fixture
def admin(staff):
    client = Client()
    client.force_login(staff)
    return client


@pytest.fixture
def receiver():
    with Receiver() as made:
        yield made


def form(kind="webhook", name="hook", **options):
    """Return what a browser sends for a channel."""
    fields = {f"channel__{kind}__{option}": value for option, value in options.items()}
    return {"name": name, "kind": kind, "enabled": "on"} | fields


def errors_of(response):
    return {name: list(told) for name, told in response.context["adminform"].form.errors.items()}


def test_a_channel_is_saved_with_its_options_and_its_secrets_are_never_shown_again(admin):
    told = form(url="https://a.example/x", signing_key="k3y-k3y-k3y", token="t0k3n-t0k3n")
    assert admin.post(f"{CHANNELS}add/", told).status_code == 302
    channel = Channel.objects.get()
    assert (channel.options, channel.secrets) == (
        {"url": "https://a.example/x"},
        {"signing_key": "k3y-k3y-k3y", "token": "t0k3n-t0k3n"},
    )
    page = f"{CHANNELS}{channel.pk}/change/"
    for shown in (admin.get(page), admin.get(CHANNELS), admin.post(page, form(url="no address", token="t0k3n-t0k3n"))):
        assert shown.status_code == 200
        assert b"k3y-k3y" not in shown.content and b"t0k3n-t0k3n" not in shown.content
    assert b"https://a.example/x" in admin.get(page).content
    assert b"Saved, and never shown." in admin.get(page).content


def test_an_empty_secret_keeps_the_saved_one_and_a_new_one_replaces_it(admin):
    channel = webhook("https://a.example/x", signing_key="old", token="kept")
    page = f"{CHANNELS}{channel.pk}/change/"
    assert admin.post(page, form(name="renamed", url="https://a.example/x", signing_key="new")).status_code == 302
    channel.refresh_from_db()
    assert (channel.name, channel.secrets) == ("renamed", {"signing_key": "new", "token": "kept"})
    told = form(url="https://a.example/x", signing_key="newer") | {"forget": "on"}
    assert admin.post(page, told).status_code == 302
    channel.refresh_from_db()
    assert channel.secrets == {"signing_key": "newer"}


def test_a_kept_secret_does_not_go_to_another_server(admin):
    channel = webhook("https://a.example/x", token="kept")
    page = f"{CHANNELS}{channel.pk}/change/"
    response = admin.post(page, form(url="https://thief.example/x"))
    rule = ["url has changed, so enter token again, which would be sent there"]
    assert errors_of(response) == {"channel__webhook__token": rule}
    assert admin.post(page, form(url="https://b.example/x", token="kept")).status_code == 302
    channel.refresh_from_db()
    assert channel.options == {"url": "https://b.example/x"}
    assert admin.post(page, form("slack", url="https://b.example/x")).status_code == 302
    channel.refresh_from_db()
    assert (channel.options, channel.secrets) == ({}, {"url": "https://b.example/x"})


def test_an_error_is_shown_at_the_field_that_it_names(admin):
    out_of_reach = "a host must be public, or allowed by LOOKOUT_DELIVERY_HOSTS; '10.0.0.1' is an address"
    for told, field, words in (
        (form(url="ftp://a"), "channel__webhook__url", "url must begin with http:// or https://"),
        (form("email", to="ann", host="a.example", security="tls"), "channel__email__to", "must be e-mail addresses"),
        (form("mqtt", topic="a"), "channel__mqtt__host", "host must be given"),
        (form("mqtt", host="10.0.0.1", topic="a"), "channel__mqtt__host", out_of_reach),
        ({"name": "x", "kind": "pigeon"}, "kind", "kind must be one of email, mqtt"),
    ):
        found = errors_of(admin.post(f"{CHANNELS}add/", told))
        assert list(found) == [field] and words in found[field][0], found


def test_a_test_says_at_once_what_the_receiver_answered_and_saves_nothing(admin, receiver):
    answer = admin.post(f"{CHANNELS}test/", form(name="", url=receiver.url)).json()
    assert answer["sent"].startswith("The receiver accepted with status 200 after ")
    (document,) = receiver.taken.values()
    assert document["type"] == "test"
    receiver.always, receiver.status = "refuse", 403
    assert "got 403 Forbidden" in admin.post(f"{CHANNELS}test/", form(url=receiver.url)).json()["error"]
    assert "errors" in admin.post(f"{CHANNELS}test/", form(url="ftp://a")).json()
    assert not Channel.objects.exists()


def test_a_test_of_a_saved_channel_uses_its_secrets(admin, receiver):
    channel = webhook(receiver.url, token="kept")
    assert "sent" in admin.post(f"{CHANNELS}test/", form(url=receiver.url) | {"channel": channel.pk}).json()
    assert receiver.requests[0][0]["Authorization"] == "Bearer kept"
    elsewhere = admin.post(f"{CHANNELS}test/", form(url=f"{receiver.url}/thief") | {"channel": channel.pk}).json()
    assert "enter token again" in elsewhere["errors"]["channel__webhook__token"][0]
    assert len(receiver.requests) == 1


def test_only_who_may_change_channels_may_test_them(receiver, user):
    user.is_staff = True
    user.save()
    client = Client()
    client.force_login(user)
    assert client.post(f"{CHANNELS}test/", form(url=receiver.url)).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="add_channel"))
    assert "sent" in client.post(f"{CHANNELS}test/", form(url=receiver.url)).json()
    saved = webhook(receiver.url)
    assert client.post(f"{CHANNELS}test/", form(url=receiver.url) | {"channel": saved.pk}).status_code == 403
    assert client.get(f"{CHANNELS}test/").status_code == 405


def subscription(channel, **fields):
    """Return what a browser sends for a subscription."""
    agreed = {"channel": channel.pk, "enabled": "on", "severity": "info", "changes": ["opened", "closed"]}
    agreed |= {"weekdays": ["0", "4"], "time_zone": "Europe/Helsinki", "window_s": "3600"}
    return agreed | fields


def test_a_new_subscription_begins_with_what_most_people_want(admin):
    page = admin.get(f"{SUBSCRIPTIONS}add/").content.decode()
    ticked = re.findall(r'name="(changes|weekdays)" value="(\w+)"[^>]* checked', page)
    assert ticked == [("changes", "opened"), *(("weekdays", str(day)) for day in range(7))]


def test_a_subscription_is_made_with_boxes_and_listed_in_words(admin, user):
    channel = webhook("https://a.example")
    told = subscription(channel, user=user.pk, begins="08:00", ends="17:30", limit="10")
    assert admin.post(f"{SUBSCRIPTIONS}add/", told).status_code == 302
    made = Subscription.objects.get()
    assert (made.weekdays, made.changes, made.limit) == ([0, 4], ["opened", "closed"], 10)
    page = admin.get(SUBSCRIPTIONS).content.decode()
    for words in ("opened, closed", "Mon, Fri, 08:00–17:30 Europe/Helsinki", "10 in 3,600 s"):
        assert words in page
    shown = admin.get(f"{SUBSCRIPTIONS}{made.pk}/change/").content.decode()
    assert shown.count("checked") == 5  # two changes, two days, enabled


def test_queries_that_the_receiver_does_not_see_are_refused(admin, user, other):
    channel, team = webhook("https://a.example"), Team.objects.create(name="watch")
    private, shared = query_of(user, "private"), query_of(user, "shared", shared=True)
    for receiver, query, accepted in (
        ({"user": user.pk}, private, True),
        ({"user": other.pk}, private, False),
        ({"user": other.pk}, shared, True),
        ({"team": team.pk}, private, False),
        ({"team": team.pk}, shared, True),
    ):
        response = admin.post(f"{SUBSCRIPTIONS}add/", subscription(channel, queries=[query.pk], **receiver))
        assert (response.status_code == 302) == accepted
        if not accepted:
            assert "does not see private" in errors_of(response)["queries"][0]
    nobody = admin.post(f"{SUBSCRIPTIONS}add/", subscription(channel))
    assert errors_of(nobody) == {"__all__": ["a subscription must be of a user or of a team"]}


def test_dead_deliveries_are_shown_with_their_attempts_and_sent_again(admin, user, receiver):
    subscribed(user, webhook(receiver.url))
    changed(query_of(user), 2)
    dead, sent = Delivery.objects.order_by("pk")
    Delivery.objects.filter(pk=dead.pk).update(state="dead", attempts=30)
    Delivery.objects.filter(pk=sent.pk).update(state="sent")
    DeliveryAttempt.objects.create(delivery=dead, outcome="failed", status=500, error="the receiver must answer 2xx")
    listed = admin.get(f"{DELIVERIES}?state__exact=dead").content.decode()
    assert "[critical] Harbour: ship-0 opened" in listed and "ship-1" not in listed
    assert "the receiver must answer 2xx" in listed
    page = admin.get(f"{DELIVERIES}{dead.pk}/change/").content.decode()
    assert "the receiver must answer 2xx" in page and "Object: ship-0" in page
    action = {"action": "send_again", "_selected_action": [dead.pk, sent.pk]}
    answer = admin.post(DELIVERIES, action, follow=True).content.decode()
    assert "1 deliveries are sent again" in answer
    assert [document["incident"]["key"] for document in receiver.taken.values()] == ["ship-0"]


def test_who_only_sees_deliveries_cannot_send_them_again(user, receiver):
    user.is_staff = True
    user.save()
    user.user_permissions.add(Permission.objects.get(codename="view_delivery"))
    subscribed(user, webhook(receiver.url))
    changed(query_of(user))
    Delivery.objects.update(state="dead")
    client = Client()
    client.force_login(user)
    assert b"send_again" not in client.get(DELIVERIES).content
    client.post(DELIVERIES, {"action": "send_again", "_selected_action": [Delivery.objects.get().pk]})
    assert Delivery.objects.get().state == "dead"
